"""What a token says about itself, and how many invalid tokens are reviewed."""

import binascii
import hashlib
from base64 import urlsafe_b64decode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar

import msgspec

from trimtab.clock import Clock
from trimtab.dashboard.web.http import RefusedError
from trimtab.pacing import TokenBucket

MAX_FAILURES: Final = 20
"""Invalid tokens that an address may send at once."""
RECOVERY_SECONDS: Final = 3.0
"""The time after which an address may send one more."""
SHARED_FAILURES: Final = 50
"""Invalid tokens that all addresses together may send beyond their own limits at once."""
SHARED_PER_SECOND: Final = 10
"""How many of them become free again per second: the TokenReviews that a flood can cause."""
INVALID_SECONDS: Final = 10.0
"""How long an invalid token is refused without a review."""
_MAX_ENTRIES: Final = 1024
_JWT_PARTS: Final = 3

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Review = Callable[[str], Awaitable[T | None]]


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
    """Limits the reviews of invalid tokens, so that guesses do not reach the cluster.

    Behind a proxy all viewers share an address, and only its review distinguishes a valid token from a guess. So
    an address that sent too many invalid tokens is not refused at once: its tokens are reviewed from a small budget that
    all such addresses share. A token that was valid before, and one that was just found invalid, take nothing from it.
    """

    def __init__(self, clock: Clock, clock_speed: float = 1.0) -> None:
        self._clock = clock
        self._speed = clock_speed
        self._addresses: OrderedDict[str, TokenBucket] = OrderedDict()
        self._shared = TokenBucket(clock, clock_speed / SHARED_PER_SECOND, SHARED_FAILURES)
        self._valid: OrderedDict[bytes, None] = OrderedDict()
        """Hashes of tokens that were valid at their last review."""
        self._invalid: OrderedDict[bytes, float] = OrderedDict()
        """When a token that was invalid may be reviewed again, by its hash."""

    async def authenticate(self, address: str, token: str, review: Review[T]) -> T | None:
        """Return the viewer of a token, or None. Raise RefusedError if too many invalid tokens arrive."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if self._clock.monotonic() < self._invalid.get(digest, 0.0):
            return None
        spent = None if digest in self._valid else self._spend(address)
        viewer = await review(token)
        if viewer is None:
            self._valid.pop(digest, None)
            self._invalid.pop(digest, None)
            _put(self._invalid, digest, self._clock.monotonic() + INVALID_SECONDS * self._speed)
        else:
            self._valid.pop(digest, None)
            _put(self._valid, digest, None)
            if spent is not None:
                spent.give_back()
        return viewer

    def _address(self, address: str) -> TokenBucket:
        bucket = self._addresses.pop(address, None)
        if bucket is None:
            bucket = TokenBucket(self._clock, RECOVERY_SECONDS * self._speed, MAX_FAILURES)
        _put(self._addresses, address, bucket)
        return bucket

    def _spend(self, address: str) -> TokenBucket:
        """Count a token as invalid until its review says otherwise."""
        for bucket in (self._address(address), self._shared):
            if bucket.try_take():
                return bucket
        raise RefusedError(429, "too many invalid tokens arrive from your address; try again in some seconds")


def _put(table: OrderedDict[K, V], key: K, value: V) -> None:
    """Add an entry, and drop the oldest if there are too many."""
    table[key] = value
    while len(table) > _MAX_ENTRIES:
        table.popitem(last=False)
