"""What of the cluster can be read, in sentences for the page: the connection, missing rights, unfinished lists."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.client import Client
from trimtab.cluster.foreign_answers import foreign_answer
from trimtab.cluster.transport import Deadlines, Request, Response
from trimtab.dashboard.pages.views import Notice
from trimtab.operator.horizontal.kinds import INSTALL_CRDS, NATIVE_HPAS, OWN_HPAS, find_native_hpa
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import NATIVE, OWN

log = logging.getLogger(__name__)

_INSTALL: Final = f"`{INSTALL_CRDS}`"
NO_VPAS: Final = f"The cluster does not serve VerticalPodAutoscalers. To install the kind, type {_INSTALL}."
NO_HPAS: Final = (
    f"The cluster does not serve HorizontalPodAutoscalers of Trimtab's kind. To install it, type {_INSTALL}."
)
NO_CRDS: Final = Notice(
    text=f"Trimtab's CRDs are not installed in this cluster. To install them, type {_INSTALL}.",
    is_problem=True,
)
_NATIVE_ONLY: Final = (
    "There is no HPA of Trimtab's own kind, only native ones such as {}, which are not shown. "
    "To see them, start this program with --native-hpas."
)
PROBE_SECONDS: Final = 5.0
"""Time between two probes. A watch alone notices a lost server after minutes."""
_MAX_NAMED: Final = 2
"""Kinds that the sentence about missing rights names. Its details have all of them."""
_FIRST: Final = (OWN_HPAS, NATIVE_HPAS, OWN.vpas, NATIVE.vpas)
_LABELS: Final = {"own": "HPAs of Trimtab's kind", "native": "native HPAs"}
_NO_LIST_YET: Final = "the first list"
_RIGHTS_HINT: Final = "name the namespaces that it may read with -n, or grant it these rights"


class ClusterConnection:
    """Asks the API server for its version, again and again, and keeps what came of it.

    `report` receives each problem once, and an empty text when the server answers again.
    """

    def __init__(
        self, clock: Clock, client: Client, report: Callable[[str], None] = lambda _problem: None
    ) -> None:
        self._clock = clock
        self._client = client
        self._report = report
        self.problem = ""
        """Why the cluster cannot be read at all, as a sentence, or an empty text."""
        self.answered_at = 0.0
        """When the server last accepted a request, in seconds since 1970. Zero if it never did."""

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.probe()
            await self._clock.sleep(PROBE_SECONDS)

    async def is_answering(self) -> bool:
        """Return whether the server answers now."""
        await self.probe()
        return not self.problem

    async def probe(self) -> None:
        """Ask once. A refusal is an answer too, except for one of the credentials."""
        problem = await self._ask()
        if not problem:
            self.answered_at = self._clock.now().timestamp()
        if problem != self.problem:
            self.problem = problem
            self._report(problem)

    async def _ask(self) -> str:
        """Return why the cluster cannot be read, or an empty text.

        The request bypasses the client's queue, which holds requests back during an outage and hides its cause.
        """
        request = Request("GET", "/version", deadlines=Deadlines().within(PROBE_SECONDS))
        try:
            answer = await self._client.sender.transport.request(request)
        except errors.ClusterError as error:
            cause = str(error).removeprefix(f"{request}: ")
            return f"The cluster cannot be reached: {cause}{'' if cause.endswith('?') else '.'}"
        return _refusal(request, answer)


def _refusal(request: Request, answer: Response) -> str:
    if (foreign := foreign_answer(request, answer)) is not None:
        return f"The cluster cannot be reached: its address {foreign.text}: {foreign.advice}."
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return "The cluster does not accept this program's credentials (401): log in again, or choose another context."
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"The cluster cannot be reached: its API server answers {answer.status}."
    return ""


@dataclass(frozen=True)
class ReadProblems:
    """What cannot be read, by name, and the caches in question."""

    texts: Mapping[str, str]
    caches: Iterable[NamespacedInformer[Any]] = ()

    def notices(self, connection_problem: str) -> tuple[Notice, ...]:
        """Return one sentence, with all messages as its details."""
        failed = {name: text for name, text in self.texts.items() if not text.startswith(_NO_LIST_YET)}
        details = tuple(f"{_LABELS.get(name, name)}: {text}" for name, text in failed.items())
        if connection_problem:
            return (Notice(text=connection_problem, is_problem=True, details=details),)
        if missing := self._missing_rights():
            return (Notice(text=missing, is_problem=True, details=details),)
        if len(details) > 1:
            text = f"{len(details)} parts of the cluster cannot be read. Autoscalers may be missing or old."
            return (Notice(text=text, is_problem=True, details=details),)
        if details:
            return (Notice(text=details[0], is_problem=True),)
        if self.texts:
            return (
                Notice(text=f"Reading the cluster: {', '.join(sorted(self.texts))} are not complete yet."),
            )
        return ()

    def _missing_rights(self) -> str:
        by_place: dict[str, list[str]] = {}
        for cache in sorted(self.caches, key=_rank):
            if places := cache.forbidden():
                name = f"{cache.resource.plural}.{cache.resource.group}".rstrip(".")
                by_place.setdefault(_place(places), []).append(name)
        if not by_place:
            return ""
        parts = " and ".join(f"{_named(names)} {place}" for place, names in by_place.items())
        return f"This program may not list {parts}: {_RIGHTS_HINT}."


def _rank(cache: NamespacedInformer[Any]) -> tuple[bool, str]:
    """Sort the autoscalers first: without them the page is empty."""
    resource = cache.resource
    is_first = any((resource.group, resource.plural) == (kind.group, kind.plural) for kind in _FIRST)
    return not is_first, resource.plural


def _place(namespaces: tuple[str, ...]) -> str:
    return "in all namespaces" if "" in namespaces else f"in {', '.join(namespaces)}"


def _named(names: list[str]) -> str:
    rest = len(names) - _MAX_NAMED
    if rest <= 0:
        return " and ".join(names)
    return f"{', '.join(names[:_MAX_NAMED])} and {rest} more {'kind' if rest == 1 else 'kinds'}"


async def hint_at_native_hpas(client: Client, settings: Settings, *, shown: int) -> str:
    """Return a hint if a page is empty because it does not show native HPAs, or an empty text."""
    if settings.horizontal.native_hpas or shown:
        return ""
    try:
        name = await find_native_hpa(client, settings.watch_namespaces)
    except errors.ClusterError as error:
        log.info("native HPAs cannot be listed: %s", error)
        return ""
    return _NATIVE_ONLY.format(name) if name else ""
