"""The reference page of upstream's VPA flags: what each means to `trimtab run` and to the programs of upstream's names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trimtab.cli.vpa_programs import program_settings
from trimtab.operator.settings.declare import Setting
from trimtab.operator.settings.settings import Settings, declared
from trimtab.operator.settings.upstream_flags import TOLERATED, TRANSLATED

DATA = Path(__file__).parents[1] / "tests" / "data" / "upstream-vpa-flags.json"
"""Every flag of upstream's programs with its default, as its documentation lists them; a real test asks the programs."""

RENAMED = {
    ("vpa-admission-controller", "port"): "`--webhook-port`: `--port` is the health and metrics port there.",
    (
        "vpa-admission-controller",
        "webhook-address",
    ): "`--webhook-url`: `--webhook-address` is where the webhook listens there.",
    (
        "vpa-admission-controller",
        "webhook-port",
    ): "`--webhook-url`: `--webhook-port` is where the webhook listens there.",
}
"""Flags that mean something else to `trimtab run`; the programs of upstream's names read them as upstream does."""


def upstream_flags() -> dict[str, dict[str, dict[str, str]]]:
    """Return upstream's flags with type and default, by program and name."""
    programs: dict[str, dict[str, dict[str, str]]] = json.loads(DATA.read_text(encoding="utf-8"))["programs"]
    return programs


def settings_by_flag() -> dict[str, Setting]:
    """Return the setting behind each flag, by the flag's name or alias without dashes."""
    return {name.lstrip("-"): each for each in declared() for name in (each.flag, *each.aliases)}


def upstream_page() -> str:
    """Return the page."""
    version = json.loads(DATA.read_text(encoding="utf-8"))["version"]
    text = [
        "<!-- Made by `python -m tools.reference`; do not edit. -->",
        f"# Flags of the upstream VPA {version}",
        "",
        "`trimtab vpa-recommender`, `trimtab vpa-updater` and `trimtab vpa-admission-controller` take these flags as upstream's",
        "programs do, with upstream's defaults and `--compat=vpa-1.8`. `trimtab run` takes them, too; its defaults are its own",
        "([flags](flags.md)), and the last column says where it differs.",
    ]
    for program, flags in upstream_flags().items():
        text += [
            "",
            f"## {program}",
            "",
            "| flag | upstream's default | `trimtab run` |",
            "| --- | --- | --- |",
        ]
        text += [
            f"| `--{name}` | {default} | {meaning} |" for name, default, meaning in _rows(program, flags)
        ]
    return "\n".join(text) + "\n"


def _rows(program: str, flags: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, str]]:
    known = settings_by_flag()
    defaults, theirs = Settings(), program_settings(program, {})
    for name, flag in flags.items():
        shown = flag["default"].replace("|", "\\|")
        yield name, f"`{shown}`" if shown else "", _meaning(program, name, known, defaults, theirs)


def _meaning(program: str, name: str, known: dict[str, Setting], ours: Any, theirs: Any) -> str:
    if (program, name) in RENAMED:
        return RENAMED[program, name]
    if f"--{name}" in TOLERATED:
        entry = TOLERATED[f"--{name}"]
        if entry.accepts is None:
            return f"accepted, without effect: {entry.says}"
        only = ", ".join(f"`{value}`" if value else "nothing" for value in entry.accepts)
        return f"accepted as {only}, else refused: {entry.says}"
    if f"--{name}" in TRANSLATED:
        return TRANSLATED[f"--{name}"].says
    found = known[name]
    before, after = (found.shown(each.value(found.name)) for each in (ours, theirs))
    return "the same" if before == after else f"the same; default `{before}`"
