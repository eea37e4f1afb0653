"""Writes the settings of an operator into an annotation of its Lease, and reads them there.

The holder of the Lease writes its own settings with every renewal, so they change together with the leader. `explain`,
`top` and the dashboard read them. Default values are left out, because a Lease is renewed every few seconds.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

import trimtab
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.lease import create_lease
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.core.objects import Lease
from trimtab.model.json import wire
from trimtab.model.readable import counted
from trimtab.model.times import format_duration, format_micro_time
from trimtab.operator.settings.compat import upstreams
from trimtab.operator.settings.settings import Settings, declared

log = logging.getLogger(__name__)

ANNOTATION: Final = "autoscaling.trimtab.dev/settings"

SUFFIX: Final = "-settings"
"""Ends the name of the Lease of a replica without leader election, which carries settings only."""
_SECONDS: Final = 15
_PERIOD: Final = 10.0
_UNTYPED = LEASES.untyped()

EXPLAINED: Final = ("horizontal", "recommender", "updater")
"""The loops whose decisions `explain` derives from their published settings."""


class UnreadableSettings(ValueError):  # noqa: N818 - said of the annotation, as it stands
    """This version cannot read the published settings. The message says why."""


class _Note(wire.Wire):
    version: str = ""
    settings: dict[str, str] = {}
    """Values by flag, without its dashes. A missing flag has its default."""


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """Settings by which decisions are explained, and their source."""

    settings: Settings
    source: str
    """The source as part of a sentence."""
    is_published: bool = False
    """Whether an operator published them. Otherwise they are assumed."""
    assumed: tuple[str, ...] = ()
    """The loops whose settings are assumed."""
    is_partly_published: bool = False
    """Whether the settings of only some loops were published, which `source` names."""
    is_unanswered: bool = False
    """Whether the cluster did not answer. An answer that refuses to list the Leases is one."""
    updater_sees_all_pods: bool = True
    """Whether the updater watches every namespace, and so can compute the free room of nodes."""
    lease: Lease | None = None
    """The Lease of one loop that they were published on."""

    @property
    def line(self) -> str:
        """Return a sentence with the source of the settings and the assumed values."""
        if self.is_published:
            return f"settings: {self.source}"
        which = "" if self.is_partly_published else "assumed, "
        numbers = describe_settings(self.settings, self.assumed)
        return f"settings: {which}{self.source}{f'. Assumed: {numbers}' if numbers else ''}"


def own_settings(settings: Settings) -> FoundSettings:
    """Return the settings of loops that run in this process."""
    return FoundSettings(
        settings,
        "of this process",
        is_published=True,
        updater_sees_all_pods=not settings.watch_namespaces,
    )


def describe_settings(settings: Settings, loops: Iterable[str]) -> str:
    """Return the most important settings of these loops, as part of a sentence."""
    horizontal, sizes, loops = settings.horizontal, settings.estimation, tuple(loops)
    numbers = {
        "horizontal": f"tolerance {horizontal.tolerance:g}, "
        f"downscale stabilization {format_duration(horizontal.downscale_stabilization)}, "
        f"CPU initialization period {format_duration(horizontal.cpu_initialization_period)}, "
        f"initial readiness delay {format_duration(horizontal.initial_readiness_delay)}",
        "recommender": f"CPU percentile {sizes.target_cpu_percentile:g}, "
        f"memory percentile {sizes.target_memory_percentile:g}, margin {sizes.recommendation_margin_fraction:g}",
        "updater": f"at least {counted(settings.updater.min_replicas, 'replica')} for an eviction",
    }
    parts = [text for loop, text in numbers.items() if loop in loops]
    if loops:
        parts += [f"gates {settings.feature_gates or 'at their defaults'}"]
        parts += [f"compat {settings.compat}"] if settings.compat else []
    return ", ".join(parts)


def settings_annotation(settings: Settings) -> dict[str, str]:
    """Return the annotation that publishes the settings that decide, where they differ from their defaults.

    Every user of the cluster may list the Leases, so a setting has to be declared as one that decides.
    """
    programs = upstreams(settings.compat)
    values = {
        each.key: each.text(settings.value(each.name))
        for each in declared()
        if each.decides
        and (each.name == "components" or settings.value(each.name) != each.default_with(programs))
    }
    note = _Note(version=trimtab.__version__, settings=values)
    return {ANNOTATION: msgspec.json.encode(note, order="sorted").decode()}


def parse_annotation(text: str) -> tuple[Settings, str]:
    """Return published settings and the version of their operator. Unknown flags are skipped."""
    try:
        note = msgspec.json.decode(text, type=_Note)
        decisive = [each for each in declared() if each.decides and each.key in note.settings]
        values = {each.name: each.parse(note.settings[each.key]) for each in decisive}
        return Settings.of(**values), note.version
    except (msgspec.MsgspecError, ValueError) as error:
        raise UnreadableSettings(f"the annotation {ANNOTATION} cannot be read: {error}") from error


async def find_settings(
    client: Client, namespace: str, loop: str, fallback: Settings, *, recommender: str = ""
) -> FoundSettings:
    """Return the settings of the operator that runs a loop, or the fallback with the reason.

    `recommender` selects one of several recommenders by name.
    """
    try:
        listed = await client.list(LEASES, ListOptions(namespace))
    except errors.ClusterError as error:
        return FoundSettings(
            fallback,
            f"because the operator's Leases in namespace {namespace} cannot be read: {error}",
            assumed=(loop,),
            is_unanswered=not isinstance(error, errors.Forbidden),
        )
    found = _published(listed.items, loop)
    if recommender:
        found = [entry for entry in found if entry[1].recommender.recommender_name == recommender]
    if found:
        now = client.clock.now()
        lease, settings, version = max(found, key=lambda entry: _rank(entry[0], entry[1], now))
        source = _source(lease, version, is_held=is_held(lease, now))
        return FoundSettings(settings, source, is_published=True, lease=lease)
    what = f"{loop} {recommender}".strip()
    why = f"because no operator in namespace {namespace} has published settings for {what}"
    return FoundSettings(fallback, why, assumed=(loop,))


def _published(leases: Iterable[Lease], loop: str) -> list[tuple[Lease, Settings, str]]:
    found = []
    for lease in leases:
        text = lease.metadata.annotations.get(ANNOTATION)
        if text is None:
            continue
        try:
            settings, version = parse_annotation(text)
        except UnreadableSettings as error:
            log.warning("Lease %s: %s", lease.metadata.key, error)
            continue
        if loop in settings.components:
            found.append((lease, settings, version))
    return found


def _rank(lease: Lease, settings: Settings, now: datetime) -> tuple[bool, bool, float]:
    """Rank Leases of running operators first, then those without dry run, then the youngest."""
    renewed = lease.spec.renew_time
    return is_held(lease, now), not settings.dry_run, renewed.timestamp() if renewed else 0.0


def is_held(lease: Lease, now: datetime) -> bool:
    """Return whether a replica holds a Lease, with patience for clocks that differ."""
    renewed, patience = lease.spec.renew_time, timedelta(seconds=2 * lease.spec.lease_duration_seconds)
    return bool(lease.spec.holder_identity) and renewed is not None and now - renewed < patience


def combined(recommender: FoundSettings, updater: FoundSettings) -> FoundSettings:
    """Return the settings of VPAs: those of the recommender, with the updater's own."""
    applied = {
        each.name: updater.settings.value(each.name)
        for each in declared()
        if each.group in ("Updater", "Admission")
    }
    applied["watch_namespaces"] = _acted_on(recommender, updater)
    settings = recommender.settings.replace(**applied)
    source = recommender.source if recommender.source == updater.source else _both(recommender, updater)
    return FoundSettings(
        settings,
        source,
        is_published=recommender.is_published and updater.is_published,
        assumed=(*recommender.assumed, *updater.assumed),
        is_partly_published=recommender.is_published != updater.is_published,
        updater_sees_all_pods=not updater.settings.watch_namespaces,
    )


def _acted_on(*loops: FoundSettings) -> tuple[str, ...]:
    """Return the namespaces that any loop watches. No namespace means all.

    Published settings take precedence over assumed ones.
    """
    known = [loop for loop in loops if loop.is_published] or loops
    watched = [loop.settings.watch_namespaces for loop in known]
    return tuple(dict.fromkeys(name for names in watched for name in names)) if all(watched) else ()


def _both(recommender: FoundSettings, updater: FoundSettings) -> str:
    """Return both sources, with a note at the one that is assumed."""
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


class SettingsPublisher:
    """Renews a Lease that carries the settings of a replica without leader election.

    No replica competes for this Lease. A replica without the right to write it runs on, and `explain`, `top` and the
    dashboard name the settings that they assume.
    """

    def __init__(self, client: Client, settings: Settings, identity: str) -> None:
        self._client = client
        self._namespace = settings.leases.leader_elect_resource_namespace
        self._name = settings.lease_name + SUFFIX
        self._identity = identity
        self._annotations = settings_annotation(settings)
        self._problem = ""

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self.step()
            await self._client.clock.sleep(_PERIOD)

    async def step(self) -> None:
        """Publish once. An error is logged when it changes."""
        try:
            await self._write()
        except errors.ClusterError as error:
            if str(error) != self._problem:
                advice = ""
                if isinstance(error, errors.NotFound):  # a Lease that is missing is made, so its namespace is
                    advice = f"; create it: kubectl create namespace {self._namespace}"
                log.warning(
                    "settings are not published, so that `trimtab explain` and `top` assume the defaults: %s%s",
                    error,
                    advice,
                )
            self._problem = str(error)

    async def _write(self) -> None:
        spec: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": _SECONDS,
            "renewTime": format_micro_time(self._client.clock.now()),
        }
        body = {"metadata": {"annotations": self._annotations}, "spec": spec}
        try:
            await self._client.patch(_UNTYPED, self._name, self._namespace, body)
        except errors.NotFound:
            metadata = {"name": self._name, "namespace": self._namespace, "annotations": self._annotations}
            await create_lease(self._client, _UNTYPED, {"metadata": metadata, "spec": spec}, self._namespace)
