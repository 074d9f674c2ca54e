"""Find the column of ids by its values: an id occurs once, and the edges have the same ids."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.spelling import comparable
from bgcl.data.tables import Source

_MOST = 50  # columns that are compared
_FEW = 0.5  # share of the ids up to which the usual column is hardly the right one


def has_known(source: Source, name: str, ids: Any) -> bool:
    """Whether one of a column's values is among the ids, Arrow texts."""
    values = comparable(source.read([name], ids=[name]).columns[name])
    return bool(pc.any(pc.is_in(values, value_set=ids)).as_py())


def share_known(source: Source, name: str, ids: Any) -> float:
    """The share of a column's values that are among the ids, Arrow texts; 0 if a value occurs twice, unlike an id."""
    values = _different(source, name)
    return 0.0 if values is None else float(pc.mean(pc.is_in(values, value_set=ids).cast(pa.float64())).as_py())


def column_with_all(source: Source, usual: str, ids: Any, ignored: tuple[str, ...]) -> str | None:
    """The only column that has all of the ids, Arrow texts. None if the usual column has many of them."""
    values = comparable(source.read([usual], ids=[usual]).columns[usual])
    if float(pc.mean(pc.is_in(ids, value_set=pc.unique(values)).cast(pa.float64())).as_py()) > _FEW:
        return None
    names = [name for name in source.names if name not in ignored and name != usual][:_MOST]
    fits = [name for name in names if _has_all(source, name, ids)]
    return fits[0] if len(fits) == 1 else None


def _has_all(source: Source, name: str, ids: Any) -> bool:
    values = _different(source, name)
    return values is not None and bool(pc.all(pc.is_in(ids, value_set=values)).as_py())


def _different(source: Source, name: str) -> Any | None:
    """The values of a column as texts, None if one occurs twice or there are none."""
    values = source.read([name], ids=[name]).columns[name]
    if pa.types.is_nested(values.type) or values.null_count == len(values):
        return None
    texts = comparable(values).drop_null()
    return texts if pc.count_distinct(texts).as_py() == len(texts) else None
