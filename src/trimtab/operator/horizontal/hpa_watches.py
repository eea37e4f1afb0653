"""Watches the kinds of HPAs that the settings ask for, as soon as the API server serves them."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.cluster.resource import Resource
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.kinds import (
    INSTALL_CRDS,
    NATIVE_HPAS,
    OWN_HPAS,
    UndecodedHpa,
    ensure_hpa_controller_is_off,
    find_native_hpa,
)
from trimtab.operator.runtime import Runtime

log = logging.getLogger(__name__)

FIRST_LISTS_SECONDS = 10.0
"""How long to wait for the first lists, before starting without a kind that cannot be listed."""

RETRY_SECONDS = 30.0
"""How often a kind that could not be watched is tried again."""


_UNSEEN = "whether kube-controller-manager acts on native HPAs cannot be seen"


class HpaWatches:
    """Fills the cache of HPAs, and reports what is wrong with its informers."""

    def __init__(self, runtime: Runtime, caches: SharedInformers, hpas: HpaCache) -> None:
        self._runtime = runtime
        self._clock = runtime.clock
        self._caches = caches
        self._hpas = hpas
        settings = runtime.settings
        self._missing: dict[str, Resource[HorizontalPodAutoscaler]] = {}
        if settings.horizontal.own_hpas:
            self._missing["own"] = OWN_HPAS
        if settings.horizontal.native_hpas:
            self._missing["native"] = NATIVE_HPAS
        self._problems: dict[str, str] = {}
        self._unchecked: dict[str, str] = {}
        """Why namespaces were not searched for another controller, by name."""
        self._logged: dict[str, str] = {}
        self._retry_at = 0.0

    async def start(self, pods: NamespacedInformer[Any]) -> None:
        """Watch the kinds that are served, and wait for their lists and those of their targets, not for pods."""
        await self._watch_served()
        await self.wait_for_lists(without=pods)
        # The HPAs name their targets, whose watches started while the lists came in.
        await self.wait_for_lists(without=pods)

    async def retry(self) -> None:
        """Try again, at times, to watch kinds that could not be watched before."""
        if (self._missing or self._unchecked) and self._clock.monotonic() >= self._retry_at:
            if self._unchecked:
                await self._look_for_rival(tuple(self._unchecked))
            await self._watch_served()

    async def _watch_served(self) -> None:
        for name, resource in tuple(self._missing.items()):
            problem = await self._find_problem(resource)
            if problem:
                self._problems[name] = problem
                continue
            self._problems.pop(name, None)
            del self._missing[name]
            self._informer(resource).subscribe(self._hpas.event_handler(resource))
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS
        found = {f"{name} HPAs": problem for name, problem in self._problems.items()} | self._unseen()
        for name, problem in found.items():
            if self._logged.get(name) != problem:
                log.warning("%s: %s", name, problem)
        self._logged = found

    def _informer(self, resource: Resource[HorizontalPodAutoscaler]) -> NamespacedInformer[Any]:
        """Return the informer of a kind of HPAs, which starts on first use."""
        return self._caches.get(resource.into(UndecodedHpa).with_transform(self._hpas.read))

    async def wait_for_lists(self, *, without: NamespacedInformer[Any] | None = None) -> None:
        """Wait for the first lists, but not long for a kind that cannot be listed (fault F16)."""
        left_out = {(resource.group, resource.kind) for resource in self._missing.values()}
        if without is not None:
            left_out.add((without.resource.group, without.resource.kind))
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                await self._caches.wait_settled(without=left_out)
        except TimeoutError:
            for name, problem in self._unlisted().items():
                log.warning("%s: %s", name, problem)

    async def wait_for_parts(self, parts: Sequence[str], *, without: NamespacedInformer[Any]) -> None:
        """Wait for the first lists of a shard, as `start` waits for those of a process."""
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                for _ in range(2):  # the HPAs name their targets, whose watches start while the lists come in
                    await self._caches.wait_parts(parts, without=without)
        except TimeoutError:
            log.warning("the first lists of %s are not complete", ", ".join(parts))

    async def report_native_only(self) -> None:
        """Log that there are only native HPAs, which an operator without `--native-hpas` leaves alone."""
        runtime = self._runtime
        if runtime.settings.horizontal.native_hpas or len(self._hpas):
            return
        try:
            name = await find_native_hpa(runtime.client, runtime.settings.watch_namespaces)
        except errors.ClusterError:
            return  # a hint, not a problem of this operator
        if name:
            log.warning(
                "there is no HPA of Trimtab's own kind (thpa), only native ones such as %s, which this operator leaves "
                "alone; act on them with --native-hpas, or convert them with `trimtab convert --to trimtab`",
                name,
            )

    def unread(self) -> dict[str, str]:
        """Return the last error of each kind that cannot be listed or watched now, by plural."""
        errors_by_kind = {cache.resource.plural: cache.last_error() for cache in self._caches}
        return {plural: error for plural, error in errors_by_kind.items() if error}

    def have_listed(self) -> bool:
        """Return whether the HPAs of every kind are cached, or the kind is known not to be served."""
        return all(
            self._is_absent(name) if name in self._missing else self._informer(resource).is_read
            for name, resource in self._wanted().items()
        )

    def are_absent(self) -> bool:
        """Return whether no kind of HPAs that is acted on is served."""
        return all(self._is_absent(name) for name in self._wanted())

    def _wanted(self) -> dict[str, Resource[HorizontalPodAutoscaler]]:
        wanted = self._runtime.settings.horizontal
        kinds = {"own": OWN_HPAS} if wanted.own_hpas else {}
        return kinds | ({"native": NATIVE_HPAS} if wanted.native_hpas else {})

    def problems(self) -> dict[str, str]:
        """Return what keeps HPAs of all namespaces from being reconciled as usual, by name."""
        return self._missing_kinds(is_needed=True) | self._unlisted() | self._stale(is_everywhere=True)

    def warnings(self) -> dict[str, str]:
        """Return what concerns some namespaces, or a kind that is not needed, by name."""
        return self._missing_kinds(is_needed=False) | self._unseen() | self._stale(is_everywhere=False)

    def _missing_kinds(self, *, is_needed: bool) -> dict[str, str]:
        """Return why kinds of HPAs are not watched. Our own kind is not needed beside native HPAs."""
        is_own_needed = not self._runtime.settings.horizontal.native_hpas
        return {
            name: problem
            for name, problem in self._problems.items()
            if is_needed is (name != "own" or is_own_needed or not self._is_absent(name))
        }

    def _is_absent(self, name: str) -> bool:
        if name not in self._missing or name not in self._problems:
            return False
        return self._problems[name].startswith(_not_served(self._missing[name]))

    def _stale(self, *, is_everywhere: bool) -> dict[str, str]:
        found: dict[str, str] = {}
        for cache in self._caches:
            plural, reasons = cache.resource.plural, cache.stale_reasons() if cache.is_settled else {}
            is_kind = bool(reasons) and len(reasons) == len(list(cache.informers()))
            if is_kind and is_everywhere is not self._is_removed(cache):
                found[plural] = next(iter(reasons.values()))
            elif not is_kind and not is_everywhere:
                found |= {f"{plural} of {namespace}": reason for namespace, reason in reasons.items()}
        return found

    def _is_removed(self, cache: NamespacedInformer[Any]) -> bool:
        """Return whether our own kind is no longer served beside native HPAs."""
        is_own = cache.resource.group == OWN_HPAS.group
        return is_own and bool(cache.refusals()) and self._runtime.settings.horizontal.native_hpas

    def _unlisted(self) -> dict[str, str]:
        return {
            cache.resource.plural: cache.last_error() or "the first list is not complete"
            for cache in self._caches
            if not cache.is_settled and (self._caches.share.is_fixed or cache.last_error())
        }

    async def _find_problem(self, resource: Resource[HorizontalPodAutoscaler]) -> str:
        """Return why a kind cannot be watched now, or "" if it can."""
        try:
            served = await self._runtime.discovery.served(resource.group, resource.version, resource.plural)
        except errors.ClusterError as error:
            return str(error)
        if served is None:
            return f"{_not_served(resource)}: install it with `{INSTALL_CRDS}`"
        if resource is not NATIVE_HPAS or isinstance(self._runtime.fence, ClosedFence):
            return ""
        self._informer(resource)  # its list arrives while the other controller is looked for
        return await self._look_for_rival(self._runtime.settings.watch_namespaces)

    async def _look_for_rival(self, namespaces: Sequence[str]) -> str:
        """Raise if kube-controller-manager acts on native HPAs. Return why that cannot be seen, or ""."""
        runtime = self._runtime
        try:
            self._unchecked = await ensure_hpa_controller_is_off(
                runtime.client, namespaces, runtime.clock.now()
            )
        except errors.ClusterError as error:
            return f"{_UNSEEN}: {error}"
        return ""

    def _unseen(self) -> dict[str, str]:
        return {
            f"native HPAs of {namespace}": f"{_UNSEEN}: {reason}"
            for namespace, reason in self._unchecked.items()
        }


def _not_served(resource: Resource[HorizontalPodAutoscaler]) -> str:
    return f"{resource.plural}.{resource.group} is not served"
