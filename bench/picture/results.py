"""What was measured, kept as it comes: one line per turn, the latest run of each scenario."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.picture.api import Json
from bench.picture.contenders import OURS

FILE = Path(__file__).parents[1] / "history" / "results.jsonl"


@dataclass(frozen=True)
class Record:
    """The figures of one turn, or why there are none."""

    scenario: str
    contender: str
    round: int
    run: str
    load: str = ""
    figures: Json = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Ratio:
    """Ours over the peer's, over all pairs."""

    peer: float
    ours: float
    ratio: float
    spread: float
    pairs: int


class Results:
    """All records, newest run of each scenario only."""

    def __init__(self, records: Iterable[Record], file: Path | None = None) -> None:
        self._records = list(records)
        self._file = file

    @classmethod
    def load(cls, file: Path = FILE) -> "Results":
        """Read what was kept."""
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return cls([Record(**json.loads(line)) for line in lines], file)

    def add(self, record: Record) -> None:
        """Keep a record; the first of a new run takes the place of the scenario's older ones."""
        self._records = [
            one for one in self._records if one.scenario != record.scenario or one.run == record.run
        ]
        self._records.append(record)
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(asdict(one), sort_keys=True) + "\n" for one in self._records)
            self._file.write_text(text, encoding="utf-8")

    def of(self, scenario: str, contender: str | None = None) -> list[Record]:
        """Return a scenario's records that have figures."""
        return [
            one
            for one in self._records
            if one.scenario == scenario and not one.error and contender in {None, one.contender}
        ]

    def errors(self) -> list[Record]:
        """Return what failed."""
        return [one for one in self._records if one.error]

    def runs(self) -> list[str]:
        """Return when the scenarios were measured, oldest first."""
        return sorted({one.run for one in self._records})

    def values(self, scenario: str, contender: str, figure: str) -> dict[int, float]:
        """Return a figure by round."""
        found = {one.round: one.figures.get(figure) for one in self.of(scenario, contender)}
        return {number: float(value) for number, value in found.items() if isinstance(value, int | float)}

    def median(self, scenario: str, contender: str, figure: str) -> float | None:
        """Return the median of a figure over the rounds."""
        values = self.values(scenario, contender, figure)
        return statistics.median(values.values()) if values else None

    def ratio(self, scenario: str, peer: str, figure: str) -> Ratio | None:
        """Compare ours with a peer, round by round."""
        theirs, ours = self.values(scenario, peer, figure), self.values(scenario, OURS, figure)
        pairs = [(theirs[number], ours[number]) for number in sorted(theirs.keys() & ours.keys())]
        ratios = [mine / other for other, mine in pairs if other > 0]
        if not ratios:
            return None
        middle = statistics.median(ratios)
        spread = (max(ratios) - min(ratios)) / 2 / middle if middle else 0.0
        return Ratio(
            statistics.median(other for other, _ in pairs),
            statistics.median(mine for _, mine in pairs),
            middle,
            spread,
            len(ratios),
        )
