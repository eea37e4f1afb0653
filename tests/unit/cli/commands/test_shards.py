"""`trimtab shards`: what each shard has, who holds it, and which seed is better."""

import json

import pytest

from tests.support.objects import CRDS, NAMESPACES
from tests.unit.cli.api_server import kubeconfig, refusing
from trimtab.cli import answer
from trimtab.cli.commands.shards import Wanted, make_report, text_of
from trimtab.cli.errors import CommandError
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.layout import ShardLayout
from trimtab.cluster.resource import LEASES, Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.process import make_elector, make_shards
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import VPAS
from trimtab_lab.apiserver.request import RequestUser
from trimtab_lab.apiserver.server import Server

PODS = Resource("", "v1", "pods", "Pod", Json)
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", Json, namespaced=False)
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding", Json)
TEAMS = [f"team-{number}" for number in range(6)]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SHARDED = Settings.of(shards=3, native_hpas=True, own_hpas=False)
RECOMMENDER = Settings.of(components=("recommender",), shards=4)
OTHER = Settings.of(components=("recommender",), shards=2, recommender_name="other")


USED = Wanted()
"""What the operator uses."""


async def nothing_more(_client):
    """Leave the cluster as it is."""


def reported(wanted=USED, *operators, silence=0, teams=TEAMS, prepare=nothing_more, rights=None):
    """Return the report about six teams. Team N has N pods, and all but the first have an HPA.

    The operators stopped `silence` seconds ago. The user has all `rights` in these namespaces only, if any are named.
    """
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:

            def client_of(token):
                headers = {"authorization": f"Bearer {token}"}
                return Client(clock, InProcessTransport(server, headers=headers), seed=1)

            client = client_of(server.tokens.admin)
            for name in [*teams, "trimtab"]:
                await client.create(NAMESPACES, {"metadata": {"name": name}})
            for number, team in enumerate(teams):
                await create_pods(client, team, number)
                if number:
                    hpa = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}
                    await client.create(NATIVE_HPAS.untyped(), hpa, team)
            await prepare(client)
            alone = [operator for operator in operators if operator.leases.shards == 1]
            sharing = [
                make_shards(client, operator, "one") for operator in operators if operator not in alone
            ]
            for _ in range(12 if sharing else 0):
                for shards in sharing:
                    await shards.step()
                await clock.sleep(2)
            for operator in alone:
                await make_elector(client, operator, "one", lambda _leads: None).step()
            await clock.sleep(silence)
            if rights is not None:
                await grant(client, rights)
                client = client_of(server.tokens.issue(RequestUser("eve", ())))
            return await make_report(client, wanted)

    return clock.run(main())


def shown(wanted=USED, operator=SHARDED, output="table", **cluster):
    """Return what is printed."""
    return text_of(reported(wanted, *([operator] if operator else []), **cluster), output)


async def create_pods(client, namespace, count, name="web"):
    for number in range(count):
        body = {
            "metadata": {"name": f"{name}-{number}"},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        }
        await client.create(PODS, body, namespace)


async def grant(client, namespaces):
    """Let eve do everything in these namespaces."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    await client.create(CLUSTER_ROLES, {"metadata": {"name": "all"}, "rules": rules})
    for namespace in namespaces:
        body = {
            "metadata": {"name": "eve"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "all"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "eve"}],
        }
        await client.create(ROLE_BINDINGS, body, namespace)


async def create_vpas(client):
    """Create three VPAs in team-1 and one of another recommender in team-2."""
    for crd in all_crds():
        await client.create(CRDS, crd)
    named: list[tuple[str, str, Json]] = [("team-1", name, {}) for name in "abc"]
    for namespace, name, spec in [*named, ("team-2", "d", {"recommenders": [{"name": "other"}]})]:
        vpa = {"metadata": {"name": name}, "spec": {"targetRef": TARGET, **spec}}
        await client.create(VPAS.untyped(), vpa, namespace)


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
    assert line.endswith("(get that right: every namespace that the operator watches is counted)")


@pytest.mark.parametrize("operators", [(RECOMMENDER, OTHER), (OTHER, RECOMMENDER)])
@pytest.mark.parametrize(("name", "count", "vpas"), [("default", 4, 3), ("other", 2, 1)])
def test_the_shards_of_one_recommender_have_its_vpas(operators, name, count, vpas):
    """The recommender that renewed a Lease last was shown, with the VPAs of all of them."""
    report = reported(Wanted("recommender", recommender=name), *operators, prepare=create_vpas)
    assert report.layout.count == count
    assert len(report.holders) == count
    assert sum(shard.autoscalers for shard in report.contents) == vpas


def test_of_several_recommenders_the_default_one_is_shown():
    assert reported(Wanted("recommender"), RECOMMENDER, OTHER).layout.count == 4


def test_vpas_of_other_recommenders_are_not_counted():
    report = reported(Wanted("recommender", count=2), prepare=create_vpas)
    assert sum(shard.autoscalers for shard in report.contents) == 3


def test_the_recommender_is_named_on_the_command_line(tmp_path, capsys):
    leases: dict[str, object] = {f"/apis/{LEASES.api_version}/namespaces/trimtab/leases": {"items": []}}
    with refusing(403, "Forbidden", leases) as port:
        arguments = ["shards", "--component=recommender", "--recommender-name=other"]
        assert answer([*arguments, "--kubeconfig", kubeconfig(tmp_path, port)]) == 2
    assert (
        "no operator in namespace trimtab has published settings for recommender other"
        in capsys.readouterr().err
    )


def test_settings_that_are_not_known_are_said_to_be_assumed(tmp_path, capsys):
    """A user who may not read the Leases saw shards of seed 0, whatever the operator uses."""
    answers = {
        "/api/v1/namespaces": {"items": [{"metadata": {"name": "shop"}}]},
        "/api/v1/namespaces/shop/pods": {"items": [{"metadata": {"name": "web"}}]},
        f"/apis/{NATIVE_HPAS.api_version}/{NATIVE_HPAS.plural}": {"items": []},
        f"/apis/{OWN_HPAS.api_version}/{OWN_HPAS.plural}": {"items": []},
    }
    with refusing(403, "Forbidden", answers) as port:
        assert answer(["shards", "--shards=4", "--kubeconfig", kubeconfig(tmp_path, port)]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(
        "what the operator uses is not known, because the operator's Leases in namespace trimtab cannot be read: "
    )
    assert "with --shard-seed=0" in printed.out
    assert "is not known" not in printed.out


def test_settings_that_are_known_need_no_note():
    assert not reported(USED, SHARDED).notes


def test_the_seed_is_named_with_its_largest_share():
    assert ") with --shard-seed=7, an even one 0.33" in shown(Wanted(seed=7))


def test_a_user_with_rights_in_the_watched_namespaces_sees_their_shards():
    """HPAs of the whole cluster were listed, and a namespace that does not exist was counted."""
    watching = SHARDED.replace(watch_namespaces=("team-1", "team-4", "nope"))
    report = reported(USED, watching, rights=["team-1", "team-4", "nope", "trimtab"], prepare=create_nope)
    assert sum(shard.namespaces for shard in report.contents) == 3
    assert sum(shard.autoscalers for shard in report.contents) == 2
    assert sum(shard.pods for shard in report.contents) == 5


async def create_nope(client):
    await client.create(NAMESPACES, {"metadata": {"name": "nope"}})


def test_a_watched_namespace_that_does_not_exist_is_in_no_shard():
    report = reported(USED, SHARDED.replace(watch_namespaces=("team-1", "team-4", "nope")))
    assert sum(shard.namespaces for shard in report.contents) == 2
    assert report.notes == ("not in this cluster: nope of --watch-namespaces",)


def test_a_process_with_both_components_gets_one_proposal():
    """Each --component proposed a seed of its own, but a process has one."""
    both = SHARDED.replace(components=("horizontal", "recommender"))
    by_hpas, by_vpas = (
        reported(Wanted(component), both, prepare=create_vpas) for component in ("horizontal", "recommender")
    )
    assert by_hpas.contents == by_vpas.contents
    assert by_hpas.better.seed == by_vpas.better.seed
    assert sum(shard.autoscalers for shard in by_hpas.contents) == 5 + 3
    assert text_of(by_hpas, "table").split()[2] == "AUTOSCALERS"


async def create_bulk(client):
    """Create a namespace with most of all pods, and two HPAs."""
    await client.create(NAMESPACES, {"metadata": {"name": "bulk"}})
    await create_pods(client, "bulk", 15)
    for name in ("web", "api"):
        hpa = {"metadata": {"name": name}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}
        await client.create(NATIVE_HPAS.untyped(), hpa, "bulk")


def test_a_namespace_that_is_too_large_for_any_seed_is_named():
    lines = shown(Wanted(split=("team-5",)), prepare=create_bulk).splitlines()
    assert "too large for an even share, with any seed: bulk (0.60 of the pods)" in lines
    assert lines[-1] == (
        "--split-namespaces=bulk,team-5 in all replicas would divide its HPAs by name; every replica then watches its pods"
    )
    data = json.loads(shown(output="json", prepare=create_bulk))
    assert data["largeNamespaces"] == ["bulk"]


async def create_pods_of_agents(client):
    await create_pods(client, "kube-system", 15, "agent")


def test_a_large_namespace_without_hpas_cannot_be_split():
    text = shown(prepare=create_pods_of_agents)
    assert "too large for an even share, with any seed: kube-system (0.50 of the pods)" in text
    assert "--split-namespaces" not in text


def test_no_namespace_is_too_large_if_it_has_little_more_than_an_even_share():
    assert "too large" not in shown(Wanted(count=3))


def test_missing_crds_are_named():
    """VPAS was 0 without a word."""
    (note,) = reported(Wanted("recommender"), RECOMMENDER).notes
    assert note.startswith(
        "there are no VPAs; Trimtab's CRDs are not installed in this cluster (install them with: "
    )
    assert not reported(Wanted("recommender"), RECOMMENDER, prepare=create_vpas).notes
