"""The recorded answers that show the overflow of Go's integers, which ours do not have under any rules.

The recorder marked the cases in which a float became an integer that cannot hold it. In those named here a sum or a product of
integers wrapped around, which no mark and no number of the case shows. Our answers stop at the largest number instead
(docs/decisions/quantities-and-replica-arithmetic-never-overflow.md).
"""

from collections.abc import Iterator, Mapping
from typing import Any

_WRAPPED = {
    "behavior-sequence": """
        2000580 2000742 2002080 2002191 2002540 2002550 2002740 2002838 2003326 2003511 2003547
    """,
    "behavior-unit": """
        3000162 3000302 3000549 3000623 3000695 3000871
    """,
    "calculator-fuzz": """
        1091 1247 1292 1354 1551 1624 1638 1709 1741 2037 2096 2137 2212 2301 2315 2453 2472 2540 2696 2702
        2990 3096 3112 3173 3185 3453 3831 3905 3970 4057 4265 4295 4319 4394 4476 4846 5162 5178 5347 5405
        5449 5455 5484 5605 5670 5760 6054 6056 6203 6252 6311 6391 6499 6624 6634 6656 6658 6700 6703 6738
        6783 6839 6892 6921 7098 7276 7494 900291 1100155 1100260 1200008 1200026 1200034 1200036 1200044
        1200052 1200056 1200082 1200089 1200110 1200116 1200120 1200124 1200134 1200136 1200139 1200148
        1200168 1200172 1200186
    """,
}
_IDS = frozenset(f"{name}/{number}" for name, numbers in _WRAPPED.items() for number in numbers.split())


def overflows(case: Mapping[str, Any]) -> bool:
    """Return whether upstream's answer, or that of a step, shows an overflow."""
    return case.get("id") in _IDS or any(
        answer.get("outOfRangeConversion") is True for answer in answers_of(case)
    )


def answers_of(case: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every recorded answer: that of the case and those of its steps, operations or loops."""
    parts = [case, *(part for key in ("steps", "ops", "loops") for part in case.get(key) or ())]
    return (part["expect"] for part in parts if isinstance(part.get("expect"), dict))
