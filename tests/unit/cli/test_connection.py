"""Commands end in one line when the server cannot be reached or refuses them; none waits for ever."""

import json
import logging
import socket
from pathlib import Path

import pytest

from tests.unit.cli.api_server import answering, kubeconfig, refusing
from trimtab.cli import answer
from trimtab.cli.explain import hpas

HPA_KIND = "HorizontalPodAutoscaler"
COMMANDS = (["explain", "hpa/web"], ["explain", "vpa/web"], ["explain", "pod/web-1"], ["top"])


@pytest.fixture(autouse=True)
def _no_operator(monkeypatch):
    monkeypatch.delenv("TRIMTAB_OPERATOR", raising=False)


@pytest.fixture(autouse=True)
def _shown_warnings():
    """Show log lines on standard error, as Python does outside of tests."""
    assert logging.lastResort is not None
    logging.getLogger().addHandler(logging.lastResort)
    yield
    logging.getLogger().removeHandler(logging.lastResort)


def ask(command, folder, port, capsys, *options):
    """Return the exit code and the lines on standard error."""
    code = answer([*command, "-n", "shop", "--kubeconfig", kubeconfig(folder, port), *options])
    told = capsys.readouterr()
    assert told.out == ""
    return code, told.err.splitlines()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("code", "reason"), [(401, "Unauthorized"), (403, "Forbidden")])
def test_a_command_without_rights_ends_in_one_line(command, code, reason, tmp_path, capsys):
    """`explain hpa/web` with a wrong token waited for ever; with 403 it said that there is no such HPA."""
    with refusing(code, reason) as port:
        exit_code, said = ask(command, tmp_path, port, capsys)
    assert exit_code == 2
    assert len(said) == 1
    assert f"{reason} ({code})" in said[0]
    assert {401: "log in again", 403: "get that right"}[code] in said[0]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_ends_in_one_line_where_nobody_listens(command, tmp_path, capsys):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        code, said = ask(command, tmp_path, bound.getsockname()[1], capsys)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("trimtab: cannot connect to 127.0.0.1:")
    assert said[0].endswith("Connection refused (is the cluster up, and is this the right context?)")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("timeout", ["200ms", "1"])
def test_a_silent_server_is_given_up_after_the_request_timeout(command, timeout, tmp_path, capsys):
    """The server accepts connections and answers none."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        code, said = ask(command, tmp_path, silent.getsockname()[1], capsys, f"--request-timeout={timeout}")
    assert code == 2
    assert len(said) == 1
    assert "sent no answer in time" in said[0]


PAGE = "<html><head><title>Sign in</title></head></html>"
LOGIN = (
    "(probably a login page or a proxy in front of the cluster; log in again, or correct the server's address"
)
DOWN = "(a proxy or load balancer probably answers in place of the API server, which may be down; try again later"
OTHER = "(probably another program or a proxy; correct the server's address in the kubeconfig)"


@pytest.mark.parametrize("command", [*COMMANDS, ["shards"]], ids=" ".join)
@pytest.mark.parametrize(
    ("answer_of_all", "text", "hint"),
    [
        pytest.param((502, "text/html", PAGE), "answers 502 with an HTML page", DOWN, id="a bad gateway"),
        pytest.param(
            (503, "text/plain", "down"), "answers 503 with no Kubernetes Status", DOWN, id="no backend"
        ),
        pytest.param((200, "text/html", PAGE), "answers 200 with an HTML page", LOGIN, id="a login page"),
        pytest.param((401, "text/html", PAGE), "answers 401 with an HTML page", LOGIN, id="a refusing proxy"),
        pytest.param(
            (302, "text/html", PAGE, {"Location": "https://login.example.com/"}),
            "redirects to https://login.example.com/, which an API server never does",
            LOGIN,
            id="a redirect",
        ),
        pytest.param((404, "text/html", PAGE), "answers 404 with an HTML page", OTHER, id="a web server"),
        pytest.param(
            (200, "text/plain", "hi"), "answers 200 with something else than JSON", LOGIN, id="text"
        ),
    ],
)
def test_an_answer_of_another_program_is_one_line_with_a_hint(
    command, answer_of_all, text, hint, tmp_path, capsys
):
    """The line quoted HTML, or said of a web server's 404 that there is no autoscaler."""
    with answering(*answer_of_all) as port:
        options = [] if "shards" in command else ["-n", "shop"]
        code = answer([*command, *options, "--kubeconfig", kubeconfig(tmp_path, port)])
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith(f"trimtab: http://127.0.0.1:{port} {text} {hint}")


def test_a_text_of_the_api_server_itself_is_no_answer_of_another_program(tmp_path, capsys):
    """It answers so where a group is not served."""
    with answering(404, "text/plain; charset=utf-8", "404 page not found\n") as port:
        code, said = ask(["top"], tmp_path, port, capsys)
    assert code == 0
    assert "there is no autoscaler in namespace shop" in said[0]


@pytest.mark.parametrize("timeout", ["-1s", "soon", "1.5"])
def test_a_timeout_that_is_none_is_refused(timeout, tmp_path, capsys):
    code, said = ask(["top"], tmp_path, 1, capsys, f"--request-timeout={timeout}")
    assert code == 2
    assert len(said) == 1
    assert "--request-timeout" in said[0]


LEASES = "/apis/coordination.k8s.io/v1/namespaces/trimtab/leases"
OWN = "/apis/autoscaling.trimtab.dev/v2"
HPA = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "1"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}],
    },
}
EMPTY = {"metadata": {"resourceVersion": "1"}}
ONE_HPA = {
    LEASES: EMPTY,
    f"{OWN}/namespaces/shop/horizontalpodautoscalers": {"metadata": {"resourceVersion": "1"}, "items": [HPA]},
}
DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {"name": group, "versions": [{"groupVersion": f"{group}/{version}", "version": version}]}
            for group, version in (("autoscaling.trimtab.dev", "v2"), ("apps", "v1"))
        ],
    },
    OWN: {"resources": [{"name": "horizontalpodautoscalers", "namespaced": True, "kind": HPA_KIND}]},
    "/apis/apps/v1": {
        "resources": [
            {"name": "deployments", "namespaced": True, "kind": "Deployment"},
            {"name": "deployments/scale", "namespaced": True, "kind": "Scale"},
        ]
    },
}


def test_a_server_that_fails_later_is_given_up_too(tmp_path, capsys, monkeypatch):
    """The HPA can be read, and the pods of its namespace never arrive."""
    monkeypatch.setattr(hpas, "LISTS_SECONDS", 0.2)
    with refusing(500, "InternalError", ONE_HPA) as port:
        code, said = ask(["explain", "hpa/web"], tmp_path, port, capsys)
    assert code == 2
    assert len(said) == 1
    assert "could not be read within" in said[-1]
    assert "InternalError (500)" in said[-1]


def test_what_the_user_may_not_read_is_named_beside_the_decision(tmp_path, capsys):
    """It was a warning of the log."""
    with refusing(403, "Forbidden", {**ONE_HPA, **DISCOVERY}) as port:
        where = kubeconfig(tmp_path, port)
        assert answer(["explain", "hpa/web", "-n", "shop", "--kubeconfig", where]) == 0
    told = capsys.readouterr()
    assert "not readable: listing pods shop: Forbidden (403)\n" in told.out
    assert "not readable: listing deployments shop: Forbidden (403)\n" in told.out
    assert told.err == ""


EXEC = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/plugin"}}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        pytest.param("{", [], "not YAML", id="not YAML"),
        pytest.param(None, [], "cannot read the kubeconfig", id="no file"),
        pytest.param("", [], "has no contexts", id="empty"),
        pytest.param({}, ["--context=nope"], "no context 'nope'", id="unknown context"),
        pytest.param({"user": EXEC}, [], "/no/such/plugin", id="no plugin"),
        pytest.param({"scheme": "https"}, [], "TLS with https://127.0.0.1", id="TLS fails"),
    ],
)
def test_an_error_that_is_not_the_clusters_does_not_ask_whether_it_is_up(
    command, content, options, words, tmp_path, capsys
):
    """Each of them ended in "is the cluster up, and is this the right context?"."""
    with refusing(401, "Unauthorized") as port:
        file = Path(kubeconfig(tmp_path, port))
        if content is None:
            file.unlink()
        elif isinstance(content, str):
            file.write_text(content)
        else:
            config = json.loads(file.read_text())
            config["users"][0]["user"] = content.get("user", {})
            server = f"{content.get('scheme', 'http')}://127.0.0.1:{port}"
            config["clusters"][0]["cluster"]["server"] = server
            file.write_text(json.dumps(config))
        code = answer([*command, "-n", "shop", "--kubeconfig", str(file), *options])
    said = capsys.readouterr().err
    assert code == 2
    assert words in said
    assert "is the cluster up" not in said


@pytest.mark.parametrize(
    ("options", "place"), [([], "staging"), (["-n", "shop"], "shop")], ids=["the context's", "named"]
)
def test_an_hpa_that_is_missing_is_told_with_its_namespace(options, place, tmp_path, capsys):
    """Without -n the message said "in namespace of the context"."""
    own = f"{OWN}/namespaces/{place}/horizontalpodautoscalers"
    answers = {LEASES: EMPTY, own: EMPTY, **DISCOVERY}
    with refusing(404, "NotFound", answers) as port:
        file = Path(kubeconfig(tmp_path, port))
        config = json.loads(file.read_text())
        config["contexts"][0]["context"]["namespace"] = "staging"
        file.write_text(json.dumps(config))
        code = answer(["explain", "hpa/images", "--kubeconfig", str(file), *options])
    assert code == 1
    assert f"there is no HPA 'images' in namespace {place} (" in capsys.readouterr().err


def test_top_says_one_thing_about_an_empty_cluster(tmp_path, capsys):
    """It said of no autoscaler which of them the operator acts on."""
    answers = {f"{OWN}/namespaces/shop/horizontalpodautoscalers": EMPTY}
    with refusing(404, "NotFound", answers) as port:
        code, said = ask(["top"], tmp_path, port, capsys)
    assert code == 0
    assert said == ["there is no autoscaler in namespace shop"]


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        pytest.param(["top"], 0, "there is no autoscaler in namespace shop", id="top"),
        pytest.param(["explain", "hpa/web"], 1, "there is no HPA 'web' in namespace shop", id="an HPA"),
        pytest.param(["explain", "vpa/web"], 1, "there is no VPA in namespace shop", id="a VPA"),
        pytest.param(["explain", "pod/web"], 1, "there is no VPA in namespace shop", id="a pod"),
    ],
)
def test_a_cluster_without_our_crds_is_told_with_what_to_type(command, code, words, tmp_path, capsys):
    """A newcomer was told that there is no autoscaler, and to look with a kubectl command that fails."""
    groups = {"/api": DISCOVERY["/api"], "/apis": {"kind": "APIGroupList", "groups": []}}
    with refusing(404, "NotFound", {LEASES: EMPTY, **groups}) as port:
        status, said = ask(command, tmp_path, port, capsys)
    assert status == code
    (line,) = said
    assert words in line
    assert (
        "Trimtab's CRDs are not installed in this cluster (install them with: trimtab install --only=crds | kubectl"
        in line
    )
