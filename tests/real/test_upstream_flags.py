"""The list of upstream's flags is what upstream's programs say, at the version that is built."""

import re
import subprocess

import pytest

from tools.peers.build import VPA, binaries, ensure
from tools.upstream_flags import DATA, upstream_flags
from trimtab.model.json import wire

pytestmark = pytest.mark.real
# `--name type`, and for numbers and texts the default in brackets at the end of the text.
_FLAG = re.compile(r"^\s+(?:-\w, )?--([\w-]+)", re.MULTILINE)


def test_the_list_is_of_the_version_that_is_built():
    assert f"v{wire.decode(DATA.read_bytes(), dict)['version']}" == VPA


@pytest.mark.parametrize("program", sorted(upstream_flags()))
def test_each_program_lists_the_same_flags(program):
    ensure([program])
    told = subprocess.run([binaries() / program, "--help"], capture_output=True, text=True, check=False)
    found = set(_FLAG.findall(told.stdout + told.stderr)) - {"help"}
    assert found == set(upstream_flags()[program])
