"""Tables of one's own: CSV, TSV, Parquet and ARFF files, gzipped or not, with columns of numbers and of text.

    features, labels = read_table("wine.csv", target="quality")

A file is what its content says: where that contradicts its name, the error says so. Parquet files of numbers are read
column by column into one array, so that reading needs little more memory than the table itself.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas

__all__ = ["Table", "absent_columns", "read_table", "table_formats", "whole_number"]

_SEPARATORS = (",", ";", "\t", "|")
_NO_LABEL = ["", "?"]
_MISSING = [*_NO_LABEL, "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"]  # as in pandas
_MISSING += ["NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]
_DIGITS = 18  # of integers that fit in 64 bits
_WHOLE = re.compile(r"\s*(-?[1-9][0-9]*|0)(\.0)?\s*")


class Table(NamedTuple):
    """A table as read: ``features``, a data frame, and ``target``, the column of labels, or None."""

    features: pandas.DataFrame
    target: pandas.Series | None


def table_formats() -> tuple[str, ...]:
    """The formats that :func:`read_table` knows, which are also the endings of their files."""
    return tuple(_READERS)


def whole_number(text: str) -> str | None:
    """A whole number without ".0", which pandas adds where a column has gaps; None for other text, also for 01."""
    match = _WHOLE.fullmatch(text)
    return match[1] if match else None


def read_table(
    source: str | Path,
    *,
    target: str | None = None,
    drop: Iterable[str] = (),
    text: Iterable[str] = (),
    format: str | None = None,
) -> Table:
    """A table from a file, or from standard input where ``source`` is ``-``.

    Parameters
    ----------
    source : path, or "-"
        Names may end in ``.gz``.
    target : str, optional
        The column that becomes ``Table.target``; without it all columns are features. CSV and TSV give it as text, in
        which only the empty one and ``?`` are missing: NA is a label. It is integers where all are written as such.
    drop : names of columns, optional
        Left out.
    text : names of columns, optional
        Categories, of which CSV and TSV give the text as it stands: 01 is not 1. Else columns of which all entries are
        numbers are numbers. Names that the table does not have are passed over.
    format : {"csv", "tsv", "parquet", "arff"}, optional
        By default what the name ends with, and on standard input what the content looks like.

    Raises
    ------
    ValueError
        Naming the file: it is empty, not of its format, has no such column or twice the same.
    """
    name = "standard input" if str(source) == "-" else str(source)
    if format is not None and format not in _READERS:
        raise ValueError(f"format must be one of {', '.join(_READERS)}; got {format!r}.")
    stream = _open(source, name)
    with stream:
        head = stream.read(4096)
        stream.seek(0)
        if not head.strip():
            raise ValueError(f"{name} is empty.")
        chosen = format or _by_name(source, name, head)
        _refuse_disguise(chosen, head, name)
        try:
            return _READERS[chosen](stream, name, target, list(drop), list(text))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not text in UTF-8 ({error.reason} at byte {error.start}).") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is damaged: {error}.") from None


def _open(source: str | Path, name: str) -> BinaryIO:
    if str(source) == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; a file is needed.")
    if path.suffix != ".gz":
        return path.open("rb")
    try:
        return io.BytesIO(gzip.decompress(path.read_bytes()))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name} is not a gzip file, or damaged: {error}.") from None


def _looks_like(head: bytes) -> str | None:
    """What the first bytes give away: Parquet, gzip, other binary data; None for text."""
    for start, what in ((b"PAR1", "a Parquet file"), (b"\x1f\x8b", "a gzip file"), (b"PK\x03\x04", "a zip file")):
        if head.startswith(start):
            return what
    return "binary data" if b"\0" in head else None


def _by_name(source: str | Path, name: str, head: bytes) -> str:
    endings = [ending.lstrip(".").lower() for ending in Path(source).suffixes if ending != ".gz"]
    if endings and endings[-1] in _READERS:
        return endings[-1]
    if str(source) != "-":
        raise ValueError(
            f"{name}: the name must end in .{', .'.join(_READERS)} (or these with .gz); or give the format."
        )
    if _looks_like(head) == "a Parquet file":
        return "parquet"
    return "arff" if any(line.lstrip().lower().startswith(b"@relation") for line in head.splitlines()) else "csv"


def _refuse_disguise(format: str, head: bytes, name: str) -> None:
    looks = _looks_like(head)
    if format == "parquet" and looks != "a Parquet file":
        raise ValueError(f"{name} is not a Parquet file; it is {looks or 'text'}. Rename it, or give its format.")
    if format != "parquet" and looks is not None:
        raise ValueError(f"{name} is not {format.upper()} text; it is {looks}. Rename it, or give its format.")


def _checked(names: Sequence[str], name: str, target: str | None, drop: Sequence[str]) -> list[str]:
    """The columns that are features, or an error about the columns that are not there or twice."""
    twice = {column for column in names if list(names).count(column) > 1}
    if twice:
        raise ValueError(f"{name} has two columns called {sorted(twice)[0]!r}; rename one.")
    wanted = [*([] if target is None else [target]), *drop]
    missing = [column for column in wanted if column not in names]
    if missing:
        raise ValueError(absent_columns(missing, names, name))
    left = [column for column in names if column not in wanted]
    if not left:
        raise ValueError(f"{name} has no columns left as features.")
    return left


def absent_columns(missing: Sequence[str], present: Sequence[str], name: str) -> str:
    """What to say of columns that a table should have, with the nearest names that it has."""
    near = [match for column in missing for match in difflib.get_close_matches(column, present, n=1)]
    shown = ", ".join(map(repr, present[:12])) + (", …" if len(present) > 12 else "")
    hint = f" Did you mean {', '.join(map(repr, dict.fromkeys(near)))}?" if near else ""
    plural = "s" if len(missing) > 1 else ""
    return f"{name} has no column{plural} {', '.join(map(repr, missing))}.{hint} It has {shown}."


def _split(frame: pandas.DataFrame, name: str, target: str | None, drop: Sequence[str]) -> Table:
    features = _checked(list(frame.columns), name, target, drop)
    if not len(frame):
        raise ValueError(f"{name} has a header, but no rows.")
    return Table(frame[features], None if target is None else frame[target])


def _read_text(
    stream: BinaryIO, name: str, target: str | None, drop: Sequence[str], exact: Sequence[str], separators: Any
) -> Table:
    import pandas

    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text, warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # else a row that is too long loses its end
        first = next((line for line in iter(text.readline, "") if line.strip()), "")
        separator = max(separators, key=first.count)
        try:
            header = [column.strip() for column in next(csv.reader([first], delimiter=separator), [])]
        except csv.Error as error:
            raise ValueError(f"{name} has no header of columns in its first line: {error}.") from None
        _checked(header, name, target, drop)
        try:
            frame = pandas.read_csv(
                text,
                sep=separator,
                names=header,
                header=None,
                index_col=False,
                low_memory=False,
                na_values={column: _NO_LABEL if column == target else _MISSING for column in header},
                keep_default_na=False,
                dtype={column: str for column in header if column == target or column in exact},
                skip_blank_lines=len(header) > 1,  # the one entry may be missing
                skipinitialspace=True,
            )
        except pandas.errors.EmptyDataError:
            raise ValueError(f"{name} has a header, but no rows.") from None
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
            reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
            raise ValueError(f"{name} is no table of {len(header)} columns throughout: {reason}") from None
    table = _split(frame, name, target, drop)
    return table if table.target is None else table._replace(target=_integers(table.target))


def _integers(labels: pandas.Series) -> pandas.Series:
    """Labels as integers where all of them come back as the same text, else as they are: 01 and 1.0 are text."""
    import pandas

    codes, different = labels.factorize()
    texts = different.tolist()
    if (codes < 0).any() or any(whole_number(text) != text or len(text) > _DIGITS for text in texts):
        return labels
    return pandas.Series(np.array([int(text) for text in texts])[codes], index=labels.index, name=labels.name)


def _read_parquet(stream: BinaryIO, name: str, target: str | None, drop: Sequence[str], text: Sequence[str]) -> Table:
    import pandas
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(stream)
        schema = file.schema_arrow
        hidden = _index_columns(schema) - {target, *drop}
        features = _checked([column for column in schema.names if column not in hidden], name, target, drop)
        n = file.metadata.num_rows
        if n == 0:
            raise ValueError(f"{name} has columns, but no rows.")
        kinds = [schema.field(column).type for column in features]
        wanted = features if target is None else [*features, target]
        for column in wanted:
            if pa.types.is_nested(schema.field(column).type):
                raise ValueError(f"{name}: the column {column!r} holds lists or records; drop it.")
        if not all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds):
            return _split(file.read(columns=wanted).to_pandas(ignore_metadata=True), name, target, [])
        single = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in kinds)
        block = np.empty((n, len(features)), dtype=np.float32 if single else np.float64)
        labels, start = [], 0
        for group in range(file.num_row_groups):  # column by column: a group may be the whole file
            rows = slice(start, start + file.metadata.row_group(group).num_rows)
            for j, column in enumerate(features):
                part = file.read_row_group(group, columns=[column], use_threads=False)
                block[rows, j] = part.column(0).to_numpy()
            if target is not None:
                labels += file.read_row_group(group, columns=[target], use_threads=False).column(0).chunks
            start = rows.stop
        pa.default_memory_pool().release_unused()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise ValueError(f"{name} is a damaged Parquet file: {str(error).splitlines()[0]}") from None
    frame = pandas.DataFrame(block, columns=features, copy=False)
    return Table(frame, None if target is None else pa.chunked_array(labels).to_pandas().rename(target))


def _index_columns(schema: Any) -> set[Any]:
    """Columns that pandas wrote for the index of a data frame, which are no features."""
    return {column for column in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(column, str)}


def _read_arff(stream: BinaryIO, name: str, target: str | None, drop: Sequence[str], text: Sequence[str]) -> Table:
    import pandas
    from scipy.io import arff

    try:
        with io.TextIOWrapper(stream, encoding="utf-8") as lines:
            rows, meta = arff.loadarff(lines)
    except NotImplementedError as error:
        raise ValueError(
            f"{name} has attributes of text or dates ({error}); ARFF is read with numbers and nominal "
            "attributes only. Save it as CSV."
        ) from None
    except (arff.ArffError, ValueError, StopIteration, IndexError) as error:
        raise ValueError(f"{name} is not an ARFF file, or damaged: {error}.") from None
    if not meta.names():
        raise ValueError(f"{name} has no attributes.")
    frame = pandas.DataFrame(rows)
    for column in meta.names():
        if meta[column][0] == "nominal":
            entries = frame[column].str.decode("utf-8")
            frame[column] = entries.where(entries != "?", None)
    return _split(frame, name, target, drop)


_READERS: dict[str, Callable[[BinaryIO, str, str | None, Sequence[str], Sequence[str]], Table]] = {
    "csv": partial(_read_text, separators=_SEPARATORS),
    "tsv": partial(_read_text, separators=("\t",)),
    "parquet": _read_parquet,
    "arff": _read_arff,
}
