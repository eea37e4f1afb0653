"""Explanations say who controls a pod and what lost to what; records replay to the same bytes."""

import pytest

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    FOLLOWER,
    LEADER,
    NOW,
    Recorder,
    index,
    limit_range,
    pod,
    raw_pod,
    recommended,
    run,
    scope,
    vpa,
    world,
)
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.explain import explain_pod, explain_vpa, pod_lines, vpa_lines
from trimtab.decide.vertical.records import (
    VERSION,
    read_admission,
    read_update,
    record_admission,
    recorded_loop,
    replay_admission,
    replay_update,
    to_json,
)
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire

SCOPES = [scope("leader", pods=LEADER), scope("gold", pods={"tier": "gold"})]


def seen_by_all():
    capped = [{"containerName": "app", "maxAllowed": {"memory": "6Gi"}}]
    vpas = [
        vpa("base", recommended("2Gi")),
        vpa(
            "leader",
            recommended("8Gi"),
            scope="leader",
            mode="InPlaceOrRecreate",
            min_replicas=1,
            policies=capped,
        ),
        vpa("gold", recommended("3Gi"), scope="gold"),
        vpa("dry", recommended("9Gi"), scope="leader", mode="Off"),
        vpa("broken", recommended("9Gi"), scope="absent"),
    ]
    pods = [pod(f"db-{place}", LEADER if place == 0 else FOLLOWER) for place in range(3)]
    return world(vpas, pods, SCOPES)


def explained_leader():
    seen = seen_by_all()
    _, result = run(seen)
    verdict = next(verdict for verdict in result.verdicts if verdict.pod == "shop/db-0")
    return explain_pod(seen.pods[0], index(seen), seen.owners(), {}, verdict=verdict)


def test_a_pods_explanation_names_its_controller_and_what_lost_to_what():
    found = explained_leader()
    assert found.controlled_by == "shop/leader"
    lost = {rival.vpa: rival.reason for rival in found.lost}
    assert "speaks for a part" in lost["shop/base"]
    assert "podSelector tier=gold" in lost["shop/gold"]
    assert lost["shop/dry"] == "its update mode is Off"
    assert "'absent'" in lost["shop/broken"]
    assert found.teaches == ("shop/leader", "shop/dry")


def test_a_pods_explanation_shows_sizes_cuts_and_what_the_last_loop_did():
    found = explained_leader()
    (container,) = found.containers
    assert str(container.requests["memory"]) == "1Gi"
    assert str(container.wanted_requests["memory"]) == "6Gi"
    assert "app: memory capped to maxAllowed: 8Gi became 6Gi" in container.cuts
    assert found.update == "resized: its requests are outside the recommended range"


def test_a_vpas_explanation_says_which_pods_feed_it_and_why_others_do_not():
    seen = seen_by_all()
    known = index(seen)
    claims = {claim.key: claim for claim in known.claims_on(ControllerKey("shop", "StatefulSet", "db"))}
    leader = explain_vpa(claims["shop/leader"], seen.pods, known, seen.owners(), {})
    assert leader.fed_by == ("shop/db-0",)
    assert "podSelector role=leader" in leader.not_fed_by["shop/db-1"]
    assert (leader.level, leader.scope) == (1, "pods with role=leader")
    base = explain_vpa(claims["shop/base"], seen.pods, known, seen.owners(), {})
    assert base.fed_by == ("shop/db-1", "shop/db-2")
    assert base.scope == "all pods of the target"
    assert "precedes it" in base.not_fed_by["shop/db-0"]
    assert explain_vpa(claims["shop/dry"], seen.pods, known, seen.owners(), {}).fed_by == ("shop/db-0",)
    assert explain_vpa(claims["shop/broken"], seen.pods, known, seen.owners(), {}).scope.startswith(
        "nothing: "
    )


def test_a_vpas_explanation_shows_how_each_amount_came_about_and_every_cut():
    bounded = [{"containerName": "app", "maxAllowed": {"memory": "6Gi"}}]
    vpas = [vpa("base"), vpa("leader", scope="leader", policies=bounded)]
    pods = [member("db-0", "leader"), member("db-1", "follower")]
    recommender = Recommender(vpas, SCOPES)
    recommender.observe(pods)
    recommender.scrape({"db-0": Load(4000, 8 * 10**9), "db-1": Load(300, 10**9)})
    made = recommender.recommend()["leader"]
    seen = world(vpas, pods, SCOPES)
    known = index(seen)
    claim = known.claims_on(ControllerKey("shop", "StatefulSet", "db"))[0]
    found = explain_vpa(claim, pods, known, seen.owners(), {}, made.containers, made.cuts)
    target = next(entry for entry in found.amounts if (entry.bound, entry.resource) == ("target", "memory"))
    assert target.amount == 9616998332, "fixture F5"
    assert target.text.startswith("8.96 GiB: 90 % of memory peaks are at most ")
    assert "app: memory capped to maxAllowed: 9616998332 became 6Gi" in found.cuts
    lines = vpa_lines(found)
    assert lines[:2] == [
        "VPA shop/leader: mode Recreate, for pods with role=leader",
        "  learns from shop/db-0",
    ]
    assert any(line.startswith("  app memory target: 8.96 GiB: 90 %") for line in lines)
    assert "  app memory upper bound: no upper bound yet: 1 sample" in lines


def test_lines_are_for_people():
    lines = pod_lines(explained_leader())
    assert lines[0] == ("pod shop/db-0: controlled by shop/leader: VPA shop/leader precedes shop/base")
    assert "  last update loop: resized: its requests are outside the recommended range" in lines
    assert "  app: requests cpu 100m, memory 1 GiB, would get memory 6 GiB" in lines


def test_an_explanation_is_data():
    found = explained_leader()
    assert wire.decode(wire.encode(found), type(found)) == found


def recorded(seen, state=None, settings=None, gates=ALL_GATES, compat=DEFAULT, api=None):
    api = api or Recorder()
    loop = recorded_loop(seen, state or UpdaterState(), NOW, settings or UpdaterSettings(), gates, compat)
    try:
        action = next(loop)
        while True:
            action = loop.send(api(action))
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize("compat", [DEFAULT, VPA_1_8], ids=["default", "vpa-1.8"])
@pytest.mark.parametrize("outcome", list(ActionResult))
def test_a_record_of_an_update_loop_replays_to_the_same_bytes(compat, outcome):
    seen = world(
        [vpa("base", recommended("4Gi"), mode="InPlaceOrRecreate")],
        [pod(f"db-{place}") for place in range(3)],
    )
    first = recorded(seen, compat=compat, api=Recorder(db_0=outcome))
    data = to_json(first.record)
    read = read_update(data)
    assert to_json(read) == data
    assert to_json(replay_update(read)) == data
    assert read.version == VERSION
    assert read.actions


def test_a_second_loop_replays_from_the_state_the_first_left():
    seen = seen_by_all()
    first = recorded(seen, api=Recorder(db_0=ActionResult.REFUSED))
    second = recorded(seen, first.record.after)
    assert to_json(replay_update(read_update(to_json(second.record)))) == to_json(second.record)


def test_a_record_from_before_the_ledger_is_read_and_decided_again():
    data = wire.to_builtins(recorded(seen_by_all()).record)
    for part in ("before", "after"):
        data[part].pop("requested", None)
    data["compat"].pop("disruptions_last_until_ready")
    for action in data["actions"]:
        action["originals"] = {}
    read = read_update(wire.encode(data))
    again = replay_update(read)
    assert [(one.kind, one.pod) for one in again.actions] == [(one.kind, one.pod) for one in read.actions]


def test_replay_shows_where_another_setting_decides_otherwise():
    record = recorded(seen_by_all()).record
    without_gate = wire.convert({**wire.to_builtins(record), "gates": FeatureGates().__dict__}, type(record))
    assert record.actions
    assert to_json(replay_update(without_gate)) != to_json(record)


@pytest.mark.parametrize(
    "raw",
    [raw_pod(labels=LEADER, limits={"memory": "3Gi"}), {"spec": []}, None],
    ids=["a leader", "nonsense", "nothing"],
)
def test_a_record_of_an_admission_replays_to_the_same_bytes(raw):
    seen = world(
        [vpa("leader", recommended("8Gi"), scope="leader")],
        scopes=SCOPES,
        ranges=[limit_range(max={"memory": "4Gi"})],
    )
    answer, record = record_admission(raw, "shop", seen, ALL_GATES)
    data = to_json(record)
    assert to_json(replay_admission(read_admission(data))) == data
    assert record.operations == answer.operations
