"""The words of docstrings, logs and flags: the subject is named, and components do what components do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab

SOURCE = Path(trimtab.__file__).parent

HIDDEN_SUBJECTS = r"one who|whoever|whose turn|nobody|somebody|everybody|everyone|someone|anybody|anyone|things?|by another hand|who \w+s"
"""Words that hide the subject of a sentence."""

HUMAN_VERBS = r"tells?|told|believes?|believed|knows|teach\w*|taught|speaks?|rests|look(?:s|ed)? at|is asked for|are asked for"
"""What people do and components do not."""

BANNED = re.compile(rf"\b({HIDDEN_SUBJECTS}|{HUMAN_VERBS})\b", re.IGNORECASE)

EXCEPTIONS: dict[str, str] = {}
"""A sentence that keeps a banned word, and why."""

PACKAGES = sorted(
    path.stem for path in SOURCE.iterdir() if (path.is_dir() or path.suffix == ".py") and path.stem[0] != "_"
)


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings, log messages, and the help of settings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id="log"))) | ast.Call(func=ast.Name(id="setting"))
            ):
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                for value in values:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield value.lineno, value.value


def problems(package: str) -> list[str]:
    folder = SOURCE / package
    paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return [
        f"{path.relative_to(SOURCE)}:{line}: «{match.group()}» in «{text.strip().splitlines()[0][:100]}»"
        for path in paths
        for line, text in sentences(path)
        if text not in EXCEPTIONS and (match := BANNED.search(text))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_sentences_name_their_subject(package: str):
    assert problems(package) == []
