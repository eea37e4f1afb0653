"""`trimtab validate`, from outside: files in, lines and exit codes out."""

import json

import pytest
import yaml

from trimtab.cli import answer

HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: 80}
"""
OWN_HPA = HPA.replace("autoscaling/v2", "autoscaling.trimtab.dev/v2")
VPA = """\
apiVersion: autoscaling.trimtab.dev/v1
kind: VerticalPodAutoscaler
metadata: {name: db, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  updatePolicy: {updateMode: InPlaceOrRecreate}
"""
SCOPE = """\
apiVersion: autoscaling.trimtab.dev/v1
kind: VPAScope
metadata: {name: leader, namespace: shop}
spec:
  podSelector:
    matchLabels: {role: leader}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


@pytest.fixture
def check(tmp_path, capsys):
    """Validate one text; return exit code, stdout without the directory, stderr."""

    def validate(text, *options):
        file = tmp_path / "f.yaml"
        file.write_text(text)
        code = answer(["validate", str(file), *options])
        out, err = capsys.readouterr()
        return code, out.replace(f"{tmp_path}/", ""), err.replace(f"{tmp_path}/", "")

    return validate


def test_good_objects_say_nothing_on_stdout(check):
    assert check(f"{HPA}---\n{VPA}---\n{SCOPE}") == (0, "", "3 objects checked: 0 errors, 0 warnings\n")


def test_an_error_names_file_line_object_field_and_reason(check):
    code, out, _ = check(HPA.replace("maxReplicas: 5", "maxReplicas: 0"))
    assert code == 1
    assert out.splitlines()[0] == (
        "f.yaml:7: HorizontalPodAutoscaler shop/web: spec.maxReplicas: Required value: must be set and greater than 0"
    )


def test_every_wrong_type_is_reported_not_only_the_first(check):
    text = HPA.replace("maxReplicas: 5", "maxReplicas: five").replace("name: cpu", "name: [cpu]")
    _, out, _ = check(text)
    assert [line.partition(": ")[0] for line in out.splitlines()] == ["f.yaml:7", "f.yaml:11"]
    assert "must be an integer, not text" in out
    assert "must be text, not a list" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            HPA.replace("minReplicas: 1", "minReplica: 1"),
            "f.yaml:6: HorizontalPodAutoscaler shop/web: spec.minReplica: warning: unknown field, an API server drops it; "
            "did you mean minReplicas?",
            id="a field that does not exist",
        ),
        pytest.param(
            VPA.replace("InPlaceOrRecreate", "Recreate") + "  vpaScope: {name: leader}\n---\n" + SCOPE,
            "spec.updatePolicy: warning: Recreate evicts pods",
            id="Recreate on a scoped leader",
        ),
        pytest.param(
            VPA + "  vpaScope: {name: gone}\n",
            'f.yaml:7: VerticalPodAutoscaler shop/db: spec.vpaScope.name: warning: VPAScope "gone" is not in this bundle',
            id="a scope that is not in the bundle",
        ),
        pytest.param(
            HPA + "---\n" + VPA.replace("StatefulSet, name: db", "Deployment, name: web"),
            "HorizontalPodAutoscaler shop/web scales Deployment/web on cpu, which this VPA changes",
            id="HPA and VPA on one resource",
        ),
        pytest.param(
            HPA.replace("minReplicas: 1", "minReplicas: 0").replace(
                "- type: Resource",
                "- type: External\n    external: {metric: {name: q}, target: {type: Value, value: 1}}\n  - type: Resource",
            )
            + "  behavior: {scaleDown: {tolerance: 1}}\n",
            "spec.behavior.scaleDown.tolerance: warning: a tolerance of 1",
            id="a tolerance that forbids zero",
        ),
        pytest.param(
            HPA + "---\n" + HPA, "metadata.name: warning: the same object stands", id="an object twice"
        ),
        pytest.param(
            HPA + "---\n" + HPA.replace("name: web, namespace", "name: web2, namespace"),
            "shop/web scales the same workload",
            id="two HPAs on one workload",
        ),
        pytest.param(
            SCOPE.replace("matchLabels: {role: leader}", "{}"),
            "spec: warning: selects every pod",
            id="an empty scope",
        ),
    ],
)
def test_what_is_legal_but_not_meant_is_a_warning(check, text, words):
    code, out, _ = check(text)
    assert words in out
    assert code == 0
    assert check(text, "--strict")[0] == 1


def test_lists_are_unpacked_and_other_kinds_skipped(check):
    items = [yaml.safe_load(CONFIG_MAP), yaml.safe_load(HPA) | {"spec": {}}]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    code, out, err = check(text)
    assert code == 1
    assert "HorizontalPodAutoscaler shop/web: spec.maxReplicas" in out
    assert "ConfigMap default/settings: skipped" in err
    assert "1 object checked" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1\n- 2\n", "a manifest must be an object with apiVersion and kind"),
        ("just text\n", "a manifest must be an object with apiVersion and kind"),
        ("kind: HorizontalPodAutoscaler\n", "apiVersion: Required value"),
        ("apiVersion: v1\nkind: 5\n", "kind: Invalid value: 5: must be text, not an integer"),
        (HPA.replace("autoscaling/v2", "autoscaling/v3"), 'apiVersion: Unsupported value: "autoscaling/v3"'),
        (
            VPA.replace("trimtab.dev/v1", "trimtab.dev/v1beta2"),
            'supported values: "autoscaling.trimtab.dev/v1"',
        ),
        (
            HPA.replace("metadata: {name: web, namespace: shop}", "metadata: 5"),
            "metadata: Invalid value: 5: must be an object",
        ),
        (HPA.replace("name: web, namespace: shop", "name: Wéb"), 'metadata.name: Invalid value: "Wéb"'),
    ],
)
def test_documents_that_are_no_manifests_are_errors(check, text, words):
    code, out, _ = check(text)
    assert code == 1
    assert words in out


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n---\n"])
def test_an_empty_file_cannot_be_read(check, text):
    code, out, err = check(text)
    assert (code, out) == (2, "")
    assert "holds no documents" in err


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path, capsys):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(HPA.replace("maxReplicas: 5", "maxReplicas: -1"))
    bad.write_text("a: [\n")
    assert answer(["validate", str(bad), str(good)]) == 2
    out, err = capsys.readouterr()
    assert "good.yaml:7" in out
    assert "bad.yaml:2: not valid YAML" in err


def test_gates_decide_what_is_accepted(check):
    text = VPA + "  vpaScope: {name: leader}\n---\n" + SCOPE
    assert check(text)[0] == 0
    code, out, _ = check(text, "--feature-gates=VPASelectorRefinement=false")
    assert code == 1
    assert (
        "spec.vpaScope: Forbidden: not supported when feature flag VPASelectorRefinement is disabled" in out
    )


def test_what_a_closed_gate_drops_is_a_warning(check):
    text = OWN_HPA + "  selectionStrategy: OwnerReference\n  behavior: {scaleUp: {tolerance: 0.05}}\n"
    gates = "--feature-gates=HPASelectionStrategy=false,HPAConfigurableTolerance=false"
    code, out, _ = check(text, gates)
    assert code == 0
    assert (
        "spec.selectionStrategy: warning: is dropped while the feature gate HPASelectionStrategy is off"
        in out
    )
    assert "spec.behavior.scaleUp.tolerance: warning: is dropped" in out
    assert check(text)[1] == ""


def test_the_proposals_capital_letter_is_accepted(check):
    assert check(OWN_HPA + "  SelectionStrategy: OwnerReference\n")[:2] == (0, "")
    code, out, _ = check(HPA + "  SelectionStrategy: OwnerReference\n  selectionStrategy: LabelSelector\n")
    assert code == 1
    assert "spec.SelectionStrategy" in out


def test_a_negative_tolerance_is_answered_in_words(check):
    behavior = "  behavior: {scaleUp: {tolerance: -0.05}}\n"
    assert 'scaleUp.tolerance: Invalid value: "-50m": must not be negative' in check(OWN_HPA + behavior)[1]
    assert (
        "must be greater than or equal to 0" in check(HPA + behavior)[1]
    )  # upstream's own words for its own kind


@pytest.mark.parametrize("spelling", ["selectionStrategy", "SelectionStrategy"])
def test_a_strategy_that_the_native_kind_has_no_field_for_is_a_warning(check, spelling):
    code, out, _ = check(f"{HPA}  {spelling}: OwnerReference\n")
    assert code == 0
    assert f"spec.{spelling}: warning: is dropped" in out
    assert "annotation autoscaling.trimtab.dev/selection-strategy" in out


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_findings_are_data_on_request(check, output, load):
    code, out, err = check(
        HPA.replace("maxReplicas: 5", "maxReplicas: -1") + "---\n" + CONFIG_MAP, "-o", output
    )
    data = load(out)
    assert code == 1
    assert err == ""
    assert data["findings"][0] | {"message": ""} == {
        "file": "f.yaml",
        "line": 7,
        "severity": "error",
        "kind": "HorizontalPodAutoscaler",
        "object": "shop/web",
        "field": "spec.maxReplicas",
        "message": "",
    }
    assert data["skipped"] == [
        {"file": "f.yaml", "line": 14, "kind": "ConfigMap", "object": "default/settings"}
    ]


def test_findings_are_a_table_on_request(check):
    _, out, _ = check(HPA.replace("maxReplicas: 5", "maxReplicas: -1"), "-o", "table")
    assert out.split()[:5] == ["WHERE", "OBJECT", "SEVERITY", "FIELD", "MESSAGE"]
    assert "error" in out


@pytest.mark.parametrize(
    ("kind", "annotation", "value", "is_doubted"),
    [
        ("autoscaling/v2", "mode", "dryrun", True),
        ("autoscaling.trimtab.dev/v2", "mode", "dry-run", True),
        ("autoscaling.trimtab.dev/v2", "mode", "DryRun", False),
        ("autoscaling/v2", "selection-strategy", "ownerreference", True),
        ("autoscaling/v2", "selection-strategy", "OwnerReference", False),
    ],
)
def test_a_misspelt_annotation_is_doubted(tmp_path, capsys, kind, annotation, value, is_doubted):
    """N13: `dryrun` acted, and nobody said that it is not DryRun."""
    line = f"metadata: {{name: web, namespace: shop, annotations: {{autoscaling.trimtab.dev/{annotation}: {value}}}}}"
    text = HPA.replace("autoscaling/v2", kind).replace("metadata: {name: web, namespace: shop}", line)
    path = tmp_path / "web.yaml"
    path.write_text(text)
    assert answer(["validate", str(path)]) == 0
    told = capsys.readouterr().out
    assert (f"is '{value}', which is not known" in told) is is_doubted
    assert ("nothing is scaled until then" in told) is is_doubted


@pytest.mark.parametrize("version", ["autoscaling/v1", "autoscaling/v2"])
@pytest.mark.parametrize(
    ("old", "is_doubted"), [("LabelSelector", True), ("ownerreference", True), ("OwnerReference", False)]
)
def test_two_different_strategies_of_annotations_are_doubted(check, version, old, is_doubted):
    """The operator holds such an HPA."""
    annotations = (
        "autoscaling.trimtab.dev/selection-strategy: OwnerReference, "
        f"autoscaling.alpha.kubernetes.io/pod-selection-strategy: {old}"
    )
    text = HPA.replace("namespace: shop}", f"namespace: shop, annotations: {{{annotations}}}}}")
    if version == "autoscaling/v1":
        text = text.replace("autoscaling/v2", version).partition("  metrics:")[0]
    code, out, _ = check(text)
    assert code == 0
    assert (f"is 'OwnerReference' and annotation {OLD_ANNOTATION} is '{old}'" in out) is is_doubted
    assert ("nothing is scaled until then" in out) is is_doubted


OLD_ANNOTATION = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"


def test_an_annotation_and_a_field_of_two_strategies_are_doubted(check):
    note = "autoscaling.trimtab.dev/selection-strategy: OwnerReference"
    text = HPA.replace("namespace: shop}", f"namespace: shop, annotations: {{{note}}}}}")
    _, out, _ = check(text.replace("  minReplicas: 1", "  SelectionStrategy: LabelSelector"))
    assert "is 'OwnerReference' and field spec.selectionStrategy is 'LabelSelector'" in out


@pytest.mark.parametrize("output", ["text", "table"])
def test_nothing_is_counted_if_nothing_could_be_read(output, tmp_path, capsys):
    """The error was followed by "0 objects checked: 0 errors, 0 warnings"."""
    assert answer(["validate", str(tmp_path / "nope.yaml"), "-o", output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "checked" not in err


def test_what_could_be_read_is_counted_beside_a_file_that_could_not(tmp_path, capsys):
    file = tmp_path / "f.yaml"
    file.write_text(VPA)
    assert answer(["validate", str(tmp_path / "nope.yaml"), str(file)]) == 2
    assert capsys.readouterr().err.endswith("1 object checked: 0 errors, 0 warnings\n")
