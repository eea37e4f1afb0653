"""`trimtab install` rejects values with which a program could not start, and names the value."""

import pytest

from trimtab.cli import answer
from trimtab.cli.commands.run import settings_of
from trimtab.install import manifests, set_values
from trimtab.operator.settings.settings import declared

ADAPTER = ["adapter.enabled=true", "adapter.caBundle=eA=="]


def install(*assignments):
    return answer(["install", *(part for assignment in assignments for part in ("--set", assignment))])


@pytest.mark.parametrize(
    ("assignments", "path", "says"),
    [
        (["compat=kubernetes-1.38"], "compat", "use kubernetes-1.36 or kubernetes-1.37"),
        (["compat=kubernetes-1.36,kubernetes-1.37"], "compat", "use kubernetes-1.36 or kubernetes-1.37"),
        (
            ["compat=kubernetes-1.37", "featureGates.HPAConfigurableTolerance=false"],
            "featureGates.HPAConfigurableTolerance",
            "must be true with compat kubernetes-1.37",
        ),
        (
            ["featureGates.HPAScaleToZeroo=true"],
            "featureGates.HPAScaleToZeroo",
            "did you mean featureGates.HPAScaleToZero?",
        ),
        (
            ["featureGates.HPAScaleToZero=maybe"],
            "featureGates.HPAScaleToZero",
            "'maybe' is not true or false",
        ),
        (["logFormat=xyz"], "logFormat", "'xyz' is not known; use text or json"),
        (
            [*ADAPTER, "horizontal.enabled=false", "vertical.enabled=false", "logFormat=xyz"],
            "logFormat",
            "'xyz' is not known; use text or json",
        ),
        (["vertical.updater.nodeFit=bogus"], "vertical.updater.nodeFit", "use free, allocatable or none"),
        (
            ["vertical.updater.admissionCheck=guess"],
            "vertical.updater.admissionCheck",
            "probe, lease or none",
        ),
        (["vertical.updater.minReplicas=-1"], "vertical.updater.minReplicas", "use 0 to 999999"),
        (["horizontal.shards=17"], "horizontal.shards", "17 is not 0 or a number from 2 to 16"),
        (["vertical.admission.timeoutSeconds=4"], "vertical.admission.timeoutSeconds", "use 1 to 3"),
        (["horizontal.syncPeriod=soon"], "horizontal.syncPeriod", "soon"),
        (["horizontal.syncPeriod=-15s"], "horizontal.syncPeriod", "is not a duration"),
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
        (["horizontal.extraArgs=[--no-such-flag]"], "horizontal.extraArgs", "No such option"),
        (["horizontal.extraArgs=[--records=many]"], "horizontal.extraArgs", "not a valid integer"),
        (["vertical.recommender.extraArgs=[--storage=disk]"], "vertical.recommender.extraArgs", "checkpoint"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_flag_that_stops_a_program_is_rejected_in_one_line(assignments, path, says, capsys):
    """The schema does not list the flags; the parser of the program does."""
    assert install(*assignments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert len(err.splitlines()) == 1
    assert f"trimtab: {path}: Deployment trimtab-" in err
    assert "could not start: " in err
    assert says in err
    assert f"correct --set {path}" in err


@pytest.mark.parametrize(
    "assignments",
    [
        [],
        ADAPTER,
        ["compat=kubernetes-1.36,vpa-1.8", "dashboard.enabled=true"],
        ["compat=kubernetes-1.37", "featureGates.HPAConfigurableTolerance=true"],
        ["horizontal.shards=4", "vertical.recommender.shards=2", "vertical.recommender.name=mine"],
        ["watchNamespaces=shop,search", "dryRun=true", "horizontal.nativeHpas=true"],
        ["vertical.admission.certificateSecret=mine", "vertical.admission.timeoutSeconds=3"],
        ["vertical.updater.extraArgs=[--in-place-skip-disruption-budget, --kube_api_qps=5, -v=2]"],
    ],
    ids=" ".join,
)
def test_values_with_which_programs_start_are_accepted(assignments, capsys):
    assert install(*assignments) == 0
    assert "kind: Deployment" in capsys.readouterr().out


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
        (["horizontal.nativeHpas=true"], False),
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
