"""Two short worlds beside the real controllers, so that the judge stays able to judge."""

import asyncio
import gzip
import json
from dataclasses import replace

import pytest

from tests.worlds.real import judge, vpas
from tests.worlds.real.play import arena
from tests.worlds.real.profiles import draw_profile

pytestmark = pytest.mark.real
HPAS = replace(draw_profile("64", "plain"), seconds=16)
VPAS = vpas.Profile(seconds=30, acts_after=2)  # upstream waits 10 s before it registers its webhook


async def play(out):
    async with arena(out) as play:
        return [await play(HPAS, ["64.11"], 1), await play(VPAS, ["v.12"], 1)]


def lives_of(file):
    return json.loads(gzip.decompress(file.read_bytes()))["lives"]


def test_both_controllers_scale_and_size_what_they_are_given(tmp_path):
    """The load of 64.11 grows after 9 s. The pods of v.12 get too much CPU, and their memory is not measured."""
    files = asyncio.run(play(tmp_path))
    for life in lives_of(files[0]):
        grown = [size for size in life["sizes"] if size[2] > size[1] and size[3] == "controller"]
        assert grown, life["notes"]
        assert life["writes"]["scale"] >= len(grown)
    for life in lives_of(files[1]):
        assert any("resized" in text for _, text in life["log"]), life
        assert life["writes"]["resize"] >= 1
    lines, is_worse = judge.report(files, {})
    assert "2 worlds, 0 stories" in lines
    assert not is_worse
