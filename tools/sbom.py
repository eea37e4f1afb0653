"""Write what an image contains as CycloneDX: `python -m tools.sbom > trimtab.cdx.json`.

The lock file is the truth: it names every package, its version, and the hashes of the files that may be installed.
"""

import json
import re
from pathlib import Path
from typing import Any

import trimtab

LOCK = Path(__file__).parents[1] / "requirements" / "run.lock"
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", re.IGNORECASE | re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill(lock: str) -> dict[str, Any]:
    """Return the bill of materials of a lock file; the same lock gives the same bytes."""
    starts = list(_PINNED.finditer(lock))
    ends = [match.start() for match in starts[1:]] + [len(lock)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "trimtab", "version": trimtab.__version__}},
        "components": [
            _component(match, lock[match.end() : end]) for match, end in zip(starts, ends, strict=True)
        ],
    }


def _component(pinned: re.Match[str], rest: str) -> dict[str, Any]:
    name, version = pinned.groups()
    purl = f"pkg:pypi/{name.lower()}@{version}"
    files = [
        {
            "type": "distribution",
            "url": f"{purl}#sha256:{digest}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for digest in _HASH.findall(rest)
    ]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "externalReferences": files,
    }


def main() -> None:
    """Print the bill."""
    print(json.dumps(bill(LOCK.read_text(encoding="utf-8")), indent=1))


if __name__ == "__main__":
    main()
