"""Credentials are not in the `repr` of values, which log lines and tracebacks hold."""

import dataclasses
import importlib
import inspect
import pkgutil

import msgspec

import trimtab

SECRET = {"token", "password", "secret", "client_key_data", "key_data", "key_pem", "csrf", "authorization"}


def classes():
    for module in pkgutil.walk_packages(trimtab.__path__, "trimtab."):
        if not module.name.endswith("__main__"):
            for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if found.__module__ == module.name:
                    yield found


def shown(found):
    """Return the names of the fields that the `repr` of a class shows."""
    if dataclasses.is_dataclass(found):
        return {field.name for field in dataclasses.fields(found) if field.repr}
    if issubclass(found, msgspec.Struct) and found.__repr__ is msgspec.Struct.__repr__:
        return set(found.__struct_fields__)
    return set()


def test_no_class_shows_a_credential():
    found = {found for found in classes() if SECRET & shown(found)}
    assert {item.__qualname__: SECRET & shown(item) for item in found} == {}
