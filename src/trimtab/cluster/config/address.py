"""The address of a server that is not the cluster's own: checked before anything is sent there."""

from urllib.parse import urlsplit

from trimtab.cluster.errors import ConfigError

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


def check_address(url: str, *, carries_secret: bool) -> None:
    """Refuse an address that is none, or that a secret would go to in clear."""
    parts = urlsplit(url)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username
    ):
        raise ConfigError(f"{url!r} is not the address of a server such as https://prometheus.example:9090")
    if carries_secret and parts.scheme == "http" and parts.hostname not in _HERE:
        raise ConfigError(f"{url}: a token or password is not sent in clear over the network; use https")
