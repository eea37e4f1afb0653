"""Helm's schema and `trimtab install` have the same verdict about the same values file."""

import pytest
import yaml

from tests.real.install.test_helm import TEMPLATE, helm, key, rendered
from tests.unit.install.verdicts import BAD, GOOD
from trimtab.install import ValueProblem, manifests, set_values

pytestmark = pytest.mark.real

BY_A_CHECK = {
    "nothing to run": "nothing would run",
    "no address of the API server": "which would allow every address",
    "labels that nothing writes": "settings.webhook-labels needs vertical.admission.registersItself",
    "an adapter without a CA": "adapter.enabled needs adapter.caBundle",
}
"""Refused by the chart's own checks, which have a sentence for it. All others are refused by the schema."""


@pytest.fixture
def values_file(tmp_path):
    def write(document):
        path = tmp_path / "values.yaml"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


@pytest.mark.parametrize("name", BAD)
def test_both_refuse(values_file, name):
    with pytest.raises(ValueProblem) as refusal:
        manifests(set_values([], files=[BAD[name]]))
    done = helm(*TEMPLATE, "-f", values_file(BAD[name]))
    assert done.returncode == 1, f"helm takes what trimtab install refuses: {refusal.value}"
    wanted = BY_A_CHECK.get(name, "values don't meet the specifications of the schema")
    assert wanted in done.stderr
    assert name not in BY_A_CHECK or wanted in str(refusal.value)


@pytest.mark.parametrize("name", GOOD)
def test_both_render_the_same(values_file, name):
    wanted = manifests(set_values([], files=[GOOD[name]]))
    assert rendered("-f", values_file(GOOD[name])) == {key(one): one for one in wanted}


def test_a_chart_that_is_a_dependency_gets_the_values_that_helm_shares():
    done = helm(*TEMPLATE, "--set", "global.domain=example.com")
    assert done.returncode == 0, done.stderr
