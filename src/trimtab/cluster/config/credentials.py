"""The credentials of a kubeconfig user, by kubectl's precedence: token files, tokens, programs, passwords.

A program (client.authentication.k8s.io) is started without a shell, and again before its credentials expire. Only the
user's own kubeconfig can name it; data of a cluster never reaches this module.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import inf
from pathlib import Path

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.config import schema
from trimtab.cluster.config.connection import ClientCertificate, Credential, Credentials, StaticCredentials
from trimtab.cluster.errors import ConfigError
from trimtab.pacing import Backoff

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_EXTENSION = "client.authentication.k8s.io/exec"
_TIMEOUT_SECONDS = 60.0
_RENEW_BEFORE = timedelta(seconds=10)
_MAX_OUTPUT = 1024 * 1024
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0
"""Seconds between two runs whose credentials the server rejects, or that fail. They double with each run."""
_PROVEN_SECONDS = 60.0
"""A credential that is used for so long before it is rejected was a good one."""


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        """Return the time without the credentials, which log lines and tracebacks would hold."""
        return f"_ExecStatus(expiration_timestamp={self.expiration_timestamp!r})"


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _ExecStatus | None = None


class ExecCredentials:
    """Runs the program if there is no credential, it expired, or the server rejected it."""

    def __init__(
        self, clock: Clock, config: schema.ExecConfig, base: Path, cluster: schema.Cluster, where: str
    ) -> None:
        _check_exec(config, where)
        self._clock = clock
        self._config = config
        self._base = base
        self._cluster = cluster
        self._where = where
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._is_rejected = False
        self._problem = ""
        """Why the last run failed."""
        self._ran_at = -inf
        self._backoff = Backoff(clock, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._one_run = asyncio.Lock()

    async def current(self) -> Credential:
        """Return the credential, renewed if it is about to expire."""
        async with self._one_run:
            is_wanted = self._credential is None or self._is_rejected or self._is_expiring()
            if is_wanted and not self._backoff.is_waiting:
                await self._run_in_pace()
            if self._credential is None:
                raise ConfigError(self._problem)
            return self._credential

    def reject(self, credential: Credential) -> None:
        """Run the program again at the next request, but not more often than the pace allows."""
        if credential is self._credential:  # else it was replaced while the request was under way
            self._is_rejected = True

    async def _run_in_pace(self) -> None:
        """Run the program. After a rejected credential or a failure the next run waits longer."""
        now = self._clock.monotonic()
        is_proven = now - self._ran_at >= _PROVEN_SECONDS
        has_trouble = self._is_rejected or bool(self._problem)
        self._ran_at = now
        if has_trouble and not is_proven:
            self._backoff.failed()
        else:
            self._backoff.succeeded()
        try:
            await self._renew()
        except ConfigError as problem:
            self._problem = str(problem)
            if not self._backoff.seconds:
                self._backoff.failed()
            raise
        self._is_rejected, self._problem = False, ""

    def _is_expiring(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires - _RENEW_BEFORE

    async def _renew(self) -> None:
        answer = self._parse(await self._run())
        status = answer.status or _ExecStatus()
        has_pair = bool(status.client_certificate_data and status.client_key_data)
        if not status.token and not has_pair:
            raise self._error("printed neither a token nor a client certificate with its key")
        pair = None
        if has_pair:
            certificate, key = status.client_certificate_data or "", status.client_key_data or ""
            pair = ClientCertificate(certificate.encode(), key.encode())
        expires = status.expiration_timestamp
        if expires is not None and expires.tzinfo is None:
            raise self._error("printed an expirationTimestamp without a time zone")
        self._credential = Credential(f"Bearer {status.token}" if status.token else None, pair)
        self._expires = expires

    async def _run(self) -> bytes:
        command = self._command()
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *(self._config.args or ()),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None,
            )
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                output, _ = await process.communicate()
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise self._error(f"did not end within {_TIMEOUT_SECONDS:.0f} s") from error
            raise
        if process.returncode:
            raise self._error(f"ended with exit code {process.returncode}")
        return output

    def _command(self) -> str:
        command = self._config.command
        if os.sep in command:
            # Like every path in a kubeconfig, relative to the file that names it.
            return str(self._base / Path(command).expanduser())
        found = shutil.which(command)
        if found is None:
            raise self._error("is not installed")
        return found

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        environment.update({entry.name: entry.value for entry in self._config.env or ()})
        environment["KUBERNETES_EXEC_INFO"] = json.dumps(self._info())
        return environment

    def _info(self) -> dict[str, object]:
        spec: dict[str, object] = {"interactive": False}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster_info()
        return {"kind": "ExecCredential", "apiVersion": self._config.api_version, "spec": spec}

    def _cluster_info(self) -> dict[str, object]:
        cluster = self._cluster
        extensions = {extension.name: extension.extension for extension in cluster.extensions or ()}
        pairs: dict[str, object] = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": cluster.certificate_authority_data,
            "proxy-url": cluster.proxy_url,
            "config": extensions.get(_CLUSTER_EXTENSION),
        }
        return {name: value for name, value in pairs.items() if value}

    def _parse(self, output: bytes) -> _ExecCredential:
        if len(output) > _MAX_OUTPUT:
            raise self._error("printed more than a credential")
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._error(f"did not print an ExecCredential: {type(error).__name__}") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._config.api_version:
            raise self._error(
                f"printed a {answer.kind or 'nameless object'} of {answer.api_version or 'no version'}, "
                f"not an ExecCredential of {self._config.api_version}"
            )
        return answer

    def _error(self, what: str) -> ConfigError:
        hint = " ".join(self._config.install_hint.split())
        return ConfigError(
            f"{self._where}: exec plugin {self._config.command!r} {what}" + (f"; {hint}" if hint else "")
        )


def _check_exec(config: schema.ExecConfig, where: str) -> None:
    if not config.command:
        raise ConfigError(f"{where}: exec has no command")
    if config.api_version not in _VERSIONS:
        raise ConfigError(
            f"{where}: exec apiVersion {config.api_version!r} is not supported; use {_VERSIONS[0]}"
        )
    if config.interactive_mode == "Always":
        raise ConfigError(
            f"{where}: exec plugin {config.command!r} needs a terminal (interactiveMode: Always)"
        )


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
