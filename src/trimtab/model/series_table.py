"""The table of metric series that are set by hand, for the adapter's testing source and for the lab."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
SeriesT = TypeVar("SeriesT", bound=Hashable)

Metric = tuple[str, str, str]
"""What a query names: the metric, the kind or resource of its objects (empty for an external metric), and the namespace."""


class SeriesTable(Generic[SeriesT, T]):
    """A value per series, by metric and then by what tells the series of a metric apart."""

    def __init__(self) -> None:
        self._metrics: dict[Metric, dict[SeriesT, T]] = {}
        self.count = 0

    def put(self, metric: Metric, series: SeriesT, value: T) -> None:
        """Set the value of a series."""
        values = self._metrics.setdefault(metric, {})
        self.count += series not in values
        values[series] = value

    def remove(self, metric: Metric, series: SeriesT) -> bool:
        """Remove a series, and return whether it was there. A metric without series is gone."""
        values = self._metrics.get(metric, {})
        if series not in values:
            return False
        del values[series]
        self.count -= 1
        if not values:
            del self._metrics[metric]
        return True

    def of(self, metric: Metric) -> Mapping[SeriesT, T]:
        """Return the series of a metric."""
        return self._metrics.get(metric, {})

    def metrics(self) -> Iterator[Metric]:
        """Yield every metric that has a value."""
        yield from self._metrics

    def __iter__(self) -> Iterator[T]:
        """Yield every value."""
        for values in self._metrics.values():
            yield from values.values()
