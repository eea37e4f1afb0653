"""Reading quantities: never seen before, seen before, and the official Python client beside it."""

from collections.abc import Callable

from kubernetes.utils import parse_quantity

from bench import Rows, best_seconds
from trimtab.model.quantity import Quantity, milli_value_of

COUNT = 2_000


def texts() -> dict[str, list[str]]:
    """Return distinct texts of the shapes that pods and metrics carry, one list per shape."""
    return {
        "100m": [f"{n}m" for n in range(COUNT)],
        "1": [f"{n}" for n in range(COUNT)],
        "128Mi": [f"{n}Mi" for n in range(COUNT)],
        "123456789n": [f"{n}n" for n in range(100_000_000, 100_000_000 + COUNT)],
        "250Ki": [f"{n}Ki" for n in range(COUNT)],
        "1.5": [f"{n}.5" for n in range(COUNT)],
        "1e3": [f"{n}e3" for n in range(COUNT)],
    }


def run() -> Rows:
    return [_row(shape, sample) for shape, sample in texts().items()]


def _row(shape: str, sample: list[str]) -> dict[str, str]:
    for text in sample:
        Quantity.parse(text)
    cold = _nanoseconds(_parse_cold, sample)
    peer = _nanoseconds(parse_quantity, sample)
    return {
        "text": shape,
        "cold ns": f"{cold:.0f}",
        "cached ns": f"{_nanoseconds(Quantity.parse, sample):.0f}",
        "milli ns": f"{_nanoseconds(milli_value_of, sample):.0f}",
        "kubernetes ns": f"{peer:.0f}",
        "times faster": f"{peer / cold:.1f}",
    }


_parse_cold = Quantity.parse.__wrapped__


def _nanoseconds(action: Callable[[str], object], sample: list[str]) -> float:
    def once() -> None:
        for text in sample:
            action(text)

    return best_seconds(once, rounds=25) / len(sample) * 1e9
