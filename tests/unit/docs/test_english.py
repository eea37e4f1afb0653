"""The words of docstrings: the subject is named, and components do what components do (docs/glossary.md)."""

import ast
import re
from pathlib import Path

import pytest

import trimtab

SOURCE = Path(trimtab.__file__).parent

HIDDEN_SUBJECTS = r"one who|whoever|whose turn|nobody|somebody|everybody|everyone|someone|anybody|anyone|things?|by another hand|who \w+s"
"""Words that hide the subject of a sentence."""

HUMAN_VERBS = r"tells?|told|believes?|believed|knows|teach\w*|taught|speaks?|rests|look(?:s|ed)? at|is asked for|are asked for"
"""What people do and components do not."""

BANNED = re.compile(rf"\b({HIDDEN_SUBJECTS}|{HUMAN_VERBS})\b", re.IGNORECASE)

EXCEPTIONS: dict[str, str] = {}
"""A sentence that keeps a banned word, and why."""

CLEAN: tuple[str, ...] = (
    "cluster/http",
    "cluster/config",
    "cluster/leases",
    "cluster/transport",
    "decide/vertical/resources",
    "decide/vertical/update",
    "decide/vertical/admission",
    "decide/vertical/records",
    "decide/vertical/records_format_1",
    "decide/vertical/explain",
    "clock",
    "tasks",
    "metrics",
    "operator/horizontal",
    "cli",
    "install",
    "simulate",
    "decide/vertical/input",
    "decide/vertical/cluster_state",
    "decide/vertical/histogram",
    "decide/vertical/recommend",
    "decide/vertical/control",
    "decide/vertical/compat",
    "model",
    "decide/horizontal",
    "adapter",
    "serving",
    "dashboard",
    "lab/__init__",
    "lab/embedded",
    "lab/serve",
    "lab/apiserver",
    "lab/handlers",
    "lab/admission",
    "lab/resources",
    "lab/storage",
    "lab/crd",
    "lab/patches",
    "lab/schemas",
    "lab/tables",
    "lab/metrics",
    "lab/controllers",
    "lab/nodes",
    "lab/load",
    "lab/data_plane",
    "operator/control_loop",
    "operator/__init__",
    "operator/gc_tuning",
    "operator/health",
    "operator/log_format",
    "operator/operator",
    "operator/ownership",
    "operator/process",
    "operator/prometheus",
    "operator/runtime",
    "operator/pods",
    "operator/settings",
    "cluster/cache/informers",
    "cluster/cache/namespaced_informer",
    "operator/vertical",
)
"""The packages that are held to it."""


def docstrings(path: Path) -> list[tuple[int, str]]:
    strings = (
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
    )
    return [
        (node.lineno, node.value)
        for node in strings
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def problems(package: str) -> list[str]:
    folder = SOURCE / package
    paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return [
        f"{path.relative_to(SOURCE)}:{line}: «{match.group()}» in «{text.strip().splitlines()[0][:100]}»"
        for path in paths
        for line, text in docstrings(path)
        if text not in EXCEPTIONS and (match := BANNED.search(text))
    ]


@pytest.mark.parametrize("package", CLEAN)
def test_docstrings_name_their_subject(package: str):
    assert problems(package) == []
