"""A token file that is missing, empty or replaced, in virtual time."""

import asyncio

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.errors import ConfigError


def token(credentials):
    return asyncio.run(credentials.current()).authorization


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot read the token file"), (b" \n", "is empty"), (b"\xff", "cannot read the token file")],
    ids=["missing", "empty", "not text"],
)
def test_a_file_without_a_token_is_an_error_only_if_there_was_none(content, words, tmp_path):
    clock, path = VirtualClock(), tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        token(TokenFileCredentials(clock, path))
    assert token(TokenFileCredentials(clock, path, fallback="old")) == "Bearer old"


@pytest.mark.parametrize(("seconds", "want"), [(59.9, "one"), (60.0, "two")])
def test_a_token_is_read_again_after_a_minute(seconds, want, tmp_path):
    clock, path = VirtualClock(), tmp_path / "token"
    path.write_text(" one\n")
    credentials = TokenFileCredentials(clock, path)
    assert token(credentials) == "Bearer one"
    path.write_text("two")
    clock.advance(seconds)
    assert token(credentials) == f"Bearer {want}"


def test_a_rejected_token_is_read_again_at_once(tmp_path):
    clock, path = VirtualClock(), tmp_path / "token"
    path.write_text("one")
    credentials = TokenFileCredentials(clock, path)
    old = asyncio.run(credentials.current())
    path.write_text("two")
    credentials.reject(old)
    assert token(credentials) == "Bearer two"
