"""Records of estimator calls: what a plug-in saw and answered, as JSON that replays.

A replay calls the estimator again only if the same version is loaded. Otherwise the recorded answer is all that is known.
"""

from dataclasses import dataclass

import msgspec

from trimtab.decide.vertical.cluster_state.estimator_state import RECORD_FORMAT, EstimateRecord
from trimtab.decide.vertical.recommend.plugin_estimates import Estimators
from trimtab.model.core.pod import CPU
from trimtab.model.json import wire
from trimtab.model.readable import readable_amount
from trimtab.plugins.guard import PluginFailure


class _Head(msgspec.Struct):
    format: int = 0


def dumps(record: EstimateRecord) -> bytes:
    """Return a record as a line of JSON, without the line's end."""
    return msgspec.json.encode(record)


def loads(data: bytes) -> EstimateRecord:
    """Read a record, or raise WireError."""
    try:
        record_format = msgspec.json.decode(data, type=_Head).format
        if record_format != RECORD_FORMAT:
            raise wire.WireError(f"records of estimators of format {record_format} cannot be read")
        return msgspec.json.decode(data, type=EstimateRecord)
    except msgspec.MsgspecError as error:
        raise wire.WireError(str(error)) from error


@dataclass(frozen=True)
class EstimateReplay:
    """A recorded call, and the call that was made again, if it could be."""

    recorded: EstimateRecord
    decided: EstimateRecord | None
    note: str = ""
    """Why the call was not made again."""

    @property
    def is_same(self) -> bool:
        """Return whether nothing is known to differ."""
        return self.decided is None or dumps(self.decided) == dumps(self.recorded)

    @property
    def summary(self) -> str:
        """Return what the estimator answers, in a line."""
        text = describe(self.decided or self.recorded)
        return f"{text} ({self.note})" if self.note else text

    @property
    def difference(self) -> str:
        """Return both answers if they differ, else an empty text."""
        if self.decided is None or self.is_same:
            return ""
        before, after = describe(self.recorded), describe(self.decided)
        if before == after:
            before, after = str(self.recorded.memory), str(self.decided.memory)
        return f"--- recorded\n+++ decided now\n-{before}\n+{after}"


def replay_estimate(record: EstimateRecord, estimators: Estimators) -> EstimateReplay:
    """Call the estimator again with what it saw, if the same version is loaded."""
    loaded = estimators.get(record.estimator)
    if loaded is None:
        return EstimateReplay(record, None, "the recorded answer: the plug-in is not loaded")
    if loaded.version != record.version:
        note = f"the recorded answer: version {loaded.version} is loaded, not {record.version}"
        return EstimateReplay(record, None, note)
    # Decoded anew, because a plug-in may change its input.
    answer = loaded.call(loads(dumps(record)).seen)
    empty = msgspec.structs.replace(record, amounts={}, reason="", memory=None, failure="")
    if isinstance(answer, PluginFailure):
        return EstimateReplay(record, msgspec.structs.replace(empty, failure=answer.message))
    decided = msgspec.structs.replace(
        empty, amounts=answer.amounts, reason=answer.reason, memory=answer.memory
    )
    return EstimateReplay(record, decided)


def describe(record: EstimateRecord) -> str:
    """Return VPA, container, estimator with version, amounts and reason in a line."""
    seen = record.seen
    who = f"{seen.namespace}/{seen.name} {seen.container}: {record.estimator} {record.version}".rstrip()
    if record.failure:
        return f"{who}: no usable answer: {record.failure}"
    amounts = ", ".join(
        f"{resource} {_text(resource, bounds.lower)} - {_text(resource, bounds.target)} - {_text(resource, bounds.upper)}"
        for resource, bounds in sorted(record.amounts.items())
    )
    return f"{who}: {amounts or 'the built-in amounts'}: {record.reason}"


def _text(resource: str, amount: float) -> str:
    return readable_amount(resource, round(amount * 1000) if resource == CPU else round(amount) * 1000)
