"""Pods that came and went leave little behind, whatever their parts look like."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.operator.pods.test_decoder import pod_json
from trimtab.model.json import wire
from trimtab.operator.pods.decoder import PodDecoder, PodReducer
from trimtab.operator.pods.interning import MAX_VALUE_BYTES, InternTable, size_of_text
from trimtab.operator.pods.whole_pods import WholePodDecoder
from trimtab.operator.pods.wire import PodWire, WholePodWire

MiB = 1024 * 1024

Decode = Callable[[bytes], object]


def slim() -> Decode:
    decode = PodDecoder(pod_level_resources=True)
    return lambda text: decode(wire.decode(text, PodWire))


def whole() -> Decode:
    decode, reduce = WholePodDecoder(), PodReducer(pod_level_resources=True)
    return lambda text: reduce(decode(wire.decode(text, WholePodWire)))


def large_part(part: str, number: int, size: int) -> dict[str, Any]:
    """Return a pod whose `part` is its own and takes about `size` bytes of JSON."""
    names = [f"example.com/n{number}-{index}" for index in range(max(1, size // 100))]
    texts = dict.fromkeys(names, "x" * 63)
    amounts = dict.fromkeys(names, "123456789")
    container = {"name": "main", "resources": {"requests": amounts}}
    owner = {"apiVersion": "v1", "kind": "ReplicaSet", "uid": "u"}
    pod = pod_json(number)
    match part:
        case "labels" | "annotations":
            pod["metadata"][part] = texts
        case "read annotations":
            pod["metadata"]["annotations"] = {f"vpaCpuStartupBoost/{name}": "x" for name in names}
        case "owners":
            pod["metadata"]["ownerReferences"] = [owner | {"name": name} for name in names]
        case "containers":
            pod["spec"]["containers"] = [{"name": name, "resources": {}} for name in names]
        case "resources":
            pod["spec"]["containers"] = [container]
        case "sidecars":
            pod["spec"]["initContainers"] = [container | {"restartPolicy": "Always"}]
        case "overhead":
            pod["spec"]["overhead"] = amounts
        case "affinity":
            match_fields = [{"key": name, "operator": "In", "values": ["x"]} for name in names]
            terms = {"nodeSelectorTerms": [{"matchFields": match_fields}]}
            pod["spec"]["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            }
        case "status":
            actual = {"name": "main", "resources": {"requests": amounts}, "allocatedResources": amounts}
            pod["status"]["containerStatuses"] = [actual]
    return pod


PARTS = ["labels", "annotations", "read annotations", "owners", "containers", "resources", "sidecars", "overhead",
         "affinity", "status"]  # fmt: skip


def kept_bytes(decode: Decode, pods: list[bytes]) -> int:
    """Return the bytes that stay after half of the pods were decoded and dropped.

    The lower half counts, because Python's table of interned names may grow once meanwhile.
    """
    half, taken = len(pods) // 2, []
    tracemalloc.start()
    for part in (pods[:1], pods[:half], pods[half:]):
        for text in part:
            decode(text)
        gc.collect()
        taken.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return min(taken[1] - taken[0], taken[2] - taken[1])


@pytest.mark.parametrize("decoder", [slim, whole])
@pytest.mark.parametrize("part", PARTS)
def test_of_large_pods_that_come_one_after_another_nothing_is_kept(part, decoder):
    """500 pods with 250 KB of annotations, never 2 at once, took 265 MiB."""
    pods = [wire.encode(large_part(part, number, 50_000)) for number in range(50)]
    assert kept_bytes(decoder(), pods) < 0.25 * MiB


@settings(max_examples=20, deadline=None)
@given(part=st.sampled_from(PARTS), size=st.sampled_from([100, 1_000, 4_000]), data=st.data())
def test_a_table_keeps_no_more_bytes_than_it_estimates(part, size, data):
    """The limits hold for estimates, so an estimate must not be below the bytes that are really kept."""
    decoder = data.draw(st.sampled_from([slim, whole]))
    decode, estimates = decoder(), 0

    def count(self: InternTable[Any, Any], key: Any, source: Any) -> Any:
        nonlocal estimates
        size = self._size_of(key, source)
        estimates += size if size <= MAX_VALUE_BYTES else 0
        return remember(self, key, source)

    remember = InternTable._remember
    pods = [wire.encode(large_part(part, number, size)) for number in range(10, 60)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InternTable, "_remember", count)
        assert kept_bytes(decode, pods) <= estimates + 32 * 1024


class Model:
    """What a table may keep: the texts of the last uses, up to twice its bounds."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.table: InternTable[bytes, bytes] = InternTable(bytes, most=most, most_bytes=most_bytes)
        self.most, self.most_bytes = most, most_bytes

    def use(self, text: bytes) -> None:
        assert self.table.of(text, text) == text
        kept = [*self.table._recent, *self.table._older]
        assert len(kept) <= 2 * self.most
        assert sum(map(size_of_text, kept)) <= 2 * self.most_bytes
        assert all(sys.getsizeof(key) <= MAX_VALUE_BYTES for key in kept)


LARGEST = b"x" * ((MAX_VALUE_BYTES - size_of_text(b"")) // 2)
"""The longest text that a table keeps."""

BOUNDS = {"most": st.integers(1, 5), "most_bytes": st.integers(MAX_VALUE_BYTES, 3 * MAX_VALUE_BYTES)}
LENGTHS = [1, 100, 5_000, 7_000, len(LARGEST), len(LARGEST) + 1, 9_000, 100_000]
TEXTS = st.lists(
    st.builds(
        lambda letter, size: bytes([letter]) * size, st.sampled_from(b"abcdef"), st.sampled_from(LENGTHS)
    ),
    max_size=60,
)


@given(**BOUNDS, texts=TEXTS)
def test_a_table_keeps_at_most_twice_its_bounds(most, most_bytes, texts):
    model = Model(most, most_bytes)
    for text in texts:
        model.use(text)


@given(**BOUNDS, texts=TEXTS)
@example(most=1, most_bytes=MAX_VALUE_BYTES, texts=[LARGEST, LARGEST])
def test_a_table_reads_no_text_again_while_its_bounds_cover_what_came_since(most, most_bytes, texts):
    """A table that forgot all of it would keep its bounds as well."""
    read: list[bytes] = []
    table: InternTable[bytes, None] = InternTable(read.append, most=most, most_bytes=most_bytes)
    since: dict[bytes, set[bytes]] = {}
    """The texts that a table keeps and that were used after each text."""
    for text in texts:
        read.clear()
        table.of(text, text)
        between = since.get(text, set())
        is_small = size_of_text(text) <= MAX_VALUE_BYTES
        is_covered = len(between) <= most and sum(map(size_of_text, between)) <= most_bytes
        if text in since and is_small and is_covered:
            assert not read
        for others in since.values():
            others |= {text} if is_small else set()
        since[text] = set()


def test_a_table_is_full_only_beyond_its_bytes():
    """Two texts of exactly the bound are both remembered, and a third makes room."""
    read: list[bytes] = []
    size = size_of_text(b"aa")
    table: InternTable[bytes, None] = InternTable(read.append, most=100, most_bytes=2 * size)
    for text in (b"aa", b"bb"):
        table.of(text, text)
    assert len(table._recent) == 2
    table.of(b"cc", b"cc")
    assert (len(table._recent), len(table._older)) == (1, 2)
    table.of(b"aa", b"aa")
    assert read == [b"aa", b"bb", b"cc"]
