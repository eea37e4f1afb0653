"""What a user sees of bad metric sources and estimators, while everything else works on."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from tests.plugin_packages import install
from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.adapter.api.requests import ExternalMetricQuery
from trimtab.adapter.config import PluginSettings
from trimtab.adapter.sources.plugin import SourcePlugins
from trimtab.adapter.sources.router import Router
from trimtab.clock import SystemClock
from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators
from trimtab.model.status import StatusError
from trimtab.model.vpa.types import RecommenderSelector, VPAConditionType
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import Plugins, load_usable_plugins

BAD, GOOD = "example.com/bad", "example.com/good"
SOURCE = """
import time
from datetime import UTC, datetime, timedelta
from trimtab.plugins.kinds import declare
from trimtab.plugins.metric_source import MetricValue
async def plugin(seen):
    {}
"""
ESTIMATOR = """
import time
from trimtab.plugins.estimator import Amounts, Estimate
from trimtab.plugins.kinds import declare
@declare(budget=1.0)
def plugin(seen):
    {}
"""


class Bad(NamedTuple):
    kind: str
    code: str
    want: str
    """What the adapter's log and `readyz`, or the condition of the VPA, say."""


def source(body: str, want: str) -> Bad:
    return Bad("source", SOURCE.format(body), want)


def estimator(body: str, want: str) -> Bad:
    return Bad("estimator", ESTIMATOR.format(body), want)


def cpu(lower: str, target: str, upper: str) -> str:
    amounts = f"Amounts(lower={lower}, target={target}, upper={upper})"
    return f'return Estimate(amounts={{"cpu": {amounts}}}, reason="bad")'


IMPORT = "raise RuntimeError('no licence')"
OTHER_PROTOCOL = "declare(protocol=99)(plugin)"

TABLE = {
    "a source that raises at import": Bad("source", IMPORT, "cannot be imported: RuntimeError: no licence"),
    "a source of another protocol": Bad(
        "source", SOURCE.format("return []") + OTHER_PROTOCOL, "written for protocol 99 and this program has"
    ),
    "a source that is no coroutine": Bad("source", "def plugin(seen): return []", "must be a coroutine function"),
    "a source that raises": source("raise KeyError('dsn')", "raised KeyError: 'dsn'"),
    "a source that ends the program": source("raise SystemExit(3)", "raised SystemExit: 3"),
    "a source that blocks its thread": source("time.sleep(3)", "took longer than its 100 ms"),
    "a source that waits for ever": source(
        "import asyncio\n    await asyncio.Event().wait()", "took longer than its 100 ms"
    ),
    "a source that answers a number": source("return 3", "returned what it may not: int, not a list"),
    "a source that answers NaN": source("return [MetricValue(value=float('nan'))]", "the value nan; 0 to"),
    "a source that answers less than nothing": source("return [MetricValue(value=-3)]", "the value -3; 0 to"),
    "a source that answers a huge number": source("return [MetricValue(value=10**5000)]", "a value above 9223"),
    "a source that answers without end": source(
        "return iter(lambda: MetricValue(value=1), None)", "more than 1000 series"
    ),
    "a source that answers from the future": source(
        "return [MetricValue(value=1, time=datetime.now(UTC) + timedelta(days=1))]", "a value of the future"
    ),
    "a source that changes its request": source(
        "seen.parameters.clear()\n    seen.namespace = 'x'", "raised AttributeError: immutable type"
    ),
    "an estimator that raises at import": Bad("estimator", IMPORT, "cannot be imported: RuntimeError: no licence"),
    "an estimator of another protocol": Bad(
        "estimator", ESTIMATOR.format("return None") + OTHER_PROTOCOL, "written for protocol 99"
    ),
    "an estimator that raises": estimator("return 1 / 0", "raised ZeroDivisionError: division by zero"),
    "an estimator that ends the program": estimator("raise SystemExit(3)", "raised SystemExit: 3"),
    "an estimator that loops for ever": estimator("while True: pass", "took longer than its 1000 ms"),
    "an estimator that answers a number": estimator("return 3", "returned what it may not: int, not an Estimate"),
    "an estimator that answers NaN": estimator(cpu("1", "float('nan')", "2"), "cpu target: nan; 0 to 8192"),
    "an estimator that answers less than nothing": estimator(cpu("-1", "1", "2"), "cpu lower: -1; 0 to 8192"),
    "an estimator that answers a huge number": estimator(cpu("1", "1", "10**4000"), "cpu upper above 8192"),
    "an estimator that answers text": estimator(cpu("1", "'1'", "1"), "cpu target of type str, not a number"),
    "an estimator whose bounds are out of order": estimator(cpu("2", "1", "3"), "which are not in order"),
    "an estimator that gives no reason": estimator(
        "return Estimate(amounts={}, reason=' ')", "an estimate without a reason"
    ),
    "an estimator that remembers too much": estimator(
        "return Estimate(amounts={}, reason='much', memory='x' * 20000)", "a memory of 20002 bytes; 16384 are"
    ),
    "an estimator that remembers what is no JSON": estimator(
        "return Estimate(amounts={}, reason='odd', memory=object())", "a memory that is no JSON"
    ),
    "an estimator that changes its input": estimator(
        "seen.histograms.clear()\n    seen.now = 0", "raised AttributeError: immutable type"
    ),
}  # fmt: skip
GOOD_CODE = {
    "source": SOURCE.format("return [MetricValue(value=7)]"),
    "estimator": ESTIMATOR.format(cpu("2", "2", "2")),
}
GROUPS = {"source": "trimtab.metric_sources", "estimator": "trimtab.estimators"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
async def test_a_bad_plugin_is_named_with_what_is_wrong_and_all_others_work_on(
    row: Bad, folder: Path
) -> None:
    module = f"bad_{abs(hash(row))}"
    install(folder, module, row.code, group=GROUPS[row.kind], name=BAD)
    install(folder, f"good_{abs(hash(row))}", GOOD_CODE[row.kind], group=GROUPS[row.kind], name=GOOD)
    plugins = load_usable_plugins([BAD, GOOD])
    seen = await (sees_source(plugins, row) if row.kind == "source" else sees_estimator(plugins))
    assert row.want in seen
    assert BAD in seen


async def sees_source(plugins: Plugins, row: Bad) -> str:
    """Ask a good source while a bad one is asked, and return what is said about the bad one."""
    timeout = "100ms" if "longer than its 100 ms" in row.want else "5s"
    loaded, clock = SourcePlugins(plugins), SystemClock()
    bad, good = (
        loaded.source(clock, name, PluginSettings(name=plugin, metrics=(name,), timeout=limit))
        for name, plugin, limit in (("bad", BAD, timeout), ("good", GOOD, "5s"))
    )
    router = Router([bad, good], deadline=5.0)
    try:
        failing = asyncio.ensure_future(router.external(ExternalMetricQuery("shop", "bad")))
        (sample,) = await router.external(ExternalMetricQuery("shop", "good"))
        assert str(sample.value) == "7"
        with pytest.raises(
            StatusError, match="source bad gives no usable answer", check=lambda error: error.code == 503
        ):
            await failing
        (health,) = bad.health()
        assert not any(health.reason for health in good.health())
        return health.reason
    finally:
        await router.close()


async def sees_estimator(plugins):
    """Recommend for three VPAs, and return the condition of the one with the bad estimator."""
    users = {"bad": BAD, "good": GOOD, "plain": "default"}
    recommender = Recommender([with_estimator(vpa(name, mode="Off"), users[name]) for name in users])
    recommender.observe([member("db-0")])
    recommender.scrape({"db-0": Load(300, 2**30)})
    (good,) = (
        loaded for name, loaded in loaded_estimators(Guards(plugins), [BAD, GOOD]).items() if name == GOOD
    )
    recommender.estimators = {BAD: replace(good, name=BAD), GOOD: good}
    for name, found in recommender.recommend().items():
        state = recommender.state.vpas[f"shop/{name}"]
        state.update(structs.replace(state.vpa, status=found.status), per_vpa=False)
    recommender.estimators = loaded_estimators(Guards(plugins), [BAD, GOOD])
    recommender.scrape({"db-0": Load(900, 2**30)})
    result: dict[str, Any] = {name: found.status for name, found in recommender.recommend().items()}
    targets = {
        name: status.recommendation.container_recommendations[0].target for name, status in result.items()
    }
    assert str(targets["good"]["cpu"]) == "2"
    assert targets["plain"]["cpu"].milli_value() > 900
    assert targets["bad"] == targets["good"], "the last recommendation stays"
    failed = {name: status.condition(VPAConditionType.ESTIMATOR_FAILED) for name, status in result.items()}
    assert (failed["good"], failed["plain"]) == (None, None)
    return str(failed["bad"].message)


def with_estimator(made, name):
    """Return the VPA with a recommender."""
    spec = structs.replace(made.spec, recommenders=(RecommenderSelector(name=name),))
    return structs.replace(made, spec=spec)
