"""Completes names of namespaces, autoscalers and pods in a shell, from the cluster."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from trimtab.cluster.client import Client
    from trimtab.cluster.resource import Resource

SECONDS: Final = 2.0
"""How long a shell waits for the cluster."""

ALIASES: Final = {
    alias: kind
    for kind, aliases in {
        "hpa": ("hpa", "thpa", "horizontalpodautoscaler", "horizontalpodautoscalers"),
        "vpa": ("vpa", "tvpa", "verticalpodautoscaler", "verticalpodautoscalers"),
        "pod": ("pod", "pods", "po"),
    }.items()
    for alias in aliases
}
"""The kinds that can be explained, by every name that kubectl takes for them."""


def complete_namespace(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the namespaces that begin so."""
    return [name for name in _names(ctx, "namespaces", "") if name.startswith(incomplete)]


def complete_file(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell propose files, for arguments that may also be `-`."""
    return [CompletionItem(incomplete, type="file")]


def complete_object(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the objects that begin so, as `hpa/web`, or as `web` after `hpa`."""
    before: Sequence[str] = ctx.params.get("what") or ()
    if before:
        kind = ALIASES.get(before[0], "")
        found = _names(ctx, kind, _namespace(ctx)) if kind and len(before) == 1 else []
        return [name for name in found if name.startswith(incomplete)]
    alias, is_named, _ = incomplete.partition("/")
    if not is_named:
        return [f"{kind}/" for kind in dict.fromkeys(ALIASES.values()) if f"{kind}/".startswith(incomplete)]
    kind = ALIASES.get(alias, "")
    found = _names(ctx, kind, _namespace(ctx)) if kind else []
    return [f"{alias}/{name}" for name in found if f"{alias}/{name}".startswith(incomplete)]


def _namespace(ctx: click.Context) -> str | None:
    """Return the namespace of the command line, or None for the context's."""
    return ctx.params.get("namespace") or None


def _names(ctx: click.Context, kind: str, namespace: str | None) -> list[str]:
    """Return the names of all objects of a kind. Without an answer there are none to propose."""
    from trimtab.cli.connection import with_client  # noqa: PLC0415 - it takes its options from here

    async def look(client: "Client", context_namespace: str) -> list[str]:
        found: set[str] = set()
        for resource in _resources(kind):
            found.update(
                await _list_names(client, resource, context_namespace if namespace is None else namespace)
            )
        return sorted(found)

    options = ctx.params
    try:
        return with_client(
            options.get("kubeconfig") or "",
            options.get("context") or "",
            look,
            timeout=timedelta(seconds=SECONDS),
        )
    except Exception:  # noqa: BLE001 - a shell can show names only, and no error
        return []


async def _list_names(client: "Client", resource: "Resource[Any]", namespace: str) -> list[str]:
    from trimtab.cluster.client import ListOptions  # noqa: PLC0415 - only a shell that completes needs it
    from trimtab.cluster.errors import ApiError  # noqa: PLC0415

    try:
        listed = await client.list(resource, ListOptions(namespace=namespace or None))
    except ApiError:
        return []  # not served, or not to be read
    return [item["metadata"]["name"] for item in listed.items]


def _resources(kind: str) -> "list[Resource[Any]]":
    from trimtab.cluster.resource import PODS, Json, Resource  # noqa: PLC0415 - only a shell that completes needs it
    from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS  # noqa: PLC0415
    from trimtab.operator.vertical.kinds import NATIVE, OWN  # noqa: PLC0415

    return {
        "namespaces": [Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)],
        "hpa": [OWN_HPAS.untyped(), NATIVE_HPAS.untyped()],
        "vpa": [OWN.vpas.untyped(), NATIVE.vpas.untyped()],
        "pod": [PODS.untyped()],
    }[kind]
