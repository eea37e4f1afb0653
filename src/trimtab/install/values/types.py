"""The types of the chart's values, as fragments of JSON Schema.

`title` completes the sentence "'x' is not ..." of an error message. Every `pattern` excludes blanks, quotes and backslashes, so that the
chart's templates can write such a value into a text without quoting it.
"""

from collections.abc import Mapping
from typing import Any, Final

from trimtab.model import plugin_names

Schema = Mapping[str, Any]

_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4_RANGE: Final = rf"({_OCTET}\.){{3}}{_OCTET}/(3[0-2]|[12]?[0-9])"
_HEX: Final = "[0-9a-fA-F]{1,4}"
_IPV6: Final = "|".join(
    (
        f"({_HEX}:){{7}}{_HEX}",
        f"({_HEX}:){{1,7}}:",
        *(f"({_HEX}:){{1,{7 - after}}}(:{_HEX}){{1,{after}}}" for after in range(1, 7)),
        f":(:{_HEX}){{1,7}}",
        "::",
    )
)
"""An address of eight numbers, of which `::` stands for those that are 0. Go's patterns have no look-ahead to count them by."""
_IPV6_RANGE: Final = f"({_IPV6})/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"


def matching(pattern: str, title: str) -> Schema:
    """Return the type of texts that match a pattern as a whole."""
    return {"type": "string", "pattern": f"^({pattern})$", "title": title}


def optional(schema: Schema) -> Schema:
    """Return the type that also takes the empty text."""
    return {**schema, "pattern": f"^({schema['pattern'][2:-2]}|)$", "title": f"{schema['title']}, nor empty"}


def choice(*words: str) -> Schema:
    """Return the type of a few words."""
    return {"type": "string", "enum": list(words)}


def whole_number(least: int, most: int) -> Schema:
    """Return the type of whole numbers within bounds.

    All bounds are below a million, because Go's templates print larger numbers of a values file with an exponent.
    """
    return {"type": "integer", "minimum": least, "maximum": most}


def none_or_several(most: int) -> Schema:
    """Return the type of whole numbers from 2 on, and of 0 for none."""
    return {"type": "integer", "enum": [0, *range(2, most + 1)], "title": f"0 or a number from 2 to {most}"}


def list_of(items: Schema) -> Schema:
    """Return the type of lists."""
    return {"type": "array", "items": items}


def map_of(values: Schema, **more: Any) -> Schema:
    """Return the type of maps whose keys the user chooses."""
    return {"type": "object", "additionalProperties": values, **more}


def fields(*required: str, **properties: Schema) -> Schema:
    """Return the type of objects with these fields and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


TEXT: Final[Schema] = {"type": "string"}
SWITCH: Final[Schema] = {"type": "boolean"}
ANY_MAP: Final[Schema] = {"type": "object"}
COUNT: Final = whole_number(0, 999_999)
PORT: Final = whole_number(1, 65_535)
NAMESPACE_NAME: Final = matching(
    _LABEL, "the name of a namespace: up to 63 lower case letters, digits and dashes"
)
RECOMMENDER_NAME: Final = matching(
    _LABEL, "the name of a recommender: up to 63 lower case letters, digits and dashes"
)
PLUGIN_NAME: Final = matching(
    plugin_names.PLUGIN_NAME, "the name of a plug-in: a domain and a name, such as example.com/NotDraining"
)
OBJECT_NAME: Final = matching(
    _SUBDOMAIN, "the name of an object: lower case letters, digits, dashes and dots"
)
DURATION: Final = matching(
    r"\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)", "a duration such as 15s, 5m or 1h30m"
)
QUANTITY: Final[Schema] = {
    "type": ["string", "number"],
    "pattern": r"^([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?)$",
    "title": "a quantity such as 50m or 128Mi",
}
REPOSITORY: Final = matching(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*", "the name of an image without its tag")
TAG: Final = matching(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", "the tag of an image")
DIGEST: Final = matching("sha256:[0-9a-f]{64}", "a digest: sha256: and 64 hexadecimal digits")
CIDR: Final = matching(f"{_IPV4_RANGE}|{_IPV6_RANGE}", "a range of addresses such as 10.0.0.0/8")
URL: Final = matching(r"https?://[^\s\"\\{}]+", "an address that begins with http:// or https://")
HOST: Final = matching(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", "the name of a host")
BASE64: Final = matching(r"[A-Za-z0-9+/]+={0,2}", "base64 without line breaks")
NAMESPACE_AND_NAME: Final = matching(rf"{_LABEL}/{_SUBDOMAIN}", "NAMESPACE/NAME")
API_GROUP: Final = matching(rf"({_SUBDOMAIN})?", "an API group")
RESOURCE: Final = matching("[a-z][a-z0-9-]*", "the plural name of a resource, as in its URL")
METRIC: Final = matching(r"\*|[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:*-]+)?", "the name of a metric")
ARGUMENT: Final[Schema] = {"type": "string", "pattern": "^--?[a-z]", "title": "a flag such as --name=value"}

RESERVED_LABELS: Final = ("app.kubernetes.io/name", "app.kubernetes.io/component")
LABEL_KEY: Final = matching(
    rf"({_SUBDOMAIN}/)?{_LABEL_NAME}", "the key of a label such as team or example.com/team"
)
LABEL_VALUE: Final = optional(
    matching(_LABEL_NAME, "the value of a label: up to 63 letters, digits, dashes, dots and underscores")
)
NODE_LABELS: Final = map_of(LABEL_VALUE, propertyNames=LABEL_KEY)
LABELS: Final = map_of(LABEL_VALUE, propertyNames={**LABEL_KEY, "not": {"enum": list(RESERVED_LABELS)}})
"""Labels of the user's own. Services and policies select pods by the reserved ones."""
TEXTS: Final = map_of(TEXT)

RESOURCES: Final = fields(
    requests=map_of(QUANTITY),
    limits=map_of(QUANTITY),
    claims=list_of(fields("name", name=TEXT, request=TEXT)),
)
TOLERATIONS: Final = list_of(
    fields(
        key=TEXT,
        operator=choice("Exists", "Equal", "Lt", "Gt"),
        value=TEXT,
        effect=choice("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
        tolerationSeconds={"type": "integer"},
    )
)
AFFINITY: Final = fields(nodeAffinity=ANY_MAP, podAffinity=ANY_MAP, podAntiAffinity=ANY_MAP)
SPREAD: Final = list_of(
    fields(
        "topologyKey",
        "whenUnsatisfiable",
        maxSkew=whole_number(1, 999_999),
        minDomains=whole_number(1, 999_999),
        topologyKey=TEXT,
        whenUnsatisfiable=choice("ScheduleAnyway", "DoNotSchedule"),
        nodeAffinityPolicy=choice("Honor", "Ignore"),
        nodeTaintsPolicy=choice("Honor", "Ignore"),
        matchLabelKeys=list_of(TEXT),
    )
)
ENVIRONMENT: Final = list_of(
    fields(
        "name", name=matching("[A-Za-z_][A-Za-z0-9_.-]*", "a variable's name"), value=TEXT, valueFrom=ANY_MAP
    )
)
EGRESS: Final = list_of(fields(to=list_of(ANY_MAP), ports=list_of(ANY_MAP)))
PULL_SECRETS: Final = list_of(fields("name", name=OBJECT_NAME))
SCALABLE: Final = list_of(fields("group", "resource", group=API_GROUP, resource=RESOURCE))


def of_default(default: Any) -> Schema:
    """Return the type that a default shows."""
    match default:
        case bool():
            return SWITCH
        case int():
            return COUNT
        case list():
            return list_of(TEXT)
        case dict():
            return ANY_MAP
        case _:
            return TEXT
