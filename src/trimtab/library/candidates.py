"""Turns manifests and autoscalers into the candidates of a simulation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from trimtab.decide.horizontal.plugin_calls import missing_plugins
from trimtab.decide.horizontal.status.ignored_fields import annotation_problem, unreadable_annotations
from trimtab.library.autoscalers import Autoscaler
from trimtab.library.simulator import Candidate, ModelError
from trimtab.library.simulator.life import UPSTREAM_RULES
from trimtab.library.simulator.sizes import AnyCandidate, SizeCandidate
from trimtab.model import hpa as hpa_rules
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import GATES, FeatureGates, as_flag, with_own_features
from trimtab.model.hpa import metric_annotations, replica_policies, selection_strategy
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.manifest import read_manifest
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.settings import Settings, compat_defaults
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import NO_PLUGINS, Plugins

NAME_IT = "install its package and name it in plugins"
"""What to do about a plug-in that is not loaded, in Python."""

Group = Sequence[Autoscaler]
"""Autoscalers of one workload that are tried together."""

Autoscalers = Autoscaler | Sequence[Autoscaler | Group] | Mapping[str, Autoscaler | Group]
"""One or more autoscalers to compare, or each under its own name. Those of a list within are tried together."""

UPSTREAM = "upstream"
"""What a comparison can be with."""

T = TypeVar("T", VerticalPodAutoscaler, VPAScope)


class CandidateError(ValueError):
    """The manifest cannot be simulated. The message names the object and the cause."""

    def __init__(self, message: str, hint: str, field: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.field = field
        """The path of the wrong field; empty for the whole object."""


def candidate_hpa(data: Any, gates: FeatureGates) -> HorizontalPodAutoscaler | None:
    """Return an HPA with its annotations and defaults applied, or None for another kind.

    Raise CandidateError for an HPA that an API server would reject, or that no operator would scale.
    """
    manifest = read_manifest(data, gates)
    if manifest.errors:
        error = manifest.errors[0]
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {error}",
            f"`trimtab validate{_flags(gates)}` shows everything",
            error.field.strip("."),
        )
    if not isinstance(manifest.object, HorizontalPodAutoscaler):
        return None
    conflict = selection_strategy.conflict_of(data)
    if problem := conflict or annotation_problem(manifest.object, gates):
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {problem}", "an operator scales nothing until then"
        )
    hpa = wire.convert(hpa_rules.default(_with_annotations(manifest.object)), HorizontalPodAutoscaler)
    for problem in unreadable_annotations(hpa):
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {problem}",
            "correct it; a backtest without it is of another HPA",
        )
    return hpa


def _flags(gates: FeatureGates) -> str:
    """Return the flags with which `trimtab validate` has these gates."""
    assumed = FeatureGates.parse(with_own_features(""))
    differing = {name: gates.enabled(name) for name in GATES if gates.enabled(name) != assumed.enabled(name)}
    return f" --feature-gates={as_flag(differing)}" if differing else ""


def _with_annotations(hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    """Return an HPA with its annotations applied, as the operator reads it."""
    annotations = hpa.metadata.annotations
    spec = selection_strategy.with_annotation(hpa.spec, annotations)
    if group_of(hpa.api_version) == selection_strategy.NATIVE_GROUP:
        spec = metric_annotations.apply_annotations(spec, annotations)
        spec = replica_policies.apply_annotation(spec, annotations)
    return msgspec.structs.replace(hpa, spec=spec)


def candidates_of(
    autoscalers: Autoscalers, settings: Settings, plugins: Plugins = NO_PLUGINS, compare: str = ""
) -> list[AnyCandidate]:
    """Return the candidates with the settings of the operator that would run them, and with `compare` by upstream's rules too.

    Raise ModelError for an autoscaler that no operator would run, and for an unknown gate or version.
    """
    if compare not in ("", UPSTREAM):
        raise ModelError(f"compare: {compare!r} is not known; known is: {UPSTREAM}")
    try:
        found = [_candidate(name, group, settings, plugins) for name, group in _named(autoscalers).items()]
    except CandidateError as error:
        raise ModelError(f"{error} ({error.hint})") from error
    except ValueError as error:  # a ModelError too
        raise ModelError(str(error)) from error
    return compared(found, settings, plugins, compare)


def compared(
    candidates: Sequence[AnyCandidate], settings: Settings, plugins: Plugins, compare: str | None
) -> list[AnyCandidate]:
    """Return candidates in the order in which they are shown, with `compare` each by upstream's rules, too.

    Those have upstream's defaults and gates: upstream knows no selection strategy and no scope.
    """
    found = list(candidates)
    if compare:
        rules = settings.replace(**compat_defaults(UPSTREAM_RULES), compat=UPSTREAM_RULES, feature_gates="")
        found += [
            _by_rules(rules, plugins, candidate, f"{candidate.name} ({compare})") for candidate in candidates
        ]
    return sorted(found, key=lambda candidate: isinstance(candidate, SizeCandidate))


def _by_rules(rules: Settings, plugins: Plugins, candidate: AnyCandidate, name: str) -> AnyCandidate:
    if isinstance(candidate, Candidate):
        return hpa_candidate(name, candidate.hpa, rules, candidate.guards)
    hpa = candidate.hpa and hpa_candidate(name, candidate.hpa.hpa, rules, candidate.hpa.guards)
    return with_estimators(replace(candidate, name=name, settings=rules, hpa=hpa), plugins)


def _candidate(name: str, group: Group, settings: Settings, plugins: Plugins) -> AnyCandidate:
    gates, guards = decision_config(settings).gates, Guards(plugins, advice=NAME_IT)
    hpas = [read for found in group if (read := candidate_hpa(found.data, gates)) is not None]
    if len(hpas) > 1:
        raise ModelError(f"{name}: has {len(hpas)} HorizontalPodAutoscalers for one workload; name 1")
    hpa = hpa_candidate(name, hpas[0], settings, guards) if hpas else None
    sized = [found for found in group if found.kind != "HorizontalPodAutoscaler"]
    if hpa is not None and not sized:
        return hpa
    vpas = tuple(_read(found.data, VerticalPodAutoscaler, settings.gates) for found in sized)
    scopes = tuple(_read(scope, VPAScope, settings.gates) for found in sized for scope in found.scopes)
    return with_estimators(SizeCandidate(name, vpas, settings, scopes, hpa), plugins)


def require(kind: type, argument: str, *values: object) -> None:
    """Raise TypeError for a value that is of another kind, such as the path of a file."""
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{argument}: {value!r} is no {kind.__name__}; {_READERS[kind.__name__]}")


_READERS = {"Autoscaler": "read it with read_autoscaler", "Trace": "load it with Trace.from_csv"}


def _named(autoscalers: Autoscalers) -> dict[str, Group]:
    """Return what is tried by name. Those that have the same name are numbered."""
    named: dict[str, Group] = {}
    if isinstance(autoscalers, Mapping):
        named = {name: _listed(group) for name, group in autoscalers.items()}
        require(Autoscaler, "autoscalers", *(found for group in named.values() for found in group))
    else:
        seen = Counter[str]()
        for group in map(_listed, _listed(autoscalers)):
            require(Autoscaler, "autoscalers", *group)
            name = " + ".join(found.key for found in group)
            seen[name] += 1
            named[name if seen[name] == 1 else f"{name} ({seen[name]})"] = group
    if not all(named.values()) or not named:
        raise ModelError("autoscalers: name at least 1 HorizontalPodAutoscaler or VerticalPodAutoscaler")
    return named


def _listed(autoscalers: Any) -> list[Any]:
    is_list = isinstance(autoscalers, Sequence) and not isinstance(autoscalers, str)
    return list(autoscalers) if is_list else [autoscalers]


def hpa_candidate(name: str, hpa: HorizontalPodAutoscaler, settings: Settings, guards: Guards) -> Candidate:
    """Return an HPA as a candidate. Raise ModelError if it names a plug-in that is not loaded."""
    config = decision_config(settings)
    for failure in missing_plugins(hpa.spec, config.gates, guards):
        raise ModelError(f"HPA {hpa.key}: {failure}")
    return Candidate(name, hpa, config.settings, config.gates, config.rules, guards)


def with_estimators(candidate: SizeCandidate, plugins: Plugins, advice: str = NAME_IT) -> SizeCandidate:
    """Return VPAs with their estimators. Raise ModelError if one is not loaded, or unless they have one target."""
    # Recommendations need numpy, whose import takes longer than most simulations of an HPA.
    from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators  # noqa: PLC0415
    from trimtab.operator.vertical.estimation import Estimation  # noqa: PLC0415

    Estimation.from_settings(candidate.settings.estimation)  # raises what is wrong with them
    vpas = candidate.vpas
    targets = {(ref.kind, ref.name) for vpa in vpas if (ref := vpa.spec.target_ref) is not None}
    if len(targets) != 1:
        keys = ", ".join(vpa.key for vpa in vpas)
        raise ModelError(f"VPA {keys}: one workload is simulated, and {len(targets)} are targets")
    # Each candidate has guards of its own: one that fails does not pause the others.
    guards = Guards(plugins, advice=advice)
    for vpa in vpas:
        wanted = recommender_of(vpa)
        if is_plugin_name(wanted) and guards.find(PluginKind.ESTIMATOR, wanted) is None:
            raise ModelError(f"VPA {vpa.key}: {guards.not_loaded(PluginKind.ESTIMATOR, wanted)}")
    return replace(candidate, estimators=loaded_estimators(guards, [plugin.name for plugin in plugins]))


def _read(data: Mapping[str, Any], kind: type[T], gates: FeatureGates) -> T:
    manifest = read_manifest(data, gates)
    if manifest.errors or not isinstance(manifest.object, kind):
        problem = manifest.errors[0] if manifest.errors else f"is no {kind.__name__}"
        raise ModelError(f"{manifest.kind} {manifest.key}: {problem}")
    return manifest.object
