"""Decisions: frozen values in, frozen values out. `now` is an argument.

No I/O, no clock, no logging, no randomness: operator, simulator, explain and replay all call this same code,
so that what is explained is what was done.

In Python, `trimtab.decide(observation, now)` decides about an HPA and returns a record; see `decide_observation`.
"""

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from trimtab.decide.horizontal import Observation, Record


class _CallablePackage(ModuleType):
    """The package itself, which is also the function `trimtab.decide` of the library.

    Importing a package sets the attribute of its name on its parent, so a function of that name would be lost.
    """

    def __call__(
        self,
        observation: "Observation | Mapping[str, Any] | str | bytes",
        now: "datetime",
        *,
        plugins: "Iterable[str]" = (),
    ) -> "Record":
        """Decide how many replicas the target of an HPA gets, as `decide_observation` does."""
        from trimtab.decide.observed import decide_observation  # noqa: PLC0415 - the VPA needs no HPA

        return decide_observation(observation, now, plugins=plugins)


sys.modules[__name__].__class__ = _CallablePackage
