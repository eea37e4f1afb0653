"""Notes on where the operator does otherwise than an explanation says."""

from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.from_status import StatusReason, forbidden_metric
from trimtab.decide.horizontal.reasons import ROWS, State
from trimtab.operator.settings.published import FoundSettings
from trimtab.plugins.guard import FailureReason


def operator_note(record: Record, stored: StatusReason | None) -> list[str]:
    """Return what the operator decided last, if that is another reason: it may have other rights, or see other plug-ins."""
    if stored is None or stored.word == record.decision.reason.code or forbidden_metric(record.observation):
        return []
    # After a change of the scale the reason is another one.
    has_scaled = any(code == stored.word and row.state is State.SCALING for code, row in ROWS.items())
    return [] if has_scaled else [f"operator: {stored.word}: {stored.message}"]


def dry_run_note(found: FoundSettings) -> list[str]:
    """Return a note if the operator writes nothing."""
    return ["dry run: the operator runs with --dry-run and changes nothing"] if found.settings.dry_run else []


def unwatched_note(found: FoundSettings, namespace: str) -> list[str]:
    """Return a note if the operator does not watch the namespace."""
    watched = found.settings.watch_namespaces
    if not watched or namespace in watched:
        return []
    return [f"not acted on: the operator watches {', '.join(watched)} and not {namespace}"]


def not_acted_on_note(found: FoundSettings, flag: str) -> str:
    """Return the note about an autoscaler of a kind that the operator leaves alone because of this flag."""
    who = "the operator" if found.is_published else "an operator with default settings"
    return f"not acted on: {who} runs with {flag}; this is what it would decide otherwise"


def unloaded_note(record: Record) -> list[str]:
    """Return a note about plug-ins whose answers the operator has and this program has not."""
    seen = record.observation
    answers = [seen.filter_answer, *seen.policy_answers]
    names = [
        answer.plugin
        for answer in answers
        if answer is not None and answer.reason == FailureReason.NOT_LOADED and answer.failure
    ]
    if not names:
        return []
    return [
        f"not the operator's decision: it is made without {', '.join(names)}; name it in --plugins, or ask the operator with --operator"
    ]
