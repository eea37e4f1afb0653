"""Write the files of the chart that follow from code: `python -m tools.chart` (a test says when it is due).

Everything else in the chart is written by hand. These are the definitions of our kinds, the part of the schema about settings,
and which program reads which setting.
"""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from trimtab.model.crds import all_crds
from trimtab.operator.settings.chart import PROGRAMS, chart_settings, programs_that_read
from trimtab.operator.settings.declare import Setting

ROOT: Final = Path(__file__).parents[1]
CHART: Final = ROOT / "charts" / "trimtab"
SHARDED: Final = ("horizontal", "recommender")
"""The programs that have rights over the Leases of shards. Only their own settings have `shards`."""
_WIDTH: Final = 180


def written() -> dict[str, str]:
    """Return the text of each file that is written, by its path in the chart."""
    settings = [each for each in chart_settings() if not each.is_wired]
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    schema["definitions"] |= settings_schemas(settings)
    read = {program: [each.key for each in settings if _takes(program, each)] for program in PROGRAMS}
    return {
        "values.schema.json": "\n".join(_lines(schema)) + "\n",
        "files/settings.yaml": "# The settings that each program reads. Written by `python -m tools.chart`.\n"
        + _yaml(read),
        **{f"files/crds/{each['spec']['names']['plural']}.yaml": _yaml(each) for each in _definitions()},
    }


def settings_schemas(settings: list[Setting]) -> dict[str, Any]:
    """Return the schema of `settings`, and of those that each program may have for itself."""
    shared = [each for each in settings if each.key != "shards"]
    own = {
        f"{program}Settings": [each for each in settings if each.per_program and _takes(program, each)]
        for program in PROGRAMS
    }
    return {
        name: {
            "type": "object",
            "additionalProperties": False,
            "properties": {each.key: each.json_schema() for each in found},
        }
        for name, found in {"settings": shared, **own}.items()
    }


def _takes(program: str, setting: Setting) -> bool:
    return program in programs_that_read(setting) and (setting.key != "shards" or program in SHARDED)


def _definitions() -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = all_crds()
    for definition in definitions:
        # Uninstalling the chart must not delete the users' autoscalers.
        definition["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
    return definitions


def _yaml(data: Any) -> str:
    style: Any = {"sort_keys": False, "default_flow_style": None, "width": _WIDTH, "allow_unicode": True}
    return str(yaml.safe_dump(data, **style))


def _lines(value: Any, head: str = "", depth: int = 0) -> list[str]:
    """Return JSON with each value on one line that holds no maps or is short."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    flat = "  " * depth + head + json.dumps(value, ensure_ascii=False)
    if len(flat) <= _WIDTH or not any(isinstance(each, dict | list) for each in inner):
        return [flat]
    heads = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    items = [_lines(each, name, depth + 1) for name, each in zip(heads, inner, strict=True)]
    body = [line for item in items[:-1] for line in [*item[:-1], f"{item[-1]},"]]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return ["  " * depth + head + opened, *body, *items[-1], "  " * depth + closed]


def main() -> None:
    """Write the files that differ."""
    for name, text in written().items():
        (CHART / name).parent.mkdir(parents=True, exist_ok=True)
        (CHART / name).write_text(text, encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
