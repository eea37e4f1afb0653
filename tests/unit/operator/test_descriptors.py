"""Scarce descriptors are reported before they are used up."""

import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from trimtab.operator.descriptors import Descriptors


def test_descriptors_are_reported_from_nine_tenths_of_the_limit_on():
    checked = Descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    limit = used + 50
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        assert checked.warnings() == {}
        for _ in range(49):
            stack.enter_context(Path(os.devnull).open())
        assert f"of {limit} open files are in use; raise the limit" in checked.warnings()["descriptors"]
        stack.enter_context(Path(os.devnull).open())
        assert f"{limit} of {limit} open files" in checked.warnings()["descriptors"]
        assert checked.health() == {}


@pytest.mark.parametrize(
    ("limit", "used", "is_scarce"),
    [
        pytest.param(100, 89, False, id="below nine tenths"),
        pytest.param(100, 90, True, id="exactly nine tenths"),
        pytest.param(resource.RLIM_INFINITY, 10**6, False, id="no limit"),
        pytest.param(100, FileNotFoundError(), False, id="a system without /proc"),
        pytest.param(100, OSError("too many open files"), True, id="none is left to count them with"),
    ],
)
def test_when_descriptors_are_scarce(limit, used, is_scarce, monkeypatch):
    def listdir(_path: str) -> list[str]:
        if isinstance(used, Exception):
            raise used
        return [""] * used

    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, 10 * limit))
    monkeypatch.setattr(os, "listdir", listdir)
    warnings = Descriptors().warnings()
    assert bool(warnings) is is_scarce
    if isinstance(used, OSError) and is_scarce:
        assert "100 of 100 open files" in warnings["descriptors"], "the soft limit is reached"
