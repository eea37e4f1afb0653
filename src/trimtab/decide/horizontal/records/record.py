"""An observation with its decision, as JSON and back.

Replaying a record gives the same bytes.
"""

from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.after_write import after_scale, after_status
from trimtab.decide.horizontal.status.conditions import as_dry_run
from trimtab.model.author import Author
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire

VERSION = 4


class Record(Wire, kw_only=True):
    """One decision, kept so that it can be shown and made again."""

    version: int = msgspec.field(default_factory=lambda: VERSION)  # a plain default would not be written
    observation: Observation
    decision: Decision
    scale_error: str | None = None
    """Why the scale could not be written, if it could not."""
    status_error: str | None = None
    """Why the status could not be written, if it could not."""
    is_dry_run: bool = False
    """Whether the scale was not meant to be written."""
    author: Author | None = None
    """The replica that wrote the scale or the status; None if nothing was written."""
    scaled_at: float | None = None
    """When the answer to the scale came; None counts as the time of the decision."""

    @property
    def fate(self) -> "Fate":
        """Return what became of the decision."""
        fate = Fate(self.scale_error, self.status_error, self.is_dry_run, self.author, self.scaled_at)
        return WELL if fate == WELL else fate


class Fate(NamedTuple):
    """What became of a decision, as in the fields of `Record`."""

    scale_error: str | None = None
    status_error: str | None = None
    is_dry_run: bool = False
    author: Author | None = None
    scaled_at: float | None = None


WELL = Fate()
"""What becomes of nearly every decision."""


class _Version(Wire):
    """The version of a record, which format 1 left out."""

    version: int = 1


class UnknownRecordError(ValueError):
    """The record has a format that this program cannot read."""


def dumps(record: Record) -> bytes:
    """Write a record as JSON."""
    return wire.encode(record)


def loads(data: bytes | str) -> Record:
    """Read a record, or raise UnknownRecordError if another program wrote it in another format."""
    version = wire.decode(data, _Version).version
    if version != VERSION:
        raise UnknownRecordError(
            f"the record has version {version}, this program reads version {VERSION}; use the program that wrote it"
        )
    return wire.decode(data, Record)


def replay(record: Record) -> Record:
    """Make the decision of a record once more, from nothing but its observation."""
    return decide_and_complete(record.observation, record.decision.now, record.fate)


def decide_and_complete(observation: Observation, now: float, fate: Fate) -> Record:
    """Decide as of `now`, and let the decision meet its fate."""
    decision = decide(observation, datetime.fromtimestamp(now, UTC))
    if fate.is_dry_run:
        decision = as_dry_run(observation, decision)
    decision = after_scale(observation, decision, fate.scale_error, at=fate.scaled_at)
    if fate.status_error is not None:
        decision = after_status(observation, decision, fate.status_error)
    return Record(observation=observation, decision=decision, **fate._asdict())
