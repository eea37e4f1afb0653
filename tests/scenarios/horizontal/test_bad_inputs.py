"""Bad inputs are refused with the field and the reason: by `trimtab validate`, the lab, and the real API server."""

import pytest

from tests.scenarios.horizontal.bad_inputs import BAD_INPUTS, SPEC, BadInput
from tests.scenarios.horizontal.conftest import play_on_lab, play_on_real
from tests.scenarios.horizontal.stage import Stage
from tools.peers.cluster import RealCluster
from trimtab.cluster import errors
from trimtab.cluster.resource import Json
from trimtab.model.gates import FeatureGates
from trimtab.model.manifest import read_manifest

GATES = FeatureGates.of({"AllAlpha": True})


def hpa(spec: Json) -> Json:
    kind = {"apiVersion": "autoscaling.trimtab.dev/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def test_there_are_as_many_as_upstream_was_tried_with():
    assert len({one.name for one in BAD_INPUTS}) == len(BAD_INPUTS) >= 93


def test_what_they_are_made_of_is_good():
    assert read_manifest(hpa(SPEC), GATES).errors == ()


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: bad.name)
def test_validate_refuses_and_names_the_field(bad: BadInput):
    told = [str(error) for error in read_manifest(hpa(bad.spec), GATES).errors]
    assert any(one.startswith(bad.field) for one in told), told
    assert all(len(one) < 1000 for one in told), "nobody reads more"


async def every_one_is_refused(stage: Stage) -> None:
    """Try all of them; a client error that names the field is a refusal, anything else is not."""
    wrong: list[str] = []
    for bad in BAD_INPUTS:
        try:
            body = hpa(bad.spec) | {"metadata": {"name": "web"}}
            await stage.client.create(stage.resource.untyped(), body, stage.namespace)
        except errors.ApiError as refusal:
            text = str(refusal)
            if not (400 <= refusal.code < 500 and bad.field.rpartition(".")[2].partition("[")[0] in text):
                wrong.append(f"{bad.name}: {text[:300]}")
        else:
            wrong.append(f"{bad.name}: taken")
            await stage.client.delete(stage.resource, "web", stage.namespace)
    assert not wrong, "\n".join(wrong)


def test_the_lab_refuses_every_one():
    play_on_lab(every_one_is_refused)


@pytest.mark.real
def test_the_real_server_refuses_every_one_by_our_definition(real_cluster: RealCluster):
    play_on_real(real_cluster, every_one_is_refused)
