"""Noise that is always the same: from a seed, a name and a time, never from a generator with a state (pure)."""

import hashlib


def noise(seed: int, name: str, tick: int) -> float:
    """Return a number between -1 and 1, more often near 0, that depends on nothing but its arguments."""
    digest = hashlib.blake2b(f"{seed}/{name}/{tick}".encode(), digest_size=8).digest()
    left, right = int.from_bytes(digest[:4]), int.from_bytes(digest[4:])
    return (left + right) / 2**32 - 1.0
