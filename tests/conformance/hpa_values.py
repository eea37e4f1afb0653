"""How the horizontal vectors spell moments, settings and history, and how ours are spelt back."""

from tests.conformance.int64 import Amount
from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.memory import Memory, Recommendation, ScaleEvent
from trimtab.decide.horizontal.rules import HpaSettings
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_ns, parse_time

_SETTINGS = {
    "tolerance": "tolerance",
    "cpuInitializationPeriodSeconds": "cpu_initialization_period",
    "delayOfInitialReadinessStatusSeconds": "initial_readiness_delay",
    "downscaleStabilisationWindowSeconds": "downscale_stabilization",
    "scaleUpLimitFactor": "scale_up_limit_factor",
    "scaleUpLimitMinimum": "scale_up_limit_minimum",
}


def moment(text):
    return NEVER if text is None else parse_time(text).timestamp()


def text_of(seconds):
    return None if seconds == NEVER else format_ns(round(seconds * 1_000_000) * 1000)


def settings_of(data):
    return HpaSettings(**{_SETTINGS[key]: float(value) for key, value in data.items()})


def history_of(state):
    """Read the in-memory history of one autoscaler."""
    recommendations = state.get("recommendations")
    return Memory(
        recommendations=None
        if recommendations is None
        else tuple(Recommendation(one["replicas"], moment(one["timestamp"])) for one in recommendations),
        scale_up=_events_of(state.get("scaleUpEvents")),
        scale_down=_events_of(state.get("scaleDownEvents")),
    )


def _events_of(events):
    return tuple(
        ScaleEvent(one["replicaChange"], moment(one["timestamp"]), bool(one.get("outdated")))
        for one in events or ()
    )


def history(memory, recommendations=None, scale_up=None, scale_down=None):
    """Spell a history as the vectors do."""
    kept = memory.recommendations if recommendations is None else recommendations
    return {
        "recommendations": [{"replicas": one.replicas, "timestamp": text_of(one.at)} for one in kept or ()],
        "scaleUpEvents": _spelt(memory.scale_up if scale_up is None else scale_up),
        "scaleDownEvents": _spelt(memory.scale_down if scale_down is None else scale_down),
    }


def _spelt(events):
    return [
        {"replicaChange": one.change, "timestamp": text_of(one.at), "outdated": one.outdated}
        for one in events
    ]


def same_keys(want, got):
    """Return of `got` what `want` tells about: functions that cannot touch a list do not record it."""
    return {key: value for key, value in got.items() if key in want}


def read_by_go(data):
    """Return JSON data with the quantities that overflow upstream's int64 replaced by what upstream reads them as.

    Our quantities are exact; this is where the two part, and the decisions behind it should still agree.
    """
    if isinstance(data, dict):
        return {key: _read_member(key, value) for key, value in data.items()}
    return [read_by_go(one) for one in data] if isinstance(data, list) else data


def _read_member(key, value):
    if key in {"usage", "requests", "overhead"} and isinstance(value, dict):
        return {name: _narrowed(text) if isinstance(text, str) else text for name, text in value.items()}
    if key in {"value", "averageValue"} and isinstance(value, str):
        return _narrowed(value)
    return read_by_go(value)


def _narrowed(text):
    quantity = Quantity.parse(text)
    exact = quantity.milli_value()
    read = Amount.of_text(text, quantity).narrowed(exact, -3)
    return text if read == exact else f"{read}m"
