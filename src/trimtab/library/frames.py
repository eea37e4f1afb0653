"""Reads columns from dataframes of any library, and makes dataframes of pandas.

A dataframe that is read needs no more than names of columns and columns that become lists, which pandas, polars, pyarrow
and a plain dictionary of lists have. pandas itself is imported only to make a dataframe.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns, or raise TypeError for an object that has none."""
    names = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", None)
    if names is None:
        names = getattr(frame, "columns", None)
    if names is None or isinstance(names, str):
        raise TypeError(
            f"{type(frame).__name__} is no dataframe: it has neither columns nor column_names; "
            "pass a dataframe of pandas, polars or pyarrow, or a dictionary of lists"
        )
    return [str(name) for name in names]


def column_values(column: Any) -> list[Any]:
    """Return a column as a list of Python values."""
    for name in ("to_pylist", "to_list", "tolist"):
        if (convert := getattr(column, name, None)) is not None:
            return list(convert())
    return list(column)


def times_of(column: Sequence[Any], frame_module: Any) -> Any:
    """Return Unix times as pandas' times in UTC."""
    return frame_module.to_datetime(column, unit="s", utc=True)


def import_pandas() -> Any:
    """Import pandas, or raise ImportError that says how to install it."""
    try:
        import pandas as pd  # noqa: PLC0415 - an optional extra, which no program of Trimtab imports
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install 'trimtab[notebook]'") from error
    return pd


def dataframe(columns: Mapping[str, Sequence[Any]], *, index: str) -> "pd.DataFrame":
    """Return a dataframe of pandas with one of the columns as its index. A column `time` has Unix times."""
    pd = import_pandas()
    converted = {
        name: times_of(values, pd) if name == "time" else list(values) for name, values in columns.items()
    }
    return pd.DataFrame(converted).set_index(index)
