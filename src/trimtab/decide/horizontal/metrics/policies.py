"""Combines the answers of replica policies with what the metrics ask for.

The largest proposal counts, whether a metric or a policy makes it. A policy that failed might need the pods that there are, so the
replicas are not lowered meanwhile.
"""

from typing import Any

import msgspec

from trimtab.decide.horizontal.metrics.calculator import MetricsResult
from trimtab.decide.horizontal.observation.plugin_answers import INVALID_POLICIES, PolicyAnswer


def add_policies(result: MetricsResult, answers: tuple[PolicyAnswer, ...], current: int) -> MetricsResult:
    """Return what metrics and policies ask for together."""
    held = "; ".join(answer.failure for answer in answers if answer.failure)
    if held:
        least = None if result.replicas is None else max(result.replicas, current)
        result = msgspec.structs.replace(result, policy_hold=held, replicas=least)
    winner, replicas = _largest(answers)
    if winner is None or (result.replicas is None and result.stopped_by != "Metrics"):
        return result
    # A metric that cannot be read might need the pods that there are; a policy may only ask for more.
    if replicas < (current if result.replicas is None else result.replicas + 1):
        return result
    return msgspec.structs.replace(
        result,
        replicas=replicas,
        winner=None,
        winning_policy=winner,
        name=f"{answers[winner].name}: {answers[winner].reason}",
        blocked_by=None,
        stopped_by="",
    )


def policy_memory(answers: tuple[PolicyAnswer, ...], before: dict[str, Any]) -> dict[str, Any]:
    """Return what the policies remember. A policy that failed keeps its memory."""
    if any(answer.reason == INVALID_POLICIES and answer.failure for answer in answers):
        return before  # which policies there are is unknown
    remembered = {
        answer.plugin: before.get(answer.plugin) if answer.failure else answer.memory for answer in answers
    }
    return {plugin: memory for plugin, memory in remembered.items() if memory is not None}


def _largest(answers: tuple[PolicyAnswer, ...]) -> tuple[int | None, int]:
    """Return index and replicas of the first of the largest proposals."""
    winner, most = None, -1
    for index, answer in enumerate(answers):
        if answer.replicas is not None and answer.replicas > most:
            winner, most = index, answer.replicas
    return winner, most
