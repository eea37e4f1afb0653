"""Parses the Host header of a request."""

import re
from typing import Final

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})

_HOST: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9A-Za-z_.-]+))(?::[0-9]{1,5})?")
"""A name or an address with an optional port. A URL's parser would also accept users and paths."""


def host_name(host: str) -> str:
    """Return the name or address of a Host header in lower case, or "" if the header is malformed."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).lower() if match is not None else ""
