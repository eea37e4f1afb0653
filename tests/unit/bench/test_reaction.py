"""The simulated kubelet counts CPU as a node does, and the table compares medians of the same run."""

import random
import re
import ssl
import urllib.request

import pytest
import trustme

from bench._kubelet import Kubelet, Usage
from bench.picture import goals
from bench.picture.results import Record, Results
from bench.reaction import LOAD, PERIOD, figures_of, moments_of, rows_of

POD = ("shop", "web-1")
CPU = re.compile(
    r'^container_cpu_usage_seconds_total\{container="main",namespace="shop",pod="web-1"\} (\S+) (\d+)$',
    re.MULTILINE,
)


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def cpu_of(usage: Usage) -> tuple[float, int]:
    found = CPU.search(usage.report())
    assert found is not None
    return float(found[1]), int(found[2])


def test_the_cpu_counter_grows_by_the_usage_that_is_set():
    now = Now()
    usage = Usage("main", now)
    usage.use([POD], 60)
    first, _ = cpu_of(usage)
    assert first == pytest.approx(3600 * 0.06), "it has run for an hour"
    now.seconds += 10
    usage.use([POD], 120)
    now.seconds += 5
    second, moment = cpu_of(usage)
    assert second - first == pytest.approx(10 * 0.06 + 5 * 0.12)
    assert moment == 1_000_015_000


def test_a_kubelet_serves_the_page_over_tls(tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    usage = Usage("main")
    usage.use([POD], 60)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with Kubelet(usage, certificate, key) as kubelet:
        url = f"https://127.0.0.1:{kubelet.port}/metrics/resource"
        with urllib.request.urlopen(url, context=context, timeout=10) as answer:
            text = answer.read().decode()
    assert CPU.search(text)
    assert "node_memory_working_set_bytes" in text


def test_loads_come_at_random_moments_of_one_period_and_repeat_with_the_seed():
    moments = moments_of(LOAD, random.Random(1))
    assert moments == moments_of(LOAD, random.Random(1))
    assert len({moment.names.namespace for moment in moments}) == 30
    assert [moment.at for moment in moments] == sorted(moment.at for moment in moments)
    assert all(0 <= moment.at <= PERIOD for moment in moments)


def test_the_row_of_ours_has_the_ratio_to_the_peer_of_the_same_run():
    peer, ours = rows_of("idle", {"defaults": [10.0, 20.0, 30.0], "ours": [5.0, 10.0, 30.0]})
    assert "ratio of medians" not in peer
    assert (ours["ratio of medians"], ours["ratio of means"]) == ("0.50", "0.75")


def test_a_contender_that_never_scaled_has_no_ratio():
    _, ours = rows_of("idle", {"defaults": [10.0], "ours": []})
    assert "ratio of medians" not in ours
    assert ours["scaled"] == 0


def test_the_goal_reads_the_ratio_of_the_medians():
    found = {"idle": {"defaults": [10.0, 20.0], "ours": [6.0]}, "busy": {"defaults": [10.0], "ours": []}}
    figures = figures_of(found)
    results = Results([Record("reaction", "ours", 0, "now", "", figures)])
    parts = {part.key: part.measure(results) for part in goals.PARTS if part.goal == 17}
    idle = parts["reaction/idle"]
    assert idle is not None
    assert idle.value == pytest.approx(0.4)
    assert (idle.ours, idle.peer) == ("6.0 s", "15.0 s")
    assert parts["reaction/busy"] is None
