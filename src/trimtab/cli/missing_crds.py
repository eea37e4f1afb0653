"""Says that nothing was found because Trimtab's CRDs are not installed, and what to type."""

from contextlib import aclosing
from typing import Any, Final

from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.errors import Forbidden, NotFound
from trimtab.cluster.resource import Json, Resource
from trimtab.operator.horizontal.kinds import INSTALL_CRDS

INSTALL: Final = f"install them with: {INSTALL_CRDS}"
NOT_INSTALLED: Final = "; Trimtab's CRDs are not installed in this cluster"


async def because_of_missing_crds(client: Client, resource: Resource[Any], namespace: str) -> str:
    """Return the end of a sentence about an object that was not found, or nothing if its kind is served."""
    return "" if await _is_served(client, resource, namespace) else NOT_INSTALLED


async def _is_served(client: Client, resource: Resource[Any], namespace: str) -> bool:
    """Return whether a kind can be listed, or whether the user may not know."""
    pages = client.pages(resource.into(Json), ListOptions(namespace or None), limit=1)
    try:
        async with aclosing(pages):
            await anext(pages, None)
    except NotFound:
        return False
    except Forbidden:
        pass
    return True
