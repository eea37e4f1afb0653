"""What `trimtab explain` is called with: an object, a cluster, and settings."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from trimtab.cli.connection import with_client
from trimtab.cli.errors import CommandError
from trimtab.cli.names import ALIASES
from trimtab.cli.operator_settings import Choice
from trimtab.cli.progress import waiting
from trimtab.cluster.client import Client

T = TypeVar("T")


def object_of(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the kind and name of `hpa/web`, `hpa web` or `web`, which is an HPA."""
    alias, _, name = words[0].rpartition("/") if len(words) == 1 else (words[0], "", words[-1])
    kind = ALIASES.get(alias or "hpa")
    if len(words) > 2 or kind is None or not name or (len(words) == 2 and "/" in name):
        raise CommandError(f"{' '.join(words)!r} cannot be explained", "say hpa/NAME, vpa/NAME or pod/NAME")
    return kind, name


def choice_of(options: dict[str, Any]) -> Choice:
    """Return which settings the options choose."""
    return Choice(
        options["operator_namespace"], options["feature_gates"], options["compat"], options["plugins"]
    )


def ask_cluster(options: dict[str, Any], look: Callable[[Client, str], Awaitable[T]]) -> T:
    """Call a function with a client of the cluster that the options name, and its namespace."""
    timeout: timedelta | None = options["request_timeout"]
    with waiting("reading the cluster"):
        return with_client(options["kubeconfig"], options["context"], look, timeout=timeout)
