"""Measure what a newcomer waits for: `python -m tools.first_scale [REPOSITORY]`, or `make first-scale`.

Clones into an empty directory, types `make up` there, and stops the clock when a workload was scaled, asked of the API
server that was printed. Then a second time, with everything set up, until it says that it is up.
"""

import argparse
import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
GOAL, MOONSHOT, AGAIN = 60.0, 30.0, 5.0


def main() -> int:
    """Print the times and return whether they are within the goals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", nargs="?", default=str(ROOT))
    parser.add_argument("--empty-cache", action="store_true", help="download everything, as on a new machine")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trimtab-first-") as place:
        clone = Path(place) / "trimtab"
        # A newcomer's make is not the child of ours.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "ARGS"))
        }
        if asked.empty_cache:
            environment |= {
                "UV_CACHE_DIR": f"{place}/uv",
                "PIP_NO_CACHE_DIR": "1",
                "XDG_CACHE_HOME": f"{place}/cache",
            }
        began = time.monotonic()
        subprocess.run(["git", "clone", "-q", asked.repository, str(clone)], check=True)
        cloned = time.monotonic() - began
        first = first_scaled(clone, environment, began)
        again = first_scaled(clone, environment, time.monotonic(), until_up=True).up
    print(f"clone {cloned:.1f} s, up {first.up:.1f} s, first scaled workload {first.scaled:.1f} s")
    print(f"  {first.what}")
    print(f"goal {GOAL:.0f} s, moonshot {MOONSHOT:.0f} s; second start {again:.1f} s, goal {AGAIN:.0f} s")
    return 0 if first.scaled <= GOAL and again <= AGAIN else 1


@dataclass(frozen=True)
class Times:
    """Seconds until it said that it is up, until the first workload was scaled, and which one that was."""

    up: float
    scaled: float = 0.0
    what: str = ""


def first_scaled(clone: Path, environment: dict[str, str], began: float, *, until_up: bool = False) -> Times:
    """Type `make up` and wait for the first scaled workload, or only until it is up."""
    process = subprocess.Popen(
        ["make", "up"], cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        kubeconfig = _until_up(process)
        up = time.monotonic() - began
        if until_up:
            return Times(up)
        what = _rescaled(kubeconfig)
        return Times(up, time.monotonic() - began, what)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()


def _until_up(process: "subprocess.Popen[str]") -> str:
    """Read what is printed until everything is there; return the kubeconfig that it names."""
    assert process.stdout is not None
    kubeconfig, printed = "", []
    for line in process.stdout:
        printed.append(line)
        found = re.search(r"export KUBECONFIG=(\S+)", line)
        kubeconfig = found[1] if found else kubeconfig
        if "Ctrl-C ends it" in line:
            return kubeconfig
    raise SystemExit("".join([*printed[-20:], "make up ended before it was up"]))


def _rescaled(kubeconfig: str) -> str:
    """Ask the API server until it tells of a workload that was scaled."""
    config = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)
    request = urllib.request.Request(
        f"{cluster['server']}/api/v1/events?fieldSelector=reason%3DSuccessfulRescale",
        headers={"authorization": f"Bearer {user['token']}"},
    )
    while True:
        with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
            for one in json.load(answer)["items"]:
                about = one["involvedObject"]
                return f"{about['namespace']}/{about['name']}: {one['message']}"
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
