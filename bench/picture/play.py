"""Play scenarios one after the other, keep each result as it comes, and say how much time is left."""

import tempfile
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.picture.contenders import OURS
from bench.picture.results import Record, Results
from bench.picture.scenarios import Alone, Scenario, Turn
from bench.picture.site import Site, put_up


class Player:
    """Plays and keeps."""

    def __init__(self, scenarios: Sequence[Scenario | Alone], results: Results) -> None:
        self._scenarios = list(scenarios)
        self._results = results
        self._run = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        self._began = time.monotonic()

    def play(self) -> None:
        """Play everything; what fails is a row with its reason, and the rest goes on."""
        for number, scenario in enumerate(self._scenarios):
            self._title(number, scenario)
            if isinstance(scenario, Alone):
                self._keep_alone(scenario)
            else:
                self._play_turns(scenario)

    def _title(self, number: int, scenario: Scenario | Alone) -> None:
        left = sum(one.seconds for one in self._scenarios[number:])
        place = f"{number + 1}/{len(self._scenarios)}"
        self._say(f"[{place}] {scenario.name}: {scenario.title} (about {left / 60:.0f} min left)")

    def _keep_alone(self, scenario: Alone) -> None:
        try:
            figures = scenario.measure()
        except Exception as error:  # noqa: BLE001 - a benchmark of another module may fail in any way; the rest goes on
            self._failed(scenario.name, OURS, 0, error)
        else:
            self._results.add(Record(scenario.name, OURS, 0, self._run, "", figures))

    def _play_turns(self, scenario: Scenario) -> None:
        with tempfile.TemporaryDirectory(prefix="trimtab-bench-", ignore_cleanup_errors=True) as name:
            try:
                with put_up(Path(name)) as site:
                    if scenario.needs == "vpa":
                        site.define_vpas()
                    for turn in scenario.turns:
                        self._take_turn(scenario.name, turn, site)
            except Exception as error:  # noqa: BLE001 - whatever a program of the cluster does, the next scenario has its own
                self._failed(scenario.name, "cluster", 0, error)

    def _take_turn(self, scenario: str, turn: Turn, site: Site) -> None:
        def say(words: str) -> None:
            self._say(f"  {turn.contender} {turn.round + 1}: {words}")

        say(turn.load)
        try:
            figures = turn.play(site, say)
        except Exception as error:  # noqa: BLE001 - a turn that fails in any way is a row with its reason
            self._failed(scenario, turn.contender, turn.round, error)
        else:
            self._results.add(Record(scenario, turn.contender, turn.round, self._run, turn.load, figures))

    def _failed(self, scenario: str, contender: str, number: int, error: Exception) -> None:
        self._say(f"  FAILED {scenario}, {contender}: {error}")
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        self._results.add(Record(scenario, contender, number, self._run, error=text[:400]))

    def _say(self, words: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"{minutes:3}:{seconds:02} {words}", flush=True)
