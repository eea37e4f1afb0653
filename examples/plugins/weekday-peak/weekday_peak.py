"""An estimator for load that differs by weekday: the highest p99 of the same weekday in the last four weeks.

It counts the samples of each day in buckets that grow by 5 %, and remembers the p99 of each day when the day ends. Days
are those of UTC. Until it has seen a whole day of the same weekday, Trimtab's own amounts stay.
"""

from math import ceil, log

from trimtab.plugins import Amounts, Estimate, EstimatorInput, declare

DAY, WEEKS, GROWTH, LEAST = 86400, 4, 1.05, 1e-3
WEEKDAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")  # as from 1970


@declare(needs_samples=True)
def weekday_peak(seen: EstimatorInput) -> Estimate:
    """Return the highest p99 of today's weekday."""
    memory = seen.memory or {"peaks": {}, "counts": {}}
    peaks, counts, today = memory["peaks"], memory["counts"], int(seen.now // DAY)
    for sample in seen.samples:
        buckets = counts.setdefault(str(int(sample.time // DAY)), {}).setdefault(sample.resource, {})
        bucket = str(ceil(log(max(sample.amount, LEAST), GROWTH)))
        buckets[bucket] = buckets.get(bucket, 0) + 1
    for day in [day for day in counts if int(day) < today]:
        peaks[day] = {resource: _p99(buckets) for resource, buckets in counts.pop(day).items()}
    for day in [day for day in peaks if int(day) < today - 7 * WEEKS]:
        del peaks[day]
    same = [peak for day, peak in peaks.items() if int(day) % 7 == today % 7]
    amounts = {}
    for resource in dict.fromkeys(resource for peak in same for resource in peak):
        now = _p99(counts.get(str(today), {}).get(resource, {}))
        peak = max(now, *(peak.get(resource, 0.0) for peak in same))
        amounts[resource] = Amounts(lower=0.9 * peak, target=peak, upper=1.5 * peak)
    name = WEEKDAYS[today % 7]
    reason = f"the highest p99 of the last {len(same)} {name}s" if same else f"no {name} seen yet"
    return Estimate(amounts=amounts, reason=reason, memory=memory)


def _p99(buckets: dict[str, int]) -> float:
    below = 0.99 * sum(buckets.values())
    for bucket in sorted(buckets, key=int):
        below -= buckets[bucket]
        if below <= 0:
            return float(GROWTH ** int(bucket))
    return 0.0
