"""The first run: `make up` typed in a clone, its five stories as it tells them, its page, kubectl, and its end."""

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from kubernetes import client, config, watch

from tests.firstrun.started import ROOT, SECONDS, make_up

WATCHES = 40


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    kubeconfig = tmp_path_factory.mktemp("up") / "kubeconfig"
    with make_up("--speed 40x", f"--write-kubeconfig {kubeconfig}") as running:
        running.until("Ctrl-C ends it")
        yield running


@pytest.fixture(scope="module")
def api(up):
    """Return a foreign client on the printed KUBECONFIG: what it sees, anybody sees."""
    return config.new_client_from_config(up.told(r"export KUBECONFIG=(\S+)"))


def events(list_objects, namespace):
    """Follow objects for as long as it takes: the server ends a watch by its own clock, which runs fast here."""
    for _ in range(WATCHES):
        yield from watch.Watch().stream(list_objects, namespace, timeout_seconds=SECONDS)


def until(api, namespace, holds, of=2):
    """Follow the sizes of a namespace's Deployments until they are as told; return every state on the way."""
    sizes: dict[str, int] = {}
    states = []
    for event in events(client.AppsV1Api(api).list_namespaced_deployment, namespace):
        found = event["object"]
        sizes[found.metadata.name] = found.spec.replicas
        states.append(dict(sizes))
        # The first events tell what is there, one by one: both workloads of a story have to be known.
        if holds(sizes) and len(sizes) >= of:
            return states
    raise AssertionError(f"never came about in {namespace}: {states[-3:]}")


def test_a_job_with_the_same_labels_moves_only_the_workload_that_counts_by_label(api):
    states = until(api, "same-labels", lambda sizes: sizes.get("shop-by-label") == 8)
    assert max(state.get("shop-by-owner", 0) for state in states) <= 2


def test_the_tight_tolerance_acts_where_the_default_does_not(api):
    states = until(api, "tolerance", lambda sizes: sizes.get("api-5-percent") == 11)
    assert states[-1]["api-default"] == 10


def test_the_queue_worker_goes_to_zero_and_back(api):
    assert until(api, "to-zero", lambda sizes: sizes.get("mailer") == 0, of=1)[-1] == {"mailer": 0}
    assert until(api, "to-zero", lambda sizes: sizes.get("mailer", 0) > 0, of=1)[-1]["mailer"] > 0


def test_one_series_of_a_metric_moves_its_own_worker_only(api):
    states = until(api, "one-series", lambda sizes: sizes.get("images") == 6)
    assert states[-1]["videos"] == 1


def test_the_leaders_size_goes_with_the_lead(api):
    """The pod that leads has the leader's size without a restart, and so has the next one that leads."""
    grown: set[str] = set()
    pods = client.CoreV1Api(api).list_namespaced_pod
    for event in events(pods, "roles"):
        pod = event["object"]
        requests = pod.spec.containers[0].resources.requests or {}
        millicores = (
            int(requests.get("cpu", "0m").removesuffix("m")) if requests.get("cpu", "").endswith("m") else 0
        )
        if (pod.metadata.labels or {}).get("role") == "leader" and millicores >= 500:
            assert pod.status.container_statuses[0].restart_count == 0
            grown.add(pod.metadata.name)
        if len(grown) == 2:
            return
    raise AssertionError(f"only {grown} got the leader's size")


def ask(up, path, *, body=None, token=None):
    base, _, printed = up.told(r"dashboard: (\S+)").partition("#token=")
    headers = {"authorization": f"Bearer {printed if token is None else token}"}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers |= {"content-type": "application/json", "origin": base.rstrip("/")}
    request = urllib.request.Request(base + path, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.loads(answer.read())


def test_the_printed_page_shows_every_autoscaler_and_opens_for_nobody_else(up):
    found = ask(up, "api/overview")
    assert {row["name"] for row in found["horizontal"]} == {
        "shop-by-label", "shop-by-owner", "api-5-percent", "api-default", "mailer", "images", "videos",
    }  # fmt: skip
    assert {row["name"] for row in found["vertical"]} == {"db", "db-leader"}
    with pytest.raises(urllib.error.HTTPError, match="401") as refusal:
        ask(up, "api/overview", token="guessed")
    refusal.value.close()


def test_a_person_turns_the_load_up_and_the_workload_follows(up, api):
    loads = {one["name"]: one["factor"] for one in ask(up, "api/loads")["loads"]}
    name = next(name for name in loads if "videos" in name)
    ask(up, "api/loads", body={"name": name, "factor": 8})
    assert until(api, "one-series", lambda sizes: sizes.get("videos", 0) > 1)[-1]["videos"] > 1


def test_every_command_that_it_proposes_can_be_typed(up, tmp_path):
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here; the commands that are proposed for it are not typed")
    environment = {
        "HOME": str(tmp_path),  # kubectl keeps what it discovers there
        "KUBECONFIG": up.told(r"export KUBECONFIG=(\S+)"),
        "TRIMTAB_OPERATOR": up.told(r"export TRIMTAB_OPERATOR=(\S+)"),
        "PATH": up.told(r'export PATH="([^:]+):') + ":" + os.environ["PATH"],
    }
    proposed = [line.partition("try: ")[2] for line in up.printed if "try: " in line]
    assert len(proposed) == 5
    for command in proposed:
        # A watch never ends by itself; without -w the same command shows the same once.
        done = subprocess.run(
            command.replace(" -w", ""),
            shell=True,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip(), command


def test_a_dashboard_of_ones_own_opens_on_the_same_cluster_and_only_looks(up, tmp_path):
    command = [ROOT / ".venv/bin/trimtab", "dashboard", "--kubeconfig", up.told(r"export KUBECONFIG=(\S+)")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as looking:
        assert looking.stdout is not None
        base, _, token = looking.stdout.readline().partition("dashboard: ")[2].strip().partition("#token=")
        request = urllib.request.Request(base + "api/overview", headers={"authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            found = json.loads(answer.read())
        looking.send_signal(signal.SIGINT)
        assert looking.wait(timeout=SECONDS) == 0
    assert found["program"]["notices"][0]["text"].startswith("This page only looks.")


def test_the_port_can_be_chosen_and_a_taken_one_is_named(up, tmp_path):
    taken = up.told(r"Trimtab is up: https://127\.0\.0\.1:(\d+)")
    with make_up(f"--port {taken}", f"--write-kubeconfig {tmp_path / 'k'}") as second:
        second.until(rf"cannot listen on port {taken}: .*\(try --port 0\)")
        assert second.process.wait(timeout=SECONDS) != 0


def test_ctrl_c_ends_it_with_a_word_and_leaves_nothing_behind(tmp_path):
    with make_up("--scenario tolerance", f"--write-kubeconfig {tmp_path / 'k'}") as running:
        running.until("Ctrl-C ends it")
        assert not any("namespace roles" in line for line in running.printed)
        port = running.told(r"Trimtab is up: https://127\.0\.0\.1:(\d+)")
        printed = running.interrupt()
        assert "everything was in memory and is gone now" in printed
        assert "Traceback" not in printed
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(f"https://127.0.0.1:{port}/", timeout=5)
