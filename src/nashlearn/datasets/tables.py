"""The multiclass and ordinal sets of [fathony2016]_ and [fathony2019]_, from CSV files with a header.

Where the authors' own file ``NAME.paper.csv`` exists it is read, with their splits; the other sets come in the
order of their public source, without splits.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn.datasets.home import bunch, check_name, data_home, find, text_lines

__all__ = ["load_multiclass", "load_ordinal", "multiclass_names", "ordinal_names"]

_MULTICLASS: tuple[str, ...] = ("iris", "glass", "redwine", "ecoli", "vehicle", "segment", "sat", "optdigits")
_MULTICLASS += ("pageblocks", "libras", "vertebral", "breasttissue")
_TWO_FILES = ("sat", "optdigits")  # published as a training and a test file
_ORDINAL: tuple[str, ...] = ("diabetes", "pyrimidines", "triazines", "wisconsin", "machinecpu", "autompg", "boston")
_ORDINAL += ("stocks", "abalone", "bank", "computer", "calhousing")
_EQUAL_FREQUENCY = ("bank", "computer", "calhousing")  # the others were cut into bins of equal length


def multiclass_names() -> tuple[str, ...]:
    """The twelve sets of Table I of [fathony2019]_, in its order."""
    return _MULTICLASS


def ordinal_names() -> tuple[str, ...]:
    """The twelve sets of Table III of [fathony2019]_, in its order."""
    return _ORDINAL


def load_multiclass(name: str) -> Any:
    """One of the sets of :func:`multiclass_names`.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n, d), unscaled; ``target`` (n,), integers or names; ``feature_names``; ``n_train``, the number of
        leading rows of the published training file, or None; ``splits``, the authors' (train, test) rows, or None.
    """
    check_name("multiclass set", name, _MULTICLASS)
    own = (data_home() / "multiclass" / f"{name}.paper.csv").is_file()
    endings = (".train", ".test") if name in _TWO_FILES else (".paper",) if own else ("",)
    tables = [_read(find("multiclass", f"{name}{ending}.csv")) for ending in endings]
    header = tables[0][0]
    data = np.concatenate([_numbers(header[:-1], columns[:-1], path) for _, columns, path in tables])
    target = _labels([label for _, columns, _ in tables for label in columns[-1]])
    n_train = len(tables[0][1][-1]) if len(tables) > 1 else None
    splits = _splits("multiclass", name)
    return bunch(name=name, data=data, target=target, feature_names=header[:-1], n_train=n_train, splits=splits)


def load_ordinal(name: str, labels: str | None = None) -> Any:
    """One of the sets of :func:`ordinal_names`, with the labels that the papers used.

    The nine smaller sets of the benchmark are cut into bins of equal length, the three large ones into bins of equal
    frequency.

    Parameters
    ----------
    name : str
    labels : str, optional
        Another column of the file ``NAME.labels.csv``, say ``"y_eqfreq"`` or ``"y_eqlen"``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n, d), unscaled; ``target`` (n,), integers from 1; ``feature_names``; ``splits``, the authors'
        (train, test) rows, or None.
    """
    check_name("ordinal set", name, _ORDINAL)
    if labels is None and (data_home() / "ordinal" / f"{name}.paper.csv").is_file():
        header, columns, path = _read(find("ordinal", f"{name}.paper.csv"))
        data, target = _numbers(header[:-1], columns[:-1], path), _labels(columns[-1])
        splits = _splits("ordinal", name)
        return bunch(name=name, data=data, target=target, feature_names=header[:-1], splits=splits)
    header, columns, path = _read(find("ordinal", f"{name}.csv"))
    if header[-2:] != ["target", "y"]:
        raise ValueError(f"{path}: the last columns must be 'target' and 'y'; they are {header[-2:]}.")
    data = _numbers(header[:-2], columns[:-2], path)
    if labels is None and name in _EQUAL_FREQUENCY:
        target = _labels(columns[-1])
    else:
        target = _label_column(name, labels or "y_paper", len(data))
    return bunch(name=name, data=data, target=target, feature_names=header[:-2], splits=None)


def _label_column(name: str, column: str, n: int) -> np.ndarray:
    header, columns, path = _read(find("ordinal", f"{name}.labels.csv"))
    if column not in header:
        raise ValueError(f"labels must be one of {header} for {name!r}; got {column!r}.")
    target = _labels(columns[header.index(column)])
    if len(target) != n:
        raise ValueError(f"{path}: {len(target)} labels for {n} rows of data.")
    return target


def _read(path: Path) -> tuple[list[str], list[list[str]], Path]:
    """Header, columns and path of a CSV file whose rows all have the header's length."""
    rows = csv.reader(text_lines(path))
    body: list[list[str]] = []
    try:
        header = next(rows, [])
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{path}, line {rows.line_num}: {len(row)} fields; the header has {len(header)}.")
            body.append(row)
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}.") from None
    if len(header) < 2 or not body:
        raise ValueError(f"{path}: a header of at least two columns and at least one row are needed.")
    return header, [list(column) for column in zip(*body, strict=True)], path


def _numbers(names: list[str], columns: list[list[str]], path: Path) -> np.ndarray:
    data = np.empty((len(columns[0]), len(columns)))
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        for i, entry in enumerate(column):
            try:
                data[i, j] = float(entry)
            except ValueError as error:
                raise ValueError(f"{path}, column {name!r}, row {i + 1}: {error}.") from None
            if not np.isfinite(data[i, j]):
                raise ValueError(f"{path}, column {name!r}, row {i + 1}: {entry!r} is no finite number.")
    return data


def _labels(column: list[str]) -> np.ndarray:
    try:
        return np.array([int(label) for label in column], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(column)


def _splits(room: str, name: str) -> list[tuple[np.ndarray, np.ndarray]] | None:
    path = data_home() / room / f"{name}.paper.splits.csv"
    if not path.is_file():
        return None
    header, columns, _ = _read(path)
    if header != ["split", "part", "rows0"]:
        raise ValueError(f"{path}: the columns must be split, part, rows0; they are {header}.")
    rows = {
        (number, part): np.array([int(row) for row in text.split(",")])
        for number, part, text in zip(*columns, strict=True)
    }
    return [(rows[number, "train"], rows[number, "test"]) for number in dict.fromkeys(columns[0])]
