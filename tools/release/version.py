"""Sets the version and closes the changelog."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHANGELOG: Final = ROOT / "CHANGELOG.md"
_SECTIONS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-rc\.[1-9]\d*)?")

_PLACES: Final = {
    "pyproject.toml": r'(?m)^(version = ")[^"]+(")$',
    "src/trimtab/__init__.py": r'(?m)^(__version__ = ")[^"]+(")$',
    "charts/trimtab/Chart.yaml": r"(?m)^(version: |appVersion: ).+()$",
    "docs/install.md": r"(registry\.example\.com/trimtab:)\d+\.\d+\.\d+\S*()",
}
"""Where the version is written, besides what is generated from it."""


class ReleaseError(Exception):
    """The release cannot be made. The message says what to do."""


def set_version(version: str) -> None:
    """Write the version wherever it is not generated."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"VERSION={version}: write it as 1.2.3 or 1.2.3-rc.1")
    for name, pattern in _PLACES.items():
        path = ROOT / name
        text, count = re.subn(pattern, rf"\g<1>{version}\g<2>", path.read_text(encoding="utf-8"))
        if not count:
            raise ReleaseError(f"{name} has no version to set; its pattern is in tools/release/version.py")
        path.write_text(text, encoding="utf-8")


def close_changelog(text: str, version: str, today: str) -> str:
    """Return the changelog with its unreleased lines under a version; the same text if that version is there."""
    if re.search(rf"(?m)^## {re.escape(version)} - ", text):
        return text
    body = text.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    headings = re.findall(r"(?m)^### (.+)$", body)
    if not headings:
        raise ReleaseError("CHANGELOG.md has nothing under ## Unreleased; a release needs a reason")
    if headings != [name for name in _SECTIONS if name in headings]:
        raise ReleaseError(
            f"CHANGELOG.md: the sections must be {', '.join(_SECTIONS)} in this order, not {', '.join(headings)}"
        )
    return text.replace("\n## Unreleased\n", f"\n## Unreleased\n\n## {version} - {today}\n", 1)


def notes(text: str, version: str) -> str:
    """Return the lines of a version, for the page of the release."""
    return text.partition(f"\n## {version} - ")[2].partition("\n")[2].partition("\n## ")[0].strip() + "\n"


def epoch(text: str, version: str) -> int:
    """Return the date of a version in seconds since 1970, so that every rebuild has the same time."""
    found = re.search(rf"(?m)^## {re.escape(version)} - (\d{{4}}-\d\d-\d\d)$", text)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no line `## {version} - YYYY-MM-DD`")
    return int(datetime.strptime(found[1], "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
