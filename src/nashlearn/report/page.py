"""Pages put together from the assets of this package, and written whole or not at all."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["explorer_html", "plain", "report_html", "short", "write_explorer", "write_report", "write_whole"]

_REPORT = (
    "charts.js", "compare.js", "proofs.js", "curves.js", "weights.js", "tasks.js", "matrix.js", "examples.js",
    "report.js",
)  # fmt: skip
_EXPLORER = ("charts.js", "game.js", "surface.js", "model.js", "plot.js", "explorer.js")


def plain(value: Any) -> Any:
    """``value`` with NumPy's numbers, arrays and strings as Python's; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def short(values: Any, figures: int = 5) -> list[Any]:
    """An array as nested lists of numbers with as many figures as a chart or a table can show: pages stay light."""
    return np.vectorize(lambda one: float(f"{one:.{figures}g}"), otypes=[float])(values).tolist()


def report_html(data: Mapping[str, Any]) -> str:
    """The page of one of the ``*_report_data`` dictionaries, as text."""
    return _page(str(data["title"]), "report", _REPORT, data)


def explorer_html() -> str:
    """The loss explorer, as text."""
    return _page("Loss explorer", "explorer", _EXPLORER, {})


def write_report(path: str | PathLike[str], data: Mapping[str, Any]) -> None:
    """Write the page of ``data``, from one of the ``*_report_data`` functions, whole or not at all.

    Raises
    ------
    OSError
        Where the folder does not exist or cannot be written to, or the disk is full; an older page stays as it was.
    """
    write_whole(path, report_html(data).encode())


def write_explorer(path: str | PathLike[str]) -> None:
    """Write the loss explorer: losses of three classes as surfaces, and both players. As :func:`write_report`."""
    write_whole(path, explorer_html().encode())


def _page(title: str, name: str, scripts: Sequence[str], data: Mapping[str, Any]) -> str:
    """The frame of every page with its style, its data and its scripts inside."""
    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What could end the element or start a comment in it is written as an escape of JSON.
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    parts = {
        "title": html.escape(title),
        "style": _asset("page.css") + _asset(f"{name}.css"),
        "body": _asset(f"{name}.html"),
        "data": text,
        "scripts": "\n".join(_asset(script) for script in ("page.js", *scripts)),
    }
    pieces = _asset("frame.html").split("%%")  # text, name, text, name, …: the parts themselves are not searched
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all."""
    from nashlearn.training.checkpoint import replacing

    with replacing(Path(path)) as file:
        file.write(content)
