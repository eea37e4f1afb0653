"""A call above a second shows how far it is, and leaves nothing behind."""

import io
import sys

import pytest

from trimtab.clock import VirtualClock
from trimtab.library.progress import ProgressLine, progress_line


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def stream():
    return io.StringIO()


def test_a_short_call_shows_nothing(clock, stream):
    line = ProgressLine(clock, stream)
    clock.advance(0.9)
    line.show("web", 0.9)
    line.clear()
    assert stream.getvalue() == ""


def test_a_long_call_overwrites_its_line(clock, stream):
    line = ProgressLine(clock, stream)
    clock.advance(1)
    line.show("the first", 0.25)
    line.show("the first", 0.26)  # too soon for another
    clock.advance(0.5)
    line.show("web", 1.0)
    line.clear()
    assert stream.getvalue().split("\r")[1:] == ["the first: 25%", "web: 100%     ", " " * 9, ""]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_it_is_shown_on_a_terminal_and_in_a_notebook_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_line() as hidden:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
        with progress_line() as in_notebook:
            assert hidden.__name__ == "_show_nothing"
            assert in_notebook.__name__ == "show"
    monkeypatch.delitem(sys.modules, "ipykernel")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_line() as on_terminal:
        assert on_terminal.__name__ == "show"
