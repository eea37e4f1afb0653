"""Runs one target under libFuzzer: `python -m tests.fuzz.with_atheris TARGET [options of libFuzzer] [folders]`.

atheris is no dependency of Trimtab: `uv pip install atheris` where it is wanted.
"""

import sys
from importlib import import_module


def main() -> None:
    """Instrument Trimtab, then fuzz until libFuzzer stops."""
    atheris = import_module("atheris")
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["trimtab", "trimtab_lab"]):
        targets = import_module("tests.fuzz.targets")
    targets.disable_logs()
    atheris.Setup(["fuzz", *options], targets.TARGETS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
