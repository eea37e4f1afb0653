"""Compare what users see with the goldens: `python -m tests.goldens [--renew] [--only NAME]`."""

import argparse
import sys

from tests.goldens.files import FOLDER, TABLE, difference, left_over, renew


def main() -> int:
    """Print the differences, and return 1 if there are any and they are not written."""
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write the goldens, and print what differs")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="only decisions whose file has this in its name"
    )
    options = parser.parse_args()
    differing = 0
    for path in sorted(path for path in TABLE if options.only in path):
        if text := difference(path):
            differing += 1
            sys.stdout.write(text)
            if options.renew:
                renew(path)
    for path in left_over():
        differing += 1
        sys.stdout.write(f"{path}: no decision has this file\n")
        if options.renew:
            (FOLDER / path).unlink()
    sys.stdout.write(
        f"{len(TABLE)} decisions, {differing} differ{' and are renewed' if options.renew else ''}\n"
    )
    return 1 if differing and not options.renew else 0


if __name__ == "__main__":
    sys.exit(main())
