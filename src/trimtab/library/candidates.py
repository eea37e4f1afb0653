"""Turns autoscalers into the candidates of a simulation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trimtab.backtest import Candidate, ModelError
from trimtab.backtest.candidates import CandidateError, candidate_hpa
from trimtab.backtest.life import UPSTREAM_RULES
from trimtab.decide.horizontal.plugin_calls import missing_plugins
from trimtab.library.autoscalers import Autoscaler
from trimtab.model.feature_gates import FeatureGates, as_flag
from trimtab.model.manifest import read_manifest
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.settings import Settings
from trimtab.operator.settings.upstream_flags import VPA_DEFAULTS
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import NO_PLUGINS, Plugins

if TYPE_CHECKING:
    from trimtab.backtest.sizes import SizeCandidate

NAME_IT = "install its package and name it in plugins"
"""What to do about a plug-in that is not loaded, in Python."""

Group = Sequence[Autoscaler]
"""Autoscalers of one workload that are tried together."""

Autoscalers = Autoscaler | Sequence[Autoscaler | Group] | Mapping[str, Autoscaler | Group]
"""One or more autoscalers to compare, or each under its own name. Those of a list within are tried together."""

UPSTREAM = "upstream"
"""What a comparison can be with."""

T = TypeVar("T")


class Candidates(NamedTuple):
    """The autoscalers to simulate, by what they decide."""

    hpas: "tuple[Candidate, ...]"
    vpas: "tuple[SizeCandidate, ...]"


class Sized(NamedTuple):
    """Autoscalers of one workload that are tried together: VPAs with their scopes, and an HPA."""

    vpas: tuple[VerticalPodAutoscaler, ...]
    scopes: tuple[VPAScope, ...] = ()
    hpa: Candidate | None = None


def candidates_of(
    autoscalers: Autoscalers, settings: Settings, plugins: Plugins = NO_PLUGINS, compare: str = ""
) -> Candidates:
    """Return the candidates with the settings of the operator that would run them, and with `compare` by upstream's rules too.

    Raise ModelError for an autoscaler that no operator would run, and for an unknown gate or version.
    """
    if compare not in ("", UPSTREAM):
        raise ModelError(f"compare: {compare!r} is not known; known is: {UPSTREAM}")
    named = _named(autoscalers)
    try:
        found = _candidates(named, settings, plugins)
        if not compare:
            return found
        upstreams = _candidates(
            {f"{name} ({UPSTREAM})": group for name, group in named.items()}, as_upstream(settings), plugins
        )
        return Candidates(_in_turn(found.hpas, upstreams.hpas), _in_turn(found.vpas, upstreams.vpas))
    except CandidateError as error:
        raise ModelError(f"{error} ({error.hint})") from error
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from error


def as_upstream(settings: Settings) -> Settings:
    """Return the settings with upstream's rules and defaults. Gates that upstream does not have stay."""
    gates = as_flag(settings.gates.own)
    return settings.replace(**{**VPA_DEFAULTS, "compat": UPSTREAM_RULES, "feature_gates": gates})


def _in_turn(ours: tuple[T, ...], upstreams: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(candidate for pair in zip(ours, upstreams, strict=True) for candidate in pair)


def _candidates(named: Mapping[str, Group], settings: Settings, plugins: Plugins) -> Candidates:
    guards = Guards(plugins, advice=NAME_IT)
    hpas: list[Candidate] = []
    groups: dict[str, Sized] = {}
    for name, group in named.items():
        beside = [
            _hpa(name, found, settings, guards) for found in group if found.kind == "HorizontalPodAutoscaler"
        ]
        vpas = [found for found in group if found.kind != "HorizontalPodAutoscaler"]
        if not vpas:
            hpas += beside
            continue
        if len(beside) > 1:
            raise ModelError(f"{name}: has {len(beside)} HorizontalPodAutoscalers for one workload; name 1")
        scopes = [scope for found in vpas for scope in found.scopes]
        groups[name] = Sized(
            tuple(_vpa(found, settings.gates) for found in vpas),
            tuple(_scope(scope, settings.gates) for scope in scopes),
            beside[0] if beside else None,
        )
    return Candidates(tuple(hpas), size_candidates(groups, settings, plugins) if groups else ())


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


def _hpa(name: str, autoscaler: Autoscaler, settings: Settings, guards: Guards) -> Candidate:
    config = decision_config(settings)
    hpa = candidate_hpa(autoscaler.data, config.gates)
    assert hpa is not None  # the kind says so
    for failure in missing_plugins(hpa.spec, config.gates, guards):
        raise ModelError(f"HPA {hpa.key}: {failure}")
    return Candidate(name, hpa, config.settings, config.gates, config.compat, guards)


def size_candidates(
    groups: Mapping[str, Sized], settings: Settings, plugins: Plugins, advice: str = NAME_IT
) -> "tuple[SizeCandidate, ...]":
    """Return a candidate per group. Raise ModelError if a VPA names an estimator that is not loaded, or no target."""
    # Recommendations need numpy, whose import takes longer than most simulations of an HPA.
    from trimtab.backtest.sizes import SizeCandidate  # noqa: PLC0415
    from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators  # noqa: PLC0415
    from trimtab.operator.vertical.estimation import Estimation  # noqa: PLC0415

    guards, names = Guards(plugins, advice=advice), [plugin.name for plugin in plugins]
    Estimation.from_settings(settings.estimation)  # raises what is wrong with them
    for group in groups.values():
        targets = {(ref.kind, ref.name) for vpa in group.vpas if (ref := vpa.spec.target_ref) is not None}
        if len(targets) != 1:
            keys = ", ".join(vpa.key for vpa in group.vpas)
            raise ModelError(f"VPA {keys}: one workload is simulated, and {len(targets)} are targets")
        for vpa in group.vpas:
            wanted = recommender_of(vpa)
            if is_plugin_name(wanted) and guards.find(PluginKind.ESTIMATOR, wanted) is None:
                raise ModelError(f"VPA {vpa.key}: {guards.not_loaded(PluginKind.ESTIMATOR, wanted)}")
    return tuple(
        # Each candidate has guards of its own: one that fails does not pause the others.
        SizeCandidate(name, vpas, settings, scopes, hpa, loaded_estimators(Guards(plugins), names))
        for name, (vpas, scopes, hpa) in groups.items()
    )


def _scope(data: Mapping[str, Any], gates: FeatureGates) -> VPAScope:
    scope = read_manifest(data, gates).object
    assert isinstance(scope, VPAScope)  # it was validated with its VPA
    return scope


def _vpa(autoscaler: Autoscaler, gates: FeatureGates) -> VerticalPodAutoscaler:
    manifest = read_manifest(autoscaler.data, gates)
    if manifest.errors or not isinstance(manifest.object, VerticalPodAutoscaler):
        problem = manifest.errors[0] if manifest.errors else "is no VerticalPodAutoscaler"
        raise ModelError(f"{autoscaler.kind} {autoscaler.key}: {problem}")
    return manifest.object
