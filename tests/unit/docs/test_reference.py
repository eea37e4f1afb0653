"""The reference pages are what the code says."""

import ast
import re
from pathlib import Path

import pytest

import trimtab
from tools.reasons import HORIZONTAL, VERTICAL
from tools.reference import REFERENCE, pages
from trimtab.decide.horizontal.reasons import Code

SOURCE = Path(trimtab.__file__).parent
TELLING = {
    "set",
    "event",
    "tell",
    "Inert",
    "EmitEvent",
    "SetCondition",
    "SelectorProblem",
    "EventToRecord",
    "Set",
    "turn",
    "warn",
}
REASON = re.compile(r"[A-Z][a-z]+(?:[A-Z]+[a-z]+)+\Z|VPA[A-Z][A-Za-z]+\Z|EvictedByVPA\Z")


def calls(*packages):
    for package in packages:
        for path in SOURCE.joinpath(package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield node


def name_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def told(*packages):
    """Return the reasons that are told, as they are written in calls."""
    for call in calls(*packages):
        if name_of(call) in TELLING:
            for value in (*call.args, *(keyword.value for keyword in call.keywords)):
                if (
                    isinstance(value, ast.Constant)
                    and isinstance(value.value, str)
                    and REASON.match(value.value)
                ):
                    yield value.value


def literals():
    return {
        node.value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_up_to_date(name):
    """Run `python -m tools.reference` if this fails."""
    assert (REFERENCE / name).read_text(encoding="utf-8") == pages()[name]


def test_every_metric_of_ours_is_described():
    """A metric of ours is a name in the code that begins with `trimtab_`."""
    no_metrics = {"trimtab_probe"}  # a name that the adapter asks Prometheus for
    names = {text for text in literals() if re.fullmatch(r"trimtab_[a-z_]+", text)} - no_metrics
    page = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    described = {name.removesuffix("_total") for name in re.findall(r"^\| `(\w+)`", page, re.MULTILINE)}
    assert {name.removesuffix("_total") for name in names} - described == set()


def test_every_reason_that_is_told_is_described():
    horizontal = set(told("decide/horizontal", "operator/horizontal"))
    vertical = set(told("decide/vertical", "operator/vertical"))
    assert len(horizontal) > 10
    assert horizontal - set(HORIZONTAL) == set()
    assert vertical - set(VERTICAL) == set()


def test_every_reason_that_is_described_exists():
    written = literals()
    # Upstream's reasons for metrics are put together from the metric's type.
    made = {name for name in HORIZONTAL if re.match(r"FailedGet\w+Metric\Z", name)}
    assert {*HORIZONTAL, *VERTICAL} - made - written == set()


def test_every_decision_reason_is_described():
    page = (REFERENCE / "events-and-conditions.md").read_text(encoding="utf-8")
    assert all(f"| `{code}` | " in page for code in Code)
