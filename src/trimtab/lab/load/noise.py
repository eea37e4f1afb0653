"""Noise that is always the same: from a seed, a name and a time, never from a generator with a state (pure)."""

_MASK = 2**64 - 1
_HALF = 2**32


def noise(seed: int, salt: int, tick: int) -> float:
    """Return a number between -1 and 1, more often near 0, that depends on nothing but its arguments.

    The three numbers are stirred as SplitMix64 stirs its counter, which is quick and leaves no pattern to the eye.
    """
    mixed = (seed * 0x9E3779B97F4A7C15 + salt * 0xD1342543DE82EF95 + tick * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 32) + (mixed & 0xFFFFFFFF)) / _HALF - 1.0
