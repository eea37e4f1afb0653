"""A VPA that names an estimator of a plug-in: recommendation, explanation, record, replay, restart, failure."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.plugin_packages import install, install_example
from tests.scenarios.vertical.stage import Stage
from tests.support.clock import in_virtual_time
from trimtab.cli.commands.replay import replay
from trimtab.decide.vertical.input.checkpoints import ESTIMATE_ANNOTATION
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import Explainer

WEEKDAY_PEAK = "example.com/weekday-peak"
SIX_HOURS = 6 * 3600.0
BUSY, QUIET = "4e9", "1e9"
FAILING = """
from trimtab.plugins.estimator import Amounts, Estimate
from trimtab.plugins.kinds import declare
@declare(budget=1.0)
def plugin(seen):
    if seen.sample_count > 2:
        raise KeyError("zone")
    return Estimate(amounts={"cpu": Amounts(lower=2, target=2, upper=2)}, reason="two cores")
"""
RAISING = "def plugin(seen):\n    raise KeyError('zone')\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for packages. What is imported from it is forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in [path.stem for path in tmp_path.glob("*.py")]:
        sys.modules.pop(module, None)


async def lines_about(stage: Stage, name: str) -> list[str]:
    """Return the explanation of a VPA without the plug-in, as a command of a user makes it."""
    explainer = Explainer(stage.client, stage.namespace, Settings())
    try:
        return (await explainer.vpa(name)).lines
    finally:
        await explainer.close()


async def days(stage: Stage, actor, count: int) -> None:
    """Let days pass with a sample every six hours."""
    await stage.recommend(actor, 4 * count, after=SIX_HOURS)


def replayed(records: bytes, folder: Path, *flags: str) -> str:
    file = folder / "records.jsonl"
    file.write_bytes(records)
    result = CliRunner().invoke(replay, [str(file), *flags])
    assert result.exit_code == 0, result.output
    return str(result.output)


def test_a_busy_weekday_is_remembered_for_the_same_weekday_and_over_a_restart(play, packages):
    install_example(packages, "weekday-peak")

    async def scenario(stage: Stage) -> None:
        noon = stage.clock.now().replace(hour=12, minute=0, second=0)  # each of these days begins then
        await stage.pass_time((noon - stage.clock.now()) % timedelta(days=1) / timedelta(seconds=1))
        await stage.statefulset("db", 1)
        await stage.vpa("base", "db", mode="Off", recommenders=[{"name": WEEKDAY_PEAK}])
        settings: dict[str, Any] = {"plugins": (WEEKDAY_PEAK,), "checkpoints_interval": timedelta(0)}
        stage.use(db_0=BUSY)
        async with stage.running(**settings) as actor:
            await days(stage, actor, 1)
            assert await stage.target("base") is not None, "the built-in amounts until the weekday is known"
            stage.use(db_0=QUIET)
            await days(stage, actor, 3)
        async with stage.running(**settings) as actor:
            await days(stage, actor, 2)
            quiet = await stage.target("base")
            await days(stage, actor, 1)
            busy = await stage.target("base")
            records = actor.recommender.pages()["/estimates"](f"{stage.namespace}/base")
        assert isinstance(quiet, int)
        assert isinstance(busy, int)
        assert 0.95 < busy / 4e9 < 1.06, "what the same weekday used"
        assert quiet < 2.5e9
        saved = (await stage.checkpoints())["base-app"]["metadata"]["annotations"][ESTIMATE_ANNOTATION]
        assert f'"estimator":"{WEEKDAY_PEAK}","version":"1.0.0"' in saved
        lines = "\n".join(await lines_about(stage, "base"))
        assert f"GiB: {WEEKDAY_PEAK} 1.0.0: the highest p99 of the last 1 " in lines
        assert records is not None
        again = replayed(records, packages, f"--plugins={WEEKDAY_PEAK}")
        assert f"base app: {WEEKDAY_PEAK} 1.0.0: cpu " in again
        assert "1 decision came out the same, 0 did not" in again
        assert "recorded answer" not in again
        assert "(the recorded answer: the plug-in is not loaded)" in replayed(records, packages)
        install_example(packages, "weekday-peak", version="1.1.0")
        other = replayed(records, packages, f"--plugins={WEEKDAY_PEAK}")
        assert "(the recorded answer: version 1.1.0 is loaded, not 1.0.0)" in other
        assert "GiB: the highest p99" in again.replace(f"{WEEKDAY_PEAK} 1.0.0: ", "")

    play(scenario)


@in_virtual_time
async def test_without_the_flag_such_a_vpa_belongs_to_another_recommender(stage, packages):
    install_example(packages, "weekday-peak")
    await stage.statefulset("db", 1)
    await stage.vpa("base", "db", recommenders=[{"name": WEEKDAY_PEAK}])
    stage.use(db_0=BUSY)
    async with stage.running() as actor:
        await stage.recommend(actor, 3)
        assert await stage.target("base") is None
        assert "status" not in await stage.read_vpa("base")
    assert "weekday_peak" not in sys.modules, "an object of the cluster loads no code"


def test_a_failing_estimator_says_so_on_its_vpa_and_stops_no_other(play, packages, caplog):
    install(packages, "failing", FAILING, group="trimtab.estimators", name="example.com/failing")

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.statefulset("web", 1)
        await stage.vpa("base", "db", mode="Off", recommenders=[{"name": "example.com/failing"}])
        await stage.vpa("lost", "db", mode="Off", recommenders=[{"name": "example.com/missing"}])
        await stage.vpa("plain", "web", mode="Off")
        stage.use(db_0=QUIET, web_0=QUIET)
        async with stage.running(plugins=("example.com/failing", "example.com/missing")) as actor:
            await stage.recommend(actor, 2)
            assert await stage.target("base", "cpu") == 2
            stage.use(cpu="900m", db_0=BUSY, web_0=BUSY)
            await stage.recommend(actor, 6)
            assert await stage.target("base", "cpu") == 2, "the last recommendation stays"
            assert (await stage.conditions("base"))["EstimatorFailed"] == "True"
            assert "EstimatorFailed" not in await stage.conditions("plain")
            plain = await stage.target("plain")
            assert isinstance(plain, int)
            assert plain > 4e9
            messages = [
                one["message"]
                for name in ("base", "lost")
                for one in (await stage.read_vpa(name))["status"]["conditions"]
                if one["type"] == "EstimatorFailed"
            ]
            assert "estimator example.com/failing 1.2.0 raised KeyError: 'zone'" in messages[0]
            assert (
                "estimator example.com/missing is not loaded: plug-in example.com/missing is not installed"
                in messages[1]
            )
            labels = {"plugin": "example.com/failing", "kind": "estimator", "version": "1.2.0"}
            assert actor.count("trimtab_plugin_failures_total", reason="PluginRaised", **labels) == 3
            assert actor.count("trimtab_plugin_failures_total", reason="PluginPaused", **labels) == 3
        assert sum("KeyError" in record.getMessage() for record in caplog.records) == 1, "logged once"

    play(scenario)
