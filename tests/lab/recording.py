"""The real kube-apiserver's answers to the scripts, kept in a file; renew them with

    K8S=1.36 python -m tests.lab.recording
    K8S=1.37 python -m tests.lab.recording

which needs the real programs (see `make test-real`). Those of 1.36 are kept whole, and beside them the answers
that 1.37 gives otherwise, by the number of the step. The lab is held to both.
"""

import asyncio
import json
import ssl
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.lab.answers import Reply, Script, Send, Step, encode_body, play, request_headers
from tests.lab.scripts import SCRIPTS
from tools.peers import releases
from tools.peers.cluster import RealCluster

FILE = Path(__file__).parent / "recorded_answers.json"
SINCE_1_37 = Path(__file__).parent / "recorded_answers_1_37.json"
Answers = dict[str, list[dict[str, Any]]]
CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "disruption-controller")


def sender(cluster: RealCluster) -> Send:
    """Return the function that sends steps to a real server."""
    context = ssl.create_default_context(cafile=str(cluster.directory / "ca.crt"))
    token = cluster.tokens["admin"]

    async def send(step: Step, namespace: str, kept: str) -> Reply:
        url = cluster.url + step.path.replace("{ns}", namespace) + (f"?{step.query}" if step.query else "")
        body = encode_body(step, namespace, kept) or None
        headers = request_headers(step, token, namespace, kept)
        request = urllib.request.Request(url, body, headers, method=step.method)

        def call() -> Reply:
            try:
                with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                    return Reply(answer.status, answer.read())
            except urllib.error.HTTPError as refusal:
                return Reply(refusal.code, refusal.read())

        return await asyncio.to_thread(call)

    return send


def record(cluster: RealCluster, script: Script, number: int) -> list[dict[str, Any]]:
    """Play one script on a real cluster."""
    answers = asyncio.run(play(script, sender(cluster), asyncio.sleep, f"script-{number}"))
    return [without_progress(step, answer) for step, answer in zip(script.steps, answers, strict=True)]


def without_progress(step: Step, answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out the bookmarks that only say how far the server has read, where the step allows bookmarks.

    The server sends one when an object of that kind was written in any namespace while the watch was open: what else
    goes on in the cluster decides, not the script. The lab has nothing else going on and is held to sending none.
    """
    if "allowWatchBookmarks=true" not in step.query or not isinstance(answer["body"], list):
        return answer
    return answer | {"body": [event for event in answer["body"] if not _is_progress(event)]}


def _is_progress(event: dict[str, Any]) -> bool:
    return event["type"] == "BOOKMARK" and set(event["object"]["metadata"]) == {"resourceVersion"}


def recorded() -> Answers:
    """Return the kept answers of every script, those of 1.36."""
    answers: Answers = json.loads(FILE.read_text(encoding="utf-8"))
    return answers


def recorded_of_the_release() -> Answers:
    """Return the answers of the release of Kubernetes that runs."""
    return recorded() if releases.before("1.37") else answers_of_1_37()


def answers_of_1_37() -> Answers:
    """Return the answers of Kubernetes 1.37."""
    answers = recorded()
    for name, steps in json.loads(SINCE_1_37.read_text(encoding="utf-8")).items():
        for number, answer in steps.items():
            answers[name][int(number)] = answer
    return answers


def differences(base: Answers, newer: Answers) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the newer answers that differ, by script and number of the step."""
    found = {
        name: {str(number): answer for number, answer in enumerate(steps) if answer != base[name][number]}
        for name, steps in newer.items()
    }
    return {name: steps for name, steps in found.items() if steps}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster:
        cluster.start_controllers(CONTROLLERS)
        answers = {script.name: record(cluster, script, number) for number, script in enumerate(SCRIPTS)}
    if releases.before("1.37"):
        FILE.write_text(_listed(answers), encoding="utf-8")
    else:
        SINCE_1_37.write_text(
            json.dumps(differences(recorded(), answers), indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )


def _listed(answers: Answers) -> str:
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(step, sort_keys=True) for step in steps) + "\n]"
        for name, steps in answers.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
