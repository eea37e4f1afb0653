"""Code of a plug-in that runs after its call, in its answer or its exception, has the same time limit."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.unit.plugins.test_guard import guard
from trimtab.plugins.errors import WrongAnswerError
from trimtab.plugins.guard import PluginFailure
from trimtab.plugins.pod_filter import FilterPod, check_left_out
from trimtab.plugins.replica_policy import ReplicaProposal, check_proposal

PODS = (FilterPod(name="web-0"), FilterPod(name="web-1"))


def hang() -> None:
    for _ in range(10**8):  # a minute, if nothing ends it
        pass


class SlowMapping(Mapping[str, str]):
    """A mapping that looks its values up slowly."""

    def __getitem__(self, key: str) -> str:
        hang()
        return "drained"

    def __iter__(self) -> Iterator[str]:
        return iter(["web-0"])

    def __len__(self) -> int:
        return 1


class SlowTextError(Exception):
    """An exception whose text takes long."""

    def __str__(self) -> str:
        hang()
        return "late"


class Name(str):
    """A text that is slow to compare once it has left the plug-in."""

    __slots__ = ()


def slow_mapping(_seen: object) -> Mapping[str, str]:
    return SlowMapping()


def slow_text(_seen: object) -> Mapping[str, str]:
    raise SlowTextError


def slow_cause(_seen: object) -> Mapping[str, str]:
    raise KeyError("zone") from SlowTextError()


@pytest.mark.parametrize("function", [slow_mapping, slow_text, slow_cause])
def test_what_runs_after_the_call_is_within_the_limit(function: Any) -> None:
    failure = guard(function).call(
        None, lambda answer: check_left_out(answer, PODS), user="shop/web", now=0.0
    )
    assert isinstance(failure, PluginFailure)
    assert failure.reason == "PluginTooSlow"


def test_a_checked_answer_has_no_class_of_the_plugin() -> None:
    class Number(int):
        pass

    left_out = check_left_out({Name("web-0"): Name("drained")}, PODS)
    proposal = check_proposal(ReplicaProposal(replicas=Number(3), reason=Name("three")))
    found = [*left_out, *left_out.values(), proposal.replicas, proposal.reason]
    assert [type(value) for value in found] == [str, str, int, str]


@pytest.mark.parametrize("reason", ["a\ud800b", "\x1b[31mred", "nul\x00", "\x7f", "\x9b"])
def test_a_reason_that_cannot_be_shown_is_a_wrong_answer(reason: str) -> None:
    with pytest.raises(WrongAnswerError, match=r"a reason with the character U\+"):
        check_left_out({"web-0": reason}, PODS)
    with pytest.raises(WrongAnswerError, match=r"a reason with the character U\+"):
        check_proposal(ReplicaProposal(replicas=1, reason=reason))
    assert check_left_out({"web-0": "zwei\n\tÄ 👩‍🚀"}, PODS) == {"web-0": "zwei Ä 👩‍🚀"}


STUBBORN = """
from tests.unit.plugins.test_guard import call, guard
def stubborn(seen):
    while True:
        try:
            while True:
                sum(range(100))
        except:
            continue
call(guard(stubborn))
"""


def test_a_plugin_that_catches_every_interruption_ends_the_process_by_name() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "pod filter example.com/Plugin 1.2 took too long and caught 3 interrupts" in ended.stderr
