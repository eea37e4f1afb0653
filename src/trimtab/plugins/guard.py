"""Calls a plug-in so that it stops nothing else.

An exception, an answer that the protocol does not allow, or a call beyond its budget becomes a `PluginFailure`. After failures in
a row the plug-in pauses for the object that it fails for. After slow calls in a row it pauses for all, because the others wait.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from trimtab.model.json.wire import Wire
from trimtab.model.spelling import nearest
from trimtab.plugins.errors import DeclinedError, WrongAnswerError, describe, plain_error, quote
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


class _Raised(msgspec.Struct, frozen=True):
    """What a plug-in, or the check of its answer, raised."""

    error: Exception


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
        self._in_a_row: dict[str, int] = {}
        self._paused: dict[str, tuple[float, PluginFailure]] = {}
        self._logged: set[tuple[str, str, int]] = set()

    def call(self, argument: Any, check: Callable[[Any], T], *, user: str, now: float) -> T | PluginFailure:
        """Return the checked answer of a pure plug-in for the object `user`, or its failure.

        `check` returns the answer in the caller's type, or raises WrongAnswerError.
        """
        if self._paused and (paused := self.pause_of(user, now)) is not None:
            return paused
        begun, start, budget = self._wall_clock(), self._stopwatch(), self.plugin.declaration.budget
        try:
            answer = call_within(budget * WALL_TIME, self._ask, (argument, check), self._label)
        except TookTooLong:
            return self._slow(user, now)
        finally:
            taken = self._stopwatch() - start
            self._waits.add(self._count(self._wall_clock() - begun))
        if isinstance(answer, _Raised):
            return self._failed_with(user, now, answer.error)
        if taken > budget:
            return self._slow(user, now)
        if waits := self._waits.problem:
            return self._failed(FailureReason.TOO_SLOW, f"{self.plugin} {waits}", _ALL, now, None)
        self._worked(user)
        return answer

    async def call_async(
        self, argument: Any, check: Callable[[Any], T], *, user: str, now: float, seconds: float
    ) -> T | PluginFailure:
        """Return the checked answer of a plug-in that waits, within `seconds`, or its failure."""
        if self._paused and (paused := self.pause_of(user, now)) is not None:
            return paused
        begun = self._wall_clock()
        try:
            answer: Awaitable[Any] = self.plugin.call(argument)
            async with asyncio.timeout(seconds):
                checked = check(await answer)
        except TimeoutError:
            return self._slow(user, now, seconds)
        except BaseException as error:  # the function of another project may raise anything
            if ends_the_program(error):
                raise
            return self._failed_with(user, now, plain_error(error))
        finally:
            self._count(self._wall_clock() - begun)
        self._worked(user)
        return checked

    def pause_of(self, user: str, now: float) -> PluginFailure | None:
        """Return the pause of the plug-in for an object, or None if it may be called."""
        for key in (_ALL, user):
            until, failure = self._paused.get(key, (0.0, None))
            if failure is not None:
                if now < until:
                    self.failures[failure.reason] += 1
                    return failure
                del self._paused[key]
        return None

    def forget(self, user: str) -> None:
        """Drop what is known about an object that is gone."""
        self._in_a_row.pop(user, None)
        self._paused.pop(user, None)

    def keep_only(self, users: Collection[str]) -> None:
        """Drop what is known about all objects but these."""
        for user in {*self._in_a_row, *self._paused} - {_ALL, *users}:
            self.forget(user)

    def _ask(self, call: "tuple[Any, Callable[[Any], T]]") -> "T | _Raised":
        """Call the plug-in, check its answer and read its exception, all within the time limit."""
        argument, check = call
        try:
            return check(self.plugin.call(argument))
        except TookTooLong:
            raise
        except BaseException as error:  # the function of another project may raise anything
            if ends_the_program(error):
                raise
            return _Raised(plain_error(error))

    def _count(self, seconds: float) -> float:
        self.calls += 1
        self.seconds += seconds
        return seconds

    def _worked(self, user: str) -> None:
        if self._in_a_row:
            self._in_a_row.pop(user, None)
            self._in_a_row.pop(_ALL, None)

    def _failed_with(self, user: str, now: float, error: Exception) -> PluginFailure:
        if isinstance(error, DeclinedError):
            return self._declined(error)
        if isinstance(error, WrongAnswerError):
            return self._wrong(user, now, error)
        return self._raised(user, now, error)

    def _slow(self, user: str, now: float, limit: float | None = None) -> PluginFailure:
        seconds = self.plugin.declaration.budget if limit is None else limit
        message = f"{self.plugin} took longer than its {seconds * 1000:.0f} ms"
        # A slow source waits beside the others; a slow pure function makes them wait.
        return self._failed(
            FailureReason.TOO_SLOW, message, user if self.plugin.kind.is_async else _ALL, now, None
        )

    def _wrong(self, user: str, now: float, error: WrongAnswerError) -> PluginFailure:
        return self._failed(
            FailureReason.WRONG_ANSWER, f"{self.plugin} returned what it may not: {error}", user, now, None
        )

    def _declined(self, error: DeclinedError) -> PluginFailure:
        self.failures[FailureReason.DECLINED] += 1
        return self._failure(FailureReason.DECLINED, f"{self.plugin} cannot answer: {quote(error)}")

    def _raised(self, user: str, now: float, error: BaseException) -> PluginFailure:
        text = f"{self.plugin} raised {describe(error)}{_advice(self.plugin, error)}"
        return self._failed(FailureReason.RAISED, text, user, now, error)

    def _failed(
        self, reason: FailureReason, message: str, user: str, now: float, error: BaseException | None
    ) -> PluginFailure:
        self.failures[reason] += 1
        self._log_once(reason, message, error)
        count = self._in_a_row[user] = self._in_a_row.get(user, 0) + 1
        if count >= FAILURES_BEFORE_PAUSE:
            pause = SOURCE_PAUSE if self.plugin.kind.is_async else PAUSE
            span = f"{pause:.0f} seconds" if pause < 60 else f"{pause / 60:.0f} minutes"
            text = f"{message}; it pauses for {span} after {FAILURES_BEFORE_PAUSE} failures"
            self._paused[user] = (now + pause, self._failure(FailureReason.PAUSED, text))
            self._in_a_row[user] = FAILURES_BEFORE_PAUSE - 1  # the first call after the pause decides
        return self._failure(reason, message)

    def _failure(self, reason: FailureReason, message: str) -> PluginFailure:
        return PluginFailure(
            plugin=self.plugin.name, reason=reason, message=message, version=self.plugin.version
        )

    def _log_once(self, reason: FailureReason, message: str, error: BaseException | None) -> None:
        place = error.__traceback__ if error is not None else None
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        key = (reason, type(error).__name__, place.tb_lineno if place else 0)
        if key in self._logged or len(self._logged) >= MOST_LOGGED:
            return
        self._logged.add(key)
        log.error("plug-in failed: %s", message, exc_info=error)


_ALL = ""
"""The user of a pause that holds for every object."""


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
        """Return the failure of an object that names a plug-in which is not loaded."""
        key = (kind, name)
        if key not in self._missing:
            if len(self._missing) >= MOST_MISSING:
                self._missing.clear()
            self._missing[key] = self._why_missing(kind, name)
        return self._missing[key]

    def _why_missing(self, kind: PluginKind, name: str) -> PluginFailure:
        plugins = [guard.plugin for guard in self.all()]
        for other in [plugin.kind for plugin in plugins if plugin.name == name]:
            return wrong_kind(kind, name, other)
        advice = self._errors.get(name, self._advice)
        if name not in self._errors and (
            near := nearest(name, [plugin.name for plugin in plugins if plugin.kind is kind])
        ):
            advice = f"did you mean {near}, which is? Otherwise {advice}"
        return not_loaded(kind, name, advice)

    @property
    def not_loadable(self) -> tuple[str, ...]:
        """Return the names of plug-ins that `--plugins` names and that could not be loaded."""
        return tuple(self._errors)

    def all(self) -> tuple[Guard, ...]:
        """Return all guards."""
        return tuple(self._guards.values())

    def forget(self, user: str) -> None:
        """Drop what is known about an object that is gone."""
        for guard in self._guards.values():
            guard.forget(user)


def wrong_kind(kind: PluginKind, name: str, other: PluginKind) -> PluginFailure:
    """Return the failure of an object that names a plug-in of another kind."""
    return PluginFailure(
        plugin=name,
        reason=FailureReason.WRONG_KIND,
        message=f"{name} is {other.article} and no {kind.label}; {other.article} is named in {other.place}",
    )


def not_loaded(kind: PluginKind, name: str, cause: str = INSTALL_IT) -> PluginFailure:
    """Return the failure of an object that names a plug-in which is not loaded, for a cause or with advice."""
    return PluginFailure(
        plugin=name,
        reason=FailureReason.NOT_LOADED,
        message=f"{kind.label} {name} is not loaded: {cause}",
    )
