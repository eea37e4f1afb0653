"""Reports when the process runs out of file descriptors."""

import asyncio
import os
import resource

SCARCE_SHARE = 0.9
"""The share of the limit from which on descriptors are reported as scarce."""


class Descriptors:
    """A component that warns of scarce descriptors. It has no work of its own."""

    name = "process"

    async def run(self) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()

    def health(self) -> dict[str, str]:
        """Return no problem, because what is open goes on working."""
        return {}

    def warnings(self) -> dict[str, str]:
        """Return that descriptors are scarce, if they are."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        used = _count_open()
        if used is None or limit == resource.RLIM_INFINITY or used < SCARCE_SHARE * limit:
            return {}
        return {"descriptors": f"{used} of {limit} open files are in use; raise the limit (ulimit -n)"}


def _count_open() -> int | None:
    """Return the number of open descriptors, or None where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one call instead of an object per entry
    except FileNotFoundError:
        return None
    except OSError:  # none is left for the directory itself
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
