"""Which of Kubernetes' tests run, and that none does where a real node is asked for and cannot be had."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tools.release.version import ROOT
from tools.upstream import chosen, programs
from tools.upstream.__main__ import main
from tools.upstream.cases import Case

CASES = [
    Case(f"[sig-autoscaling] Horizontal pod autoscaling {name}", is_serial=False)
    for name in ("up", "down", "up and down")
]


@pytest.mark.parametrize(
    ("match", "skip", "names", "want"),
    [
        pytest.param("", "$^", None, ["up", "down", "up and down"], id="all"),
        pytest.param("down", "$^", None, ["down", "up and down"], id="those that match"),
        pytest.param("down", "and", None, ["down"], id="without those to skip"),
        pytest.param("", "$^", ["up"], ["up"], id="those of the table by their whole names"),
        pytest.param(
            "", "and", ["up and down", "down", "up"], ["down", "up"], id="in the order of the table"
        ),
    ],
)
def test_tests_are_chosen_by_expression_and_by_name(match, skip, names, want):
    assert [case.short_name for case in chosen.among(CASES, match, skip, names)] == want


def test_a_name_that_no_test_has_is_an_error():
    with pytest.raises(chosen.UnknownTestError, match="no such test: sideways; mend"):
        chosen.among(CASES, "", "$^", ["up", "sideways"])


def test_a_choice_without_a_test_is_an_error():
    """It ran no test, and ended as if all had passed."""
    with pytest.raises(chosen.UnknownTestError, match="no test is left of 3 with --match=sideways"):
        chosen.among(CASES, "sideways", "$^")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--jobs=0"], "argument --jobs: '0' is no number of tests; use 1 or more", id="no job"),
        pytest.param(["--jobs=-2"], "argument --jobs: '-2' is no number of tests", id="fewer than none"),
        pytest.param(["--match=("], "argument --match: '(' is no regular expression: missing )", id="match"),
        pytest.param(["--skip=*"], "argument --skip: '*' is no regular expression: nothing", id="skip"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["test-upstream", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


LISTING = """#!/usr/bin/env python3
import json, sys
report = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)["--ginkgo.json-report"]
spec = {"ContainerHierarchyTexts": ["Horizontal pod autoscaling"], "ContainerHierarchyLabels": [None]}
spec |= {"LeafNodeText": "up", "LeafNodeLabels": None, "LeafNodeType": "It", "State": "passed"}
json.dump([{"SpecReports": [spec]}], open(report, "w"))
"""


def test_a_list_is_only_a_list_and_leaves_no_files(tmp_path, monkeypatch, capsys):
    """It named a directory of logs, left it behind, and built programs that only a run needs."""
    monkeypatch.setenv("PEERS_BIN", str(tmp_path / "peers"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}")  # where no `go` is
    program = programs.place_of("e2e")
    program.parent.mkdir(parents=True)
    program.write_text(LISTING)
    program.chmod(0o700)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(sys, "argv", ["test-upstream", "--list"])
    main()
    assert capsys.readouterr().out == "Horizontal pod autoscaling up\n"
    assert list(scratch.iterdir()) == []


def test_without_go_a_list_is_skipped_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PEERS_BIN", str(tmp_path / "peers"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["test-upstream", "--list"])
    main()
    said = capsys.readouterr().out
    assert said.startswith("test-upstream: SKIPPED, none of Kubernetes' tests was run: e2e-")
    assert said.endswith("and there is no `go` to build with\n")


def test_without_a_real_node_the_run_is_skipped_with_the_reason(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tools.upstream", "--real-node"],
        cwd=ROOT, env=os.environ | {"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("test-upstream: SKIPPED, none of Kubernetes' tests was run: ")
    assert "apt-get install qemu-system-x86" in run.stdout or "user-mode Linux needs" in run.stdout
