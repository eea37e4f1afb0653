"""Prints rows in columns, as kubectl does."""

from collections.abc import Mapping, Sequence
from typing import Final

_GAP: Final = "   "


def in_columns(
    columns: Sequence[str], rows: Sequence[Mapping[str, str]], *, headers: bool = True, second: str = ""
) -> list[str]:
    """Return a line per row, each column as wide as its widest cell.

    `second` names the cell that each row has on a second line.
    """
    titles = {column: column.upper() for column in columns}
    everything = [titles, *rows] if headers else rows
    widths = [max((len(row[column]) for row in everything), default=0) for column in columns]
    lines = [_line(list(titles.values()), widths)] if headers else []
    for row in rows:
        lines.append(_line([row[column] for column in columns], widths))
        if second:
            lines.append(f"  {row[second]}")
    return lines


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` characters, with … in place of the rest."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def width_of(lines: Sequence[str]) -> int:
    """Return the length of the longest line."""
    return max(map(len, lines), default=0)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
