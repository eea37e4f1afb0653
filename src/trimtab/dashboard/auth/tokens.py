"""What a token says about itself, and how many invalid tokens an address may send."""

import binascii
from base64 import urlsafe_b64decode
from collections import OrderedDict
from typing import Final

import msgspec

from trimtab.clock import Clock
from trimtab.dashboard.web.http import RefusedError

MAX_FAILURES: Final = 20
"""Invalid tokens that an address may send at once."""
RECOVERY_SECONDS: Final = 3.0
"""The time after which an address may send one more."""
_MAX_ADDRESSES: Final = 1024
_JWT_PARTS: Final = 3


class _Claims(msgspec.Struct):
    exp: float | None = None


def expiry_of(token: str) -> float | None:
    """Return when a JSON web token expires, in seconds since 1970, or None if it does not say.

    The signature is not checked here. The cluster has reviewed the token.
    """
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        payload = urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(payload, type=_Claims).exp
    except (binascii.Error, msgspec.MsgspecError, ValueError, RecursionError):
        return None


class FailureLimit:
    """Limits the invalid tokens of each address, so that guesses do not reach the cluster.

    Valid tokens do not count. Behind a proxy all viewers share an address, and open sessions go on.
    """

    def __init__(self, clock: Clock, clock_speed: float = 1.0) -> None:
        self._clock = clock
        self._recovery = RECOVERY_SECONDS * clock_speed
        self._free_at: OrderedDict[str, float] = OrderedDict()
        """When all failures of an address are forgotten."""

    def begin(self, address: str) -> None:
        """Count a token as invalid until `succeeded`. Raise RefusedError if the address sent too many."""
        now = self._clock.monotonic()
        free_at = max(self._free_at.pop(address, now), now) + self._recovery
        if free_at - now > MAX_FAILURES * self._recovery:
            self._free_at[address] = free_at - self._recovery
            raise RefusedError(
                429, "too many invalid tokens came from your address; try again in some seconds"
            )
        self._free_at[address] = free_at
        while len(self._free_at) > _MAX_ADDRESSES:
            self._free_at.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Take back the last count."""
        if address in self._free_at:
            self._free_at[address] -= self._recovery
