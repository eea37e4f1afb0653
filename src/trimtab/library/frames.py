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


def dataframe(columns: Mapping[str, Sequence[Any]], *, index: str) -> "pd.DataFrame":
    """Return a dataframe of pandas with one of the columns as its index. A column `time` has Unix times."""
    try:
        import pandas as pd  # noqa: PLC0415 - an optional extra, which no program of Trimtab imports
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install 'trimtab[notebook]'") from error
    converted = {
        name: pd.to_datetime(values, unit="s", utc=True) if name == "time" else list(values)
        for name, values in columns.items()
    }
    return pd.DataFrame(converted).set_index(index)
