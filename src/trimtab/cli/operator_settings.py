"""Reads the operator's published settings, for commands that explain or simulate decisions.

Where they cannot be read, commands assume defaults and say so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import yaml

from trimtab.cli.commands.validate import gates_of
from trimtab.cli.errors import CommandError
from trimtab.cli.names import complete_namespace
from trimtab.cluster.client import Client
from trimtab.model.feature_gates import as_flag, with_own_features
from trimtab.operator.settings.compat import kubernetes_version
from trimtab.operator.settings.published import (
    ANNOTATION,
    FoundSettings,
    UnreadableSettings,
    combined,
    describe_settings,
    find_settings,
    parse_annotation,
)
from trimtab.operator.settings.settings import Settings

GATES = with_own_features("")
"""The gates assumed without published settings."""

operator_namespace_option = click.option(
    "--operator-namespace",
    envvar="TRIMTAB_OPERATOR_NAMESPACE",
    default="trimtab",
    show_default=True,
    shell_complete=complete_namespace,
    help="Namespace whose Leases carry the operator's settings; decisions are explained by them.",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings that the user gave on the command line."""

    namespace: str
    feature_gates: str = ""
    compat: str = ""
    plugins: tuple[str, ...] = ()
    """The plug-ins to load; those of the operator are not loaded, because cluster data loads no code."""

    def over(self, found: FoundSettings) -> FoundSettings:
        """Return the settings with the user's own, and a note where they replace the operator's."""
        flags = {"--feature-gates": self.feature_gates, "--compat": self.compat}
        given = [f"{flag}={value}" for flag, value in flags.items() if value]
        if not given:
            return replace(found, settings=self.apply(found.settings))
        source = f"{found.source}; with {' '.join(given)} instead"
        return replace(found, settings=self.apply(found.settings), source=source)

    def apply(self, settings: Settings) -> Settings:
        """Return an operator's settings with the user's own. Raise ValueError if these are invalid."""
        settings = settings.replace(plugins=self.plugins)
        if self.compat:
            settings = with_compat(settings, self.compat)
        return settings.replace(feature_gates=self.feature_gates) if self.feature_gates else settings


def with_compat(settings: Settings, compat: str) -> Settings:
    """Return the settings with another `--compat`, whose version of Kubernetes brings its own gates.

    The operator named its gates for another version: one of them may be locked here. Gates that Kubernetes does not
    have stay. Raise ValueError if `compat` is unknown.
    """
    if kubernetes_version(compat) == kubernetes_version(settings.compat):
        return settings.replace(compat=compat)
    return settings.replace(feature_gates=as_flag(settings.gates.own), compat=compat)


async def settings_for(client: Client, loop: str, choice: Choice, *, recommender: str = "") -> FoundSettings:
    """Return the settings of the operator that runs a component, or the assumed ones.

    `recommender` selects one of several recommenders by name.
    """
    fallback = Settings.of(feature_gates=GATES)
    found = await find_settings(client, choice.namespace, loop, fallback, recommender=recommender)
    return choice.over(found)


async def vertical_settings(client: Client, choice: Choice, recommender: str = "") -> FoundSettings:
    """Return the settings of the named recommender and of the updater."""
    fallback = Settings.of(feature_gates=GATES)
    recommender_settings = await find_settings(
        client, choice.namespace, "recommender", fallback, recommender=recommender
    )
    updater_settings = await find_settings(client, choice.namespace, "updater", fallback)
    return choice.over(combined(recommender_settings, updater_settings))


def simulated_settings(file: Path | None, options: Mapping[str, Any]) -> Settings:
    """Return the operator's settings, overridden by the command line."""
    given = {name: value for name, value in options.items() if value not in (None, "")}
    settings = Settings.of(feature_gates=GATES) if file is None else _read(file)
    try:
        settings = with_compat(settings, given.pop("compat", settings.compat))
    except ValueError as error:
        raise CommandError(str(error)) from error
    if file is None and "feature_gates" in given:
        gates_of(given["feature_gates"])  # raises what is wrong with them
        given["feature_gates"] = f"{settings.feature_gates},{given['feature_gates']}"
    return settings.replace(**given)


def assumptions(settings: Settings, sync_period: float, *, is_given: bool) -> str:
    """Return a sentence that names the settings of the decisions."""
    source = "the operator's settings" if is_given else "assumed settings (--settings takes the operator's)"
    return (
        f"decided every {sync_period:g} s by {source}: {describe_settings(settings, ['horizontal'])}; "
        "without the look between two syncs"
    )


def _read(file: Path) -> Settings:
    try:
        notes = [parse_annotation(text)[0] for text in _annotations(yaml.safe_load(file.read_text()))]
    except (yaml.YAMLError, UnicodeDecodeError, UnreadableSettings) as error:
        raise CommandError(f"{file}: {error}") from error
    found = [settings for settings in notes if "horizontal" in settings.components]
    if not found:
        raise CommandError(
            f"{file}: holds no Lease of an operator that decides about HPAs",
            "make it with: kubectl get lease -n trimtab -o yaml",
        )
    return min(found, key=lambda settings: settings.dry_run)


def _annotations(document: Any) -> Iterator[str]:
    """Yield the published settings of a Lease or of a List of Leases."""
    if not isinstance(document, dict):
        return
    for item in document.get("items") or [document]:
        metadata = item.get("metadata") or {} if isinstance(item, dict) else {}
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        if isinstance(text, str):
            yield text
