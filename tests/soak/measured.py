"""Runs `trimtab` in this process, and answers requests for its figures: `python -m tests.soak.measured FOLDER run ...`.

A file `FOLDER/ask` with a name asks; the figures are in `FOLDER/NAME.json` when that file exists. A thread answers, so that the
program itself is the one that users run, except that its caches are small (`small_caches`).
"""

import gc
import sys
import threading
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from tests.soak.gauges import take
from tests.soak.small_caches import small_caches
from trimtab.cli import main
from trimtab.model.json import wire

_POLL_SECONDS = 0.2


def answer(folder: Path) -> None:
    """Answer requests until the process ends."""
    asked = folder / "ask"
    while True:
        time.sleep(_POLL_SECONDS)
        if not asked.exists():
            continue
        name = asked.read_text(encoding="utf-8")
        asked.unlink()
        gc.unfreeze()  # what the program allocated at its start is frozen, and frozen objects are not listed
        registries = [obj for obj in gc.get_objects() if isinstance(obj, CollectorRegistry)]
        labels = sum(len(metric.samples) for registry in registries for metric in registry.collect())
        unfinished = folder / f"{name}.part"
        unfinished.write_bytes(wire.encode(take(watches=0, labels=labels)))
        unfinished.rename(folder / f"{name}.json")


if __name__ == "__main__":
    threading.Thread(target=answer, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.argv = ["trimtab", *sys.argv[2:]]
    with small_caches():
        main()
