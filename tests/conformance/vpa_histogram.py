"""VPA vectors: bucket layouts, histograms and histogram checkpoints."""

from typing import Any

import numpy as np

from tests.conformance.differences import differences
from tests.conformance.histograms import LinearBuckets, equals
from tests.conformance.registry import checks
from tests.conformance.vpa_dumps import as_doubles, dump_histogram, nanoseconds, saved
from trimtab.decide.vertical.cluster_state.amounts import amount_from_float, millicores_from_cores
from trimtab.decide.vertical.histogram.buckets import BucketOptionsError, Buckets, ExponentialBuckets
from trimtab.decide.vertical.histogram.histogram import Histogram
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix
from trimtab.model.json import wire
from trimtab.model.times import parse_ns
from trimtab.model.vpa.types import HistogramCheckpoint


def buckets_of(options: dict[str, Any]) -> Buckets:
    """Read a bucket layout."""
    limits = {"max_value": float(options["maxValue"]), "epsilon": float(options["epsilon"])}
    if options["type"] == "linear":
        return LinearBuckets(**limits, bucket_size=float(options["bucketSize"]))
    return ExponentialBuckets(
        **limits, first_bucket_size=float(options["firstBucketSize"]), ratio=float(options["ratio"])
    )


@checks("kind", "options", stem="histogram")
def bucket_options(case):
    expect = case["expect"]
    try:
        buckets = buckets_of(case["options"])
    except BucketOptionsError as error:
        return None if expect.get("error") else f"refused: {error}"
    if expect.get("error"):
        return f"not refused: {expect['error']}"
    got = {
        "numBuckets": buckets.count,
        "epsilon": buckets.epsilon,
        "bucketStarts": buckets.starts.tolist(),
        **{name: _found(buckets, expect[name]) for name in ("findBucketAtBoundaries", "findBucket")},
        **_amounts(buckets, expect),
    }
    return differences(as_doubles({key: expect[key] for key in expect if key != "error"}), as_doubles(got))


def _found(buckets: Buckets, pairs: list[list[float]]) -> list[list[float]]:
    values = [float(value) for value, _ in pairs]
    found = buckets.find_buckets(np.array(values)).tolist()
    return [[value, bucket] for value, bucket in zip(values, found, strict=True)]


def _amounts(buckets: Buckets, expect: dict[str, Any]) -> dict[str, Any]:
    got: dict[str, Any] = {}
    for name, per_amount in (("smallestMillicoresInBucket", 1000.0), ("smallestBytesInBucket", 1.0)):
        if name in expect:
            got[name] = [_smallest(buckets, bucket, per_amount) for bucket in range(buckets.count)]
    for name, convert in (
        ("bucketStartMillicores", millicores_from_cores),
        ("bucketStartBytes", amount_from_float),
    ):
        if name in expect:
            got[name] = [convert(start) for start in buckets.starts.tolist()]
    return got


def _smallest(buckets: Buckets, bucket: int, per_amount: float) -> int | None:
    low, high = 0, int(buckets.max_value * per_amount * 2)
    while low < high:
        middle = (low + high) // 2
        if _find_bucket(buckets, middle / per_amount) >= bucket:
            high = middle
        else:
            low = middle + 1
    return low if _find_bucket(buckets, low / per_amount) == bucket else None


def _find_bucket(buckets: Buckets, value: float) -> int:
    return int(buckets.find_buckets(np.array([value]))[0])


@checks("kind", "sequence", stem="histogram")
def sequence(case):
    half_life = case["halfLifeSeconds"]
    matrix = HistogramMatrix(
        buckets_of(case["options"]), None if half_life is None else nanoseconds(half_life), block_columns=4
    )
    histograms = {name: Histogram(matrix) for name in ("a", "b")}
    for number, step in enumerate(case["ops"]):
        wrong = _step(step, histograms, matrix)
        if wrong:
            return f"ops[{number}] {step['op']}: {wrong}"
    got = {name: dump_histogram(histograms[name]) for name in case["expect"]}
    return differences(as_doubles(case["expect"]), as_doubles(got))


def _step(step: dict[str, Any], histograms: dict[str, Histogram], matrix: HistogramMatrix) -> str | None:
    if step["op"] == "new":
        histograms[step["h"]] = Histogram(matrix)
        return None
    histogram = histograms[step["h"]]
    match step["op"]:
        case "add" | "subtract":
            act = histogram.add if step["op"] == "add" else histogram.subtract
            act(float(step["value"]), float(step["weight"]), parse_ns(step["time"]))
        case "merge":
            histogram.merge(histograms[step["other"]])
        case "equals":
            return differences(step["expect"], equals(histogram, histograms[step["other"]]))
        case "save":
            return differences(saved(step["expect"]), saved(histogram.save()))
        case "load":
            refusal = histogram.load(wire.convert(step["checkpoint"], HistogramCheckpoint))
            return differences(step["expect"].get("error"), refusal)
        case "dump":
            return differences(as_doubles(step["expect"]), as_doubles(dump_histogram(histogram)))
        case unknown:
            return f"no such operation: {unknown}"
    return None
