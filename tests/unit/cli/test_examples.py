"""Every example in examples/ is what a reader may copy: without errors and without warnings."""

from pathlib import Path

import pytest

from trimtab.cli import answer

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


def test_there_is_an_example_for_every_story():
    assert {path.stem for path in EXAMPLES} >= {
        "count-only-my-pods",
        "tolerance",
        "to-zero-and-back",
        "queue-metric-selector",
        "leader-follower",
        "daemonset-by-node-class",
        "hot-shard",
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_beyond_doubt(example, capsys):
    assert answer(["validate", "--strict", str(example)]) == 0
    assert capsys.readouterr().out == ""
