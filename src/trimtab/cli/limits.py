"""Limits of the process that a program needs before it starts."""

import resource

from trimtab.cli.errors import OUT_OF_RESOURCES, CommandError

FEWEST_DESCRIPTORS = 64
"""All components of an operator take 35 descriptors at rest, and each client of its ports takes 1."""


def require_descriptors() -> None:
    """Allow as many open files as possible, or raise CommandError if they are too few to start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        most = max(soft, 65_536) if hard == resource.RLIM_INFINITY else hard
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):  # a sandbox may forbid it
            most = soft
        soft = most
    if soft < FEWEST_DESCRIPTORS:
        raise CommandError(
            f"only {soft} open files are allowed, and at least {FEWEST_DESCRIPTORS} are needed",
            "raise the limit: ulimit -n 1024",
            OUT_OF_RESOURCES,
        )
