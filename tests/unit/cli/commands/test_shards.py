"""`trimtab shards`: what each shard has, who holds it, and which seed is better."""

import json

import pytest

from tests.unit.cli.api_server import kubeconfig, refusing
from trimtab.cli import answer
from trimtab.cli.commands.shards import Wanted, make_report, text_of
from trimtab.cli.errors import CommandError
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.layout import ShardLayout
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.lab.apiserver.server import Server
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS
from trimtab.operator.process import make_elector, make_shards
from trimtab.operator.settings.settings import Settings

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", Json)
TEAMS = [f"team-{number}" for number in range(6)]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SHARDED = Settings.of(shards=3, native_hpas=True, own_hpas=False)


USED = Wanted()
"""What the operator uses."""


def shown(wanted=USED, operator=SHARDED, output="table", *, silence=0, teams=TEAMS):
    """Return what is printed for six teams. Team N has N pods, and all but the first have an HPA.

    The operator stopped `silence` seconds ago.
    """
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            for name in [*teams, "trimtab"]:
                await client.create(NAMESPACES, {"metadata": {"name": name}})
            for number, team in enumerate(teams):
                for pod in range(number):
                    body = {
                        "metadata": {"name": f"web-{pod}"},
                        "spec": {"containers": [{"name": "main", "image": "web"}]},
                    }
                    await client.create(PODS, body, team)
                if number:
                    hpa = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}
                    await client.create(NATIVE_HPAS.untyped(), hpa, team)
            if operator is not None and operator.leases.shards > 1:
                shards = make_shards(client, operator, "one")
                for _ in range(12):
                    await shards.step()
                    await clock.sleep(2)
            elif operator is not None:
                await make_elector(client, operator, "one", lambda _leads: None).step()
            await clock.sleep(silence)
            return text_of(await make_report(client, wanted), output)

    return clock.run(main())


def layout_of(text):
    found = json.loads(text)
    return [(shard["namespaces"], shard["autoscalers"], shard["pods"]) for shard in found["shards"]]


def expected(layout):
    """Count by hand."""
    rows = [[0, 0, 0] for _ in range(layout.count)]
    names = dict.fromkeys([*TEAMS, "trimtab", "default", "kube-system", "kube-public", "kube-node-lease"], 0)
    for name in names:
        pods = TEAMS.index(name) if name in TEAMS else 0
        number = layout.shard_of_namespace(name)
        if number is None:
            rows[layout.shard_of(f"{name}/web")][1] += bool(pods)
            continue
        rows[number][0] += 1
        rows[number][1] += bool(pods)
        rows[number][2] += pods
    return [tuple(row) for row in rows]


def test_the_operators_shards_are_shown_with_their_holders():
    text = shown()
    header, *rows, largest, better = text.splitlines()
    assert header.split() == ["SHARD", "NAMESPACES", "HPAS", "PODS", "SHARE", "HOLDER"]
    assert [row.split()[-1] for row in rows] == ["one/103"] * 3
    assert sum(int(row.split()[3]) for row in rows) == 15
    assert largest.startswith("the largest share is 0.")
    assert largest.endswith("an even one 0.33")
    assert better.startswith("--shard-seed=")


@pytest.mark.parametrize(
    ("wanted", "layout"),
    [
        (USED, ShardLayout(3)),
        (Wanted(count=5), ShardLayout(5)),
        (Wanted(seed=7), ShardLayout(3, seed=7)),
        (Wanted(split=("team-5",)), ShardLayout(3, ["team-5"])),
    ],
)
def test_each_shard_has_what_a_count_by_hand_finds(wanted, layout):
    text = shown(wanted, output="json")
    assert layout_of(text) == expected(layout)
    has_holders = "holder" in json.loads(text)["shards"][0]
    assert has_holders == (wanted == USED), "holders are those of the layout that is used"


def test_the_named_seed_is_as_good_as_it_says():
    data = json.loads(shown(output="json"))
    then = json.loads(shown(Wanted(seed=data["betterSeed"]), output="json"))
    assert then["largestShare"] == pytest.approx(data["largestShareThen"])
    assert then["largestShare"] < data["largestShare"]
    assert then["betterSeed"] == data["betterSeed"]


def test_shards_can_be_planned_without_an_operator():
    assert layout_of(shown(Wanted(count=4), operator=None, output="json")) == expected(ShardLayout(4))


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (None, "no operator in namespace trimtab has published settings for horizontal"),
        (Settings.of(native_hpas=True), "because the operator has none"),
    ],
)
def test_without_shards_the_user_is_told_how_to_plan_them(operator, reason):
    with pytest.raises(CommandError, match=reason) as raised:
        shown(operator=operator)
    assert "--shards=4" in str(raised.value.hint)


def test_a_replica_that_does_not_renew_its_leases_holds_nothing():
    """A killed replica was shown as the holder for ever."""
    header, *rows, orphans, _largest, _better = shown(silence=60).splitlines()
    assert header.split()[-1] == "HOLDER"
    assert [row.split()[-1] for row in rows] == ["-"] * 3
    assert orphans == "no replica holds shards 0, 1, 2: nothing is decided about the HPAs there"


def test_the_largest_share_says_what_it_is_a_share_of():
    """SHARE was 0.94 in the table and 1.00 in the line below it, of pods or autoscalers."""
    split = ("team-5", "team-4")
    text = shown(Wanted(count=2, split=split), operator=None)
    layout = ShardLayout(2, split)
    pods, hpas = ([row[place] for row in expected(layout)] for place in (2, 1))
    shares = {"pods": max(pods) / sum(pods), "HPAs": max(hpas) / sum(hpas)}
    kind = max(shares, key=shares.__getitem__)
    assert f"the largest share is {shares[kind]:.2f} of the {kind} (shard " in text


def test_what_a_split_namespace_changes_is_said():
    lines = shown(Wanted(count=2, split=("team-5", "nope")), operator=None).splitlines()
    assert "not counted: 5 pods of split namespaces, which every replica watches" in lines
    assert "not in this cluster: nope of --split-namespaces" in lines


def test_a_cluster_without_pods_has_nothing_to_divide():
    """The largest share was 0.00."""
    lines = shown(Wanted(count=2), operator=None, teams=[]).splitlines()
    assert lines[-1] == "there are no pods and no HPAs to divide"


def test_a_user_without_the_right_to_read_the_cluster_is_not_told_to_name_a_namespace(tmp_path, capsys):
    """The command has no -n."""
    with refusing(403, "Forbidden") as port:
        assert answer(["shards", "--shards=2", "--kubeconfig", kubeconfig(tmp_path, port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(get that right: the whole cluster is counted, as an operator with shards does)")
