"""What `trimtab up` puts up in place of the stories, in virtual time."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from trimtab.cli import answer
from trimtab.cli.commands.up import PODS_PER_NODE, PODS_PER_WORKLOAD
from trimtab.cli.stories.examples import ManyWorkloads, UserFiles
from trimtab.cli.stories.stage import Stage
from trimtab.clock import VirtualClock
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster
from trimtab_lab.load.curves import constant
from trimtab_lab.nodes.node_pool import NodePool

OWN = Path(__file__).parents[4] / "examples/own-workload.yaml"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}%s}
    spec: {containers: [{name: app, image: web, resources: {requests: {cpu: 200m}}}, {name: side, image: x}]}
"""


def play(example, seconds=0, nodes=3):
    """Open an example, and return its rows at once and every 15 seconds."""
    clock = VirtualClock()

    async def main():
        async with AsyncExitStack() as stack:
            config = DataPlaneConfig(pools=(NodePool(count=nodes),))
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1, setting=config))
            stage = Stage(clock, cluster)
            await stage.open((example,), stack)
            seen = [await stage.rows()]
            for _ in range(seconds // 15):
                await clock.sleep(15)
                seen.append(await stage.rows())
            return seen

    return clock.run(main())


def test_a_native_hpa_of_the_user_follows_the_load_plan_in_the_same_file():
    seen = play(UserFiles([OWN]), 900)
    sizes = [row["desired"] for (row,) in seen]
    assert {row["kind"] for (row,) in seen} == {"hpa"}
    assert {row["active"] for (row,) in seen} == {"True"}
    assert (sizes[0], max(sizes), sizes[-1]) == (2, 5, 5)


@pytest.mark.parametrize(
    ("text", "defaults"),
    [
        pytest.param(DEPLOYMENT % "", {"shop/web": "300m"}, id="half of what all replicas request"),
        pytest.param(
            DEPLOYMENT % ", annotations: {lab.trimtab.dev/cpu: 70m}", {}, id="an annotation sets the load"
        ),
        pytest.param(
            f"{DEPLOYMENT % ''}---\napiVersion: lab.trimtab.dev/v1\nkind: LoadPlan\n"
            "workloads: [{name: web, namespace: shop, cpu: {type: constant, value: '1'}}]\n",
            {},
            id="a plan sets the load",
        ),
        pytest.param(
            (DEPLOYMENT % "").replace("requests: {cpu: 200m}", "limits: {cpu: 200m}"), {}, id="no requests"
        ),
        pytest.param(
            (DEPLOYMENT % "").replace("kind: Deployment", "kind: Job"), {}, id="a Job runs to its end"
        ),
    ],
)
def test_a_workload_without_a_load_works_at_half_of_its_requests(text, defaults, tmp_path):
    path = tmp_path / "app.yaml"
    path.write_text(text)
    found = UserFiles([path])
    assert {load.name: load.cpu for load in found.defaults} == {
        name: constant(cpu) for name, cpu in defaults.items()
    }
    assert not [obj for obj in found.objects() if obj["kind"] == "LoadPlan"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["-f", "nope.yaml"], "nope.yaml: cannot be read", id="no file"),
        pytest.param(["-f", "bad.yaml"], "bad.yaml", id="no manifest"),
        pytest.param(
            ["--many", "5", "--scenario", "roles"], "cannot be combined", id="two kinds of examples"
        ),
    ],
)
def test_what_cannot_be_put_up_is_named_before_anything_starts(
    arguments, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("replicas: 3\n")
    assert answer(["up", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_many_workloads_all_decide_and_some_move():
    """More objects than one part, so that the controllers are waited for in between."""
    count = 150
    nodes = 3 + count * PODS_PER_WORKLOAD // PODS_PER_NODE
    seen = play(ManyWorkloads(count), 120, nodes)
    assert all(len(rows) == count for rows in seen)
    assert {row["active"] for rows in seen for row in rows} == {"True"}
    assert {row["reason"] for row in seen[-1]} >= {"AtMaximum"}
    sizes = [[row["desired"] for row in rows] for rows in seen]
    assert sizes[0] != sizes[-1]
