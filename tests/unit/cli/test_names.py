"""A shell completes the names of namespaces and objects from the cluster, and proposes nothing without one."""

import json

import pytest
from click.shell_completion import ShellComplete

from tests.unit.cli.api_server import kubeconfig, refusing
from trimtab import cli

OWN = "/apis/autoscaling.trimtab.dev/v2"


def listing(*names):
    return {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": name}} for name in names]}


ANSWERS = {
    "/api/v1/namespaces": listing("search", "shop", "default"),
    "/apis/autoscaling.trimtab.dev/v2/namespaces/shop/horizontalpodautoscalers": listing("web", "worker"),
    "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers": listing("web", "native"),
    "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalers": listing("db"),
    "/api/v1/namespaces/shop/pods": listing("web-1", "web-2", "db-0"),
    "/api/v1/namespaces/default/pods": listing("of-the-context"),
}


def complete(*words):
    *before, incomplete = words
    found = ShellComplete(cli.cli, {}, "trimtab", "_TRIMTAB_COMPLETE").get_completions(before, incomplete)
    return [item.value for item in found]


@pytest.fixture
def cluster(tmp_path):
    with refusing(404, "NotFound", ANSWERS) as port:
        yield ("--kubeconfig", kubeconfig(tmp_path, port))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["top", "-n", "s"], ["search", "shop"]),
        (["dashboard", "-n", "sh"], ["shop"]),
        (["explain", "hpa/web", "--operator-namespace", "d"], ["default"]),
        (["explain", "hpa/web", "-n", ""], ["default", "search", "shop"]),
        (["explain", "-n", "shop", "hpa/w"], ["hpa/web", "hpa/worker"]),
        (["explain", "-n", "shop", "thpa/"], ["thpa/native", "thpa/web", "thpa/worker"]),
        (["explain", "-n", "shop", "hpa", "n"], ["native"]),
        (["explain", "-n", "shop", "vpa/"], ["vpa/db"]),
        (["explain", "-n", "shop", "pods", "web"], ["web-1", "web-2"]),
        (["explain", "pod/"], ["pod/of-the-context"]),
        (["explain", "-n", "shop", "service/"], []),
        (["explain", "-n", "shop", "hpa", "web", ""], []),
        (["explain", ""], ["hpa/", "vpa/", "pod/"]),
    ],
    ids=" ".join,
)
def test_names_come_from_the_cluster(words, told, cluster):
    """Commands and choices were completed, names were not."""
    command, *rest = words
    assert complete(command, *cluster, *rest) == told


@pytest.mark.parametrize("words", [["top", "-n", ""], ["explain", "hpa/"]], ids=" ".join)
def test_without_a_cluster_nothing_is_proposed_and_nothing_said(words, tmp_path, capfd):
    command, *rest = words
    with refusing(401, "Unauthorized") as port:
        assert complete(command, "--kubeconfig", kubeconfig(tmp_path, port), *rest) == []
    assert complete(command, "--kubeconfig", str(tmp_path / "none"), *rest) == []
    assert capfd.readouterr() == ("", "")


def test_top_prints_names_as_kubectl_does(tmp_path, capsys):
    answers = {
        "/apis/coordination.k8s.io/v1/namespaces/trimtab/leases": listing(),
        "/apis/autoscaling.trimtab.dev/v2/horizontalpodautoscalers": listing("web"),
        "/apis/autoscaling/v2/horizontalpodautoscalers": listing("web"),
        "/apis/autoscaling.trimtab.dev/v1/verticalpodautoscalers": listing("db"),
    }
    with refusing(404, "NotFound", answers) as port:
        where = ("--kubeconfig", kubeconfig(tmp_path, port))
        assert cli.answer(["top", "-A", "-o", "name", *where]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "verticalpodautoscaler.autoscaling.trimtab.dev/db",
            "horizontalpodautoscaler.autoscaling.trimtab.dev/web",
            "horizontalpodautoscaler.autoscaling/web",
        ]
        assert cli.answer(["top", "--output", "json", *where]) == 0
        assert [row["kind"] for row in json.loads(capsys.readouterr().out)] == ["tvpa", "thpa", "hpa"]
        assert cli.answer(["top", "--no-headers", *where]) == 0
        assert capsys.readouterr().out.split()[0] == "tvpa/db"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "in any namespace"),
        (["-n", "nope"], "in namespace nope"),
        (["-n", "nope", "-A"], "in any namespace"),
        (["-l", "app=web"], "with labels app=web in any namespace"),
        (["-n", "nope", "-l", "app=web"], "with labels app=web in namespace nope"),
    ],
)
def test_nothing_is_printed_where_there_is_nothing(options, words, tmp_path, capsys):
    """`top -n nope` said that there was none "here"."""
    answers = {"/apis/coordination.k8s.io/v1/namespaces/trimtab/leases": listing()}
    answers |= {f"{OWN}/{place}horizontalpodautoscalers": listing() for place in ("", "namespaces/nope/")}
    with refusing(404, "NotFound", answers) as port:
        for output in ("table", "wide", "name"):
            command = ["top", "-o", output, *options, "--kubeconfig", kubeconfig(tmp_path, port)]
            assert cli.answer(command) == 0
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.endswith(f"there is no autoscaler {words}\n")
