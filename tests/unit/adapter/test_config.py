"""The configuration file, and S13: addresses and files are the administrator's alone."""

from pathlib import Path

import pytest

from trimtab.adapter.config import ServerAddress, connection_to, load_configuration
from trimtab.adapter.files import ConfigurationError, below
from trimtab.clock import SystemClock
from trimtab.install import manifests, set_values
from trimtab.serving.tls import WatchedFile

HEAD = "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: AdapterConfiguration\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("sources: []", "at least one is needed"),
        ("sources: [{name: a, testing: {}}, {name: a, testing: {}}]", "each with a name of its own"),
        ("sources: [{name: a}]", "has 0 of testing, prometheus, forward"),
        ("sources: [{name: a, testing: {}, forward: {server: {url: http://x}}}]", "has 2 of testing"),
        ("sources: [{name: a, testing: {}}]\nlisten: {port: x}", "Expected `int`"),
        ("sources: [{name: a, testing: {}}]\ncolour: red", "unknown field `colour`"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, want):
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text)
    with pytest.raises(ConfigurationError, match=want):
        load_configuration(path)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../x"])
def test_files_outside_the_configurations_directory_are_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match="lies outside"):
        below(tmp_path, name)


def test_a_link_out_of_the_directory_is_refused(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match="lies outside"):
        below(inside, "link")


def test_a_file_of_a_projected_volume_is_followed_through_an_update(tmp_path):
    """The kubelet writes a new directory, moves the link to it, and removes the old one."""

    def mount(version, text):
        (tmp_path / version).mkdir()
        (tmp_path / version / "rules.yaml").write_text(text)
        link = tmp_path / "..data_tmp"
        link.symlink_to(version)
        link.rename(tmp_path / "..data")

    mount("..2026_1", "old")
    (tmp_path / "rules.yaml").symlink_to("..data/rules.yaml")
    file = WatchedFile(below(tmp_path, "rules.yaml"))
    assert file.has_changed()
    assert not file.has_changed()
    mount("..2026_2", "new")
    (tmp_path / "..2026_1" / "rules.yaml").unlink()
    assert file.has_changed()
    assert file.path.read_text() == "new"


def test_the_configuration_that_an_installation_carries_can_be_used(tmp_path):
    found = [
        one
        for one in manifests(set_values(["adapter.enabled=true", "adapter.caBundle=QQ=="]))
        if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "trimtab-adapter")
    ]
    (tmp_path / "adapter.yaml").write_text(found[0]["data"]["adapter.yaml"])
    source = load_configuration(tmp_path / "adapter.yaml").sources[0]
    assert source.prometheus is not None
    assert source.prometheus.rules_file in found[0]["data"]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "prometheus", "ftp://x", "http://", "http://a:b@x", "http://x?y=z"]
)
def test_what_is_no_address_of_a_server_is_refused(url):
    with pytest.raises(ConfigurationError, match="is not the address of a server"):
        connection_to(SystemClock(), ServerAddress(url=url), Path())


def test_a_token_is_not_sent_in_clear_over_the_network(tmp_path):
    with pytest.raises(ConfigurationError, match="not sent in clear"):
        connection_to(
            SystemClock(), ServerAddress(url="http://prometheus.example", token_file="token"), tmp_path
        )
    local = connection_to(
        SystemClock(), ServerAddress(url="http://127.0.0.1:9090", token_file="token"), tmp_path
    )
    assert local.server == "http://127.0.0.1:9090"


def test_a_volume_that_moves_its_link_shows_the_new_file(tmp_path):
    """kubelet writes a new directory and moves the link `..data`; the resolved path would stay with the old one."""
    for version in ("old", "new"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "tls.crt").write_text(version)
    (tmp_path / "..data").symlink_to("old")
    (tmp_path / "tls.crt").symlink_to("..data/tls.crt")
    path = below(tmp_path, "tls.crt")
    (tmp_path / "..next").symlink_to("new")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert path.read_text() == "new"
