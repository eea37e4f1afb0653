"""Uids, tokens and generated names. With a seed they repeat from run to run."""

import random
import secrets
import uuid

#: Letters of generated names; without vowels and look-alikes no word appears by chance.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Identities:
    """A source of unique identities."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - seeded on purpose
        self.is_seeded = seed is not None

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def token(self) -> str:
        """Return a new bearer token."""
        if self.is_seeded:
            return f"{self._random.getrandbits(192):048x}"
        return secrets.token_hex(24)

    def suffix(self) -> str:
        """Return the five letters that complete a `generateName`."""
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(5))
