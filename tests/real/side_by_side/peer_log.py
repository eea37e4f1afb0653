"""Reads from the peer's log when it decided.

The peer reads its clock after the metrics have arrived. On a busy machine that is hundreds of milliseconds after the answer was
sent, which is more than a sync here, so the time of the answer does not say what was still within a window.
"""

import json

PROPOSING = ("Proposing desired replicas", "Proposing desired replicas from zero")
"""What the peer logs between the metrics and the windows."""


def decided_at(log: str, namespace: str, asked_at: list[float]) -> list[float]:
    """Return the moment of each sync: that of the log line, or of the question where all metrics failed."""
    target = f"Deployment/{namespace}/web"
    logged = [
        entry["ts"] / 1000
        for line in log.splitlines()
        if target in line and (entry := json.loads(line))["msg"] in PROPOSING
    ]
    ends = [*asked_at[1:], float("inf")]
    return [
        next((moment for moment in logged if asked <= moment < end), asked)
        for asked, end in zip(asked_at, ends, strict=True)
    ]
