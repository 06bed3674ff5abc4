"""The page of ``train --check``, and the lines of files in errors about tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from nashlearn.cli.talk import grid
from nashlearn.datasets.files import line_of_row

__all__ = ["naming_lines", "numbered", "overruled", "page_about"]

_FILE = "nashlearn file"  # of the attributes of tables
_MOST = 30  # classes that are shown


def numbered(table: Any, data: str) -> Any:
    """A table, or a column, that knows its file, and the numbers of its rows from 1 when rows are left out."""
    import pandas

    table.index = pandas.RangeIndex(1, len(table) + 1, name="row")
    table.attrs[_FILE] = data
    return table


@contextmanager
def naming_lines(table: Any) -> Iterator[None]:
    """Errors about a row of a file of text with the line that it is in."""
    from nashlearn.tabular import RowError

    try:
        yield
    except RowError as error:
        data = table.attrs.get(_FILE, "-")
        line = line_of_row(data, error.row)
        if line is None:
            raise
        said = f"row {error.row} (line {line} of {Path(data).name})"
        raise ValueError(str(error).replace(f"row {error.row}", said, 1)) from None


def overruled(name: str, kind: str, overrule: str) -> str:
    """The flag that overrules a guess, where there is one."""
    if kind in ("empty", "refused"):
        return "." if kind == "empty" else ""
    return f". If that is wrong: --as {shlex.quote(f'{name}={overrule}')}."


def page_about(task: Any) -> tuple[dict[str, Any], Callable[[], Iterator[str | Table]]]:
    """What there is to know about the data of a task before training, and the page that says it."""
    from nashlearn import tabular

    X, y = task.learn()
    names = dict(enumerate(task.classes)) if task.ranks else {}
    found = tabular.look_at(X, [names.get(label, label) for label in y.tolist()], task.guesses, task.missing())
    found = {"data": task.data, "target": task.target, "unlabelled": task.unlabelled, **found}
    if task.unlabelled:
        flag = "" if task.drop_unlabelled else " Training refuses them, or leaves them out with --drop-unlabelled."
        found["suspicious"].insert(0, f"{task.unlabelled:,} rows have no label.{flag}")

    def show() -> Iterator[str | Table]:
        yield f"{task.data}: {found['rows']:,} rows, {len(found['columns'])} columns beside {task.target!r}"
        rows = [
            [one["name"], one["kind"], _share(one["missing"], found["rows"]), one["different"]]
            for one in found["columns"]
        ]
        yield grid("Columns", ["name", "taken for", "missing", "different"], rows)
        for one in found["columns"]:
            if one["said"]:
                yield f"  {one['name']}: {one['said']}{overruled(one['name'], one['kind'], one['overrule'])}"
        classes = sorted(found["classes"], key=lambda one: -one["rows"])
        shown = [[str(one["label"]), one["rows"], f"{one['share']:.1%}"] for one in classes[:_MOST]]
        more = f" (the {_MOST} largest of {len(classes):,})" if len(classes) > _MOST else ""
        yield grid(f"Classes{more}", [task.target, "rows", "share"], shown)
        yield "Suspicious:" if found["suspicious"] else "Nothing suspicious was found."
        yield from (f"  {line}" for line in found["suspicious"])
        yield "Nothing was trained. Leave --check out to train."

    return found, show


def _share(count: int, n: int) -> str:
    return "" if not count else f"{count:,} ({count / n:.1%})"
