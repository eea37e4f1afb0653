"""The settings by which an operator decides, published on its Lease for programs that only look.

Whoever holds the Lease writes its own settings with every renewal, so they change hands together with the right to
decide. `explain`, `top` and the dashboard read them. Values that equal the default are left out: a Lease is renewed
every few seconds.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

import trimtab
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import LEASES
from trimtab.model.core.objects import Lease
from trimtab.model.json import wire
from trimtab.model.times import format_duration, parse_duration
from trimtab.operator.settings.settings import Settings, declared

log = logging.getLogger(__name__)

ANNOTATION: Final = "autoscaling.trimtab.dev/settings"

PUBLISHED: Final = (
    "components",
    "watch_namespaces",
    "feature_gates",
    "compat",
    "dry_run",
    "native_hpas",
    "own_hpas",
    "sync_period",
    "look_period",
    "tolerance",
    "downscale_stabilization",
    "cpu_initialization_period",
    "initial_readiness_delay",
    "metrics_max_age",
    "metrics_max_age_windows",
    "metrics_max_ahead",
    "recommender_name",
    "recommendation_margin_fraction",
    "target_cpu_percentile",
    "lower_bound_cpu_percentile",
    "upper_bound_cpu_percentile",
    "target_memory_percentile",
    "lower_bound_memory_percentile",
    "upper_bound_memory_percentile",
    "confidence_interval_cpu",
    "confidence_interval_memory",
    "cpu_histogram_decay_half_life",
    "memory_histogram_decay_half_life",
    "memory_aggregation_interval",
    "memory_aggregation_interval_count",
    "oom_bump_up_ratio",
    "oom_min_bump_up_bytes",
    "round_cpu_millicores",
    "round_memory_bytes",
    "humanize_memory",
    "cpu_integer_post_processor_enabled",
    "cap_to_largest_node",
    "pod_min_cpu_millicores",
    "pod_min_memory_mb",
    "container_max_allowed_cpu",
    "container_max_allowed_memory",
    "storage",
    "min_replicas",
    "max_evictions_per_minute",
    "max_evicted_share_per_minute",
    "max_missing_pods",
    "fruitless_evictions",
    "fruitless_eviction_pause",
    "refused_eviction_backoff",
    "refused_eviction_backoff_limit",
    "eviction_tolerance",
    "pod_update_threshold",
    "in_bounds_lifetime",
    "evict_after_oom_threshold",
    "in_place_skip_disruption_budget",
    "node_fit",
    "namespace",
    "ignored_namespaces",
    "include_kube_system",
    "max_allowed_cpu_boost",
)
"""The settings that a decision depends on. Addresses, files and credentials are never published."""


EXPLAINED: Final = ("horizontal", "recommender", "updater")
"""The loops whose decisions are explained by what they publish; of the others nobody asks for it."""


class UnreadableSettings(ValueError):  # noqa: N818 - said of the annotation, as it stands
    """Published settings that this version cannot read; the message says which."""


class _Note(wire.Wire):
    version: str = ""
    settings: dict[str, str] = {}
    """By flag, without its dashes; what is missing has its default."""


@dataclass(frozen=True, slots=True)
class Found:
    """Settings that decisions are explained by, and where they come from."""

    settings: Settings
    source: str
    """In words, for people."""
    is_published: bool = False
    """Whether an operator published them; otherwise they are assumed."""
    assumed: tuple[str, ...] = ()
    """The loops whose settings are assumed."""
    is_partly_published: bool = False
    """Whether the settings of some loops were published; the source then says of which."""
    updater_sees_all_pods: bool = True
    """Whether the updater watches every namespace; else it does not know which room of a node is free."""

    @property
    def line(self) -> str:
        """Return the sentence that tells where the numbers come from, and which were assumed."""
        if self.is_published:
            return f"settings: {self.source}"
        which = "" if self.is_partly_published else "assumed, "
        numbers = described(self.settings, self.assumed)
        return f"settings: {which}{self.source}{f'. Assumed: {numbers}' if numbers else ''}"


def own_settings(settings: Settings) -> Found:
    """Return the settings of loops that run in this process."""
    return Found(
        settings,
        "of this process",
        is_published=True,
        updater_sees_all_pods=not settings.watch_namespaces,
    )


def described(settings: Settings, loops: Iterable[str]) -> str:
    """Return the numbers and gates that decisions of these loops depend on most, in words."""
    loops = tuple(loops)
    parts: list[str] = []
    if "horizontal" in loops:
        parts += [
            f"tolerance {settings.horizontal.tolerance:g}",
            f"downscale stabilization {format_duration(settings.horizontal.downscale_stabilization)}",
            f"CPU initialization period {format_duration(settings.horizontal.cpu_initialization_period)}",
            f"initial readiness delay {format_duration(settings.horizontal.initial_readiness_delay)}",
        ]
    if "recommender" in loops:
        parts += [
            f"CPU percentile {settings.estimation.target_cpu_percentile:g}",
            f"memory percentile {settings.estimation.target_memory_percentile:g}",
            f"margin {settings.estimation.recommendation_margin_fraction:g}",
        ]
    if "updater" in loops:
        parts += [f"at least {settings.updater.min_replicas} replicas for an eviction"]
    if loops:
        parts += [f"gates {settings.feature_gates or 'at their defaults'}"]
        parts += [f"compat {settings.compat}"] if settings.compat else []
    return ", ".join(parts)


def note_of(settings: Settings) -> dict[str, str]:
    """Return the annotation that publishes these settings."""
    plain = Settings()
    values = {
        flag.name.removeprefix("--"): _text(settings.value(field.name))
        for field, flag in declared()
        if field.name in PUBLISHED
        and (field.name == "components" or settings.value(field.name) != plain.value(field.name))
    }
    note = _Note(version=trimtab.__version__, settings=values)
    return {ANNOTATION: msgspec.json.encode(note, order="sorted").decode()}


def read_note(text: str) -> tuple[Settings, str]:
    """Return published settings and the version of their operator; flags that we do not know are left out."""
    try:
        note = msgspec.json.decode(text, type=_Note)
        values = {
            field.name: _value(Settings().value(field.name), note.settings[name])
            for field, flag in declared()
            if field.name in PUBLISHED and (name := flag.name.removeprefix("--")) in note.settings
        }
    except (msgspec.MsgspecError, ValueError) as error:
        raise UnreadableSettings(f"the annotation {ANNOTATION} cannot be read: {error}") from error
    return Settings.of(**values), note.version


async def find_settings(
    client: Client, namespace: str, loop: str, fallback: Settings, *, recommender: str = ""
) -> Found:
    """Return the settings of the operator that runs a loop, or the fallback with the reason.

    Of several recommenders the one of that name counts, if a name is given.
    """
    try:
        listed = await client.list(LEASES, ListOptions(namespace))
    except errors.ClusterError as error:
        return Found(
            fallback,
            f"because the operator's Leases in namespace {namespace} cannot be read: {error}",
            assumed=(loop,),
        )
    found = _published(listed.items, loop)
    if recommender:
        found = [one for one in found if one[1].recommender.recommender_name == recommender]
    if found:
        now = client.clock.now()
        lease, settings, version = max(found, key=lambda one: _rank(one[0], one[1], now))
        return Found(settings, _source(lease, version, is_held=_is_held(lease, now)), is_published=True)
    what = f"{loop} {recommender}".strip()
    why = f"because no operator in namespace {namespace} has published any for the {what}"
    return Found(fallback, why, assumed=(loop,))


def _published(leases: Iterable[Lease], loop: str) -> list[tuple[Lease, Settings, str]]:
    found = []
    for lease in leases:
        text = lease.metadata.annotations.get(ANNOTATION)
        if text is None:
            continue
        try:
            settings, version = read_note(text)
        except UnreadableSettings as error:
            log.warning("Lease %s: %s", lease.metadata.key, error)
            continue
        if loop in settings.components:
            found.append((lease, settings, version))
    return found


def _rank(lease: Lease, settings: Settings, now: datetime) -> tuple[bool, bool, float]:
    """Prefer the Lease of an operator that runs, then of one that acts, then the youngest."""
    renewed = lease.spec.renew_time
    return _is_held(lease, now), not settings.dry_run, renewed.timestamp() if renewed else 0.0


def _is_held(lease: Lease, now: datetime) -> bool:
    renewed, patience = lease.spec.renew_time, timedelta(seconds=2 * lease.spec.lease_duration_seconds)
    return bool(lease.spec.holder_identity) and renewed is not None and now - renewed < patience


def combined(recommender: Found, updater: Found) -> Found:
    """Return the settings of VPAs, whose sizes one loop recommends and another applies."""
    applied = {
        field.name: updater.settings.value(field.name)
        for field, flag in declared()
        if flag.group in ("Updater", "Admission")
    }
    applied["watch_namespaces"] = _acted_on(recommender, updater)
    settings = recommender.settings.replace(**applied)
    source = recommender.source if recommender.source == updater.source else _both(recommender, updater)
    return Found(
        settings,
        source,
        is_published=recommender.is_published and updater.is_published,
        assumed=(*recommender.assumed, *updater.assumed),
        is_partly_published=recommender.is_published != updater.is_published,
        updater_sees_all_pods=not updater.settings.watch_namespaces,
    )


def _acted_on(*loops: Found) -> tuple[str, ...]:
    """Return the namespaces that some loop watches; none means all. Published settings count before assumed ones."""
    known = [loop for loop in loops if loop.is_published] or loops
    watched = [loop.settings.watch_namespaces for loop in known]
    return tuple(dict.fromkeys(name for names in watched for name in names)) if all(watched) else ()


def _both(recommender: Found, updater: Found) -> str:
    """Return both sources; where only one is assumed, it says so itself."""
    is_mixed = recommender.is_published != updater.is_published
    parts = [
        f"for the {loop} {'assumed, ' if is_mixed and not found.is_published else ''}{found.source}"
        for loop, found in (("recommender", recommender), ("updater", updater))
    ]
    return "; ".join(parts)


def _source(lease: Lease, version: str, *, is_held: bool) -> str:
    source = f"of the operator that {'holds' if is_held else 'last held'} Lease {lease.metadata.key}"
    if version != trimtab.__version__:
        source += f", which is version {version or 'unknown'}; this is {trimtab.__version__}"
    return source


def _text(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(default: Any, text: str) -> Any:
    match default:
        case bool() if text not in _SWITCHES:
            raise ValueError(f"{text!r} is neither true nor false")
        case bool():
            return _SWITCHES[text]
        case timedelta():
            return parse_duration(text)
        case tuple():
            return tuple(part for part in text.split(",") if part)
        case _:
            return type(default)(text)


_SWITCHES: Final = {"true": True, "false": False}
