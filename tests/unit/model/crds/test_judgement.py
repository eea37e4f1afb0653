"""The lab's API server judges objects by our definitions as the real one does (tests/real/test_definitions.py)."""

from pathlib import Path

import pytest
import yaml

from tests.unit.model.crds.objects import BAD, HPA, SCOPE, VPA, changed
from trimtab.model.crds import CRDS
from trimtab_lab.crd import rules, schema

SCHEMAS = {
    (f"{crd.group}/{crd.version}", crd.kind.__name__): crd.manifest()["spec"]["versions"][0]["schema"][
        "openAPIV3Schema"
    ]
    for crd in CRDS
}


def judge(data):
    definition = SCHEMAS[data["apiVersion"], data["kind"]]
    return schema.validate(data, definition) or list(rules.violations(data, definition))


@pytest.mark.parametrize("good", [HPA, VPA, SCOPE], ids=lambda good: good["kind"])
def test_whole_objects_are_accepted(good):
    assert not judge(good)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[4] / "examples").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_example_is_accepted(path):
    ours = [
        obj for obj in yaml.safe_load_all(path.read_text()) if (obj["apiVersion"], obj["kind"]) in SCHEMAS
    ]
    assert not [error for obj in ours for error in judge(obj)]


@pytest.mark.parametrize(("good", "path", "value", "field"), BAD)
def test_a_spoilt_object_is_refused_at_the_field_that_is_wrong(good, path, value, field):
    assert any(str(error.field).startswith(field) for error in judge(changed(good, path, value)))
