"""Declares settings. A `Setting` has every fact from which flag, page, chart and Lease are derived."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar, cast, dataclass_transform, get_origin, get_type_hints

from trimtab.model.feature_gates import ALL_ALPHA, ALL_BETA, BOOLEANS, GATES
from trimtab.model.plugin_names import PLUGIN_NAME
from trimtab.model.times import format_duration, parse_duration

Group = TypeVar("Group")

ALL_LOOPS: Final = "horizontal recommender updater admission roles"
EVERY: Final = f"{ALL_LOOPS} dashboard adapter"
"""All components."""
COMMAND: Final = "command"
"""Reads a setting: `trimtab run`, before it makes a component."""
ADAPTER_COMMAND: Final = "adapter-command"
"""Reads a setting: `trimtab adapter`, which is a program of its own."""

SIMULATE: Final = "simulate"
"""Reads a setting: `trimtab simulate`."""


class Form(NamedTuple):
    """What a text, or each part of a list, looks like."""

    pattern: str
    says: str
    """Completes the sentence "'x' is not ..."."""


_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
NAMESPACE: Final = Form(_LABEL, "a namespace: up to 63 lower case letters, digits and dashes")
PLUGIN: Final = Form(PLUGIN_NAME, "a plug-in's name: a domain and a name, such as example.com/NotDraining")
# fmt: off
GATE: Final = Form(f"({'|'.join((ALL_ALPHA, ALL_BETA, *GATES))})=({'|'.join(filter(None, BOOLEANS))})", "a gate that exists, as Name=true")
NAME: Final = Form("[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", "a name of up to 40 lower case letters, digits and dashes")
"""Of a recommender. Its Lease has no more of it, and the chart cannot compute the checksum that `lease_part` adds."""
QUANTITY: Final = Form(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", "a quantity such as 50m or 128Mi")
_UNIT: Final = "(ns|us|µs|ms|s|m|h)"
_PART: Final = rf"(([0-9]+(\.[0-9]*)?|\.[0-9]+){_UNIT})"
DURATION: Final = Form(rf"\+?(0|{_PART}+)", "a duration such as 15s, 5m or 1h30m")
SOME_TIME: Final = Form(rf"\+?{_PART}*[0-9.]*[1-9][0-9.]*{_UNIT}{_PART}*", "a duration of more than 0, such as 15s, 5m or 1h30m")
ADDRESS: Final = Form(r"https?://[^@\s]+", "an address that begins with http:// or https://, without a user name")
# fmt: on

_SWITCHES: Final = {"true": True, "false": False}
_NUMBERS: Final = {int: "integer", float: "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting, as it is declared."""

    name: str = ""
    type: Any = str
    """bool, int, float, str, timedelta or tuple."""
    default: Any
    help: str
    why: str = "Upstream's default."
    """Why this default."""
    group: str = ""
    read_by: frozenset[str] = frozenset()
    """The components that read the setting, `COMMAND` or `ADAPTER_COMMAND`."""
    flag: str = ""
    """The flag, which is upstream's where upstream has the setting."""
    decides: bool = False
    """Whether decisions depend on the setting. Only such settings are published on the Lease."""
    is_secret: bool = False
    """Whether no Lease, page, schema, log or error may show the value."""
    is_essential: bool = False
    """Whether `trimtab run --help` shows the setting."""
    per_program: bool = False
    """Whether the programs of an installation may have different values."""
    is_wired: bool = False
    """Whether the installation sets the value: a port, a certificate, a file, a name that two programs share."""
    least: Any = None
    most: Any = None
    is_positive: bool = False
    choices: tuple[str, ...] = ()
    """All values that the setting can have. Empty means any text or number."""
    form: Form | None = None
    compat: dict[str, Any] = field(default_factory=dict)
    """Defaults with --compat, by the upstream program that it names: `kubernetes` or `vpa`."""
    aliases: tuple[str, ...] = ()
    """Other names of the flag: upstream's, where ours differs."""
    variables: tuple[str, ...] = ()
    """Environment variables that upstream reads for the same setting."""
    is_list: bool = False
    """Whether a text is a list or a map with commas, so that the flag can be repeated. A tuple always is."""

    def __post_init__(self) -> None:
        if self.is_secret and (self.decides or self.default or self.choices or self.type is not str):
            raise TypeError("a secret is a text without default, and is never published")

    @property
    def key(self) -> str:
        """Return the name of the flag without its dashes: the key in the chart and on the Lease."""
        return self.flag.removeprefix("--")

    @property
    def environment(self) -> str:
        """Return the environment variable of the flag: `--sync-period` has `TRIMTAB_SYNC_PERIOD`."""
        return "TRIMTAB_" + self.key.replace("-", "_").upper()

    def default_with(self, programs: Iterable[str]) -> Any:
        """Return the default where --compat names these upstream programs, as `vpa-1.8`."""
        families = {program.partition("-")[0] for program in programs}
        return next((value for name, value in self.compat.items() if name in families), self.default)

    def text(self, value: Any) -> str:
        """Return a value as the command line takes it."""
        if isinstance(value, timedelta):
            return format_duration(value)
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def parse(self, text: str) -> Any:
        """Return the value of a text that `text` made, or raise ValueError."""
        if self.type is bool:
            if text not in _SWITCHES:
                raise ValueError(f"{text!r} is neither true nor false")
            return _SWITCHES[text]
        if self.type is timedelta:
            return parse_duration(text)
        return tuple(part for part in text.split(",") if part) if self.type is tuple else self.type(text)

    def shown(self, value: Any) -> str:
        """Return a value as help and reference pages show it."""
        return self.text(value) or "none"

    def row(self) -> tuple[str, ...]:
        """Return the row of the reference page."""
        compat = "; ".join(f"{family}: `{self.shown(value)}`" for family, value in self.compat.items())
        notes = ["published"] * self.decides + ["a secret"] * self.is_secret
        notes += ["set by the chart"] * self.is_wired + ["may differ by program"] * self.per_program
        default, meaning = f"`{self.shown(self.default)}`", f"{self.help} {self.why}"
        flag, readers = f"`{self.flag}`<br>`{self.environment}`", ", ".join(sorted(self.read_by))
        return flag, default, meaning, self.bounds, compat, readers, ", ".join(notes)

    @property
    def bounds(self) -> str:
        """Return the numbers or words that the setting can have, or an empty text for any text."""
        if self.choices:
            *first, last = filter(None, self.choices)
            return f"{', '.join(first)} or {last}"
        if self.is_positive:
            return "more than 0"
        if self.least is None:
            return "any number" if self.type in _NUMBERS else ""
        least = self.text(self.least)
        return f"{least} or more" if self.most is None else f"{least} to {self.text(self.most)}"

    def allows(self, value: Any) -> bool:
        """Return whether a value is one of the choices, or within the bounds."""
        if self.choices:
            return value in self.choices
        if (self.type is float and not isfinite(value)) or (self.is_positive and value <= type(value)()):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a value in the chart. A list is a text with commas, as on the command line."""
        about = {"description": self.help}
        if self.type is bool:
            return {"type": "boolean", **about}
        if self.choices:
            return {"type": "string", "enum": list(self.choices), **about}
        if self.type in _NUMBERS:
            limits = {"minimum": self.least, "maximum": self.most}
            given = {name: limit for name, limit in limits.items() if limit is not None}
            return {"type": _NUMBERS[self.type], **given, **about}
        if self.form is None:
            return {"type": "string", **about}
        pattern, says = f"({self.form.pattern})", self.form.says
        if self.is_list:
            pattern, says = f"({pattern}(,{pattern})*)?", f"a list with commas, of which each part is {says}"
        elif not self.default:
            pattern, says = f"{pattern}?", f"{says}, nor empty"
        return {"type": "string", "pattern": f"^{pattern}$", "title": says, **about}


def setting(default: Any, flag: str = "", *, read_by: str = "", **facts: Any) -> Any:
    """Declare a setting of a group. Its flag is made from its name, unless it is given.

    `default`, `least` and `most` of a duration, and its defaults with --compat, are texts such as `15s`.
    """
    return Setting(default=default, flag=flag, read_by=frozenset(read_by.split()), **facts)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings_group(title: str, read_by: str) -> Callable[[type[Group]], type[Group]]:
    """Return a decorator that makes a frozen dataclass. Its settings are read by `read_by`, unless they say otherwise."""

    def decorate(cls: type[Group]) -> type[Group]:
        made = []
        for name, kind in get_type_hints(cls).items():
            declared = cls.__dict__.get(name)
            if isinstance(declared, Setting):
                complete = _completed(declared, name, get_origin(kind) or kind, title, read_by)
                setattr(cls, name, field(default=complete.default, repr=not complete.is_secret))
                made.append(complete)
        group = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        group.DECLARED = tuple(made)  # type: ignore[attr-defined]  # read by `settings_in` only
        return group

    return decorate


def _completed(declared: Setting, name: str, kind: Any, title: str, read_by: str) -> Setting:
    def value(given: Any) -> Any:
        return parse_duration(given) if is_time and given is not None else given

    is_time = kind is timedelta
    return replace(
        declared,
        name=name,
        type=kind,
        group=declared.group or title,
        read_by=declared.read_by or frozenset(read_by.split()),
        flag=declared.flag or f"--{name.replace('_', '-')}",
        default=value(declared.default),
        least=value("0s" if is_time and declared.least is None else declared.least),
        most=value(declared.most),
        compat={program: value(given) for program, given in declared.compat.items()},
        form=(SOME_TIME if declared.is_positive else DURATION) if is_time else declared.form,
        is_list=declared.is_list or kind is tuple,
    )


def settings_in(group: Any) -> tuple[Setting, ...]:
    """Return the settings that a group declares, without those of groups in it."""
    return cast("tuple[Setting, ...]", type(group).DECLARED)


def reject_bad_values(group: Any) -> None:
    """Raise ValueError with the flag's name if a value of a group is none of its choices, or out of bounds."""
    for declared in settings_in(group):
        value = getattr(group, declared.name)
        if not declared.allows(value):
            problem = " is not known;" if declared.choices else ":"
            raise ValueError(f"{declared.flag}={declared.text(value)}{problem} use {declared.bounds}")
