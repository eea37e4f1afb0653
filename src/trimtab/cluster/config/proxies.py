"""Reads addresses, and chooses the HTTP proxy of the API server: the kubeconfig's, else the environment's, else none."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from trimtab.cluster.errors import ConfigError


def split_address(url: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None if its host, port or scheme is invalid."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracketed host that is no IPv6 address, or a port above 65535
        return None
    return parts if is_valid else None


def proxy_for(server: str, written: str, environ: Mapping[str, str], where: str) -> str | None:
    """Return the proxy's address, or None for a direct connection."""
    if written:
        if split_address(written) is None:
            raise ConfigError(f"{where}: proxy-url {written!r} is not supported; use an http or https proxy")
        return written
    address = split_address(server)
    host = address.hostname or "" if address is not None else ""
    variable = "HTTPS_PROXY" if address is not None and address.scheme == "https" else "HTTP_PROXY"
    proxy = environ.get(variable) or environ.get(variable.lower())
    if not proxy or is_excluded(host, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_excluded(host: str, no_proxy: str) -> bool:
    """Return whether NO_PROXY covers the host: by name, domain, address, network, or `*`."""
    # Loopback never goes through a proxy, as in Go's rules; a proxy could not reach ours.
    if host == "localhost" or _in_network(host, "127.0.0.0/8") or host == "::1":
        return True
    return any(
        _names_host(entry.strip().lower(), host.lower()) for entry in no_proxy.split(",") if entry.strip()
    )


def _names_host(entry: str, host: str) -> bool:
    if entry in {"*", host}:
        return True
    if "/" in entry:
        return _in_network(host, entry)
    return host.endswith("." + entry.removeprefix("*").lstrip("."))


def _in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


def check_address(url: str, *, carries_secret: bool) -> None:
    """Reject an invalid address, and one to which a secret would be sent without TLS."""
    parts = split_address(url)
    if parts is None or parts.query or parts.fragment or parts.username:
        raise ConfigError(f"{url.rpartition('@')[2]!r} is not the address of a server such as https://host")
    if carries_secret and parts.scheme == "http" and parts.hostname not in _HERE:
        raise ConfigError(f"{url}: a token or password is not sent in clear over the network; use https")
