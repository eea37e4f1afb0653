"""`python -m tools.site [DIRECTORY]`: build the documentation."""

import sys
from pathlib import Path

from tools.site.build import DeadLinkError, build
from tools.site.pages import ROOT


def main() -> int:
    """Build and say where."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    try:
        pages = build(directory)
    except DeadLinkError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"{len(pages)} pages; open {directory / 'index.html'}")
    return 0


sys.exit(main())
