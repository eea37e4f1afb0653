"""Flags of the upstream VPA that `trimtab run` ignores or translates.

Upstream's other flags are settings under the same name. A value that asks for a missing feature is rejected, with a
replacement. The reference page of upstream's flags is generated from these declarations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trimtab.model.feature_gates import BOOLEANS

Values = dict[str, Any]


def _plain(value: str) -> str:
    """Return a boolean as the lists below spell it."""
    return str(BOOLEANS[value]).lower() if value in BOOLEANS else value


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A flag that changes nothing."""

    says: str
    """Why the flag changes nothing, and what replaces rejected values."""
    accepts: tuple[str, ...] | None = None
    """The accepted values; None means any."""

    def check(self, name: str, value: str) -> None:
        """Raise ValueError if the value is not accepted."""
        if self.accepts is not None and not {value.lower(), _plain(value)} & set(self.accepts):
            raise ValueError(f"{name}={value}: {self.says}")


_LOGS: Final = "Trimtab logs to standard error only, as lines that --log-format shapes; keep them with the container's log."
_NOT: Final = ("false", "")
_YES: Final = ("true",)
_EXTERNAL: Final = (
    "Usage comes from metrics.k8s.io. Serve it from your metrics with an adapter for that API, and read the past with "
    "--storage=prometheus, --history-cpu-metric and --history-memory-metric."
)

TOLERATED: Final[dict[str, Tolerated]] = {
    "--min-checkpoints": Tolerated("Deprecated and without effect upstream, too; see --update-worker-count."),
    "--leader-elect-resource-lock": Tolerated("The lock is always a Lease: use leases.", ("leases",)),
    "--concurrent-cpu-startup-boost-syncs": Tolerated(
        "Boosts are taken back in the updater's loop, without workers of their own."
    ),
    "--reload-cert": Tolerated("The certificate is always read again when it changes."),
    "--profiling": Tolerated("There is no pprof here; `/metrics` has the time of each step.", _NOT),
    "--use-external-metrics": Tolerated(_EXTERNAL, _NOT),
    "--external-metrics-cpu-metric": Tolerated(_EXTERNAL, _NOT),
    "--external-metrics-memory-metric": Tolerated(_EXTERNAL, _NOT),
    "--register-by-url": Tolerated(
        "Name the whole address with --webhook-url=https://HOST:PORT; --webhook-address and --webhook-port say where the "
        "webhook listens. `trimtab vpa-admission-controller` reads all three as upstream does.",
        _NOT,
    ),
    "--logtostderr": Tolerated(_LOGS, _YES),
    "--alsologtostderr": Tolerated(_LOGS),
    "--alsologtostderrthreshold": Tolerated(_LOGS),
    "--stderrthreshold": Tolerated("Without effect while --logtostderr is true, upstream, too."),
    "--legacy-stderr-threshold-behavior": Tolerated(_LOGS),
    "--log-dir": Tolerated(_LOGS, ("",)),
    "--log-file": Tolerated(_LOGS, ("",)),
    "--log-file-max-size": Tolerated(_LOGS),
    "--log-backtrace-at": Tolerated("Defects are logged with their traceback anyway.", (":0", "")),
    "--vmodule": Tolerated("--v holds for all modules.", ("",)),
    "--one-output": Tolerated(_LOGS),
    "--add-dir-header": Tolerated("A line of the log names its event, not its source file."),
    "--skip-headers": Tolerated("Use --log-format=json for lines without a header.", _NOT),
    "--skip-log-headers": Tolerated(_LOGS),
}
"""By flag."""


def _address(value: str) -> Values:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"--address={value}: write HOST:PORT, as :8942")
    # Upstream's `:8942` listens on every address.
    return {"bind_address": host.strip("[]") or "::", "port": int(port)}


def _object_namespace(value: str) -> Values:
    return {"watch_namespaces": (value,)} if value else {}


def _admission_status(value: str) -> Values:
    if value not in BOOLEANS:
        raise ValueError(f"--use-admission-controller-status={value}: write true or false")
    return {} if BOOLEANS[value] else {"admission_check": "none"}


@dataclass(frozen=True, slots=True)
class Translated:
    """A flag that sets other settings."""

    says: str
    translate: Callable[[str], Values]


TRANSLATED: Final[dict[str, Translated]] = {
    "--address": Translated("`--bind-address` and `--port` in one, as HOST:PORT.", _address),
    "--vpa-object-namespace": Translated("`--watch-namespaces` with one namespace.", _object_namespace),
    "--use-admission-controller-status": Translated(
        "false is `--admission-check=none`; true leaves `--admission-check` as it is.", _admission_status
    ),
}
"""By flag."""


def translated(given: Mapping[str, str | None]) -> Values:
    """Return the settings that upstream's flags mean.

    Raise ValueError if a value is not accepted.
    """
    values: Values = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in TOLERATED:
            TOLERATED[name].check(name, value)
        else:
            values |= TRANSLATED[name].translate(value)
    return values
