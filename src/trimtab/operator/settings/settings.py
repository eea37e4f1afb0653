"""All settings of a process, in groups.

Names are upstream's wherever upstream has the setting, so that manifests and habits carry over. No two settings of
different groups have the same name, so that `of`, `replace` and `value` need no group.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self
from zlib import crc32

from trimtab.model.feature_gates import FeatureGates, GateError
from trimtab.model.labels.names import dns1123_label_problems
from trimtab.operator.settings.compat import UPSTREAM, kubernetes_version, upstreams
from trimtab.operator.settings.declare import (
    ADAPTER_COMMAND,
    ALL_LOOPS,
    COMMAND,
    EVERY,
    GATE,
    NAMESPACE,
    PLUGIN,
    Setting,
    reject_bad_values,
    setting,
    settings_group,
    settings_in,
)
from trimtab.operator.settings.horizontal import HorizontalSettings, MetricsSettings
from trimtab.operator.settings.process import (
    ClientSettings,
    DashboardSettings,
    LeaseSettings,
    reject_bad_times,
)
from trimtab.operator.settings.vertical import (
    AdmissionSettings,
    EstimationSettings,
    HistorySettings,
    RecommenderLoopSettings,
    UpdaterLoopSettings,
    reject_long_timeout,
)

LOOPS = tuple(ALL_LOOPS.split())
"""The loops that can run in a process, in the order in which they lend their name to its Lease."""

ELECTED = ("horizontal", "recommender", "updater", "roles")
"""The loops of which one replica works at a time; admission works in every replica."""

GROUPS = (
    "Process", "Horizontal", "Metrics", "Leader election", "Recommender", "History", "Updater", "Admission", "Dashboard",
)  # fmt: skip
"""The groups of flags, in the order of the reference page."""

KUBE_SYSTEM = "kube-system"
VERTICAL = "recommender updater admission roles"


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


@settings_group("Process", read_by=EVERY)
class Settings:
    """The settings of a process. Those that all components read are its own, the others are in groups."""

    # A declaration has its facts first, then its help, then why this default.
    # fmt: off
    components: tuple[str, ...] = setting(("horizontal",), decides=True, is_essential=True, is_wired=True,
        help="What runs in this process, separated by commas: horizontal, recommender, updater, admission, roles, dashboard, adapter.",
        why="Most users install horizontal scaling first. The vertical loops need a webhook as well.")
    watch_namespaces: tuple[str, ...] = setting((), read_by=f"{EVERY} {ADAPTER_COMMAND}", decides=True, is_essential=True, form=NAMESPACE,
        help="Namespaces to work in, separated by commas; empty means all.",
        why="One installation per cluster is the usual case.")
    feature_gates: str = setting("", read_by=f"{ALL_LOOPS} dashboard", decides=True, is_essential=True, form=GATE, is_list=True,
        help="Gates to set, as Name=true,Other=false; AllAlpha and AllBeta set many.",
        why="Alpha features are off by default, as in Kubernetes.")
    compat: str = setting("", read_by=f"{ALL_LOOPS} dashboard", decides=True, is_essential=True, form=UPSTREAM, is_list=True,
        help="Behave as upstream does where we rule otherwise: kubernetes-1.37 or kubernetes-1.36 for HPAs, vpa-1.8 for VPAs, or both.",
        why="Our rulings fix known defects; comparing with upstream needs the defects back.")
    plugins: tuple[str, ...] = setting((), read_by=f"{EVERY} {ADAPTER_COMMAND}", form=PLUGIN,
        help="Plug-ins to load, separated by commas, such as example.com/NotDraining; `trimtab plugin list` shows what is installed.",
        why="Only a plug-in that is named here is imported. Nothing in the cluster can load code.")
    dry_run: bool = setting(False, decides=True, is_essential=True,
        help="Decide, record and explain, but write only events and the Lease of this process. Log, pages and metrics show the decisions.",
        why="Users can check the decisions before they let Trimtab act.")
    namespace: str = setting("trimtab", read_by=VERTICAL, group="Admission", decides=True, is_essential=True, is_wired=True,
        help="Our own namespace: for the webhook's Service, its certificate and the probe.",
        why="The namespace that the chart installs into.")
    native_vpas: bool = setting(False, read_by=f"{VERTICAL} dashboard", group="Recommender", decides=True, is_essential=True,
        help="Also act on autoscaling.k8s.io objects; needs upstream's VPA, or that of the cloud provider, off.",
        why="Two controllers on one object fight; the one that is there comes first.")
    ignored_namespaces: tuple[str, ...] = setting((), "--ignored-vpa-object-namespaces", read_by=VERTICAL, group="Admission", decides=True, form=NAMESPACE,
        help="Namespaces whose VPAs and pods recommender, updater and admission leave alone, separated by commas.")
    include_kube_system: bool = setting(False, read_by=VERTICAL, group="Admission", decides=True, compat={"kubernetes": True, "vpa": True},
        help="Let VPAs in kube-system change pods; without it they recommend only, as VPAs in our own namespace do.",
        why="A webhook that hangs must not delay the pods that the cluster itself needs. On with --compat, as upstream.")
    bind_address: str = setting("127.0.0.1", is_wired=True, help="Address of the health and metrics port.",
        why="Local by default; the chart sets :: inside the pod.")
    port: int = setting(8080, is_essential=True, is_wired=True, least=0, most=65535,
        help="Port of /healthz, /livez, /readyz, /metrics and the records; 0 picks a free one.",
        why="A common choice for such a port.")
    records: int = setting(20, read_by="horizontal dashboard", least=0,
        help="Decisions kept per HPA for explain and replay.",
        why="Five minutes at the default period; about 2 KB each.")
    verbosity: int = setting(4, "--v", read_by=COMMAND, aliases=("-v",), per_program=True,
        help="How much is logged: 0 warnings only, 1 to 4 also what is done, 5 and more also details.",
        why="Upstream's default: one line per change.")
    log_format: str = setting("text", read_by=f"{COMMAND} {ADAPTER_COMMAND}", is_essential=True, choices=("text", "json"),
        help="Format of log lines: `text` or `json`.", why="Text is easier to read.")
    # fmt: on

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
        """Return settings with these values, by name. None and a missing value mean the default under `--compat`.

        Raise ValueError if `--compat` names an unknown program.
        """
        given = {name: value for name, value in values.items() if value is not None}
        return cls().replace(**compat_defaults(given.get("compat", "")) | given)

    def replace(self, **values: Any) -> Self:
        """Return the settings with other values, by name."""
        own: dict[str, Any] = {}
        grouped: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            group = _group_of()[name]
            (grouped.setdefault(group, {}) if group else own)[name] = value
        own |= {group: replace(getattr(self, group), **changed) for group, changed in grouped.items()}
        return replace(self, **own)

    def value(self, name: str) -> Any:
        """Return the value of a setting, whatever its group."""
        group = _group_of()[name]
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
        admitted = {KUBE_SYSTEM} if self.include_kube_system else set()
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


def _groups() -> Iterator[tuple[str, Any]]:
    """Yield the groups of settings by their name in `Settings`, which is empty for its own settings."""
    plain = Settings()
    yield "", plain
    own = {declared.name for declared in settings_in(plain)}
    yield from ((field.name, getattr(plain, field.name)) for field in fields(plain) if field.name not in own)


@cache
def _group_of() -> dict[str, str]:
    return {declared.name: name for name, group in _groups() for declared in settings_in(group)}


@cache
def declared() -> tuple[Setting, ...]:
    """Return each setting, by the group of its flag, then in the order of declaration."""
    found = [declared for _, group in _groups() for declared in settings_in(group)]
    return tuple(sorted(found, key=lambda declared: GROUPS.index(declared.group)))


def read_by(program: str) -> tuple[Setting, ...]:
    """Return the settings that a component, or another program, reads."""
    return tuple(each for each in declared() if program in each.read_by)


def compat_defaults(compat: str) -> dict[str, Any]:
    """Return the settings whose default differs with this `--compat`, or raise ValueError if it is unknown."""
    programs = upstreams(compat)
    return {each.name: each.default_with(programs) for each in declared() if each.compat and programs}


def reject_invalid(settings: Settings) -> None:
    """Raise ValueError with the flag's name if no process can start with these settings."""
    reject_long_timeout(settings.admission)
    reject_bad_times(settings.leases)
    for group in (settings, *(getattr(settings, name) for name, _ in _groups() if name)):
        reject_bad_values(group)
    for each in declared():
        for namespace in settings.value(each.name) if each.form is NAMESPACE else ():
            # The API server answers with an empty list for such a namespace: nothing else would show the mistake.
            if problems := dns1123_label_problems(namespace):
                problem = f"{namespace!r} cannot be a namespace: {'; '.join(problems)}"
                raise ValueError(f"{each.flag}: {problem}; write names separated by commas")
    try:
        _ = settings.gates
    except GateError as error:
        raise ValueError(f"--feature-gates: {error}") from error
