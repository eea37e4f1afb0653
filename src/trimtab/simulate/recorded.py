"""Series out of a Prometheus as a trace: one row per step, an empty cell where nothing was measured."""

from collections.abc import Mapping, Sequence

from trimtab.metrics.range_queries import Range, Samples
from trimtab.simulate.trace import Trace, TraceError


def the_one_series(column: str, found: Sequence[Samples]) -> Samples:
    """Return the only series of a query; a trace needs the total, and only the query can say how to add up."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise TraceError(f"{column}: the query found nothing in that time")
    raise TraceError(
        f"{column}: the query gives {len(found)} series where one total is needed: wrap it in sum(...)"
    )


def trace_of(series: Mapping[str, Samples], wanted: Range) -> Trace:
    """Lay the series side by side on the moments of the range."""
    start = wanted.start.timestamp()
    times = [start + number * wanted.step for number in range(wanted.steps)]
    return Trace(times, {column: _laid(column, one, wanted, start) for column, one in series.items()})


def _laid(column: str, series: Samples, wanted: Range, start: float) -> list[int | None]:
    values: list[int | None] = [None] * wanted.steps
    for at, value in zip(series.at, series.values, strict=True):
        if value < 0:
            raise TraceError(f"{column}: {value:g} at {at:.0f}: load is never negative")
        place = round((at - start) / wanted.step)
        if 0 <= place < wanted.steps:
            values[place] = round(value * 1000)
    return values
