"""Log lines: one per record whatever a name contains, and only those of the chosen verbosity."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from trimtab.operator.log_format import JsonFormatter, TextFormatter, set_up

NASTY = "a\nb\x1b[2J\u202egone\x7f"


def record(message: str = "scaled", error: Exception | None = None, **facts: object) -> logging.LogRecord:
    info = (type(error), error, None) if error is not None else None
    made = logging.LogRecord("trimtab", logging.INFO, "", 1, message, (), info)
    made.created = 1768478400.0
    if facts:
        made.facts = facts
    return made


def test_a_text_line_has_time_level_message_and_facts():
    line = TextFormatter().format(record(hpa="shop/web", to=4, why="too much", empty="", quoted='a"b'))
    assert line == (
        '2026-01-15T12:00:00Z INFO scaled hpa=shop/web to=4 why="too much" empty="" quoted="a\\"b"'
    )
    assert TextFormatter().format(record()) == "2026-01-15T12:00:00Z INFO scaled"


def test_a_json_line_has_the_same_and_the_logger():
    entry = json.loads(JsonFormatter().format(record(hpa="shop/web", to=4)))
    assert entry == {
        "time": "2026-01-15T12:00:00+00:00",
        "level": "INFO",
        "message": "scaled",
        "logger": "trimtab",
        "hpa": "shop/web",
        "to": 4,
    }


@pytest.mark.parametrize("made", [record(NASTY), record(name=NASTY)], ids=["message", "fact"])
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_a_name_can_neither_break_a_line_nor_drive_a_terminal(made, formatter):
    line = formatter.format(made)
    assert not any(mark in line for mark in "\n\r\x1b\x7f\u202e") or (
        isinstance(formatter, JsonFormatter) and "\n" not in line and "\x1b" not in line
    )


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_an_error_comes_with_its_traceback(formatter):
    assert "ValueError: broken" in formatter.format(record(error=ValueError("broken")))
    assert "Error" not in formatter.format(record())


def test_facts_that_are_no_mapping_are_left_out():
    made = record()
    made.facts = "shop/web"
    assert TextFormatter().format(made) == "2026-01-15T12:00:00Z INFO scaled"


@pytest.fixture
def restored() -> Iterator[None]:
    """Leave logging as it was."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn")
    before = root.level, root.handlers[:], uvicorn.level
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    uvicorn.setLevel(before[2])


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("verbosity", "level"),
    [
        (0, logging.WARNING),
        (1, logging.INFO),
        (4, logging.INFO),
        (5, logging.DEBUG),
        (10, logging.DEBUG),
    ],
)
@pytest.mark.parametrize(("form", "kind"), [("json", JsonFormatter), ("text", TextFormatter)])
def test_verbosity_and_form_are_those_of_the_flags(form, kind, verbosity, level):
    set_up(form, verbosity=verbosity)
    root = logging.getLogger()
    (handler,) = root.handlers
    assert root.level == level
    assert isinstance(handler, logging.StreamHandler)
    assert isinstance(handler.formatter, kind)
    assert handler.stream is sys.stderr
    assert logging.getLogger("uvicorn").level == logging.WARNING
