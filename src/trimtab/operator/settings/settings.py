"""All settings of a process, in groups.

The command line, the environment variables and the reference page are generated from the declarations. Names are
upstream's wherever upstream has the setting, so that manifests and habits carry over. No two settings of different
groups have the same name, so that `of`, `replace` and `value` need no group.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from datetime import timedelta
from typing import Any, Self
from zlib import crc32

from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.settings.admission import AdmissionSettings
from trimtab.operator.settings.compat import VPA, kubernetes_version, upstreams
from trimtab.operator.settings.flags import Flag, settings_in
from trimtab.operator.settings.history import HistorySettings
from trimtab.operator.settings.horizontal import HorizontalSettings, MetricsSettings
from trimtab.operator.settings.process import ClientSettings, DashboardSettings, LeaseSettings
from trimtab.operator.settings.recommender import EstimationSettings, RecommenderLoopSettings
from trimtab.operator.settings.updater import UpdaterLoopSettings
from trimtab.operator.settings.upstream_flags import VPA_DEFAULTS

LOOPS = ("horizontal", "recommender", "updater", "admission", "roles")
"""The loops that can run in a process, in the order in which they lend their name to its Lease."""

ELECTED = ("horizontal", "recommender", "updater", "roles")
"""The loops of which one replica works at a time; admission works in every replica."""

GROUPS = (
    "Process",
    "Horizontal",
    "Metrics",
    "Leader election",
    "Recommender",
    "History",
    "Updater",
    "Admission",
    "Dashboard",
)
"""The groups of flags, in the order of the reference page."""

KUBE_SYSTEM = "kube-system"

setting = settings_in("Process")


@dataclass(frozen=True, slots=True)
class NamespaceRules:
    """The namespaces in which updater, admission and recommender change no pod."""

    own: str
    """The namespace of this installation."""
    unchanged: frozenset[str]
    """Namespaces in which VPAs recommend only."""
    ignored: frozenset[str]
    """Namespaces whose VPAs are ignored."""

    @property
    def excluded(self) -> frozenset[str]:
        """Return the namespaces in which no pod is changed."""
        return self.unchanged | self.ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process. Those that all components read are its own, the others are in groups."""

    components: tuple[str, ...] = setting(
        ("horizontal",),
        "--components",
        "What runs in this process, separated by commas: horizontal, recommender, updater, admission, roles, dashboard, adapter.",
        why="Most users install horizontal scaling first. The vertical loops need a webhook as well.",
    )
    watch_namespaces: tuple[str, ...] = setting(
        (),
        "--watch-namespaces",
        "Namespaces to work in, separated by commas; empty means all.",
        why="One installation per cluster is the usual case.",
    )
    feature_gates: str = setting(
        "",
        "--feature-gates",
        "Gates to set, as Name=true,Other=false; AllAlpha and AllBeta set many.",
        why="Alpha features are off by default, as in Kubernetes.",
        is_list=True,
    )
    compat: str = setting(
        "",
        "--compat",
        "Behave as upstream does where we rule otherwise: kubernetes-1.37 or kubernetes-1.36 for HPAs, vpa-1.8 for VPAs, or both.",
        why="Our rulings fix known defects; comparing with upstream needs the defects back.",
        is_list=True,
    )
    plugins: tuple[str, ...] = setting(
        (),
        "--plugins",
        "Plug-ins to load, separated by commas, such as example.com/NotDraining; `trimtab plugin list` shows what is installed.",
        why="Only a plug-in that is named here is imported. Nothing in the cluster can load code.",
    )
    dry_run: bool = setting(
        False,
        "--dry-run",
        "Decide, record and explain, but write only events and the Lease of this process. Log, pages and metrics show the decisions.",
        why="Users can check the decisions before they let Trimtab act.",
    )
    namespace: str = setting(
        "trimtab",
        "--namespace",
        "Our own namespace: for the webhook's Service, its certificate and the probe.",
        group="Admission",
        why="The namespace that the chart installs into.",
    )
    ignored_namespaces: tuple[str, ...] = setting(
        (),
        "--ignored-vpa-object-namespaces",
        "Namespaces whose VPAs and pods recommender, updater and admission leave alone, separated by commas.",
        group="Admission",
    )
    include_kube_system: bool = setting(
        False,
        "--include-kube-system",
        "Let VPAs in kube-system change pods; without it they recommend only, as VPAs in our own namespace do.",
        group="Admission",
        why="A webhook that hangs must not delay the pods that the cluster itself needs. On with --compat, as upstream.",
    )
    bind_address: str = setting(
        "127.0.0.1",
        "--bind-address",
        "Address of the health and metrics port.",
        why="Local by default; the chart sets :: inside the pod.",
    )
    port: int = setting(
        8080,
        "--port",
        "Port of /healthz, /livez, /readyz, /metrics and the records; 0 picks a free one.",
        why="A common choice for such a port.",
    )
    records: int = setting(
        20,
        "--records",
        "Decisions kept per HPA for explain and replay.",
        why="Five minutes at the default period; about 2 KB each.",
    )
    verbosity: int = setting(
        4,
        "--v",
        "How much is logged: 0 warnings only, 1 to 4 also what is done, 5 and more also details.",
        why="Upstream's default: one line per change.",
        aliases=("-v",),
    )
    log_format: str = setting(
        "text",
        "--log-format",
        "Format of log lines: `text` or `json`.",
        why="Text is easier to read.",
        choices=("text", "json"),
    )

    client: ClientSettings = ClientSettings()
    horizontal: HorizontalSettings = HorizontalSettings()
    metrics: MetricsSettings = MetricsSettings()
    leases: LeaseSettings = LeaseSettings()
    estimation: EstimationSettings = EstimationSettings()
    recommender: RecommenderLoopSettings = RecommenderLoopSettings()
    history: HistorySettings = HistorySettings()
    updater: UpdaterLoopSettings = UpdaterLoopSettings()
    admission: AdmissionSettings = AdmissionSettings()
    dashboard: DashboardSettings = DashboardSettings()

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return settings with these values, by name, and defaults for all others."""
        return cls().replace(**values)

    def replace(self, **values: Any) -> Self:
        """Return the settings with other values, by name."""
        own: dict[str, Any] = {}
        grouped: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            group = _GROUP_OF[name]
            (grouped.setdefault(group, {}) if group else own)[name] = value
        own |= {group: replace(getattr(self, group), **changed) for group, changed in grouped.items()}
        return replace(self, **own)

    def value(self, name: str) -> Any:
        """Return the value of a setting, whatever its group."""
        group = _GROUP_OF[name]
        return getattr(getattr(self, group) if group else self, name)

    @property
    def gates(self) -> FeatureGates:
        """Return the feature gates, with the defaults of the version of Kubernetes that `--compat` names.

        Raise ValueError if a gate is unknown or cannot be set.
        """
        return FeatureGates.parse(self.feature_gates, kubernetes_version(self.compat))

    @property
    def namespace_rules(self) -> NamespaceRules:
        """Return in which namespaces no pod is changed."""
        # Upstream's programs live in kube-system and change pods there.
        admitted = {KUBE_SYSTEM} if self.include_kube_system or self.compat else set()
        unchanged = frozenset({self.namespace, KUBE_SYSTEM} - admitted)
        return NamespaceRules(self.namespace, unchanged, frozenset(self.ignored_namespaces))

    @property
    def lease_name(self) -> str:
        """Return what the names of the Leases begin with: the given name, or one made from the first loop in `ELECTED`."""
        elected = [name for name in ELECTED if name in self.components]
        first = elected[0] if elected else self.components[0]
        # Recommenders of different names serve different VPAs, so each has its own Lease. A process that also runs
        # other loops shares the Lease, else two updaters would work at once.
        named = self.recommender.recommender_name != "default" and elected == ["recommender"]
        parts = ["trimtab", first, *([lease_part(self.recommender.recommender_name)] if named else [])]
        name = self.leases.leader_elect_resource_name or "-".join(parts)
        # A dry run must not take the Lease of a process that acts.
        return f"{name}-dry-run" if self.dry_run else name


def lease_part(name: str) -> str:
    """Return a recommender's name as part of an object's name.

    Characters that are not allowed are replaced, and a checksum keeps such names distinct.
    """
    plain = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:40]
    return plain if plain == name else f"{plain}-{crc32(name.encode()):08x}".lstrip("-")


_DEFAULTS = Settings()


def _declared() -> Iterator[tuple[str, Field[Any]]]:
    """Yield each setting with its group in `Settings`, which is empty for its own settings."""
    for outer in fields(Settings):
        if "flag" in outer.metadata:
            yield "", outer
        else:
            yield from ((outer.name, inner) for inner in fields(type(getattr(_DEFAULTS, outer.name))))


_GROUP_OF = {field.name: group for group, field in _declared()}


def declared() -> Iterator[tuple[Field[Any], Flag]]:
    """Yield each setting with its flag, by the group of the flag, then in the order of declaration."""
    found = [(field, field.metadata["flag"]) for _, field in _declared()]
    yield from sorted(found, key=lambda item: GROUPS.index(item[1].group))


def with_values(values: Mapping[str, Any]) -> Settings:
    """Return settings with the given values. None means the default, or that of `--compat`."""
    given = {name: value for name, value in values.items() if value is not None}
    named = upstreams(given.get("compat", ""))
    # Upstream saves checkpoints in every loop. An interval that is given takes precedence.
    defaults = VPA_DEFAULTS if VPA in named else {"checkpoints_interval": timedelta()} if named else {}
    return Settings.of(**{**defaults, **given})
