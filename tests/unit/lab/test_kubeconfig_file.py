"""Two clusters that run at once never share a kubeconfig."""

import pytest

from trimtab.lab.kubeconfig_file import KubeconfigFile, KubeconfigInUseError, claim_free


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


def test_only_the_owner_may_read_what_is_written(tmp_path):
    with claim_free(tmp_path / "kubeconfig") as file:
        file.write({"kind": "Config"})
    assert file.path.read_text() == "kind: Config\n"
    assert file.path.stat().st_mode & 0o777 == 0o600
