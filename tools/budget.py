"""Compare each package's lines of code with its budget in pyproject.toml: `python -m tools.budget`, with `--table` for all.

Blank lines, comments and docstrings are free. A file counts for the longest name in the budget that it lies under.
"""

import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
FREE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
ADVISED = 0.95
"""A package below this part of its budget should get a lower one."""


def code_lines(text: str) -> int:
    """Count the lines that hold code. A statement that is only a string is documentation."""
    lines: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if any(part.type != tokenize.STRING for part in statement):
                lines.update(line for part in statement for line in range(part.start[0], part.end[0] + 1))
            statement = []
        elif token.type not in FREE:
            statement.append(token)
    return len(lines)


def count(root: Path, packages: Iterable[str]) -> Counter[str]:
    """Return the lines of code of each package."""
    lines = Counter(dict.fromkeys(packages, 0))
    for top in {PurePath(package).parts[0] for package in lines}:
        for path in (root / top).rglob("*.py"):
            folders = [parent.as_posix() for parent in path.relative_to(root).parents]
            package = next(folder for folder in folders if folder in lines)
            lines[package] += code_lines(path.read_text(encoding="utf-8"))
    return lines


def main(root: Path, *, table: bool) -> None:
    """Print advice, and end with one sentence for each package that is over its budget."""
    budget = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["trimtab"]["budget"]
    building = budget.pop("building")
    if unknown := set(building) - set(budget):
        sys.exit(f"`building` in pyproject.toml names no package of the budget: {', '.join(sorted(unknown))}")
    lines = count(root, budget)
    if table:
        print(*(f"{name:32} {lines[name]:7,} of {most:7,}" for name, most in budget.items()), sep="\n")
    over = []
    for name, most in budget.items():
        if lines[name] < most * ADVISED:
            print(f"{name} has {lines[name]} lines of code: lower its budget of {most} in pyproject.toml")
        elif lines[name] > most and name not in building:
            over.append(
                f"{name} has {lines[name]} lines of code, {lines[name] - most} over its budget: remove as many, "
                "or raise its number in pyproject.toml in a commit that says what they buy"
            )
    sys.exit("\n".join(over) or 0)


if __name__ == "__main__":
    main(ROOT, table="--table" in sys.argv)
