"""Memory windows that still run, saved beside a history and taken up by whoever loads it.

Of memory one peak per container and window counts (a day, by default). A checkpoint leaves the peaks of running windows
out, because the window is measured again after a restart. What was used before the restart would be forgotten: a young
workload's whole memory. So the windows are saved, too, in an annotation of the checkpoint that upstream does not read.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import (
    ClusterState,
    PodId,
    TrackedContainer,
)
from trimtab.decide.vertical.cluster_state.vpa import AggregateKey, VPAState
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.int64_times import from_int64, to_int64

WINDOWS_ANNOTATION: Final = "trimtab.dev/memory-windows"
"""On a checkpoint: the running memory windows of its containers, as JSON, by pod."""
MOST_WINDOWS: Final = 1000
"""Windows saved per checkpoint, the highest peaks first; all of them are far below what an annotation may hold."""


class Window(NamedTuple):
    """A container's running window."""

    end_ns: int
    memory_peak: int
    oom_peak: int
    """What the container would have needed when it ran out of memory."""

    @property
    def peak(self) -> int:
        """Return what counts of it."""
        return max(self.memory_peak, self.oom_peak)


Windows = Mapping[str, Window]
"""By pod."""


class Running(NamedTuple):
    """A container whose window runs, as it concerns one VPA."""

    vpa: str
    container: str
    pod: str
    row: int


def running_containers(state: ClusterState, vpas: Sequence[VPAState], now_ns: int) -> list[Running]:
    """Return the containers that some VPAs learn from and whose windows have not ended."""
    users: dict[AggregateKey, list[VPAState]] = {}
    for vpa in vpas:
        for key in vpa.aggregates:
            users.setdefault(key, []).append(vpa)
    found = [
        Running(vpa.key, name, pod.name, tracked.history.row)
        for namespace in sorted({vpa.vpa.metadata.namespace for vpa in vpas})
        for pod, known in sorted(state.namespace(namespace).pods.items())
        for name, tracked in known.containers.items()
        for vpa in users.get(tracked.key, ())
    ]
    rows: Ints = np.array([one.row for one in found], dtype=np.int64)
    is_running = state.containers.window_end[rows] > to_int64(now_ns)
    return [one for one, runs in zip(found, is_running.tolist(), strict=True) if runs]


def save_windows(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> dict[tuple[str, str], dict[str, Window]]:
    """Return the running windows per VPA and container."""
    table = state.containers
    saved: dict[tuple[str, str], dict[str, Window]] = {}
    for one in running_containers(state, vpas, now_ns):
        window = Window(
            from_int64(int(table.window_end[one.row])),
            int(table.memory_peak[one.row]),
            int(table.oom_peak[one.row]),
        )
        saved.setdefault((one.vpa, one.container), {})[one.pod] = window
    return {owner: _highest(windows) for owner, windows in saved.items()}


def _highest(windows: dict[str, Window]) -> dict[str, Window]:
    if len(windows) <= MOST_WINDOWS:
        return windows
    kept = sorted(windows, key=lambda pod: (-windows[pod].peak, pod))[:MOST_WINDOWS]
    return {pod: windows[pod] for pod in sorted(kept)}


class _Saved(msgspec.Struct):
    """What the annotation holds."""

    at: int
    """The whole second of the history that the windows belong to: one that somebody else saved since knows more."""
    windows: dict[str, Window]


def encode_windows(windows: Windows, saved_at: datetime | None) -> str:
    """Return the text of the annotation, for a history with this time of its last update."""
    return msgspec.json.encode(_Saved(_second(saved_at), dict(windows))).decode()


def decode_windows(text: str, saved_at: datetime | None) -> Windows | str:
    """Read the annotation of a history with this time; a text that says what is wrong with it if it is not one."""
    try:
        found = msgspec.json.decode(text, type=_Saved)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return f"annotation {WINDOWS_ANNOTATION} cannot be read: {error}"
    for pod, window in found.windows.items():
        if not all(0 <= amount < 2**63 for amount in window):
            return f"annotation {WINDOWS_ANNOTATION}: the window of pod {pod} holds an impossible amount"
    return found.windows if found.at == _second(saved_at) else {}


def _second(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp())


def resume_windows(state: ClusterState, vpa: VPAState, container: str, windows: Windows, now_ns: int) -> None:
    """Go on with the windows that were running when a history was saved, which was loaded just now.

    A window whose container is gone, plays another role, or has ended meanwhile, is over: its peak becomes history.
    """
    over: list[Window] = []
    for pod, window in windows.items():
        tracked = _container(state, vpa, PodId(vpa.vpa.metadata.namespace, pod), container)
        if tracked is None or window.end_ns <= now_ns:
            over.append(window)
        else:
            tracked.history.resume_window(window.end_ns, window.memory_peak, window.oom_peak)
    _add_peaks(vpa.initial[container], [one for one in over if one.peak > 0])


def _container(state: ClusterState, vpa: VPAState, pod: PodId, container: str) -> TrackedContainer | None:
    known = state.pods.get(pod)
    tracked = known.containers.get(container) if known is not None else None
    return tracked if tracked is not None and tracked.key in vpa.aggregates else None


def _add_peaks(history: Aggregate, windows: Iterable[Window]) -> None:
    chosen = list(windows)
    rows = np.full(len(chosen), history.row, dtype=np.int64)
    peaks = np.array([one.peak for one in chosen], dtype=np.int64)
    ends = np.array([to_int64(one.end_ns) for one in chosen], dtype=np.int64)
    history.table.add_memory(rows, peaks, ends)
