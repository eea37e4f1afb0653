"""`trimtab adapter` and `trimtab adapter test` as a user types them."""

import pytest
from click.testing import CliRunner

from tests.plugin_packages import install
from trimtab.cli.commands.adapter import adapter

RULES = """\
apiVersion: adapter.trimtab.dev/v1alpha1
kind: MetricRules
rules:
- name: queues
  series: queue_length
  resources: {statefulsets.apps: statefulset}
- name: rates
  seriesPattern: ^(.+)_total$
  metric: ${1}_per_second
  resources: {pods: pod, namespaces: namespace}
  query: sum by (<<groupBy>>) (rate(<<series>>{<<matchers>>}[2m]))
- {name: backlog, type: external, series: sqs_visible, metric: sqs}
"""


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def run(*arguments):
    return CliRunner().invoke(adapter, [str(argument) for argument in arguments])


def test_the_rule_tester_prints_the_promql_of_each_rule(rules):
    result = run("test", rules, "--namespace", "shop")
    assert result.exit_code == 0
    assert result.output == (
        "queues: statefulsets.apps/queue_length\n"
        '  sum by (statefulset) (queue_length{namespace="shop",statefulset!=""})\n'
        "rates: pods/${1}_per_second\n"
        '  sum by (pod) (rate(SERIES{namespace="shop",pod!=""}[2m]))\n'
        "rates: namespaces/${1}_per_second\n"
        '  sum by (namespace) (rate(SERIES{namespace="shop"}[2m]))\n'
        "backlog: external sqs\n"
        '  sqs_visible{namespace="shop"}\n'
    )


def test_the_rule_tester_names_what_cannot_be_used_and_exits_with_1(rules):
    rules.write_text(RULES + "- {name: bad, series: m}\n")
    result = run("test", rules)
    assert result.exit_code == 1
    assert "bad: cannot be used: resources: say which label names the object" in result.output


def test_a_file_that_is_no_rules_file_is_exit_code_2(rules):
    rules.write_text("hello")
    result = run("test", rules)
    assert (result.exit_code, "must hold one object" in result.output) == (2, True)


def test_a_prometheus_that_is_not_there_is_told_and_found(rules):
    result = run("test", rules, "--prometheus", "http://127.0.0.1:1")
    assert result.exit_code == 1
    assert "problem: " in result.output


def test_without_a_configuration_it_says_what_is_missing():
    result = run()
    assert (result.exit_code, "Missing option '--config'" in result.output) == (2, True)


def test_a_bad_configuration_is_one_line_and_exit_code_2(rules):
    result = run("--config", rules)
    assert (result.exit_code, "expected apiVersion" in result.output) == (2, True)


SOURCE = """
from trimtab.plugins.metric_source import MetricValue
async def plugin(seen):
    if seen.metric == "broken":
        raise ConnectionError("db.example.com refuses")
    return [MetricValue(value=4.5, labels={"queue": "orders"})]
"""
CONFIGURATION = """\
apiVersion: adapter.trimtab.dev/v1alpha1
kind: AdapterConfiguration
sources:
- name: jobs
  plugin: {name: example.com/jobs, metrics: [jobs_waiting, broken]}
"""


def test_the_plugins_of_a_configuration_are_called_once_and_their_values_are_shown(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "jobs_source", SOURCE, group="trimtab.metric_sources", name="example.com/jobs")
    path = tmp_path / "config.yaml"
    path.write_text(CONFIGURATION)
    result = run("test", path, "--plugins=example.com/jobs", "--namespace=shop", "--selector=queue=orders")
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert lines[0] == "jobs: jobs_waiting in namespace shop"
    assert lines[1].startswith("    4500m {queue=orders} at 20")
    assert lines[2] == "jobs: broken in namespace shop"
    assert lines[3].endswith(
        "metric source example.com/jobs 1.2.0 raised ConnectionError: db.example.com refuses"
    )


def test_a_plugin_that_is_not_named_is_not_loaded_and_the_flag_is_named(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(CONFIGURATION)
    result = run("test", path)
    assert result.exit_code == 2
    assert "start with --plugins=example.com/jobs" in result.output
