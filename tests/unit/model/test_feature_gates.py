"""Feature gates: defaults, groups, and errors that help."""

from dataclasses import replace

import pytest

from trimtab.model import feature_gates
from trimtab.model.feature_gates import GATES, FeatureGates, Gate, GateError, Stage, gates_of_version


def test_beta_is_on_and_alpha_is_off_unless_asked():
    on = {name for name in GATES if FeatureGates().enabled(name)}
    assert on == {"HPAConfigurableTolerance", "HPAScaleToZero", "PodLevelResources"}
    assert on == {gate.name for gate in GATES.values() if gate.stage is not Stage.ALPHA}


@pytest.mark.parametrize(
    ("version", "zero", "tolerance"),
    [
        ("kubernetes-1.36", (Stage.ALPHA, False, False), (Stage.BETA, True, False)),
        ("kubernetes-1.37", (Stage.BETA, True, False), (Stage.GA, True, True)),
        ("", (Stage.BETA, True, False), (Stage.GA, True, False)),
    ],
)
def test_a_version_of_kubernetes_has_its_own_stages_defaults_and_locks(version, zero, tolerance):
    gates = gates_of_version(version)
    found = [gates[name] for name in ("HPAScaleToZero", "HPAConfigurableTolerance")]
    assert [(gate.stage, gate.default, gate.locked) for gate in found] == [zero, tolerance]
    assert FeatureGates.parse("", version).hpa_scale_to_zero is zero[1]


def test_the_stage_in_a_version_decides_what_a_group_sets():
    assert FeatureGates.parse("AllAlpha=true", "kubernetes-1.36").hpa_scale_to_zero
    assert not FeatureGates.parse("AllBeta=false", "kubernetes-1.36").hpa_configurable_tolerance
    assert not FeatureGates.parse("AllBeta=false", "kubernetes-1.37").hpa_scale_to_zero
    assert FeatureGates.parse("AllBeta=false", "kubernetes-1.37").hpa_configurable_tolerance
    with pytest.raises(GateError, match="HPAConfigurableTolerance is locked to true"):
        FeatureGates.parse("HPAConfigurableTolerance=false", "kubernetes-1.37")


def test_gates_are_read_by_name_and_by_attribute():
    asked = FeatureGates.parse("HPAScaleToZero=true, HPAConfigurableTolerance=false")
    assert asked.hpa_scale_to_zero
    assert asked.enabled("HPAScaleToZero")
    assert not asked.hpa_configurable_tolerance


def test_every_gate_has_its_attribute():
    assert all(FeatureGates.of({name: True}).enabled(name) for name in GATES)
    assert not any(FeatureGates.of({name: False}).enabled(name) for name in GATES)


@pytest.mark.parametrize(
    ("text", "selection", "pod_level"),
    [
        pytest.param("", False, True, id="nothing"),
        pytest.param("AllAlpha=true", True, True, id="all alpha"),
        pytest.param("AllBeta=false", False, False, id="no beta"),
        pytest.param(
            "HPASelectionStrategy=false,AllAlpha=true", False, True, id="a name wins over its group"
        ),
        pytest.param(
            "HPASelectionStrategy=true,HPASelectionStrategy=false", False, True, id="the last counts"
        ),
        pytest.param("HPASelectionStrategy=true,", True, True, id="a comma at the end"),
        pytest.param(",HPASelectionStrategy=true", True, True, id="a comma at the beginning"),
        pytest.param(
            "HPAScaleToZero=true, ,HPASelectionStrategy=true", True, True, id="nothing between two commas"
        ),
        pytest.param("AllAlpha=true,AllBeta=false", True, False, id="both groups"),
        pytest.param("AllAlpha=false,AllBeta=true", False, True, id="both groups, the other way"),
    ],
)
def test_groups(text, selection, pod_level):
    asked = FeatureGates.parse(text)
    assert (asked.hpa_selection_strategy, asked.pod_level_resources) == (selection, pod_level)


def test_text_reads_back():
    asked = FeatureGates.parse("AllAlpha=true,PodLevelResources=false")
    assert FeatureGates.parse(str(asked)) == asked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SPASelectionStrategy=true",
            "unknown feature gate 'SPASelectionStrategy': did you mean HPASelectionStrategy?",
        ),
        (
            "HPAselectionStrategy=true",
            "unknown feature gate 'HPAselectionStrategy': did you mean HPASelectionStrategy?",
        ),
        ("Zzz=true", "unknown feature gate 'Zzz': known are AllAlpha, AllBeta, CPUStartupBoost"),
        ("HPAScaleToZero", "feature gate 'HPAScaleToZero' lacks a value: write HPAScaleToZero=true"),
        ("HPAScaleToZero=on", "feature gate HPAScaleToZero cannot be 'on': write HPAScaleToZero=true"),
        ("=true", "unknown feature gate ''"),
    ],
)
def test_errors_say_what_to_write(text, message):
    with pytest.raises(GateError) as caught:
        FeatureGates.parse(text)
    assert str(caught.value).startswith(message)


def test_asking_about_an_unknown_gate_is_an_error():
    with pytest.raises(GateError, match="did you mean HPAScaleToZero"):
        FeatureGates().enabled("HPAScaleToZeros")


def test_a_locked_gate_and_a_missing_need_are_errors(monkeypatch):
    strict = {
        **GATES,
        "HPAScaleToZero": Gate("HPAScaleToZero", Stage.ALPHA, "", needs=("HPASelectionStrategy",)),
        "PodLevelResources": Gate("PodLevelResources", Stage.GA, "", default=True, locked=True),
    }
    monkeypatch.setattr(feature_gates, "GATES", strict)
    with pytest.raises(
        GateError, match="HPAScaleToZero needs HPASelectionStrategy: add HPASelectionStrategy=true"
    ):
        FeatureGates.parse("HPAScaleToZero=true")
    with pytest.raises(GateError, match="PodLevelResources is locked to true"):
        FeatureGates.parse("PodLevelResources=false")
    assert FeatureGates.parse("PodLevelResources=true").pod_level_resources


def test_a_group_does_not_set_a_locked_gate(monkeypatch):
    locked = {name: replace(gate, locked=gate.stage is Stage.ALPHA) for name, gate in GATES.items()}
    monkeypatch.setattr(feature_gates, "GATES", locked)
    assert not FeatureGates.parse("AllAlpha=true").hpa_selection_strategy


def test_a_need_that_is_met_or_not_asked_for_is_no_error(monkeypatch):
    needing = {**GATES, "InPlace": replace(GATES["InPlace"], needs=("PerVPAConfig", "CPUStartupBoost"))}
    monkeypatch.setattr(feature_gates, "GATES", needing)
    assert not FeatureGates.parse("").in_place
    assert FeatureGates.parse("InPlace=true,PerVPAConfig=true,CPUStartupBoost=true").in_place
    with pytest.raises(GateError, match="InPlace needs CPUStartupBoost"):
        FeatureGates.parse("InPlace=true,PerVPAConfig=true")


@pytest.mark.parametrize(
    ("text", "want"),
    [*((text, True) for text in ("1", "t", "T", "true", "True", "TRUE")), *((text, False) for text in ("0", "f", "F", "false", "False", "FALSE"))],
)  # fmt: skip
def test_booleans_are_read_as_go_reads_them(text, want):
    assert FeatureGates.parse(f"HPAScaleToZero={text}").hpa_scale_to_zero is want
