"""Two clusters that run at once never share a kubeconfig."""

import pytest
import yaml

from trimtab_lab.kubeconfig_file import KubeconfigFile, KubeconfigInUseError, claim_free


def test_a_file_of_a_running_cluster_cannot_be_claimed(tmp_path):
    path = tmp_path / "new" / "kubeconfig"
    with (
        KubeconfigFile(path),
        pytest.raises(KubeconfigInUseError, match="kubeconfig belongs to a cluster that runs"),
    ):
        KubeconfigFile(path)
    with KubeconfigFile(path):
        assert [file.name for file in path.parent.iterdir()] == [".kubeconfig.lock"]
    assert list(path.parent.iterdir()) == []


def test_the_next_cluster_gets_the_next_free_name(tmp_path):
    """The second one overwrote the file, and kubectl then talked to another cluster than `trimtab explain`."""
    path = tmp_path / "kubeconfig"
    with claim_free(path) as first:
        with claim_free(path) as second, claim_free(path) as third:
            names = [file.path.name for file in (first, second, third)]
        with claim_free(path) as again:
            assert again.path.name == "kubeconfig-2"
    assert names == ["kubeconfig", "kubeconfig-2", "kubeconfig-3"]


def kubeconfig(*servers):
    clusters = [{"name": server, "cluster": {"server": server}} for server in servers]
    return {"kind": "Config", "clusters": clusters, "contexts": [{"name": "it", "context": {}}]}


def test_only_the_owner_may_read_what_is_written(tmp_path):
    with claim_free(tmp_path / "kubeconfig") as file:
        file.write({"kind": "Config"})
        assert file.path.read_text() == "kind: Config\n"
        assert file.path.stat().st_mode & 0o777 == 0o600


def test_a_kubeconfig_ends_with_its_cluster(tmp_path):
    """`kubeconfig-2` stayed for ever, because the next cluster takes the first name."""
    with claim_free(tmp_path / "kubeconfig") as first, claim_free(tmp_path / "kubeconfig") as second:
        first.write(kubeconfig("https://127.0.0.1:1"))
        second.write(kubeconfig("https://127.0.0.1:2"))
    assert list(tmp_path.iterdir()) == []


def test_a_kubeconfig_ends_with_its_cluster_if_a_user_chose_another_namespace(tmp_path):
    """`kubectl config set-context` writes the file again."""
    with claim_free(tmp_path / "kubeconfig") as file:
        file.write(kubeconfig("https://127.0.0.1:1"))
        changed = {
            **kubeconfig("https://127.0.0.1:1"),
            "contexts": [{"name": "it", "context": {"namespace": "shop"}}],
        }
        file.path.write_text(yaml.safe_dump(changed))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            yaml.safe_dump(kubeconfig("https://127.0.0.1:1", "https://prod")), id="with another cluster"
        ),
        pytest.param("- {", id="unreadable"),
        pytest.param("", id="empty"),
    ],
)
def test_a_kubeconfig_that_a_user_changed_stays(content, tmp_path):
    with claim_free(tmp_path / "kubeconfig") as file:
        file.write(kubeconfig("https://127.0.0.1:1"))
        file.path.write_text(content)
    assert file.path.read_text() == content


def test_a_kubeconfig_of_a_cluster_that_never_started_is_not_touched(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text("mine")
    with claim_free(path):
        pass
    assert path.read_text() == "mine"


def test_a_kubeconfig_that_a_user_removed_is_no_problem(tmp_path):
    with claim_free(tmp_path / "kubeconfig") as file:
        file.write(kubeconfig("https://127.0.0.1:1"))
        file.path.unlink()
    assert list(tmp_path.iterdir()) == []
