"""What the VPA vectors call dumps: histograms, aggregates and containers as plain data."""

from typing import Any

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregationConfig
from trimtab.decide.vertical.cluster_state.containers import ContainerHistory
from trimtab.decide.vertical.histogram.histogram import Histogram
from trimtab.decide.vertical.histogram.int64_times import from_int64
from trimtab.model.json import wire
from trimtab.model.times import SECOND_NS, format_ns

PERCENTILES = ("0", "0.1", "0.5", "0.9", "0.95", "1")


def as_doubles(data: Any) -> Any:
    """Read every number as a double: the vectors print large floats without a point."""
    if isinstance(data, dict):
        return {key: as_doubles(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_doubles(value) for value in data]
    if isinstance(data, bool) or not isinstance(data, int | float):
        return data
    return float(data)


def saved(checkpoint: Any) -> Any:
    """Return a checkpoint as doubles, without what is empty or zero: the API drops those, we may write them."""
    data = as_doubles(wire.to_builtins(checkpoint))
    cleaned = {key: saved(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in cleaned.items() if value not in (None, 0, {})}


def config_of(data: dict[str, Any]) -> AggregationConfig:
    """Read a case's aggregation settings."""
    return AggregationConfig(
        memory_interval_ns=nanoseconds(data["memoryAggregationIntervalSeconds"]),
        memory_interval_count=int(data["memoryAggregationIntervalCount"]),
        memory_half_life_ns=nanoseconds(data["memoryHistogramDecayHalfLifeSeconds"]),
        cpu_half_life_ns=nanoseconds(data["cpuHistogramDecayHalfLifeSeconds"]),
        oom_bump_ratio=float(data["oomBumpUpRatio"]),
        oom_min_bump_bytes=float(data["oomMinBumpUpBytes"]),
    )


def nanoseconds(seconds: float) -> int:
    """Return a duration in nanoseconds."""
    return round(seconds * SECOND_NS)


def dump_histogram(histogram: Histogram, *, weights: bool = True) -> dict[str, Any]:
    """Return a histogram's dump."""
    found = histogram.percentiles([float(share) for share in PERCENTILES])
    dump: dict[str, Any] = {
        "isEmpty": histogram.is_empty,
        "minBucket": histogram.min_bucket,
        "maxBucket": histogram.max_bucket,
        "totalWeight": histogram.total_weight,
        "percentiles": dict(zip(PERCENTILES, found, strict=True)),
    }
    if weights:
        all_weights = histogram.weights
        dump["bucketWeights"] = {
            str(bucket): float(all_weights[bucket]) for bucket in np.flatnonzero(all_weights)
        }
    if histogram.matrix.half_life_ns is not None:
        dump["referenceTimestamp"] = format_ns(histogram.reference_ns)
    return dump


def dump_aggregate(aggregate: Aggregate, now_ns: int, *, weights: bool = True) -> dict[str, Any]:
    """Return an aggregate's dump; without `weights` also without its checkpoint."""
    table, row = aggregate.table, aggregate.row
    dump: dict[str, Any] = {
        "cpu": dump_histogram(aggregate.cpu, weights=weights),
        "memory": dump_histogram(aggregate.memory, weights=weights),
        "totalSamplesCount": aggregate.sample_count,
        "firstSampleStart": format_ns(aggregate.first_sample_ns),
        "lastSampleStart": format_ns(aggregate.last_sample_ns),
        "isEmpty": aggregate.is_empty,
        "isExpired": aggregate.is_expired(now_ns),
        "scalingMode": aggregate.scaling_mode,
        "controlledResources": list(aggregate.controlled_resources),
        "oomBumpUpRatio": float(table.oom_ratio[row]),
        "oomMinBumpUpBytes": float(table.oom_min_bump[row]),
        "memoryAggregationIntervalSeconds": int(table.interval[row]) / SECOND_NS,
        "memoryAggregationIntervalCount": int(table.interval_count[row]),
    }
    if weights:
        dump["checkpoint"] = saved(aggregate.save(now_ns))
    return dump


def dump_container(container: ContainerHistory) -> dict[str, Any]:
    """Return a container's dump."""
    table, row = container.table, container.row
    return {
        "memoryPeakBytes": container.memory_peak,
        "oomPeakBytes": container.oom_peak,
        "maxMemoryPeakBytes": container.max_peak,
        "windowEnd": format_ns(container.window_end_ns),
        "lastMemorySampleStart": format_ns(from_int64(int(table.last_memory[row]))),
        "lastCPUSampleStart": format_ns(from_int64(int(table.last_cpu[row]))),
    }
