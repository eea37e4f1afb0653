"""Feature gates, with names and stages as in Kubernetes 1.37.

`--compat` with an older version selects the stages and defaults that the gates had there. The program builds one frozen `FeatureGates` at start-up and passes it down; no code reads a gate from elsewhere.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}
"""Booleans of flags by their text, as Go's `strconv.ParseBool` reads them."""


class Stage(StrEnum):
    """The maturity of a feature, as in Kubernetes."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"


@dataclass(frozen=True)
class Gate:
    """A gate's definition."""

    name: str
    stage: Stage
    help: str
    default: bool = False
    needs: tuple[str, ...] = ()
    locked: bool = False
    is_of_kubernetes: bool = False
    """Whether Kubernetes has the gate, so that a version of Kubernetes sets its default."""


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("HPASelectionStrategy", Stage.ALPHA, "Honour spec.selectionStrategy of HPAs (KEP-5625)."),
        Gate(
            "HPAConfigurableTolerance",
            Stage.GA,
            "Honour the tolerances in spec.behavior of HPAs (KEP-4951).",
            default=True,
            is_of_kubernetes=True,
        ),
        Gate(
            "HPAScaleToZero",
            Stage.BETA,
            "Accept minReplicas 0 and wake a workload from zero (KEP-2021).",
            default=True,
            is_of_kubernetes=True,
        ),
        Gate(
            "VPASelectorRefinement",
            Stage.ALPHA,
            "Honour spec.vpaScope of VPAs: recommend for a part of a workload's pods.",
        ),
        Gate(
            "PodLevelResources",
            Stage.BETA,
            "Take a pod's own requests, where set, instead of the sum over its containers.",
            default=True,
            is_of_kubernetes=True,
        ),
        Gate("PerVPAConfig", Stage.ALPHA, "Honour the OOM and eviction overrides of a single VPA."),
        Gate("InPlace", Stage.ALPHA, "Accept the update mode InPlace, which never evicts."),
        Gate("CPUStartupBoost", Stage.ALPHA, "Give containers more CPU while they start."),
    )
}
"""Every gate, by name."""

OWN_FEATURES: Final[Mapping[str, bool]] = {"HPASelectionStrategy": True, "VPASelectorRefinement": True}
"""The gates that the chart sets, and that commands assume without an operator: Trimtab's own features.

Gates of Kubernetes are not among them, so that the version that `--compat` names sets those.
"""

_CHANGES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "kubernetes-1.36": {
        "HPAConfigurableTolerance": {"stage": Stage.BETA},
        "HPAScaleToZero": {"stage": Stage.ALPHA, "default": False},
    },
    # Trimtab does not lock it, because it also serves API servers on which the gate can be off.
    "kubernetes-1.37": {"HPAConfigurableTolerance": {"locked": True}},
}
"""How the gates of a version of Kubernetes differ from `GATES`."""

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"
_GROUPS = {ALL_ALPHA: Stage.ALPHA, ALL_BETA: Stage.BETA}
_MISPRINTS = {"SPASelectionStrategy": "HPASelectionStrategy"}
"""Misprints in a published proposal, for which the similarity of names must not decide."""


class GateError(ValueError):
    """A setting of feature gates is invalid, and the message says what to write."""


@dataclass(frozen=True)
class FeatureGates:
    """The gates in force, by attribute (`gates.hpa_scale_to_zero`) or by name (`enabled("HPAScaleToZero")`)."""

    hpa_selection_strategy: bool = GATES["HPASelectionStrategy"].default
    hpa_configurable_tolerance: bool = GATES["HPAConfigurableTolerance"].default
    hpa_scale_to_zero: bool = GATES["HPAScaleToZero"].default
    vpa_selector_refinement: bool = GATES["VPASelectorRefinement"].default
    pod_level_resources: bool = GATES["PodLevelResources"].default
    per_vpa_config: bool = GATES["PerVPAConfig"].default
    in_place: bool = GATES["InPlace"].default
    cpu_startup_boost: bool = GATES["CPUStartupBoost"].default

    def enabled(self, name: str) -> bool:
        """Return whether the gate of that name is on, or raise GateError if it is unknown."""
        attribute = _ATTRIBUTES.get(name)
        if attribute is None:
            raise GateError(_unknown(name))
        return bool(getattr(self, attribute))

    @classmethod
    def of(cls, settings: Mapping[str, bool], kubernetes: str = "") -> "FeatureGates":
        """Build the gates from `{name: on}`, where `AllAlpha` and `AllBeta` set all unnamed gates of a stage.

        `kubernetes` names the version whose stages and defaults hold; empty means Trimtab's own.
        """
        gates = gates_of_version(kubernetes)
        wanted = {gate.name: gate.default for gate in gates.values()}
        for group, stage in _GROUPS.items():
            if group in settings:
                wanted |= {
                    gate.name: settings[group]
                    for gate in gates.values()
                    if gate.stage == stage and not gate.locked
                }
        for name, on in settings.items():
            if name not in _GROUPS:
                wanted[name] = _allowed(name, gates, on=on)
        _check_needs(wanted)
        return cls(**{_ATTRIBUTES[name]: on for name, on in wanted.items()})

    @classmethod
    def parse(cls, text: str, kubernetes: str = "") -> "FeatureGates":
        """Parse the flag --feature-gates, `A=true,B=false`, where the last value of a name counts."""
        return cls.of(dict(_pairs(text)), kubernetes)

    def as_in(self, kubernetes: str) -> "FeatureGates":
        """Return the gates with a version's defaults for gates of Kubernetes. The others are unchanged."""
        defaults = {
            _ATTRIBUTES[gate.name]: gate.default
            for gate in gates_of_version(kubernetes).values()
            if gate.is_of_kubernetes
        }
        return replace(self, **defaults)

    @property
    def own(self) -> dict[str, bool]:
        """Return the gates that Kubernetes does not have, where they differ from their defaults."""
        return {
            gate.name: self.enabled(gate.name)
            for gate in GATES.values()
            if not gate.is_of_kubernetes and self.enabled(gate.name) != gate.default
        }

    def __str__(self) -> str:
        return as_flag({name: self.enabled(name) for name in sorted(GATES)})


def with_own_features(feature_gates: str) -> str:
    """Return a text of --feature-gates in which Trimtab's own features are on unless it names them."""
    return f"{as_flag(OWN_FEATURES)},{feature_gates}".rstrip(",")


_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ATTRIBUTES = {name: _WORD_STARTS.sub("_", name).lower() for name in GATES}


def _pairs(text: str) -> Iterator[tuple[str, bool]]:
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise GateError(f"feature gate {name!r} lacks a value: write {name}=true or {name}=false")
        if value not in BOOLEANS:
            raise GateError(f"feature gate {name} cannot be {value!r}: write {name}=true or {name}=false")
        yield name, BOOLEANS[value]


def as_flag(gates: Mapping[str, bool]) -> str:
    """Return gates as the flag --feature-gates takes them."""
    return ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())


def gates_of_version(kubernetes: str = "") -> dict[str, Gate]:
    """Return every gate by name, as a version of Kubernetes has it; empty means Trimtab's own."""
    changes = _CHANGES.get(kubernetes, {})
    return {name: replace(gate, **changes.get(name, {})) for name, gate in GATES.items()}


def _allowed(name: str, gates: Mapping[str, Gate], *, on: bool) -> bool:
    gate = gates.get(name)
    if gate is None:
        raise GateError(_unknown(name))
    if gate.locked and on != gate.default:
        raise GateError(f"feature gate {name} is locked to {str(gate.default).lower()}: leave it out")
    return on


def _check_needs(wanted: Mapping[str, bool]) -> None:
    for gate in GATES.values():
        missing = [need for need in gate.needs if wanted[gate.name] and not wanted[need]]
        if missing:
            raise GateError(f"feature gate {gate.name} needs {missing[0]}: add {missing[0]}=true")


def _unknown(name: str) -> str:
    known = [*GATES, *_GROUPS]
    near = [_MISPRINTS[name]] if name in _MISPRINTS else difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    return f"unknown feature gate {name!r}: {hint}"
