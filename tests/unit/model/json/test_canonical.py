"""Objects are given back in the API server's spelling."""

from typing import Any

import msgspec
import pytest

from trimtab.model.json.canonical import canonical
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity


class Inner(Wire, frozen=True):
    name: str = ""
    amount: Quantity | None = None


class Outer(Wire, frozen=True):
    kind: str = ""
    note: str = ""
    fixed: Quantity = Quantity.zero
    inner: Inner = Inner()
    pointer: int | None = None
    items: tuple[Inner, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)


ALWAYS: Any = {Outer: frozenset({"kind", "fixed"}), Inner: frozenset({"name"})}
EMPTY = {"kind": "", "fixed": "0", "inner": {"name": ""}}


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param({}, {}, id="what is always written, and nested structs, are put in"),
        pytest.param({"note": "", "items": [], "labels": {}}, {}, id="empty fields are left out"),
        pytest.param({"note": None, "pointer": None, "items": None}, {}, id="nulls are left out"),
        pytest.param({"pointer": 0}, {"pointer": 0}, id="an optional zero is a value"),
        pytest.param({"fixed": 0.5}, {"fixed": "500m"}, id="quantities are canonical"),
        pytest.param(
            {"items": [{"amount": "1000Mi"}]},
            {"items": [{"name": "", "amount": "1000Mi"}]},
            id="in lists too",
        ),
        pytest.param({"future": {"x": None}}, {"future": {"x": None}}, id="what is not known is not touched"),
    ],
)
def test_canonical(data, want):
    assert canonical(data, Outer, ALWAYS) == EMPTY | want
