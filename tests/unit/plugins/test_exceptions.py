"""Whatever a plug-in raises is its failure; what the user or our own task raises is not."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_packages import install
from tests.unit.plugins.test_guard import any_answer, call, guard
from trimtab.adapter.sources.plugin.thread import PluginThread
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import load_usable_plugins
from trimtab.testing import PluginTestError, check_metric_source, check_pod_filter


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

    async def on_its_thread(_seen: object) -> Any:
        return await thread.call(lambda: function(None))

    try:
        for called in (function, on_its_thread):
            guarded = guard(called, PluginKind.METRIC_SOURCE)
            failure = await guarded.call_async(None, any_answer, user="queue", now=0.0, seconds=5.0)
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
    task = asyncio.create_task(guarded.call_async(None, any_answer, user="queue", now=0.0, seconds=60.0))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not guarded.failures
