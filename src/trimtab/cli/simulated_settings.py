"""The settings of the operator that a simulation stands for: read from its Lease, given as flags, or assumed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from trimtab.cli.errors import CommandError
from trimtab.cli.validate import ALWAYS_ON, gates_of
from trimtab.operator.settings.published import (
    ANNOTATION,
    UnreadableSettings,
    described,
    read_note,
)
from trimtab.operator.settings.settings import Settings

NUMBERS = (
    "tolerance",
    "downscale_stabilization",
    "cpu_initialization_period",
    "initial_readiness_delay",
)
"""The numbers of the operator that decide, besides those of an HPA itself."""


def simulated_settings(file: Path | None, options: Mapping[str, Any]) -> Settings:
    """Return the settings to decide by: the operator's, and over them what was given on the command line."""
    given = {name: value for name, value in options.items() if value not in (None, "")}
    if file is not None:
        return replace(_read(file), **given)
    gates_of(options["feature_gates"] or "")  # raises what is wrong with them
    given["feature_gates"] = f"{ALWAYS_ON},{options['feature_gates'] or ''}".rstrip(",")
    return replace(Settings(), **given)


def assumptions(settings: Settings, sync_period: float, *, is_given: bool) -> str:
    """Return the sentence that tells by which numbers was decided."""
    source = "the operator's settings" if is_given else "assumed settings (--settings takes the operator's)"
    return (
        f"decided every {sync_period:g} s by {source}: {described(settings, ['horizontal'])}; "
        "without the look between two syncs"
    )


def _read(file: Path) -> Settings:
    try:
        notes = [read_note(text)[0] for text in _annotations(yaml.safe_load(file.read_text()))]
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
    """Yield the published settings of a Lease or of a List of them."""
    if not isinstance(document, dict):
        return
    for item in document.get("items") or [document]:
        metadata = item.get("metadata") or {} if isinstance(item, dict) else {}
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        if isinstance(text, str):
            yield text
