"""Run the named benchmarks, each with a table of its own; without a name, the whole picture beside the peers."""

import importlib
import os
import pkgutil
import sys
from types import ModuleType

from rich.console import Console
from rich.table import Table

import bench
from bench.picture import command

PICTURE = "picture"


def names() -> list[str]:
    return [
        module.name
        for module in pkgutil.iter_modules(bench.__path__)
        if not module.name.startswith("_") and not module.ispkg
    ]


def table_of(module: ModuleType) -> Table:
    rows = module.run()
    table = Table(title=(module.__doc__ or module.__name__).strip().splitlines()[0], title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] else "right")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    return table


def main(wanted: list[str]) -> int:
    if not wanted or wanted[0] == PICTURE or wanted[0].startswith("-"):
        options = wanted[1:] if wanted[:1] == [PICTURE] else wanted
        is_quick = os.environ.get("QUICK", "") not in {"", "0"}
        return command.main([*options, *(["--quick"] if is_quick else [])])
    known = names()
    chosen = known if wanted == ["all"] else wanted
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.stderr.write(
            f"no benchmark named {', '.join(unknown)}; there are: {PICTURE}, all, {', '.join(known)}\n"
        )
        return 2
    console = Console()
    for name in chosen:
        console.print(table_of(importlib.import_module(f"bench.{name}")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
