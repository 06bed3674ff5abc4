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

__all__ = ["Table", "check_present", "line_of_row", "read_table", "whole_number"]

_SEPARATORS = (",", ";", "\t", "|")
_NO_LABEL = ["", "?"]
_MISSING = [*_NO_LABEL, "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"]  # as in pandas
_MISSING += ["NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]
_PARQUET = "a Parquet file"
_DIGITS = 18  # of integers that fit in 64 bits
_WHOLE = re.compile(r"\s*(-?[1-9][0-9]*|0)(\.0)?\s*")


class Table(NamedTuple):
    """A table as read: ``features``, a data frame, and ``target``, the column of labels, or None."""

    features: pandas.DataFrame
    target: pandas.Series | None


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
    with _open(source, name) as stream:
        head = stream.read(4096)
        stream.seek(0)
        if not head.strip():
            raise ValueError(f"{name} is empty.")
        chosen = format or _by_name(source, name, head)
        looks = _looks_like(head)
        wanted = _PARQUET if chosen == "parquet" else "text"
        if looks != wanted:
            said = wanted if chosen == "parquet" else f"{chosen.upper()} text"
            raise ValueError(f"{name} is not {said}; it is {looks}. Rename it, or give its format.")
        try:
            return _READERS[chosen](stream, name, target, list(drop), list(text))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not text in UTF-8 ({error.reason} at byte {error.start}).") from None


def line_of_row(source: str | Path, row: int) -> int | None:
    """The line of a CSV or TSV file in which a row begins, counted from 1 as rows are; None for other files.

    Lines and rows differ by more than the header where entries hold line breaks, or where lines are empty.
    """
    endings = [ending for ending in Path(source).suffixes if ending != ".gz"]
    if str(source) == "-" or not endings or endings[-1].lower() not in (".csv", ".tsv"):
        return None
    with _open(source, str(source)) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        header = next(line for line in text if line.strip())
        text.seek(0)
        separator = "\t" if endings[-1].lower() == ".tsv" else max(_SEPARATORS, key=header.count)
        lines, alone = csv.reader(text, delimiter=separator), separator not in header
        seen, before = -1, 0
        for entries in lines:
            seen += bool(entries) or (alone and seen >= 0)  # an empty line is a row where there is one column
            if seen == row:
                return before + 1
            before = lines.line_num
    return None


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


def _looks_like(head: bytes) -> str:
    """What the first bytes give away: Parquet, gzip, other binary data, text."""
    known = {b"PAR1": _PARQUET, b"\x1f\x8b": "a gzip file", b"PK\x03\x04": "a zip file"}
    rest = "binary data" if b"\0" in head else "text"
    return next((what for start, what in known.items() if head.startswith(start)), rest)


def _by_name(source: str | Path, name: str, head: bytes) -> str:
    endings = [ending.lstrip(".").lower() for ending in Path(source).suffixes if ending != ".gz"]
    if endings and endings[-1] in _READERS:
        return endings[-1]
    if str(source) != "-":
        raise ValueError(
            f"{name}: the name must end in .{', .'.join(_READERS)} (or these with .gz); or give the format."
        )
    if _looks_like(head) == _PARQUET:
        return "parquet"
    return "arff" if any(line.lstrip().lower().startswith(b"@relation") for line in head.splitlines()) else "csv"


def _checked(names: Sequence[str], name: str, target: str | None, drop: Sequence[str]) -> list[str]:
    """The columns that are features, or an error about the columns that are not there or twice."""
    twice = {column for column in names if list(names).count(column) > 1}
    if twice:
        raise ValueError(f"{name} has two columns called {sorted(twice)[0]!r}; rename one.")
    wanted = [*([] if target is None else [target]), *drop]
    check_present(wanted, names, name)
    left = [column for column in names if column not in wanted]
    if not left:
        raise ValueError(f"{name} has no columns left as features.")
    return left


def check_present(wanted: Iterable[str], present: Sequence[str], name: str) -> None:
    """Refuse a table without some columns that it should have, with the nearest names that it has."""
    missing = [column for column in wanted if column not in present]
    if not missing:
        return
    near = [match for column in missing for match in difflib.get_close_matches(column, present, n=1)]
    shown = ", ".join(map(repr, present[:12])) + (", …" if len(present) > 12 else "")
    hint = f" Did you mean {', '.join(map(repr, dict.fromkeys(near)))}?" if near else ""
    plural = "s" if len(missing) > 1 else ""
    raise ValueError(f"{name} has no column{plural} {', '.join(map(repr, missing))}.{hint} It has {shown}.")


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
        index = (schema.pandas_metadata or {}).get("index_columns", [])  # written by pandas, no features
        shown = [column for column in schema.names if column not in index or column in (target, *drop)]
        features = _checked(shown, name, target, drop)
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
        start = 0
        for group in range(file.num_row_groups):  # column by column: a group may be the whole file
            rows = slice(start, start + file.metadata.row_group(group).num_rows)
            for j, column in enumerate(features):
                part = file.read_row_group(group, columns=[column], use_threads=False)
                block[rows, j] = part.column(0).to_numpy()
            start = rows.stop
        labels = None if target is None else file.read(columns=[target]).column(0).to_pandas().rename(target)
        pa.default_memory_pool().release_unused()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise ValueError(f"{name} is a damaged Parquet file: {str(error).splitlines()[0]}") from None
    return Table(pandas.DataFrame(block, columns=features, copy=False), labels)


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
