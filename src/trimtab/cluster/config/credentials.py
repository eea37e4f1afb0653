"""Builds the credentials of a kubeconfig user, by kubectl's precedence."""

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path

from trimtab.clock import Clock
from trimtab.cluster.config import schema
from trimtab.cluster.config.connection import Credential, Credentials, StaticCredentials
from trimtab.cluster.config.exec_plugin import ExecCredentials
from trimtab.cluster.errors import ConfigError

_REREAD_SECONDS = 60.0
"""The kubelet renews a token at least 10 minutes before its end, so that reading it every minute suffices."""


class TokenFileCredentials:
    """Reads the token every minute, and at once after the server rejected it."""

    def __init__(self, clock: Clock, path: Path, *, fallback: str | None = None) -> None:
        self._clock = clock
        self._path = path
        self._token = fallback
        self._read_at: float | None = None

    async def current(self) -> Credential:
        """Return the token as of at most a minute ago."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _REREAD_SECONDS:
            self._token = self._read()
            self._read_at = now
        return Credential(f"Bearer {self._token}")

    def reject(self, credential: Credential) -> None:
        """Read the file at the next request."""
        self._read_at = None

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            return self._last(f"cannot read the token file {self._path}: {error}")
        return token or self._last(f"the token file {self._path} is empty")

    def _last(self, problem: str) -> str:
        # A file in the middle of being replaced must not take away a token that still works.
        if self._token is None:
            raise ConfigError(problem)
        return self._token


def credentials_of(
    clock: Clock, user: schema.KubeconfigUser, base: Path, cluster: schema.Cluster, where: str
) -> Credentials:
    """Return the credentials of a user.

    A token file precedes a token, both precede a plugin or a password.
    """
    _check(user, where)
    if user.token_file:
        return TokenFileCredentials(
            clock, base / Path(user.token_file).expanduser(), fallback=user.token or None
        )
    if user.token:
        return StaticCredentials(Credential(f"Bearer {user.token}"))
    if user.exec is not None:
        return ExecCredentials(clock, user.exec, base, cluster, where)
    if user.auth_provider is not None:
        return StaticCredentials(Credential(f"Bearer {_id_token(clock, user.auth_provider, where)}"))
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode("ascii")
        return StaticCredentials(Credential(f"Basic {pair}"))
    return StaticCredentials()


def impersonation_of(user: schema.KubeconfigUser) -> Mapping[str, str]:
    """Return the headers of the user's impersonation."""
    headers: dict[str, str] = {}
    if user.as_:
        headers["Impersonate-User"] = user.as_
    if user.as_uid:
        headers["Impersonate-Uid"] = user.as_uid
    return headers


def _check(user: schema.KubeconfigUser, where: str) -> None:
    if user.exec is not None and user.auth_provider is not None:
        raise ConfigError(f"{where}: exec and auth-provider cannot both be set; keep exec")
    if user.token and user.username:
        raise ConfigError(f"{where}: a token and a username cannot both be set; keep the token")
    if user.as_groups or user.as_user_extra:
        raise ConfigError(f"{where}: as-groups and as-user-extra are not supported; impersonate a user alone")
    if any(control in user.token for control in "\r\n\0"):
        raise ConfigError(f"{where}: the token holds a line break")


def _id_token(clock: Clock, provider: schema.AuthProvider, where: str) -> str:
    """Return the ID token of an OpenID Connect provider while it is valid. Only plugins renew it."""
    instead = "use an exec plugin such as kubelogin"
    if provider.name != "oidc":
        raise ConfigError(
            f"{where}: auth-provider {provider.name!r} no longer exists in Kubernetes; {instead}"
        )
    token = (provider.config or {}).get("id-token", "")
    expiry = _expiry(token)
    if expiry is None:
        raise ConfigError(f"{where}: auth-provider oidc has no usable id-token; {instead}")
    if expiry <= clock.now().timestamp():
        raise ConfigError(
            f"{where}: the id-token of auth-provider oidc has expired; renew it with kubectl, or {instead}"
        )
    return token


def _expiry(token: str) -> float | None:
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return None
