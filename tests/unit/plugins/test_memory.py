"""What a plug-in may remember: JSON that comes back as it was returned."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from trimtab.plugins.answers import check_memory
from trimtab.plugins.errors import WrongAnswerError

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("memory", "kept"),
    [
        (None, None),
        ({"count": 1, "rates": [0.5, None, True]}, {"count": 1, "rates": [0.5, None, True]}),
        # The memory that a plug-in sees cannot be changed, and it may return that again.
        (MappingProxyType({"days": (1, MappingProxyType({}))}), {"days": [1, {}]}),
        ("text", "text"),
    ],
)
def test_json_is_kept(memory, kept):
    assert check_memory(memory, largest=1024) == kept


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ({1, 2}, "it has a value of type set; use dict, list, str, int, float, bool and None"),
        ([{"at": datetime(2026, 1, 1, tzinfo=UTC)}], "it has a value of type datetime"),
        ({"sum": Decimal(1)}, "it has a value of type Decimal"),
        (b"bytes", "it has a value of type bytes"),
        (object(), "it has a value of type object"),
        ({1: "one"}, "it has a key of type int, not str"),
        (math.nan, "it has the number nan"),
        ([math.inf], "it has the number inf"),
        (2**63, "it has a number beyond 9223372036854775807"),
        (CYCLE, "recursion"),
        ("\ud800", "is no JSON"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused(memory, words):
    """A set came back as a list, NaN as nothing, and the key 1 as a text."""
    with pytest.raises(WrongAnswerError, match="a memory that is no JSON") as error:
        check_memory(memory, largest=1024)
    assert words in str(error.value)


def test_a_memory_has_a_limit():
    with pytest.raises(WrongAnswerError, match="a memory of 1026 bytes; 1024 are possible"):
        check_memory("x" * 1024, largest=1024)
