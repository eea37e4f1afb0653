"""The settings of the operator that a page shows, followed while the page runs.

Loops in the same process decide by this process's own flags. For loops elsewhere the settings that their operator
published count. Where none can be read, this process's own flags are used, and the page says so.
"""

from collections.abc import Iterable
from typing import Final

from trimtab.cluster.client import Client
from trimtab.operator.settings.published import (
    PUBLISHED,
    FoundSettings,
    combined,
    find_settings,
    own_settings,
)
from trimtab.operator.settings.settings import Settings

REFRESH_SECONDS: Final = 30.0


class FollowedSettings:
    """What the decisions on the page are made by."""

    def __init__(self, client: Client, own: Settings, here: Iterable[str]) -> None:
        self._client = client
        self._own = own
        self._here = frozenset(here)
        self.horizontal = self.vertical = FoundSettings(own, "not read yet")

    async def refresh(self) -> None:
        """Read again what is published."""
        self.horizontal = await self._of("horizontal")
        self.vertical = combined(await self._of("recommender"), await self._of("updater"))

    def lines(self) -> tuple[str, ...]:
        """Return where the settings come from, for a reader of the page."""
        if self.horizontal.source == self.vertical.source:
            return (self.horizontal.line,)
        return (f"HPAs: {self.horizontal.line}", f"VPAs: {self.vertical.line}")

    def looking(self) -> Settings:
        """Return the settings of one who looks at the HPAs that the operator acts on, in the namespaces of both."""
        published = self.horizontal.settings
        return self._own if published is self._own else _seen_with(self._own, published)

    def looking_at_vpas(self) -> Settings:
        """Return the settings of one who looks at the VPAs that the operator acts on, in the namespaces of both."""
        published = self.vertical.settings
        watched = _in_both(self._own.watch_namespaces, published.watch_namespaces)
        is_same = watched == published.watch_namespaces
        return published if is_same else published.replace(watch_namespaces=watched)

    def left_alone(self) -> list[str]:
        """Return what the page does not show because the operator does not act on it."""
        return [*self._unseen_hpas(), *self._unseen_vpas()]

    def _unseen_hpas(self) -> list[str]:
        settings, missing = self.horizontal.settings, []
        if settings is self._own:
            return []
        if not settings.horizontal.own_hpas:
            missing.append("HPAs of our own kind are not shown: the operator runs with --no-own-hpas")
        if not settings.horizontal.native_hpas:
            missing.append("native HPAs are not shown: the operator runs without --native-hpas")
        if settings.watch_namespaces:
            missing.append(f"the operator acts on HPAs in {', '.join(settings.watch_namespaces)} only")
        return missing

    def _unseen_vpas(self) -> list[str]:
        watched = self.vertical.settings.watch_namespaces
        is_known = self.vertical.is_published or self.vertical.is_partly_published
        return [f"the operator acts on VPAs in {', '.join(watched)} only"] if watched and is_known else []

    async def _of(self, loop: str) -> FoundSettings:
        if loop in self._here:
            return own_settings(self._own)
        namespace = self._own.leases.leader_elect_resource_namespace
        return await find_settings(self._client, namespace, loop, self._own)


def _seen_with(own: Settings, published: Settings) -> Settings:
    """Return the operator's settings with the numbers of this process that are not published."""
    taken = {name: published.value(name) for name in PUBLISHED if name != "components"}
    taken["watch_namespaces"] = _in_both(own.watch_namespaces, published.watch_namespaces)
    return own.replace(**taken)


def _in_both(own: tuple[str, ...], published: tuple[str, ...]) -> tuple[str, ...]:
    """Return the namespaces of both; none means all. This process's rights may end where its own flags do."""
    if not own or not published:
        return own or published
    return tuple(name for name in published if name in own) or own
