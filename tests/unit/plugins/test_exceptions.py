"""Whatever a plug-in raises is its failure; what the user or our own task raises is not."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_packages import install
from tests.unit.plugins.test_guard import call, guard
from trimtab.plugins.guard import PluginFailure
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import load_usable_plugins
from trimtab.plugins.testing import PluginTestError, check_metric_source, check_pod_filter
from trimtab.plugins.thread import PluginThread


class PanicException(BaseException):
    """Like the panic of an extension in Rust."""


RAISED = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, PanicException)
each = pytest.mark.parametrize("raised", RAISED)


def raising(raised: type[BaseException]) -> Any:
    def function(_seen: object) -> dict[str, str]:
        raise raised("bad")

    return function


def source_raising(raised: type[BaseException]) -> Any:
    async def function(_seen: object) -> list[Any]:
        raise raised("bad")

    return function


@each
def test_what_a_pure_plugin_raises_is_its_failure(raised: type[BaseException]) -> None:
    failure = call(guard(raising(raised)))
    assert failure.message == f"pod filter example.com/Plugin 1.2 raised {raised.__name__}: bad"


@each
async def test_what_a_source_raises_is_its_failure(raised: type[BaseException]) -> None:
    thread, function = PluginThread("source"), source_raising(raised)

    async def here() -> Any:
        return await function(None)

    async def on_its_thread() -> Any:
        return await thread.call(here)

    try:
        for called in (here, on_its_thread):
            guarded = guard(function, PluginKind.METRIC_SOURCE)
            failure = await guarded.call_async(called, user="queue", now=0.0, seconds=5.0)
            assert isinstance(failure, PluginFailure)
            assert failure.reason == "PluginRaised"
            assert f"raised {raised.__name__}: bad" in failure.message
    finally:
        thread.close()


@each
def test_what_a_module_raises_is_why_it_is_not_loaded(
    raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    code = f"import asyncio\nfrom asyncio import CancelledError\nclass PanicException(BaseException): pass\nraise {raised.__name__}('bad')"
    install(
        tmp_path, f"raises_{raised.__name__}", code, group="trimtab.pod_filters", name="example.com/Raises"
    )
    plugins = load_usable_plugins(["example.com/Raises"])
    assert f"cannot be imported: {raised.__name__}: bad" in plugins.errors["example.com/Raises"]


@each
def test_the_kit_says_what_a_plugin_raised(raised: type[BaseException]) -> None:
    with pytest.raises(PluginTestError, match=f"raised {raised.__name__}: bad"):
        check_pod_filter(raising(raised))
    with pytest.raises(PluginTestError, match=f"raised {raised.__name__}: bad"):
        check_metric_source(source_raising(raised))


def test_ctrl_c_in_a_call_ends_the_program() -> None:
    def interrupted(_seen: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call(guard(interrupted))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def test_a_task_that_is_cancelled_in_a_call_ends() -> None:
    started = asyncio.Event()

    async def wait(_seen: object) -> None:
        started.set()
        await asyncio.Event().wait()

    guarded = guard(wait, PluginKind.METRIC_SOURCE)
    task = asyncio.create_task(guarded.call_async(lambda: wait(None), user="queue", now=0.0, seconds=60.0))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not guarded.failures


GROUP = ExceptionGroup("2 tables", [ValueError("no zone"), ExceptionGroup("rows", [KeyError("web")])])
IN_IT = "ExceptionGroup: 2 tables (2 sub-exceptions): ValueError: no zone, ExceptionGroup: rows (1 sub-exception): KeyError: 'web'"


def raising_group(_seen: object) -> dict[str, str]:
    raise GROUP


async def source_raising_group(_seen: object) -> list[Any]:
    raise GROUP


async def test_a_group_of_exceptions_names_those_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A condition and the log said `2 sub-exceptions`, and neither which nor where."""
    assert f"raised {IN_IT}" in call(guard(raising_group)).message
    assert "ValueError: no zone" in caplog.text
    assert "KeyError: 'web'" in caplog.text
    guarded = guard(source_raising_group, PluginKind.METRIC_SOURCE)
    failure = await guarded.call_async(lambda: source_raising_group(None), user="queue", now=0.0, seconds=5.0)
    assert f"raised {IN_IT}" in str(failure)
    for check in (lambda: check_pod_filter(raising_group), lambda: check_metric_source(source_raising_group)):
        with pytest.raises(PluginTestError) as found:
            await asyncio.to_thread(check)
        assert f"raised {IN_IT}" in str(found.value)
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "raise ExceptionGroup('2 tables', [ValueError('no zone')])"
    install(tmp_path, "raises_group", code, group="trimtab.pod_filters", name="example.com/Group")
    errors = load_usable_plugins(["example.com/Group"]).errors
    assert "2 tables (1 sub-exception): ValueError: no zone" in errors["example.com/Group"]


def test_a_large_group_and_one_that_lies_about_itself_are_named_too() -> None:
    class Liar(BaseExceptionGroup[BaseException]):
        exceptions = property(lambda _: 1 / 0)
        message = property(lambda _: 1 / 0)

    def raises(group: BaseException) -> Any:
        def function(_seen: object) -> dict[str, str]:
            raise group

        return function

    lying = call(guard(raises(Liar("both", [KeyboardInterrupt(), SystemExit(3)]))))
    assert lying.message.endswith("raised Liar: both (2 sub-exceptions): KeyboardInterrupt, SystemExit: 3")
    many = call(guard(raises(ExceptionGroup("many", [ValueError(str(number)) for number in range(9)]))))
    assert "many, the first 5 of 9 (5 sub-exceptions): ValueError: 0, " in many.message


def test_an_exception_without_text_is_its_name() -> None:
    def function(_seen: object) -> dict[str, str]:
        raise ValueError

    assert call(guard(function)).message.endswith(" raised ValueError")


@pytest.mark.filterwarnings("error")
def test_a_pure_plugin_that_returns_a_coroutine_or_a_generator_is_told_why() -> None:
    async def later(_seen: object) -> dict[str, str]:
        return {}

    def yields(_seen: object) -> Any:
        yield "web-1"

    def awaits_nothing(seen: object) -> Any:
        return later(seen)

    with pytest.raises(PluginTestError, match=r"a coroutine, not a mapping .*; call no async function"):
        check_pod_filter(awaits_nothing)
    with pytest.raises(
        PluginTestError, match=r"a generator, not a mapping .*; write return in place of yield"
    ):
        check_pod_filter(yields)
