"""Reads the administrator's files: bounded, typed, and only below the configuration's directory."""

import re
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import msgspec
import yaml

API_VERSION = "adapter.trimtab.dev/v1alpha1"
MAX_BYTES = 4 * 1024 * 1024
_MAX_ALIASES = 100
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)\Z", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

T = TypeVar("T")


class ConfigurationError(ValueError):
    """A configuration, rules or values file is invalid. The message contains file, field and reason."""


# For type checkers: subclasses are frozen too.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ConfigSection(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a file. An unknown field is rejected as a misspelling."""


def read_document(path: Path, kind: str) -> dict[str, Any]:
    """Return the fields of a YAML or JSON file after checking its apiVersion and kind."""
    data = parse_document(_read_text(path), str(path))
    header = (data.pop("apiVersion", None), data.pop("kind", None))
    if header != (API_VERSION, kind):
        raise ConfigurationError(
            f"{path}: is {header[0]} {header[1]}; expected apiVersion: {API_VERSION}, kind: {kind}"
        )
    return data


def kind_of(path: Path) -> str:
    """Return the kind that a file names, or an empty text if it names none."""
    try:
        return str(parse_document(_read_text(path), str(path)).get("kind", ""))
    except ConfigurationError:
        return ""  # whoever reads the file says what is wrong


def parse_document(text: str, name: str) -> dict[str, Any]:
    """Return one YAML or JSON document that is an object."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader))
        if aliases > _MAX_ALIASES:
            raise ConfigurationError(f"{name}: more than {_MAX_ALIASES} YAML aliases")
        data = yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ConfigurationError(f"{name}: must hold one object with apiVersion and kind")
    return data


def convert(data: Any, kind: type[T], where: str) -> T:
    """Convert plain data into settings. The message of an error names the field."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def below(root: Path, name: str) -> Path:
    """Return the path of a file that must be below the configuration's directory (S13)."""
    path = root / name
    # The target of the path is checked, and the path itself returned: in a pod it is a link that updates replace.
    if not path.resolve().is_relative_to(root.resolve()):
        raise ConfigurationError(f"{name}: lies outside {root}; keep the adapter's files in its directory")
    return path


def seconds(text: str, where: str) -> float:
    """Return a duration such as `90s` or `2m` in seconds."""
    match = _DURATION.match(text)
    if match is None or float(match[1]) <= 0:
        raise ConfigurationError(f"{where}: {text!r} is not a duration such as 30s, 2m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigurationError(f"{path}: larger than {MAX_BYTES // 1024**2} MiB")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not UTF-8 text") from error
