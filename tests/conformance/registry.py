"""Which checker answers for which cases; filled by the `checks` decorator when topic modules are imported."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Case = Mapping[str, Any]
Checker = Callable[[dict[str, Any]], str | None]
Field = Literal["function", "kind"]


@dataclass(frozen=True)
class Registration:
    """One checker and the cases it takes: those of files whose name begins with `stem`."""

    stem: str
    checker: Checker


_REGISTERED: dict[tuple[str, str], list[Registration]] = {}


def checks(field: Field, *names: str, stem: str = "") -> Callable[[Checker], Checker]:
    """Register the decorated checker for cases whose `field` is one of `names`."""

    def register(checker: Checker) -> Checker:
        for name in names:
            _REGISTERED.setdefault((field, name), []).append(Registration(stem, checker))
        return checker

    return register


def name_of(case: Case) -> str:
    """Say what a case calls, as `function X` or `kind X`."""
    for field in ("function", "kind"):
        if field in case:
            return f"{field} {case[field]}"
    return "no function and no kind"


def find(case: Case, stem: str) -> Checker | None:
    """Return the checker of a case in the file `stem`; the one with the longest matching stem wins."""
    field, _, name = name_of(case).partition(" ")
    fitting = [entry for entry in _REGISTERED.get((field, name), []) if stem.startswith(entry.stem)]
    return max(fitting, key=lambda entry: len(entry.stem)).checker if fitting else None


def load_topics(package: str) -> list[str]:
    """Import every module of the package and return a line for each that cannot be imported.

    One broken topic must not hide the results of the others; its files then fail as not covered.
    """
    broken = []
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.name.endswith(".__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except (ImportError, SyntaxError, NameError, AttributeError, TypeError) as error:
            broken.append(f"{module.name} cannot be imported: {type(error).__name__}: {error}")
    return broken
