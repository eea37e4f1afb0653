"""Turns autoscalers into the candidates of a simulation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.backtest import Candidate, ModelError
from trimtab.backtest.candidates import CandidateError, candidate_hpa
from trimtab.decide.horizontal.plugin_calls import missing_plugins
from trimtab.library.autoscalers import Autoscaler
from trimtab.model.feature_gates import FeatureGates, with_own_features
from trimtab.model.manifest import read_manifest
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.settings import Settings
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import NO_PLUGINS, Plugins

if TYPE_CHECKING:
    from trimtab.backtest.sizes import SizeCandidate

NAME_IT = "install its package and name it in plugins"
"""What to do about a plug-in that is not loaded, in Python."""

Autoscalers = Autoscaler | Sequence[Autoscaler] | Mapping[str, Autoscaler]
"""One or more autoscalers to compare, or each under its own name."""


class Candidates(NamedTuple):
    """The autoscalers to simulate, by what they decide."""

    hpas: "tuple[Candidate, ...]"
    vpas: "tuple[SizeCandidate, ...]"


def candidates_of(
    autoscalers: Autoscalers, feature_gates: str, compat: str, plugins: Plugins = NO_PLUGINS
) -> Candidates:
    """Return the candidates with the configuration of the operator that would run them.

    Raise ModelError for an autoscaler that no operator would run, and for an unknown gate or version.
    """
    settings = Settings.of(feature_gates=with_own_features(feature_gates), compat=compat)
    named = _named(autoscalers)
    hpas = {name: found for name, found in named.items() if found.kind == "HorizontalPodAutoscaler"}
    vpas = {name: found for name, found in named.items() if name not in hpas}
    try:
        return Candidates(
            _hpas(hpas, settings, Guards(plugins, advice=NAME_IT)),
            _vpas(vpas, settings, plugins) if vpas else (),
        )
    except CandidateError as error:
        raise ModelError(f"{error} ({error.hint})") from error
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from error


def require(kind: type, argument: str, *values: object) -> None:
    """Raise TypeError for a value that is of another kind, such as the path of a file."""
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{argument}: {value!r} is no {kind.__name__}; {_READERS[kind.__name__]}")


_READERS = {"Autoscaler": "read it with read_autoscaler", "Trace": "load it with Trace.from_csv"}


def _named(autoscalers: Autoscalers) -> dict[str, Autoscaler]:
    """Return the autoscalers by name. Those that have the same name are numbered."""
    if isinstance(autoscalers, Mapping):
        named = dict(autoscalers)
        require(Autoscaler, "autoscalers", *named.values())
    else:
        given = _listed(autoscalers)
        require(Autoscaler, "autoscalers", *given)
        named, seen = {}, Counter[str]()
        for autoscaler in given:
            seen[autoscaler.key] += 1
            number = seen[autoscaler.key]
            named[autoscaler.key if number == 1 else f"{autoscaler.key} ({number})"] = autoscaler
    if not named:
        raise ModelError("autoscalers: name at least 1 HorizontalPodAutoscaler or VerticalPodAutoscaler")
    return named


def _listed(autoscalers: Any) -> list[Autoscaler]:
    is_list = isinstance(autoscalers, Sequence) and not isinstance(autoscalers, str)
    return list(autoscalers) if is_list else [autoscalers]


def _hpas(autoscalers: Mapping[str, Autoscaler], settings: Settings, guards: Guards) -> tuple[Candidate, ...]:
    config = decision_config(settings)
    candidates = []
    for name, autoscaler in autoscalers.items():
        hpa = candidate_hpa(autoscaler.data, config.gates)
        assert hpa is not None  # the kind says so
        for failure in missing_plugins(hpa.spec, config.gates, guards):
            raise ModelError(f"HPA {hpa.key}: {failure}")
        candidates.append(Candidate(name, hpa, config.settings, config.gates, config.compat, guards))
    return tuple(candidates)


def _vpas(
    autoscalers: Mapping[str, Autoscaler], settings: Settings, plugins: Plugins
) -> "tuple[SizeCandidate, ...]":
    vpas = {name: _vpa(autoscaler, settings.gates) for name, autoscaler in autoscalers.items()}
    return size_candidates(vpas, settings, plugins)


def size_candidates(
    vpas: Mapping[str, VerticalPodAutoscaler], settings: Settings, plugins: Plugins, advice: str = NAME_IT
) -> "tuple[SizeCandidate, ...]":
    """Return a candidate per VPA, or raise ModelError if one names an estimator that is not loaded."""
    # Recommendations need numpy, whose import takes longer than most simulations of an HPA.
    from trimtab.backtest.sizes import SizeCandidate  # noqa: PLC0415
    from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators  # noqa: PLC0415
    from trimtab.operator.vertical.cluster_view import compat_of  # noqa: PLC0415
    from trimtab.operator.vertical.estimation import Estimation  # noqa: PLC0415

    guards, names = Guards(plugins, advice=advice), [plugin.name for plugin in plugins]
    for vpa in vpas.values():
        wanted = recommender_of(vpa)
        if is_plugin_name(wanted) and guards.find(PluginKind.ESTIMATOR, wanted) is None:
            raise ModelError(f"VPA {vpa.key}: {guards.not_loaded(PluginKind.ESTIMATOR, wanted)}")
    estimation = Estimation.from_settings(settings.estimation)
    return tuple(
        SizeCandidate(
            name,
            vpa,
            estimation.settings,
            estimation.aggregation,
            estimation.post_processing,
            compat_of(settings.compat),
            settings.gates.per_vpa_config,
            # Each candidate has guards of its own: one that fails does not pause the others.
            loaded_estimators(Guards(plugins), names),
        )
        for name, vpa in vpas.items()
    )


def _vpa(autoscaler: Autoscaler, gates: FeatureGates) -> VerticalPodAutoscaler:
    manifest = read_manifest(autoscaler.data, gates)
    if manifest.errors or not isinstance(manifest.object, VerticalPodAutoscaler):
        problem = manifest.errors[0] if manifest.errors else "is no VerticalPodAutoscaler"
        raise ModelError(f"{autoscaler.kind} {autoscaler.key}: {problem}")
    return manifest.object
