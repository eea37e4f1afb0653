"""Finds plug-ins by their entry points, and imports those that the operator names.

Only names from a flag or a command line reach `load_plugins`. A name in an object of the cluster selects among the loaded
plug-ins and never imports one.

PluginError
├── PluginNotFoundError      no installed package has it
├── DuplicatePluginError     two packages have it
├── PluginImportError        its module cannot be imported
└── PluginShapeError         what is imported is no plug-in of its kind or protocol
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from trimtab.model.plugin_names import RULE, is_plugin_name
from trimtab.model.spelling import nearest
from trimtab.plugins.errors import describe, place_of, plain_errors, plugin_exc_info
from trimtab.plugins.kinds import (
    LONGEST_BUDGET,
    NOTHING_DECLARED,
    PROTOCOL,
    Declaration,
    PluginKind,
    declaration_of,
)
from trimtab.plugins.time_limit import TookTooLong, call_within

log = logging.getLogger(__name__)

LONGEST_IMPORT = 30.0
"""Seconds after which the import of a plug-in is ended."""


class PluginError(ValueError):
    """A plug-in cannot be loaded."""


class PluginNotFoundError(PluginError):
    """No installed package has a plug-in of that name."""


class DuplicatePluginError(PluginError):
    """Two installed packages have a plug-in of that name."""


class PluginImportError(PluginError):
    """The plug-in's module cannot be imported."""


class PluginShapeError(PluginError):
    """What the entry point names is no plug-in of its kind, or was written for another protocol."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded plug-in."""

    name: str
    """Its name with its domain, as in the entry point, in objects and in `--plugins`."""
    kind: PluginKind
    call: Callable[[Any], Any]
    version: str = ""
    """The version of the distribution that has it."""
    distribution: str = ""
    declaration: Declaration = NOTHING_DECLARED

    def __str__(self) -> str:
        return f"{self.kind.label} {self.name} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plug-in of an installed package that is not loaded."""

    name: str
    kind: PluginKind
    version: str
    distribution: str
    entry_point: EntryPoint


class Plugins:
    """The loaded plug-ins of a process, by kind and name."""

    __slots__ = ("_by_key", "errors")

    def __init__(self, plugins: Iterable[Plugin] = (), errors: Mapping[str, str] | None = None) -> None:
        self._by_key = {(plugin.kind, plugin.name): plugin for plugin in plugins}
        self.errors = dict(errors or {})
        """Why plug-ins that were named could not be loaded, by name."""

    def find(self, kind: PluginKind, name: str) -> Plugin | None:
        """Return the loaded plug-in of that kind and name."""
        return self._by_key.get((kind, name))

    def of_kind(self, kind: PluginKind) -> tuple[Plugin, ...]:
        """Return the loaded plug-ins of one kind."""
        return tuple(plugin for plugin in self if plugin.kind is kind)

    def __iter__(self) -> Iterator[Plugin]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)


NO_PLUGINS = Plugins()


def installed_plugins() -> list[InstalledPlugin]:
    """Return the plug-ins of all installed packages, sorted, without importing them."""
    found = {
        (kind, entry.name, entry.value, _distribution(entry)): InstalledPlugin(
            entry.name, kind, entry.dist.version if entry.dist else "", _distribution(entry), entry
        )
        for kind in PluginKind
        for entry in entry_points(group=kind)
    }
    return sorted(found.values(), key=lambda plugin: (plugin.kind, plugin.name, plugin.distribution))


def load_plugins(names: Iterable[str]) -> Plugins:
    """Import the plug-ins of these names and no other, or raise PluginError."""
    wanted = _distinct(names)
    if not wanted:
        return NO_PLUGINS
    installed = installed_plugins()
    return Plugins(load_plugin(_only_one(name, installed)) for name in wanted)


def load_usable_plugins(names: Iterable[str]) -> Plugins:
    """Import the plug-ins of these names, and keep the errors of those that cannot be loaded.

    For programs that go on without them: the objects that use such a plug-in say why it is missing.
    """
    loaded: list[Plugin] = []
    errors: dict[str, str] = {}
    for name in _distinct(names):
        try:
            loaded += load_plugins([name])
        except PluginError as error:
            errors[name] = str(error)
            cause = error.__cause__
            log.error("plug-in not loaded: %s", error, exc_info=plugin_exc_info(cause) if cause else None)  # noqa: TRY400 - the cause's traceback
    return Plugins(loaded, errors) if loaded or errors else NO_PLUGINS


def load_plugin(found: InstalledPlugin) -> Plugin:
    """Import one installed plug-in and check its shape, or raise PluginError."""
    where = f"plug-in {found.name} of {found.distribution} {found.version} ({found.entry_point.value})"
    if not is_plugin_name(found.name):
        raise PluginShapeError(f"{where}: {RULE}; rename its entry point")
    log.info("importing %s", where)
    try:
        function, problem, declaration = call_within(LONGEST_IMPORT, _load, found, where)
    except TookTooLong:
        raise PluginImportError(
            f"{where} cannot be imported: it took longer than {LONGEST_IMPORT:.0f} s; "
            "correct the package or leave it out of --plugins"
        ) from None
    except Exception as error:
        raise PluginImportError(
            f"{where} cannot be imported: {describe(error)}{place_of(error)}; correct the package or leave it out of --plugins"
        ) from error
    if problem:
        raise PluginShapeError(f"{where} is no {found.kind.label}: {problem}")
    return Plugin(found.name, found.kind, function, found.version, found.distribution, declaration)


def _load(found: InstalledPlugin) -> tuple[Any, str, Declaration]:
    """Return what the entry point names, why it is no plug-in, and its declaration."""
    with plain_errors():
        function = found.entry_point.load()
        return function, shape_problem(function, found.kind), declaration_of(function)


def shape_problem(function: Any, kind: PluginKind) -> str:
    """Return why an object is no plug-in of a kind, or an empty text."""
    if inspect.isclass(function):
        return "it is a class; name a function, or an instance that can be called"
    if not callable(function):
        return f"it is {type(function).__name__}, which cannot be called"
    declaration = declaration_of(function)
    if declaration.protocol != PROTOCOL:
        return (
            f"it is written for protocol {declaration.protocol} and this program has protocol {PROTOCOL}; "
            "install a version of it for this program"
        )
    if not kind.is_async and not 0 < declaration.budget <= LONGEST_BUDGET:
        return f"its budget is {declaration.budget:g} s; it may be up to {LONGEST_BUDGET:g} s"
    if problem := _waiting_problem(function, kind):
        return problem
    try:
        inspect.signature(function).bind(object())
    except TypeError as error:
        return f"it must take one argument: {error}"
    except ValueError:
        return ""  # a function of a compiled module may have no signature
    return ""


def _waiting_problem(function: Any, kind: PluginKind) -> str:
    """Return why a function waits as no plug-in of a kind does, or an empty text."""
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.isasyncgenfunction(called):
        return "it is an async generator; write return in place of yield"
    if inspect.iscoroutinefunction(called) == kind.is_async:
        return ""
    return "it must be a coroutine function" if kind.is_async else "it must not be a coroutine function"


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def _only_one(name: str, installed: list[InstalledPlugin]) -> InstalledPlugin:
    found = [plugin for plugin in installed if plugin.name == name]
    if not found:
        raise PluginNotFoundError(
            f"plug-in {name} is not installed; {describe_installed(installed, name)}; install its package beside Trimtab"
        )
    if len(found) > 1:
        owners = " and ".join(f"{plugin.distribution} ({plugin.kind.label})" for plugin in found)
        raise DuplicatePluginError(f"plug-in {name} is in {owners}; uninstall one, or rename its entry point")
    return found[0]


def describe_installed(installed: list[InstalledPlugin], name: str) -> str:
    """Return the installed plug-in that a name probably means, or all of them."""
    if not installed:
        return "no package with plug-ins is installed"
    if near := nearest(name, [plugin.name for plugin in installed]):
        return f"did you mean {near}?"
    return "installed are " + ", ".join(f"{plugin.name} ({plugin.kind.label})" for plugin in installed)


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unknown package"
