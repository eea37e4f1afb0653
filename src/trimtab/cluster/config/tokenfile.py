"""Bearer tokens in files that someone else renews: service accounts in a pod, `tokenFile` in a kubeconfig."""

from pathlib import Path

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Credential
from trimtab.cluster.errors import ConfigError

_REREAD_SECONDS = 60.0
"""The kubelet renews a token when a fifth of its life is left, at least ten minutes early; a minute is soon enough."""


class TokenFileCredentials:
    """Reads the token again every minute, and at once after the server refused it."""

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

    def reject(self) -> None:
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
