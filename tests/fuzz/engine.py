"""A coverage-guided fuzzer: mutate kept inputs, and keep the mutants that reach new code.

Coverage is the set of steps from one line of Trimtab to the next. The same tracing counts the lines of each run, so that an input that
takes too many is found without a clock. atheris does the same faster and is not needed: `--engine=atheris` uses it where it is installed.
"""

import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

Target = Callable[[bytes], None]
MAX_INPUT = 4096
"""The longest input, in bytes. Defects show in short ones."""
MAX_LINES = 400_000
"""Lines of Trimtab that one input may execute. Honest inputs of this size take fewer than 20,000."""
_TRACED = "src/trimtab"
_NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"1e400", b"1e-400", b"0x10", b"00")  # fmt: skip


class TooManyLinesError(AssertionError):
    """An input took too long."""


@dataclass
class Coverage:
    """The steps between lines that any run took, and the lines of the current run."""

    seen: set[tuple[int, int, int]] = field(default_factory=set)
    lines: int = 0
    most_lines: int = 0
    _fresh: int = 0
    _codes: dict[CodeType, int] = field(default_factory=dict)

    def run(self, target: Target, data: bytes) -> int:
        """Run a target and return how many steps were new."""
        self._fresh = self.lines = 0
        sys.settrace(self._enter)
        try:
            target(data)
        finally:
            sys.settrace(None)
            self.most_lines = max(self.most_lines, self.lines)
        return self._fresh

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if _TRACED not in frame.f_code.co_filename:
            return None
        code = self._codes.setdefault(frame.f_code, len(self._codes))
        last = 0

        def step(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal last
            if event == "line":
                self.lines += 1
                if self.lines > MAX_LINES:
                    raise TooManyLinesError(f"an input took more than {MAX_LINES} lines")
                arc = (code, last, frame.f_lineno)
                last = frame.f_lineno
                if arc not in self.seen:
                    self.seen.add(arc)
                    self._fresh += 1
            return step

        return step


class Mutator:
    """Changes inputs at random, with the words that a target's inputs consist of."""

    def __init__(self, seed: int, words: Iterable[bytes]) -> None:
        self._random = random.Random(seed)
        self._words = [*words, *_NUMBERS]

    def mutate(self, corpus: list[bytes]) -> bytes:
        """Return a changed copy of one input of the corpus, or a mixture of two."""
        chance = self._random
        data = bytearray(chance.choice(corpus))
        for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
            change = chance.choice(
                (
                    self._flip,
                    self._insert_word,
                    self._remove,
                    self._repeat,
                    self._splice,
                    self._replace_number,
                )
            )
            data = change(data, corpus)
        return bytes(data[:MAX_INPUT])

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data) + 1)

    def _flip(self, data: bytearray, _corpus: list[bytes]) -> bytearray:
        if data:
            place = self._random.randrange(len(data))
            data[place] = self._random.choice(
                (data[place] ^ 1 << self._random.randrange(8), self._random.randrange(256))
            )
        return data

    def _insert_word(self, data: bytearray, _corpus: list[bytes]) -> bytearray:
        place, word = self._place(data), self._random.choice(self._words)
        end = place + len(word) if self._random.random() < 0.3 else place
        data[place:end] = word
        return data

    def _remove(self, data: bytearray, _corpus: list[bytes]) -> bytearray:
        start = self._place(data)
        del data[start : start + self._random.choice((1, 1, 2, 8, 64))]
        return data

    def _repeat(self, data: bytearray, _corpus: list[bytes]) -> bytearray:
        start = self._place(data)
        part = data[start : start + self._random.choice((1, 4, 16, 64))]
        data[start:start] = part * self._random.choice((1, 2, 2, 20))
        return data

    def _splice(self, data: bytearray, corpus: list[bytes]) -> bytearray:
        other = self._random.choice(corpus)
        return data[: self._place(data)] + other[self._random.randrange(len(other) + 1) :]

    def _replace_number(self, data: bytearray, _corpus: list[bytes]) -> bytearray:
        places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
        if places:
            place = self._random.choice(places)
            data[place : place + 1] = self._random.choice(_NUMBERS)
        return data


@dataclass
class Finding:
    """An input that broke a property."""

    data: bytes
    error: BaseException


@dataclass
class Result:
    """What one target's run came to."""

    runs: int = 0
    kept: list[bytes] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    most_lines: int = 0


def _kind(error: BaseException) -> str:
    """Return what tells findings apart: the error's type and the line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__} {place}"


def fuzz(
    target: Target, seeds: list[bytes], *, words: Iterable[bytes] = (), seed: int = 1, goes_on: Callable[[int], bool], most_findings: int = 5
) -> Result:  # fmt: skip
    """Run the seeds, then mutants of what reached new code, while `goes_on(runs)`."""
    coverage, mutator, result = Coverage(), Mutator(seed, words), Result()
    corpus: list[bytes] = []
    waiting = list(seeds)
    kinds: set[str] = set()
    while waiting or (corpus and goes_on(result.runs)):
        is_seed = bool(waiting)
        data = waiting.pop(0) if waiting else mutator.mutate(corpus)
        result.runs += 1
        try:
            fresh = coverage.run(target, data)
        except (Exception, RecursionError) as error:  # noqa: BLE001 - any error at all is what is sought
            kind = _kind(error)
            if kind not in kinds:
                kinds.add(kind)
                result.findings.append(Finding(data, error))
            if len(result.findings) >= most_findings:
                break
            continue
        if fresh or is_seed:
            corpus.append(data)
            if not is_seed:
                result.kept.append(data)
    result.steps, result.most_lines = len(coverage.seen), coverage.most_lines
    return result
