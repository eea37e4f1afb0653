"""Every file and manifest in docs/adapter.md can be used as it stands."""

import re
from pathlib import Path

import pytest
import yaml

from trimtab.adapter.config import load_configuration
from trimtab.adapter.sources.prometheus.rules import example_queries, load_rules
from trimtab.adapter.sources.testing import load_table

PAGE = Path(__file__).parents[3] / "docs" / "adapter.md"
BLOCKS = {
    yaml.safe_load(text)["kind"]: text
    for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
}


@pytest.fixture
def block(tmp_path):
    def write(kind):
        path = tmp_path / f"{kind}.yaml"
        path.write_text(BLOCKS[kind])
        return path

    return write


def test_the_configuration_loads(block):
    sources = load_configuration(block("AdapterConfiguration")).sources
    assert [source.name for source in sources] == ["by-hand", "prom", "cloud", "jobs"]


def test_the_values_load(block):
    assert load_table(block("MetricValues")).count == 4


def test_every_rule_can_be_used(block):
    rules = load_rules(block("MetricRules"))
    assert rules.refused == {}
    queries = [
        query for rule in rules.usable for _, query in example_queries(rule, "shop", rule.rule.series or "x")
    ]
    assert 'sum by (statefulset) (queue_length{namespace="shop",statefulset!=""})' in queries


def test_the_documented_rights_are_those_that_the_real_cluster_is_tested_with():
    from tests.real.adapter.registered import ROLE

    assert yaml.safe_load(BLOCKS["ClusterRole"])["rules"] == ROLE


def test_the_manifests_are_whole():
    assert set(BLOCKS) == {"AdapterConfiguration", "MetricValues", "MetricRules", "ClusterRole", "APIService"}
