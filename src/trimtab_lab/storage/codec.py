"""JSON and YAML within limits, and identities: uids, tokens and generated names, which repeat with a seed."""

import json
import random
import secrets
import uuid
from typing import Any

import msgspec
import yaml

from trimtab.model.json.shape import describe
from trimtab.model.status import StatusError, bad_request, unsupported_media_type

JsonObject = dict[str, Any]

encode = msgspec.json.encode
decode = msgspec.json.decode

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
#: Bodies nested deeper than this are refused; real objects stay far below, attacks do not (S23).
MAX_DEPTH = 100
#: YAML aliases in one document; more is a bomb, not a manifest (CVE-2019-11253).
MAX_ALIASES = 100
#: Values of one YAML document with its aliases expanded. A few aliases of aliases are enough for a bomb.
MAX_VALUES = 200_000


def copy_of(value: Any) -> Any:
    """Return a deep copy of JSON data."""
    return decode(encode(value))


def decode_body(body: bytes, content_type: str, known: tuple[str, ...] = (JSON, YAML)) -> JsonObject:
    """Decode a request body that must hold one object."""
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media not in known:
        raise unsupported_media_type((*known, PROTOBUF))
    value = decode_yaml(body) if media == YAML else decode_json(body)
    if not isinstance(value, dict):
        raise bad_request(
            f"the request body must be one JSON object, not {describe(value)}; send the object itself"
        )
    return value


def decode_json(body: bytes) -> Any:
    """Decode JSON of bounded depth."""
    try:
        value = decode(body)
    except msgspec.DecodeError as problem:
        raise bad_request(f"error decoding JSON: {problem}") from problem
    except RecursionError as problem:
        raise _too_deep() from problem
    check_depth(body, value)
    return value


def _too_deep() -> StatusError:
    return bad_request(f"the request body is nested deeper than {MAX_DEPTH} levels")


def check_depth(body: bytes, value: Any) -> None:
    """Refuse values nested deeper than `MAX_DEPTH`."""
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise _too_deep()


def _is_deeper(value: Any, budget: int) -> bool:
    if isinstance(value, dict):
        return budget == 0 or any(_is_deeper(child, budget - 1) for child in value.values())
    if isinstance(value, list):
        return budget == 0 or any(_is_deeper(child, budget - 1) for child in value)
    return False


class _JsonLoader(yaml.SafeLoader):
    """YAML with the values of JSON and few aliases."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count aliases while composing."""
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MAX_ALIASES:
                raise bad_request(f"the YAML document has more than {MAX_ALIASES} aliases")
        return super().compose_node(parent, index)


# A date in a manifest is text for the API, so the timestamp rule of YAML 1.1 is left out.
_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decode_yaml(body: bytes) -> Any:
    try:
        value = yaml.load(body, Loader=_JsonLoader)  # noqa: S506 - a subclass of SafeLoader
        has_bomb = b"*" in body and _count_expanded(value, {}) > MAX_VALUES
    except StatusError:
        raise
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError) as problem:
        raise bad_request(f"error converting YAML to JSON: {problem}") from problem
    if has_bomb:
        raise bad_request(f"the YAML document has more than {MAX_VALUES} values with its aliases written out")
    if _is_deeper(value, MAX_DEPTH):
        raise _too_deep()
    try:
        return copy_of(value)
    except (TypeError, msgspec.EncodeError) as problem:
        raise bad_request(f"error converting YAML to JSON: {problem}") from problem


def _count_expanded(value: Any, known: dict[int, int]) -> int:
    """Return the number of values with all aliases expanded. A value that contains itself is too many."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MAX_VALUES + 1
        children = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count_expanded(child, known) for child in children)
    return known[id(value)]


def duplicate_fields(body: bytes) -> list[str]:
    """Return the paths of fields that are given twice."""
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged = dict(pairs)
        if len(merged) != len(pairs):
            seen: set[str] = set()
            twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
            merged["\0twice"] = twice
        return merged

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            found.extend(f"{path}{key}" for key in value.pop("\0twice", ()))
            for key, child in value.items():
                walk(child, f"{path}{key}.")
        elif isinstance(value, list):
            for index, child in enumerate(value):
                walk(child, f"{path[:-1]}[{index}].")

    try:
        walk(json.loads(body, object_pairs_hook=collect), "")
    except (ValueError, RecursionError):
        return []
    return found


#: Letters of generated names; without vowels and look-alikes no word appears by chance.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Identities:
    """A source of unique identities."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - seeded on purpose
        self.is_seeded = seed is not None

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def token(self) -> str:
        """Return a new bearer token."""
        if self.is_seeded:
            return f"{self._random.getrandbits(192):048x}"
        return secrets.token_hex(24)

    def suffix(self) -> str:
        """Return the five letters that complete a `generateName`."""
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(5))
