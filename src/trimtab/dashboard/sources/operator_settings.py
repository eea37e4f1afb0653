"""The settings of the operator that a page shows, followed while the page runs.

For loops in this process they are this process's own flags, for loops in other processes the settings that their operator
published. If these cannot be read, this process's own flags apply, and the page states it. While the cluster does not
answer, the settings that were read last apply.
"""

from collections.abc import Iterable
from typing import Final

from trimtab.cluster.client import Client
from trimtab.dashboard.sources.operator_presence import OperatorPresence
from trimtab.operator.settings.published import (
    FoundSettings,
    combined,
    find_settings,
    own_settings,
)
from trimtab.operator.settings.settings import Settings, declared

REFRESH_SECONDS: Final = 10.0


class OperatorSettings:
    """The settings by which the decisions on the page are made."""

    def __init__(self, client: Client, own: Settings, here: Iterable[str]) -> None:
        self._client = client
        self._own = own
        self._here = frozenset(here)
        self._found: dict[str, FoundSettings] = {}
        """The settings that were found last, by loop."""
        self.horizontal = self.vertical = FoundSettings(own, "not read yet")
        self.presence = OperatorPresence(client.clock)

    async def refresh(self) -> None:
        """Read the published settings again."""
        self.horizontal = await self._find("horizontal")
        self.vertical = combined(await self._find("recommender"), await self._find("updater"))

    def lines(self) -> tuple[str, ...]:
        """Return where the settings come from, in words for the page."""
        if self.horizontal.source == self.vertical.source:
            return (self.horizontal.line,)
        return (f"HPAs: {self.horizontal.line}", f"VPAs: {self.vertical.line}")

    def for_hpas(self) -> Settings:
        """Return the settings for watching the operator's HPAs, in the namespaces that both watch."""
        published = self.horizontal.settings
        return self._own if published is self._own else _with_published(self._own, published)

    def for_vpas(self) -> Settings:
        """Return the settings for watching the operator's VPAs, in the namespaces that both watch."""
        published = self.vertical.settings
        watched = _in_both(self._own.watch_namespaces, published.watch_namespaces)
        is_same = watched == published.watch_namespaces
        return published if is_same else published.replace(watch_namespaces=watched)

    def not_shown(self) -> list[str]:
        """Return what the page does not show because the operator does not act on it."""
        return [*self._hpas_not_shown(), *self._vpas_not_shown()]

    def _hpas_not_shown(self) -> list[str]:
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

    def _vpas_not_shown(self) -> list[str]:
        watched = self.vertical.settings.watch_namespaces
        is_known = self.vertical.is_published or self.vertical.is_partly_published
        return [f"the operator acts on VPAs in {', '.join(watched)} only"] if watched and is_known else []

    async def _find(self, loop: str) -> FoundSettings:
        if loop in self._here:
            return own_settings(self._own)
        namespace = self._own.leases.leader_elect_resource_namespace
        found = await find_settings(self._client, namespace, loop, self._own)
        self.presence.observe(loop, found)
        if not found.is_unanswered:
            self._found[loop] = found
        # Other settings start a new controller, which could not list the HPAs that the page shows.
        return self._found.get(loop, found)


def _with_published(own: Settings, published: Settings) -> Settings:
    """Return the operator's published settings, and this process's own for the rest."""
    decisive = [each.name for each in declared() if each.decides and each.name != "components"]
    values = {name: published.value(name) for name in decisive}
    values["watch_namespaces"] = _in_both(own.watch_namespaces, published.watch_namespaces)
    return own.replace(**values)


def _in_both(own: tuple[str, ...], published: tuple[str, ...]) -> tuple[str, ...]:
    """Return the namespaces of both, where none means all. This process's rights may be limited to its own."""
    if not own or not published:
        return own or published
    return tuple(name for name in published if name in own) or own
