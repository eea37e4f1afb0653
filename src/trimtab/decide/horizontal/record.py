"""An observation and what was decided on it, as JSON and back; deciding again gives the same bytes."""

from datetime import UTC, datetime

import msgspec

from trimtab.decide.horizontal.deciding import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.dryrun import only_told
from trimtab.decide.horizontal.observation import Observation
from trimtab.decide.horizontal.outcome import after_scale, after_status
from trimtab.model import wire
from trimtab.model.wire import Wire

VERSION = 1


class Record(Wire, kw_only=True):
    """One decision, kept so that it can be shown and made again."""

    version: int = VERSION
    observation: Observation
    decision: Decision
    scale_error: str | None = None
    """Why the scale could not be written, if it could not."""
    status_error: str | None = None
    """Why the status could not be written, if it could not."""
    is_dry_run: bool = False
    """Whether the scale was not meant to be written."""


class UnknownRecordError(ValueError):
    """The record was written by a version whose form this one does not know."""


def dumps(record: Record) -> bytes:
    """Write a record as JSON."""
    return wire.encode(record)


def loads(data: bytes | str) -> Record:
    """Read a record; raise UnknownRecordError if its version is another one."""
    record = wire.decode(data, Record)
    if record.version != VERSION:
        raise UnknownRecordError(
            f"the record has version {record.version}, this program reads version {VERSION}; use the program that wrote it"
        )
    return record


def decide_again(record: Record) -> Record:
    """Make the decision of a record once more, from nothing but its observation."""
    seen = record.observation
    decision = decide(seen, datetime.fromtimestamp(record.decision.now, UTC))
    if record.is_dry_run:
        decision = only_told(seen, decision)
    decision = after_scale(seen, decision, record.scale_error)
    if record.status_error is not None:
        decision = after_status(seen, decision, record.status_error)
    return msgspec.structs.replace(record, decision=decision)
