"""The share of a cluster that a process watches, in parts that come and go.

A part is a namespace, or all namespaces of a shard. The API server selects the objects of a shard: the field selector
`metadata.namespace!=a,metadata.namespace!=b` leaves out the namespaces of other shards, in one watch, on every server
and for every kind. It is an optimization. The informer drops objects of other shards that arrive all the same, such as
those of new namespaces, and the next request leaves their namespace out too. See
docs/decisions/shard-work-by-lease-and-fence-every-write.md.
"""

import asyncio
import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.codec.objects import Object, PartialObject
from trimtab.cluster.resource import Resource

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)

MOST_TEXT = 32 * 1024
"""Maximum bytes of a field selector: 700 namespaces, which cost the server 20 µs per object. A server takes 1 MB."""

MOST_KNOWN = 10_000
"""Maximum namespaces that are remembered. The oldest are forgotten first, because namespaces also go."""

LEARN_SECONDS = 3.0
"""How long to wait for the list of namespaces before a part is listed without it."""

REFUSED_LENGTHS = frozenset({400, 414, 431})
"""The codes with which a server, or a proxy before it, refuses a long selector."""

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", PartialObject, namespaced=False)
_TERM = "metadata.namespace!="


class Exclusions:
    """The known namespaces, those with many unwanted objects first, and how much text may name them."""

    def __init__(self) -> None:
        self._dropped: Counter[str] = Counter()
        self.version = 0
        """Changes with every new namespace."""
        self.budget = MOST_TEXT

    def learn(self, namespaces: Iterable[str]) -> None:
        """Add namespaces that exist."""
        for namespace in namespaces:
            self._add(namespace)

    def note_dropped(self, namespace: str) -> None:
        """Count an object that was sent for nothing."""
        self._add(namespace)
        self._dropped[namespace] += 1

    def _add(self, namespace: str) -> None:
        if namespace in self._dropped:
            return
        self._dropped[namespace] = 0
        self.version += 1
        if len(self._dropped) > MOST_KNOWN:
            del self._dropped[next(iter(self._dropped))]

    def shorten(self) -> None:
        """Use shorter selectors from now on, because a server refused one."""
        self.budget //= 2
        self.version += 1

    def selector(self, accepts: Callable[[str], bool]) -> str:
        """Return the field selector that leaves out the namespaces that are not accepted, as far as they fit."""
        terms: list[str] = []
        left = self.budget
        foreign = [(-count, name) for name, count in self._dropped.items() if not accepts(name)]
        for _, name in sorted(foreign):
            left -= len(_TERM) + len(name) + 7  # percent-encoded
            if left < 0:
                break
            terms.append(_TERM + name)
        return ",".join(sorted(terms))


class Part:
    """A part of a share: one namespace, or the namespaces that `accepts` names. Empty means all."""

    def __init__(
        self,
        name: str,
        *,
        namespace: str = "",
        accepts: Callable[[str], bool] | None = None,
        exclusions: Exclusions | None = None,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self._accepts = accepts
        self._exclusions = exclusions
        self._selector = ("", -1)
        self._wanted = ""

    def selecting(self, fields: str) -> "Part":
        """Return the same part of those objects only that a field selector selects."""
        part = copy.copy(self)
        part._wanted = fields
        return part

    @property
    def is_filtered(self) -> bool:
        """Return whether objects may arrive that do not belong to this part."""
        return self._accepts is not None

    def accepts(self, namespace: str) -> bool:
        """Return whether objects of a namespace belong to this part."""
        return self._accepts is None or self._accepts(namespace)

    def note_dropped(self, namespace: str) -> None:
        """Count an object that does not belong to this part."""
        if self._exclusions is not None:
            self._exclusions.note_dropped(namespace)

    def note_failure(self, error: Exception, fields: str) -> None:
        """Use a shorter selector if the server may have refused `fields`, which this part returned.

        All informers of a process send selectors of one length. The first refusal shortens them, and the others, which
        were under way, are no reason to shorten them again.
        """
        is_refused = isinstance(error, errors.ApiError) and error.code in REFUSED_LENGTHS
        if not is_refused or self._exclusions is None or not self._left_out():
            return
        if len(fields) <= len(self.fields()):
            self._exclusions.shorten()
            log.info("the API server refused a long field selector; trying %d bytes", self._exclusions.budget)

    def fields(self) -> str:
        """Return the field selector, which leaves out other parts as far as it can."""
        return ",".join(filter(None, (self._wanted, self._left_out())))

    def _left_out(self) -> str:
        if self._exclusions is None or self._accepts is None:
            return ""
        if self._selector[1] != self._exclusions.version:
            self._selector = self._exclusions.selector(self._accepts), self._exclusions.version
        return self._selector[0]


class Share:
    """The parts that a process watches now, by name. Without shards they are fixed."""

    def __init__(self, namespaces: Sequence[str] = ()) -> None:
        self.namespaces = tuple(namespaces)
        """The watched namespaces; none means all."""
        self.parts: dict[str, Part] = {
            namespace: Part(namespace, namespace=namespace) for namespace in self.namespaces or ("",)
        }
        self.is_fixed = True

    @property
    def covers_all(self) -> bool:
        """Return whether all namespaces are watched."""
        return self.is_fixed and not self.namespaces

    def part_of(self, namespace: str) -> str:
        """Return the name of the part that a namespace belongs to, watched or not."""
        return namespace if self.namespaces else ""

    async def prepare(self) -> None:
        """Wait until a part can be listed."""


class ShardedShare(Share):
    """The parts of the shards that a process holds. `enter` and `leave` change them."""

    def __init__(
        self, client: Client, shard_of: Callable[[str], int], namespaces: Sequence[str] = ()
    ) -> None:
        """Assign namespaces to shards by `shard_of`."""
        super().__init__(namespaces)
        self.parts = {}
        self.is_fixed = False
        self.exclusions = Exclusions()
        self._client = client
        # Every object that arrives needs the shard of its namespace.
        self._shard_of = lru_cache(MOST_KNOWN)(shard_of)
        self._shards: set[int] = set()
        self._learning: asyncio.Future[None] | None = None
        self._listeners: list[Callable[[Part, bool], None]] = []

    def listen(self, listener: Callable[[Part, bool], None]) -> None:
        """Call `listener` with every part that is added (True) or removed."""
        self._listeners.append(listener)

    def part_of(self, namespace: str) -> str:
        """Return the name of the part that a namespace belongs to, watched or not."""
        return namespace if self.namespaces else shard_part(self._shard_of(namespace))

    def is_watched(self, shard: int) -> bool:
        """Return whether the namespaces of a shard are watched."""
        return shard in self._shards

    def parts_of(self, shard: int) -> tuple[str, ...]:
        """Return the names of the watched parts with objects of a shard."""
        own = self._names_of(shard)
        return tuple(name for name in self.parts if name in own)

    def enter(self, shard: int) -> None:
        """Watch the namespaces of a shard."""
        self._shards.add(shard)
        for name in self._names_of(shard):
            if name not in self.parts:
                self.parts[name] = self._make(name, shard)
                self._tell(self.parts[name], is_added=True)

    def leave(self, shard: int) -> None:
        """Stop to watch the namespaces of a shard."""
        self._shards.discard(shard)
        for name in self._names_of(shard):
            part = self.parts.pop(name, None)
            if part is not None:
                self._tell(part, is_added=False)

    async def prepare(self) -> None:
        """Learn which namespaces exist, so that the first list already leaves out those of other shards."""
        if self.namespaces:
            return
        if self._learning is None:
            self._learning = asyncio.ensure_future(self._learn())
        await asyncio.shield(self._learning)

    async def _learn(self) -> None:
        try:
            async with asyncio.timeout(LEARN_SECONDS):
                listed = await self._client.list(_NAMESPACES, ListOptions(drops_managed_fields=True))
        except (errors.ClusterError, TimeoutError) as error:
            # They become known while their objects arrive and are dropped.
            log.info("namespaces are not listed: %s", str(error) or "no answer in time")
            return
        self.exclusions.learn(namespace.metadata.name for namespace in listed.items)

    def _names_of(self, shard: int) -> list[str]:
        if self.namespaces:
            return [name for name in self.namespaces if self._shard_of(name) == shard]
        return [shard_part(shard)]

    def _make(self, name: str, shard: int) -> Part:
        if name != shard_part(shard):
            return Part(name, namespace=name)
        return Part(
            name, accepts=lambda namespace: self._shard_of(namespace) == shard, exclusions=self.exclusions
        )

    def _tell(self, part: Part, *, is_added: bool) -> None:
        for listener in self._listeners:
            listener(part, is_added)


async def list_part(client: Client, resource: Resource[T], part: Part) -> list[T]:
    """List the objects of a part, without those of others that the server sends all the same."""
    fields = part.fields()
    try:
        listed = await client.list(resource, ListOptions(part.namespace or None, fields=fields))
    except errors.ApiError as error:
        part.note_failure(error, fields)
        raise
    found: list[T] = []
    for obj in listed.items:
        if part.accepts(obj.metadata.namespace):
            found.append(obj)
        else:
            part.note_dropped(obj.metadata.namespace)
    return found


def shard_part(shard: int) -> str:
    """Return the name of the part of a shard. No namespace can have it."""
    return f"shard {shard}"
