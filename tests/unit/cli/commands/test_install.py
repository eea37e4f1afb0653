"""`trimtab install` rejects values with which a program could not start, and names the value."""

import json

import pytest

from trimtab.cli import answer
from trimtab.cli.commands.run import settings_of
from trimtab.install import manifests, set_values
from trimtab.model.crds import all_crds
from trimtab.operator.settings.settings import declared


def install(*assignments):
    return answer(["install", *(part for assignment in assignments for part in ("--set", assignment))])


@pytest.mark.parametrize(
    ("assignments", "path", "says"),
    [
        (
            ["settings.compat=kubernetes-1.38"],
            "settings.compat",
            "known are: kubernetes-1.36, kubernetes-1.37",
        ),
        (
            ["settings.compat=kubernetes-1.37", "settings.feature-gates=HPAConfigurableTolerance=false"],
            "settings.feature-gates",
            "HPAConfigurableTolerance is always on with compat kubernetes-1.37",
        ),
        (
            ["settings.feature-gates=HPAScaleToZeroo=true"],
            "settings.feature-gates",
            "each part is a gate that exists, as Name=true",
        ),
        (["settings.log-format=xyz"], "settings.log-format", "'xyz' is not known; use text or json"),
        (["settings.node-fit=bogus"], "settings.node-fit", "use free, allocatable or none"),
        (["settings.admission-check=guess"], "settings.admission-check", "probe, lease or none"),
        (["settings.min-replicas=-1"], "settings.min-replicas", "use 0 or more"),
        (["horizontal.settings.shards=17"], "horizontal.settings.shards", "17 is out of bounds; use 1 to 16"),
        (["settings.webhook-timeout-seconds=4"], "settings.webhook-timeout-seconds", "use at most 3"),
        (
            ["settings.horizontal-pod-autoscaler-sync-period=soon"],
            "settings.horizontal-pod-autoscaler-sync-period",
            "'soon' is not a duration of more than 0, such as 15s",
        ),
        (
            ["settings.horizontal-pod-autoscaler-sync-period=-15s"],
            "settings.horizontal-pod-autoscaler-sync-period",
            "is not a duration",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_value_that_stops_a_program_is_rejected_in_one_line(assignments, path, says, capsys):
    """The manifests were printed, and the pods crashed, or logged in another format than asked for."""
    assert install(*assignments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert len(err.splitlines()) == 1
    assert err.startswith(f"trimtab: {path}: ")
    assert says in err


@pytest.mark.parametrize(
    ("assignments", "path", "says"),
    [
        (
            ["settings.leader-elect-lease-duration=5s"],
            "settings.leader-elect-renew-deadline",
            "use less than --leader-elect-lease-duration",
        ),
        (
            [
                "settings.compat=vpa-1.8",
                "settings.webhook-naming=trimtab",
                "settings.webhook-timeout-seconds=9",
            ],
            "settings.webhook-timeout-seconds",
            "use 1 to 3",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_flag_that_stops_a_program_is_rejected_in_one_line(assignments, path, says, capsys):
    """The schema checks each value by itself; the program knows what the values mean together."""
    assert install(*assignments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert len(err.splitlines()) == 1
    assert f"trimtab: {path}: Deployment trimtab-" in err
    assert "could not start: " in err
    assert says in err
    assert f"correct --set {path}" in err


def test_the_environment_of_this_machine_does_not_count(monkeypatch, capsys):
    monkeypatch.setenv("TRIMTAB_NODE_FIT", "bogus")
    monkeypatch.setenv("TRIMTAB_COMPAT", "nonsense")
    assert install() == 0
    assert settings_of(["--components=updater"]).updater.node_fit == "free"


@pytest.mark.parametrize(
    "setting", [each for each in declared() if each.choices], ids=lambda setting: setting.key
)
def test_every_setting_with_choices_is_checked_by_the_program_and_takes_each_choice(setting):
    assert all(f"`{choice}`" in setting.help for choice in setting.choices if choice), (
        "the help names each choice"
    )
    for choice in setting.choices:
        settings_of([f"{setting.flag}={choice}"])
    with pytest.raises(ValueError, match=f"{setting.flag}=other is not known; use "):
        settings_of([f"{setting.flag}=other"])


def test_every_program_of_the_default_installation_has_settings():
    objects = manifests(set_values(["dashboard.enabled=true"]))
    programs = [item for item in objects if item["kind"] == "Deployment"]
    for program in programs:
        (container,) = program["spec"]["template"]["spec"]["containers"]
        assert settings_of(container["args"][1:]).components
    assert len(programs) == 5


@pytest.mark.parametrize(
    ("assignments", "is_hinted"),
    [
        ([], True),
        (["scalable=[{group: argoproj.io, resource: rollouts}]"], False),
        (["settings.native-hpas=true"], False),
        (["horizontal.enabled=false"], False),
    ],
    ids=["no value", "the kind is named", "native HPAs", "no HPAs"],
)
def test_the_right_to_scale_other_kinds_is_named_where_it_is_missing(assignments, is_hinted, capsys):
    assert install(*assignments) == 0
    out, err = capsys.readouterr()
    assert out
    assert ("--set 'scalable=[{group: argoproj.io, resource: rollouts}]'" in err) == is_hinted
    assert bool(err) == is_hinted


def test_only_the_definitions_can_be_printed(capsys):
    assert answer(["install", "--only=crds", "-o", "json"]) == 0
    out, err = capsys.readouterr()
    wanted = [{**crd["metadata"]["annotations"]} for crd in json.loads(out)["items"]]
    assert all(annotations["helm.sh/resource-policy"] == "keep" for annotations in wanted)
    assert {crd["metadata"]["name"] for crd in json.loads(out)["items"]} == {
        crd["metadata"]["name"] for crd in all_crds()
    }
    assert not err
