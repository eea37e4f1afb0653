"""Draw the badges of the README from the project's own files: `python -m tools.badges` (a test says when it is due)."""

import re
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = (ROOT / "docs/kubernetes-versions.md").read_text(encoding="utf-8")

_WIDTH = 6.6
"""Pixels of a character, about; `textLength` makes it exact in every font."""
_BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {value}">
<title>{label}: {value}</title>
<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#4a555c"/><rect x="{left}" width="{right}" height="20" fill="#0f6b76"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="7" y="14" textLength="{label_width}">{label}</text><text x="{value_at}" y="14" textLength="{value_width}">{value}</text>
</g>
</svg>
"""


def badges() -> dict[str, str]:
    """Return every badge by its file name."""
    return {
        "badge-python.svg": _badge("Python", _range(pythons())),
        "badge-kubernetes.svg": _badge("Kubernetes", _range(kubernetes())),
        "badge-license.svg": _badge("license", PROJECT["license"]),
    }


def pythons() -> list[str]:
    """Return the versions of Python that the package names."""
    prefix = "Programming Language :: Python :: 3."
    named = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if name.startswith(prefix)]
    return [f"3.{minor}" for minor in sorted(named, key=int)]


def kubernetes() -> list[str]:
    """Return the supported versions of Kubernetes, from the table of the page on versions."""
    return sorted(re.findall(r"^\| (1\.\d+) \| yes", VERSIONS, re.MULTILINE))


def _range(versions: list[str]) -> str:
    return f"{versions[0]} to {versions[-1]}"


def _badge(label: str, value: str) -> str:
    label_width, value_width = (round(len(text) * _WIDTH) for text in (label, value))
    left, right = label_width + 14, value_width + 14
    return _BADGE.format(
        label=escape(label),
        value=escape(value),
        label_width=label_width,
        value_width=value_width,
        left=left,
        right=right,
        width=left + right,
        value_at=left + 7,
    )


def main() -> None:
    """Write every badge."""
    for name, text in badges().items():
        (IMAGES / name).write_text(text, encoding="utf-8")
    print(f"{len(badges())} badges in docs/images")


if __name__ == "__main__":
    main()
