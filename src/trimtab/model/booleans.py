"""Booleans as Go's flags take them."""

from collections.abc import Mapping
from typing import Final

BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}
"""By what is written, as `strconv.ParseBool` has it."""
