"""Trimtab: a Kubernetes pod autoscaler that counts the right pods and shows why.

As a library it reads manifests, decides, simulates, explains and replays with the code that runs in production:

    hpa = trimtab.read_autoscaler("web.yaml")
    week = trimtab.Trace.from_csv("week.csv")
    trimtab.simulate(hpa, week, requests={"cpu": "500m"})

The names of `__all__` are public, and all other names may change in any release. Each is imported on first use, so that
`import trimtab` costs next to nothing.
"""

TYPE_CHECKING = (
    False  # type checkers take it for true; importing typing would double the time of `import trimtab`
)

if TYPE_CHECKING:
    from trimtab.decide.horizontal import Explanation, Observation, Record
    from trimtab.decide.observed import decide_observation as decide
    from trimtab.library.autoscalers import Autoscaler, ManifestError, read_autoscaler, read_autoscalers
    from trimtab.library.decisions import RecordError, Replay, explain, replay
    from trimtab.library.simulation import Simulation, simulate
    from trimtab.library.simulator import ModelError, TraceError
    from trimtab.library.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Autoscaler",
    "Explanation",
    "ManifestError",
    "ModelError",
    "Observation",
    "Record",
    "RecordError",
    "Replay",
    "Simulation",
    "Trace",
    "TraceError",
    "__version__",
    "decide",
    "explain",
    "read_autoscaler",
    "read_autoscalers",
    "replay",
    "simulate",
]

_MODULES = {
    "Autoscaler": "trimtab.library.autoscalers",
    "Explanation": "trimtab.decide.horizontal",
    "ManifestError": "trimtab.library.autoscalers",
    "ModelError": "trimtab.library.simulator",
    "Observation": "trimtab.decide.horizontal",
    "Record": "trimtab.decide.horizontal",
    "RecordError": "trimtab.library.decisions",
    "Replay": "trimtab.library.decisions",
    "Simulation": "trimtab.library.simulation",
    "Trace": "trimtab.library.trace",
    "TraceError": "trimtab.library.simulator",
    "explain": "trimtab.library.decisions",
    "read_autoscaler": "trimtab.library.autoscalers",
    "read_autoscalers": "trimtab.library.autoscalers",
    "replay": "trimtab.library.decisions",
    "simulate": "trimtab.library.simulation",
}
"""Where each public name is. `decide` is the package of that name, which can be called."""


if not TYPE_CHECKING:  # a type checker would accept every name otherwise

    def __getattr__(name: str) -> object:
        """Import a public name on its first use."""
        from importlib import import_module  # noqa: PLC0415 - not needed to know the version

        if name == "decide":
            return import_module("trimtab.decide")
        if name not in _MODULES:
            raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return all names, public names included that were not used yet."""
    return sorted({*globals(), *__all__})
