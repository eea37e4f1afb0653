"""Calls a plug-in so that it stops nothing else.

An exception, an answer that the protocol does not allow, or a call beyond its budget becomes a `PluginFailure`. After failures in
a row the plug-in pauses for all objects. The pause names the object of the last failure.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar

from trimtab.model.json.wire import Wire
from trimtab.model.spelling import nearest
from trimtab.plugins.errors import (
    DeclinedError,
    WrongAnswerError,
    describe,
    plain_error,
    plain_errors,
    plugin_exc_info,
    quote,
)
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.pod_filter import NODES_NOT_DECLARED, FilterNode
from trimtab.plugins.registry import Plugin, Plugins
from trimtab.plugins.time_limit import WALL_TIME, TookTooLong, WaitCount, call_within, ends_the_program

log = logging.getLogger(__name__)

FAILURES_BEFORE_PAUSE = 3
PAUSE = 300.0
"""Seconds of a pause; the call after it decides about the next."""
SOURCE_PAUSE = 15.0
"""The same of a metric source: other sources do not wait for it, and a database that restarts is back soon."""
MOST_MISSING = 1024
"""Names of plug-ins that are not loaded whose failures are kept; any user may write such a name."""
MOST_LOGGED = 32
"""Different tracebacks that are logged per plug-in."""
INSTALL_IT = "install its package and name it in --plugins"
ASK_THE_OPERATOR = (
    "this program decides by itself and does not have the operator's answer, which the object's conditions show; "
    "install its package here too and name it in --plugins"
)
"""What a program says that only reads the cluster."""

T = TypeVar("T")


class FailureReason(StrEnum):
    """Why a plug-in gave no usable answer."""

    RAISED = "PluginRaised"
    WRONG_ANSWER = "PluginWrongAnswer"
    TOO_SLOW = "PluginTooSlow"
    PAUSED = "PluginPaused"
    NOT_LOADED = "PluginNotLoaded"
    WRONG_KIND = "PluginWrongKind"
    DECLINED = "PluginDeclined"


class PluginFailure(Wire):
    """A call of a plug-in that gave no usable answer."""

    plugin: str
    reason: str
    message: str
    """A sentence that does not change while the cause is the same."""
    version: str = ""

    def __str__(self) -> str:
        return self.message


class Guard:
    """Calls one plug-in, and counts what became of its calls."""

    def __init__(
        self,
        plugin: Plugin,
        stopwatch: Callable[[], float] = time.thread_time,
        wall_clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Guard `plugin`. `stopwatch` measures the CPU time of pure plug-ins."""
        self.plugin = plugin
        self.calls = 0
        self.seconds = 0.0
        """By the wall clock."""
        self.failures: Counter[str] = Counter()
        self._label = str(plugin)
        self._stopwatch = stopwatch
        self._wall_clock = wall_clock
        self._waits = WaitCount(plugin.declaration.budget)
        self._in_a_row = 0
        self._pause: PluginFailure | None = None
        self._paused_until = 0.0
        self._logged: set[tuple[str, str, int]] = set()

    def call(self, argument: Any, check: Callable[[Any], T], *, user: str, now: float) -> T | PluginFailure:
        """Return the checked answer of a pure plug-in for the object `user`, or its failure.

        `check` returns the answer in the caller's type, or raises WrongAnswerError.
        """
        if (paused := self._paused(now)) is not None:
            return paused
        begun, start, budget = self._wall_clock(), self._stopwatch(), self.plugin.declaration.budget
        try:
            answer = call_within(budget * WALL_TIME, self._ask, (argument, check), self._label)
        except TookTooLong:
            return self._slow(budget, user, now)
        except Exception as error:  # noqa: BLE001 - what the plug-in raised
            return self._failed_with(error, user, now)
        finally:
            taken = self._stopwatch() - start
            self._waits.add(self._count(begun))
        if taken > budget:
            return self._slow(budget, user, now)
        if waits := self._waits.problem:
            return self._failed(FailureReason.TOO_SLOW, waits, user, now)
        self._in_a_row = 0
        return answer

    async def call_async(
        self, ask: Callable[[], Awaitable[T]], *, user: str, now: float, seconds: float
    ) -> T | PluginFailure:
        """Return the checked answer of a plug-in that waits, within `seconds`, or its failure."""
        if (paused := self._paused(now)) is not None:
            return paused
        begun = self._wall_clock()
        try:
            async with asyncio.timeout(seconds):
                answer = await ask()
        except TimeoutError:
            return self._slow(seconds, user, now)
        except BaseException as error:  # the function of another project may raise anything
            if ends_the_program(error):
                raise
            return self._failed_with(plain_error(error), user, now)
        finally:
            self._count(begun)
        self._in_a_row = 0
        return answer

    def _paused(self, now: float) -> PluginFailure | None:
        if self._pause is not None:
            if now < self._paused_until:
                self.failures[self._pause.reason] += 1
                return self._pause
            self._pause = None
        return None

    def _ask(self, call: "tuple[Any, Callable[[Any], T]]") -> T:
        """Call the plug-in, check its answer and read its exception, all within the time limit."""
        argument, check = call
        with plain_errors():
            return check(self.plugin.call(argument))

    def _count(self, begun: float) -> float:
        seconds = self._wall_clock() - begun
        self.calls += 1
        self.seconds += seconds
        return seconds

    def _failed_with(self, error: Exception, user: str, now: float) -> PluginFailure:
        if isinstance(error, DeclinedError):
            self.failures[FailureReason.DECLINED] += 1
            return self._failure(FailureReason.DECLINED, f"cannot answer: {quote(error)}")
        if isinstance(error, WrongAnswerError):
            return self._failed(FailureReason.WRONG_ANSWER, f"returned what it may not: {error}", user, now)
        text = f"raised {describe(error)}{_advice(self.plugin, error)}"
        return self._failed(FailureReason.RAISED, text, user, now, error)

    def _slow(self, seconds: float, user: str, now: float) -> PluginFailure:
        text = f"took longer than its {seconds * 1000:.0f} ms"
        return self._failed(FailureReason.TOO_SLOW, text, user, now)

    def _failed(
        self, reason: FailureReason, text: str, user: str, now: float, error: Exception | None = None
    ) -> PluginFailure:
        self.failures[reason] += 1
        failure = self._failure(reason, text)
        self._log_once(failure, user, error)
        self._in_a_row += 1
        if self._in_a_row >= FAILURES_BEFORE_PAUSE:
            pause = SOURCE_PAUSE if self.plugin.kind.is_async else PAUSE
            span = f"{pause:.0f} seconds" if pause < 60 else f"{pause / 60:.0f} minutes"
            text = f"{text} for {user}; it pauses for {span} after {FAILURES_BEFORE_PAUSE} failures"
            self._pause, self._paused_until = self._failure(FailureReason.PAUSED, text), now + pause
            self._in_a_row = FAILURES_BEFORE_PAUSE - 1  # the first call after the pause decides
        return failure

    def _failure(self, reason: FailureReason, text: str) -> PluginFailure:
        plugin = self.plugin
        return PluginFailure(
            plugin=plugin.name, reason=reason, message=f"{self._label} {text}", version=plugin.version
        )

    def _log_once(self, failure: PluginFailure, user: str, error: Exception | None) -> None:
        shown = None if error is None else plugin_exc_info(error)
        place = shown[2] if shown is not None else None
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        key = (failure.reason, type(error).__name__, place.tb_lineno if place else 0)
        if key not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(key)
            log.error("plug-in failed for %s: %s", user, failure.message, exc_info=shown)


def _advice(plugin: Plugin, error: BaseException) -> str:
    """Return the advice for a filter that fails because it has no nodes, or an empty text."""
    if plugin.kind is not PluginKind.POD_FILTER or plugin.declaration.needs_nodes:
        return ""
    missing = (f"'NoneType' object has no attribute '{field}'" for field in FilterNode.__struct_fields__)
    return f"; {NODES_NOT_DECLARED}" if quote(error) in missing else ""


class Guards:
    """The guards of all loaded plug-ins of a process."""

    def __init__(
        self, plugins: Plugins, stopwatch: Callable[[], float] = time.thread_time, advice: str = INSTALL_IT
    ) -> None:
        """Guard these plug-ins. Objects that name another one get the advice."""
        self._errors = plugins.errors
        self._advice = advice
        self._guards = {(plugin.kind, plugin.name): Guard(plugin, stopwatch) for plugin in plugins}
        self._missing: dict[tuple[PluginKind, str], PluginFailure] = {}

    def find(self, kind: PluginKind, name: str) -> Guard | None:
        """Return the guard of a loaded plug-in."""
        return self._guards.get((kind, name))

    def not_loaded(self, kind: PluginKind, name: str) -> PluginFailure:
        """Return the failure of an object that names a plug-in which is not loaded, or is of another kind."""
        key = (kind, name)
        if key not in self._missing:
            if len(self._missing) >= MOST_MISSING:
                self._missing.clear()
            self._missing[key] = self._why_missing(kind, name)
        return self._missing[key]

    def _why_missing(self, kind: PluginKind, name: str) -> PluginFailure:
        plugins = [guard.plugin for guard in self.all()]
        for other in (plugin.kind for plugin in plugins if plugin.name == name):
            text = f"{name} is {other.article} and no {kind.label}; {other.article} is named in {other.place}"
            return PluginFailure(plugin=name, reason=FailureReason.WRONG_KIND, message=text)
        advice = self._errors.get(name, self._advice)
        if name not in self._errors and (
            near := nearest(name, [plugin.name for plugin in plugins if plugin.kind is kind])
        ):
            advice = f"did you mean {near}, which is? Otherwise {advice}"
        text = f"{kind.label} {name} is not loaded: {advice}"
        return PluginFailure(plugin=name, reason=FailureReason.NOT_LOADED, message=text)

    @property
    def not_loadable(self) -> tuple[str, ...]:
        """Return the names of plug-ins that `--plugins` names and that could not be loaded."""
        return tuple(self._errors)

    def all(self) -> tuple[Guard, ...]:
        """Return all guards."""
        return tuple(self._guards.values())
