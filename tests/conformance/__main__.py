"""Command line of the conformance runner; exit status 1 if anything failed or is not covered."""

import argparse
import os
import sys
from pathlib import Path

from tests.conformance import registry
from tests.conformance.runner import VECTORS, report, run_files, vector_files
from tests.conformance.versions import all_versions


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument(
        "places",
        nargs="*",
        type=Path,
        default=[VECTORS],
        metavar="DIR",
        help="directory of vectors, or one file (default: tests/data/vectors)",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per core)"
    )
    parser.add_argument(
        "--show", type=int, default=3, metavar="N", help="differences shown per file (default 3)"
    )
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="only cases whose id contains this")
    options = parser.parse_args(arguments)

    out = sys.stdout
    files = vector_files(options.places)
    if not files:
        sys.stderr.write(f"no *.jsonl or *.jsonl.gz in {', '.join(map(str, options.places))}\n")
        return 1
    broken = registry.load_topics("tests.conformance")
    for line in broken:
        out.write(f"{line}\n")
    is_good = not broken
    for version in all_versions():
        heading = f"by the rules of {version.name}:\n" if version.changes else ""
        for result in run_files(files, options.only, options.jobs, version):
            if result.total or not (options.only or version.changes):
                out.write(heading)
                heading = ""
                report(result, out, options.show)
            out.flush()
            is_good = is_good and result.is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
