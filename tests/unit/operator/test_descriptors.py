"""Scarce descriptors are reported before they are used up."""

import os
import resource
from contextlib import ExitStack
from pathlib import Path

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
