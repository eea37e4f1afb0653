"""The configuration file, and S13: addresses and files are the administrator's alone."""

from pathlib import Path

import pytest

from trimtab.adapter.config import Address, connection_to, load_configuration
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import below
from trimtab.clock import SystemClock

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


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "prometheus", "ftp://x", "http://", "http://a:b@x", "http://x?y=z"]
)
def test_what_is_no_address_of_a_server_is_refused(url):
    with pytest.raises(ConfigurationError, match="is not the address of a server"):
        connection_to(SystemClock(), Address(url=url), Path())


def test_a_token_is_not_sent_in_clear_over_the_network(tmp_path):
    with pytest.raises(ConfigurationError, match="not sent in clear"):
        connection_to(SystemClock(), Address(url="http://prometheus.example", token_file="token"), tmp_path)
    local = connection_to(SystemClock(), Address(url="http://127.0.0.1:9090", token_file="token"), tmp_path)
    assert local.server == "http://127.0.0.1:9090"
