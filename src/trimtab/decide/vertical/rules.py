"""Whose rules a vertical decision follows.

Upstream's rules are those of a version of the Vertical Pod Autoscaler, defects included. A record stores the name. Each difference
has a section in docs/decisions/.
"""

from enum import StrEnum


class Rules(StrEnum):
    """Whose rules a decision follows, by the name that `--compat` accepts."""

    TRIMTAB = "trimtab"
    VPA_1_8 = "vpa-1.8"

    @property
    def ours(self) -> bool:
        """Return whether they are Trimtab's own."""
        return self is Rules.TRIMTAB
