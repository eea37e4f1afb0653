"""Say which test shows which acceptance scenario: `python -m tools.acceptance` writes docs/acceptance.md.

A test shows a scenario if it names it: in its own name (`test_z_i1_…`), in the id of a case (`id="TOL-E2 …"`) or in its
docstring. Where it runs follows from its folder and, for scenarios, from how it is played.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "acceptance.md"
PURE, LAB, REAL = "without a cluster", "on the lab", "on the real API server"
ON_BOTH = {"play", "play_by_hand", "both"}
FOLDERS = {"unit": {PURE}, "adapter": {LAB}, "real": {REAL}, "scenarios": {LAB}, "faults": {LAB}}
ID = re.compile(r"(?<![a-z0-9])(sel|tol|spec|scp|cross|z)[-_ ]([a-z]?\d*)(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class Scenario:
    """One line of the specification, and where it must be shown."""

    id: str
    sentence: str
    places: tuple[str, ...] = (LAB, REAL)


def _pure(name: str, sentence: str) -> Scenario:
    return Scenario(name, sentence, (PURE,))


SECTIONS: Mapping[str, tuple[Scenario, ...]] = {
    "Which pods count (KEP-5625)": (
        _pure("SEL-U1", "by labels, every pod is kept and none rejected"),
        _pure("SEL-U2", "by owner, only pods of the target are kept; the rejected are all named"),
        _pure("SEL-U3", "a pod without owners is rejected without asking anybody"),
        Scenario("SEL-U4", "a pod whose ReplicaSet is gone is rejected, without an error, asked for once"),
        _pure("SEL-U5", "one of two owners leads to the target, in either order: kept"),
        _pure("SEL-C1", "by labels, all numbers are those of a decision that knows no strategy"),
        _pure("SEL-C2", "fixture F1 by owner: 10 %, one replica"),
        _pure("SEL-C3", "ready, unready and missing pods of others enter neither ratio nor counts nor requests"),
        Scenario("SEL-E1", "a Job's pod with the same labels causes no scale-up, for CPU and memory"),
        Scenario("SEL-E2", "a bare pod does not enter the average that the status shows"),
        Scenario("SEL-E3", "by labels the Job's pod makes it scale up"),
        Scenario("SEL-E4", "by labels the average in the status includes the Job's pod"),
        Scenario("SEL-E5", "an absent strategy means by labels, and stays absent"),
        Scenario("SEL-E6", "two Deployments with the same labels, one HPA each by owner: both active, one scales"),
        Scenario("SEL-G1", "field and gate in every combination, at create and update; the real server has no such field", (PURE, LAB)),
        Scenario("SEL-G2", "the gate on, off, on: by owner, by labels, by owner, without an edit"),
        Scenario("SEL-V1", "a new HPA by owner says so once"),
        Scenario("SEL-V2", "a strategy switched both ways is told once each"),
        Scenario("SEL-M1", "owners are asked for once per lifetime of the cache, and counted as hits and misses"),
        Scenario("SEL-R1", "owners that cannot be read: all pods count, an event says so, nothing scales down"),
        Scenario("SEL-P1", "many pods cost no request each; by labels owners cost none at all"),
    ),
    "How far usage may stray (KEP-4951)": (
        Scenario("TOL-E1", "4 % over is within 5 %"),
        Scenario("TOL-E2", "7 % over is too much for 5 %: 100 become 107"),
        Scenario("TOL-E3", "4 % under is within 5 %"),
        Scenario("TOL-E4", "7 % under shrinks, after the window"),
        Scenario("TOL-E5", "without tolerances the flag counts, whatever its value"),
        Scenario("TOL-E6", "a small tolerance up and a large one down"),
        Scenario("TOL-E7", "1000 % never scales"),
        _pure("TOL-U1", "what is a valid tolerance"),
        _pure("TOL-U2", "the edges of tolerance in the calculation"),
        Scenario("TOL-G1", "with the operator's gate off a stored tolerance is ignored"),
        Scenario("TOL-G2", "a server with the gate off drops new tolerances and keeps old ones"),
        Scenario("TOL-C1", "a v1 client loses no tolerance"),
        Scenario("TOL-I1", "the numbers of upstream's integration test"),
    ),
    "To zero and back (KEP-2021)": (
        _pure("Z-U", "every combination of minimum, replicas, condition, gate, metric and load"),
        Scenario("Z-I1", "reaches zero, with condition and event"),
        Scenario("Z-I2", "a raised minimum wakes it once"),
        Scenario("Z-I3", "up, to zero, and up again"),
        Scenario("Z-I4", "zero is refused for CPU alone, and by a server whose gate is off"),
        Scenario("Z-E1", "a Value target: to zero, then to the maximum"),
        Scenario("Z-E2", "with the gate off never below one"),
        Scenario("Z-A1", "the condition says whose zero it is"),
        Scenario("Z-A2", "all ways between 0 and 1, with edits of the minimum before and after"),
        Scenario("Z-F1", "a metrics API that comes back wakes it unaided"),
        Scenario("Z-K1", "a restart at zero resumes from the stored condition"),
        Scenario("Z-N1", "no fall back to zero while pods start"),
        Scenario("Z-N2", "a Percent policy leaves zero with one"),
        Scenario("Z-N3", "a user's zero after a zero of ours is a pause"),
        Scenario("Z-N4", "a status that cannot be written after the scale loses nothing"),
        Scenario("Z-N5", "a raised minimum counts while the metrics are down"),
        Scenario("Z-D1", "the gate on, off, on at zero resumes"),
    ),
    "One series of a metric (KEP-117)": (
        Scenario("SPEC-G1", "fields are accepted, and the status repeats them"),
        Scenario("SPEC-G2", "selectors reach the custom metrics API, for objects and pods"),
        Scenario("SPEC-G3", "our adapter honours selectors", (LAB,)),
        Scenario("SPEC-A1", "one of two queues, end to end"),
        Scenario("SPEC-A2", "an object's average value is divided by the replicas"),
        Scenario("SPEC-A3", "external series are summed"),
        Scenario("SPEC-A4", "an object metric with two values is none"),
        _pure("SPEC-V1", "the whole table of what is valid"),
        Scenario("SPEC-C1", "a v1 client keeps selectors and targets"),
        Scenario("SPEC-D1", "a newer version of an adapter is found within a period"),
        Scenario("SPEC-N1", "an invalid selector fails its metric at runtime"),
    ),
    "A size for each role (VPAScope)": (
        Scenario("SCP-U1", "a scoped VPA controls its role and nobody else"),
        _pure("SCP-U2", "the scoped VPA wins, whichever was created first"),
        Scenario("SCP-U3", "an absent scope is refused at create; an existing VPA stays editable"),
        _pure("SCP-U4", "scopes that say nothing sensible are refused"),
        Scenario("SCP-E1", "the leader gets the leader's target, the others the base"),
        Scenario("SCP-E2", "the label moves: the new leader inherits the role's history"),
        Scenario("SCP-E3", "a pod that matches no scope is left alone if there is no base VPA"),
        Scenario("SCP-E4", "of two scopes that match, the older wins everywhere, and both are warned"),
        Scenario("SCP-E5", "a single leader is resized in place and not restarted"),
        Scenario("SCP-E6", "an infeasible resize of a lone leader never becomes an eviction"),
        Scenario("SCP-E7", "active and standby are sized independently"),
        Scenario("SCP-E8", "only the hot shard of five grows"),
        Scenario("SCP-G1", "with the gate off a scoped VPA is inert, never whole-target"),
        Scenario("SCP-N1", "a relabelled pod teaches its new role at once and spoils nothing", (PURE, LAB)),
        Scenario("SCP-N2", "what an Initial VPA controls the base does not touch"),
        Scenario("SCP-N3", "without its scope a VPA fails closed, and resumes when it is back"),
        Scenario("SCP-N4", "two VPAs of one workload share one budget"),
        Scenario("SCP-S1", "a DaemonSet by classes of nodes, also at admission"),
        Scenario("SCP-R1", "a restart restores each role from its checkpoints"),
    ),
    "Features together": (
        Scenario("CROSS-1", "by owner and a Value metric, after leaving zero with no pod ready"),
        Scenario("CROSS-2", "tolerance applies to the ratio over the target's own pods"),
        Scenario("CROSS-3", "a scale-down tolerance of one keeps a workload from zero"),
        Scenario("CROSS-4", "at zero a VPA keeps what it learned, says that no pod matches, and touches nothing"),
        Scenario("CROSS-5", "a resized pod shifts an HPA's utilization, which is of all requests together"),
        Scenario("CROSS-6", "two HPAs on a workload without pods are not ambiguous"),
        Scenario("CROSS-7", "a v1 client that edits an HPA with all four features loses none"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A test that names scenarios."""

    path: str
    name: str
    ids: frozenset[str]
    places: frozenset[str]


def shown_by(folder: Path = ROOT / "tests") -> Iterator[Shown]:
    """Yield every test that names a scenario."""
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for test in _tests(tree):
            if ids := frozenset(_ids(test)):
                places = _places(path.relative_to(folder).parts[0], test)
                yield Shown(path.relative_to(ROOT).as_posix(), test.name, ids, places)


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node


def _ids(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    texts = [test.name, ast.get_docstring(test) or ""]
    texts += [
        node.value
        for decorator in test.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for text in texts:
        for kind, number in ID.findall(text):
            yield f"{kind.upper()}-{number.upper()}"


def _places(top: str, test: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    places = set(FOLDERS.get(top, set()))
    arguments = {one.arg for one in test.args.args}
    if arguments & ON_BOTH or "real_cluster" in arguments:
        places.add(REAL)
    return frozenset(places)


def by_scenario() -> dict[str, list[Shown]]:
    """Return the tests of each scenario."""
    found: dict[str, list[Shown]] = defaultdict(list)
    for shown in shown_by():
        for name in sorted(shown.ids):
            found[name].append(shown)
    return found


def missing() -> list[str]:
    """Return the scenarios that no test shows where it should be shown."""
    found = by_scenario()
    return [
        f"{one.id} ({one.sentence}) is not shown {place}"
        for section in SECTIONS.values()
        for one in section
        for place in one.places
        if not any(place in shown.places for shown in found[one.id])
    ]


def page() -> str:
    """Return the page."""
    found = by_scenario()
    text = [
        "# Acceptance scenarios\n",
        "<!-- Made by `python -m tools.acceptance`; do not edit. -->\n",
        (
            "What the proposals promise, scenario by scenario, and the tests that show it. A scenario is written once. On the\n"
            "lab it is played in virtual time with the lab's controllers; on the real API server (`make test-real`) with\n"
            "kube-controller-manager's controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs; on both our node\n"
            "agent runs and resizes the pods. Where a state is needed that controllers would not leave alone, the stage makes the\n"
            "pods by hand; such a test says why.\n"
        ),
    ]
    for title, section in SECTIONS.items():
        rows = ["| scenario | says | pure | lab | real | tests |", "|---|---|---|---|---|---|"]
        rows += [_row(one, found[one.id]) for one in section]
        text.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(text)


def _row(one: Scenario, shown: list[Shown]) -> str:
    marks = ["✔" if any(place in by.places for by in shown) else "" for place in (PURE, LAB, REAL)]
    files = sorted({by.path for by in shown})
    links = ", ".join(f"[{path.removeprefix('tests/')}](../{path})" for path in files)
    return f"| {one.id} | {one.sentence} | {' | '.join(marks)} | {links} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
