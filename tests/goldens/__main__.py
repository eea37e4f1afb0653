"""Compare what users see with the goldens: `python -m tests.goldens [--renew] [--only NAME]`."""

import argparse
import sys

from tests.goldens.files import FOLDER, TABLE, difference, left_over, renew


def main() -> int:
    """Print the differences, and return 1 if any is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write the goldens, and print what differs")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="only decisions whose file has this in its name"
    )
    options = parser.parse_args()
    compared = sorted(path for path in TABLE if options.only in path)
    odd = left_over()
    differing = [path for path in compared if difference(path)]
    for path in odd:
        sys.stdout.write(f"{path}: no decision has this file\n")
        if options.renew:
            (FOLDER / path).unlink()
    for path in differing:
        sys.stdout.write(difference(path))
        if options.renew:
            renew(path)
    sys.stdout.write(
        f"{len(compared)} decisions compared, {len(differing)} differ, {len(odd)} files are of none"
    )
    sys.stdout.write("; renewed\n" if options.renew else "\n")
    return 1 if left_over() or any(difference(path) for path in differing) else 0


if __name__ == "__main__":
    sys.exit(main())
