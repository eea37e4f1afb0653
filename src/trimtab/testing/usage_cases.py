"""Inputs for estimators: the usage of a container, every six hours for 50 days."""

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType

from trimtab.plugins.estimator import MOST_SAMPLES, Amounts, EstimatorInput, UsageHistogram, UsageSample
from trimtab.testing.cases import CASES, START

_STEP = 6 * 3600.0
_LARGEST: Mapping[str, float] = {"cpu": 512.0, "memory": 4.0 * 2**40}
_SAMPLES = (0, 1, 8, 8, 8, 64)


def estimator_inputs(*, with_samples: bool, cases: int = CASES) -> Iterator[EstimatorInput]:
    """Yield inputs of estimators without memory: no usage yet, of one resource, zero, small and huge."""
    for number in range(cases):
        random = Random(number)  # noqa: S311 - test inputs, not secrets
        now = START + number * _STEP
        used = {
            resource: _amounts_used(random, largest) if number else []
            for resource, largest in _LARGEST.items()
        }
        count = sum(map(len, used.values()))
        yield EstimatorInput(
            namespace="shop",
            name="web",
            container="main",
            now=now,
            histograms=MappingProxyType(
                {resource: _histogram(amounts, random) for resource, amounts in used.items()}
            ),
            built_in=MappingProxyType(
                {resource: _built_in(amounts) for resource, amounts in used.items() if amounts}
            ),
            first_sample=START if count else None,
            last_sample=now if count else None,
            sample_count=count,
            samples=_samples(number, random, now) if with_samples and number else (),
            missed_samples=random.choice((0, 0, 7)) if with_samples else 0,
        )


def _amounts_used(random: Random, largest: float) -> list[float]:
    count = random.choice((0, 1, 3, 40))
    return sorted({_amount(random, largest) for _ in range(count)})


def _amount(random: Random, largest: float) -> float:
    return random.choice((0.0, largest / 1e6, random.random() * largest / 1000, random.random() * largest))


def _histogram(ends: list[float], random: Random) -> UsageHistogram:
    return UsageHistogram(
        ends=tuple(ends), weights=tuple(random.choice((1e-6, random.random(), 1e6)) for _ in ends)
    )


def _built_in(ends: list[float]) -> Amounts:
    return Amounts(lower=ends[0], target=ends[len(ends) // 2], upper=ends[-1])


def _samples(number: int, random: Random, now: float) -> tuple[UsageSample, ...]:
    """Return samples since the last call, some a little late; once as many as can wait."""
    count = MOST_SAMPLES if number == 3 else random.choice(_SAMPLES)
    samples = []
    for position in range(count):
        resource = random.choice(tuple(_LARGEST))
        late = random.choice((0.0, 0.0, 60.0))
        at = now - _STEP * (count - position) / count - late
        samples.append(UsageSample(at, resource, _amount(random, _LARGEST[resource])))
    return tuple(samples)
