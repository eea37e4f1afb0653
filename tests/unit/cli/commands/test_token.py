"""The token that `trimtab run` protects its port with."""

import pytest

from trimtab.cli import answer
from trimtab.operator.operator import Operator


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "config"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- {name: c, cluster: {server: 'http://127.0.0.1:1'}}\n"
        "contexts:\n- {name: c, context: {cluster: c}}\n"
    )
    return str(path)


@pytest.fixture
def protected(monkeypatch):
    """The tokens of started operators, none of which runs."""
    tokens = []

    async def note(operator):
        tokens.append(operator._token)

    monkeypatch.setattr(Operator, "run", note)
    return tokens


@pytest.mark.parametrize("text", ["hunter2\n", "hunter2\r\n", " hunter2"])
def test_a_token_from_a_file_with_a_newline_is_the_token(text, monkeypatch, kubeconfig, protected):
    """No request could ever send the newline, so everybody was locked out."""
    monkeypatch.setenv("TRIMTAB_TOKEN", text)
    assert answer(["run", "--kubeconfig", kubeconfig]) == 0
    assert protected == ["hunter2"]


def test_a_token_that_no_request_can_send_is_refused_at_the_start(monkeypatch, kubeconfig, capsys, protected):
    monkeypatch.setenv("TRIMTAB_TOKEN", "hunter2€")
    assert answer(["run", "--kubeconfig", kubeconfig]) == 2
    said = capsys.readouterr().err
    assert "TRIMTAB_TOKEN" in said
    assert "hunter2" not in said
    assert protected == []
