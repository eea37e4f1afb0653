"""Saves running memory windows beside a checkpoint, and continues them after a restart.

Of memory one peak per container and window (1 day by default) counts. A checkpoint excludes the peaks of running
windows, because the window is measured again after a restart. The peak before the restart would be lost, which is all
memory usage of a young workload. So an annotation of the checkpoint, which upstream ignores, holds the running windows.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId, TrackedContainer
from trimtab.decide.vertical.cluster_state.vpa import AggregateKey, VPAState
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.int64_times import from_int64, to_int64

WINDOWS_ANNOTATION: Final = "trimtab.dev/memory-windows"
"""On a checkpoint: the running memory windows of its container, as JSON, by pod."""
MAX_WINDOWS: Final = 1000
"""Windows saved per checkpoint, the highest peaks first. Their text is far below the limit of an annotation."""


class Window(NamedTuple):
    """A container's running window."""

    end_ns: int
    memory_peak: int
    oom_peak: int
    """The memory that a killed container would have needed."""

    @property
    def peak(self) -> int:
        """The higher of both peaks."""
        return max(self.memory_peak, self.oom_peak)


Windows = Mapping[str, Window]
"""Windows by pod."""


class RunningWindow(NamedTuple):
    """A running window of a container that a VPA uses."""

    vpa: str
    container: str
    pod: str
    row: int


def running_windows(state: ClusterState, vpas: Sequence[VPAState], now_ns: int) -> list[RunningWindow]:
    """Return the running windows of the containers that the VPAs use."""
    users: dict[AggregateKey, list[VPAState]] = {}
    for vpa in vpas:
        for key in vpa.aggregates:
            users.setdefault(key, []).append(vpa)
    windows = [
        RunningWindow(vpa.key, name, pod.name, tracked.history.row)
        for namespace in sorted({vpa.vpa.metadata.namespace for vpa in vpas})
        for pod, pod_state in sorted(state.namespace(namespace).pods.items())
        for name, tracked in pod_state.containers.items()
        for vpa in users.get(tracked.key, ())
    ]
    rows: Ints = np.array([window.row for window in windows], dtype=np.int64)
    is_running = state.containers.window_end[rows] > to_int64(now_ns)
    return [window for window, runs in zip(windows, is_running.tolist(), strict=True) if runs]


def save_windows(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> dict[tuple[str, str], dict[str, Window]]:
    """Return the running windows per VPA and container."""
    table = state.containers
    saved: dict[tuple[str, str], dict[str, Window]] = {}
    for running in running_windows(state, vpas, now_ns):
        window = Window(
            from_int64(int(table.window_end[running.row])),
            int(table.memory_peak[running.row]),
            int(table.oom_peak[running.row]),
        )
        saved.setdefault((running.vpa, running.container), {})[running.pod] = window
    return {owner: _highest(windows) for owner, windows in saved.items()}


def _highest(windows: dict[str, Window]) -> dict[str, Window]:
    if len(windows) <= MAX_WINDOWS:
        return windows
    kept = sorted(windows, key=lambda pod: (-windows[pod].peak, pod))[:MAX_WINDOWS]
    return {pod: windows[pod] for pod in sorted(kept)}


class _Saved(msgspec.Struct):
    """The content of the annotation."""

    at: int
    """The second of the checkpoint's last update. A checkpoint that was saved since then makes the windows obsolete."""
    windows: dict[str, Window]


def encode_windows(windows: Windows, saved_at: datetime | None) -> str:
    """Return the text of the annotation of a checkpoint with this last update time."""
    return msgspec.json.encode(_Saved(_second(saved_at), dict(windows))).decode()


def decode_windows(text: str, saved_at: datetime | None) -> Windows | str:
    """Return the windows of an annotation, or an error. Windows of another update time are dropped."""
    try:
        saved = msgspec.json.decode(text, type=_Saved)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return f"annotation {WINDOWS_ANNOTATION} cannot be read: {error}"
    for pod, window in saved.windows.items():
        if not all(0 <= amount < 2**63 for amount in window):
            return f"annotation {WINDOWS_ANNOTATION}: the window of pod {pod} holds an impossible amount"
    return saved.windows if saved.at == _second(saved_at) else {}


def _second(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp())


def resume_windows(state: ClusterState, vpa: VPAState, container: str, windows: Windows, now_ns: int) -> None:
    """Continue the windows of a checkpoint that was just loaded.

    The peak of a window is added to the history if the window has ended, or if its container is gone or has another role.
    """
    ended: list[Window] = []
    for pod, window in windows.items():
        tracked = _find_container(state, vpa, PodId(vpa.vpa.metadata.namespace, pod), container)
        if tracked is None or window.end_ns <= now_ns:
            ended.append(window)
        else:
            tracked.history.resume_window(window.end_ns, window.memory_peak, window.oom_peak)
    _add_peaks(vpa.initial[container], [window for window in ended if window.peak > 0])


def _find_container(
    state: ClusterState, vpa: VPAState, pod: PodId, container: str
) -> TrackedContainer | None:
    pod_state = state.pods.get(pod)
    tracked = pod_state.containers.get(container) if pod_state is not None else None
    return tracked if tracked is not None and tracked.key in vpa.aggregates else None


def _add_peaks(history: Aggregate, windows: Sequence[Window]) -> None:
    rows = np.full(len(windows), history.row, dtype=np.int64)
    peaks = np.array([window.peak for window in windows], dtype=np.int64)
    ends = np.array([to_int64(window.end_ns) for window in windows], dtype=np.int64)
    history.table.add_memory(rows, peaks, ends)
