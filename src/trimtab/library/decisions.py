"""Explains and repeats recorded decisions."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from trimtab.decide.horizontal import Explanation, Record
from trimtab.decide.horizontal import explain as explain_record
from trimtab.decide.horizontal import replay as replay_record
from trimtab.decide.horizontal.records.record import decide_and_complete, dumps, loads


class RecordError(ValueError):
    """The text is not a record, or of a format that this program cannot read."""


@dataclass(frozen=True, slots=True, repr=False)
class Replay:
    """A recorded decision, and the decision that this program makes from the same observation."""

    recorded: Record
    """The record as it was kept."""
    decided: Record
    """The record that this program makes."""
    notes: tuple[str, ...] = ()
    """The plug-ins whose recorded answers count because they are not called again, and why."""

    @property
    def is_same(self) -> bool:
        """Return whether both decisions are the same, to the byte."""
        return dumps(self.decided) == dumps(self.recorded)

    @property
    def difference(self) -> str:
        """Return what differs between the explanations, as a unified diff; empty if nothing does."""
        before, after = (str(explain_record(record)).splitlines() for record in (self.recorded, self.decided))
        return "\n".join(difflib.unified_diff(before, after, "recorded", "decided now", lineterm=""))

    @property
    def summary(self) -> str:
        """Return the HPA and what this program decides, in a line."""
        return f"{self.decided.observation.hpa.key}: {explain_record(self.decided).summary}"

    def __str__(self) -> str:
        return "\n".join(part for part in (self.difference, self.summary) if part)

    def __repr__(self) -> str:
        return (
            f"<Replay of {self.recorded.observation.hpa.key}: {'the same' if self.is_same else 'different'}>"
        )


def explain(record: Record | str | bytes) -> Explanation:
    """Explain a decision. `str()` of the result is what `trimtab explain` prints.

    `record` is a record, or its JSON as `trimtab explain -o record` and `trimtab simulate --records` write it, a record
    per line. Raise RecordError if it cannot be read.
    """
    return explain_record(_read(record))


def replay(record: Record | str | bytes, *, plugins: Iterable[str] = ()) -> Replay:
    """Repeat a recorded decision from its observation, and compare both.

    `record` is a record or its JSON, as for `explain`. A plug-in of `plugins` is called again if the record has an answer of the
    same version; of other plug-ins the recorded answer counts. Raise RecordError if the record cannot be read, and ValueError
    if a plug-in cannot be loaded.
    """
    recorded = _read(record)
    seen = recorded.observation
    if seen.filter_answer is None and not seen.policy_answers:
        return Replay(recorded, replay_record(recorded))
    from trimtab.decide.horizontal.plugin_calls import answer_again  # noqa: PLC0415 - few records need it
    from trimtab.plugins.guard import Guards  # noqa: PLC0415
    from trimtab.plugins.registry import load_plugins  # noqa: PLC0415

    now = recorded.decision.now
    answered, notes = answer_again(seen, Guards(load_plugins(plugins)), datetime.fromtimestamp(now, UTC))
    return Replay(recorded, decide_and_complete(answered, now, recorded.fate), notes)


def _read(record: Record | str | bytes) -> Record:
    if isinstance(record, Record):
        return record
    try:
        return loads(record)
    except ValueError as error:  # unreadable JSON, and formats of later programs
        raise RecordError(str(error)) from error
