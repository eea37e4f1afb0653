"""The names of plug-ins: a domain and a name, such as `example.com/NotDraining`.

The domain keeps the names of plug-ins apart from each other, and from those that Kubernetes may define.
"""

import re
from functools import lru_cache

_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
PLUGIN_NAME = rf"{_LABEL}(\.{_LABEL})+/[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?"
"""The pattern of a name."""
LONGEST_NAME = 253

RULE = "a plug-in's name is a domain and a name, such as example.com/NotDraining"

_NAME = re.compile(PLUGIN_NAME)


@lru_cache(1024)  # every decision about an HPA with a strategy asks several times
def is_plugin_name(name: str) -> bool:
    """Return whether the name is qualified by a domain, as names of plug-ins are."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None
