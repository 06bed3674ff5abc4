"""What is fuzzed: each target takes bytes, and only errors that name what was wrong may come out of it.

A target is a function ``(data, folder)`` with a few valid inputs, its seeds, to start from. Formats with checksums
would stop a fuzzer at the door, so their targets also put the bytes into one entry of an archive that is otherwise
right, checksums included.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashlearn import NashClassifier, persistence
from nashlearn.datasets import parse_conllu, read_columns, read_conllu, read_mot, read_table
from nashlearn.datasets.tables import _labels, _numbers, _read
from nashlearn.training.checkpoint import Checkpoint

__all__ = ["TARGETS", "Target"]

_CONLLU = """# sent_id = 1
1-2	vamonos	_	_	_	_	_	_	_	_
1	vamos	ir	VERB	_	Mood=Imp	0	root	_	_
2	nos	nosotros	PRON	_	_	1	obj	1:obj	SpaceAfter=No
2.1	ya	ya	ADV	_	_	_	_	1:advmod	_

"""
_COLUMNS = "Confidence NN B-NP\nin IN B-PP\nthe DT B-NP\n\nPound NN B-NP\nfell VBD B-VP\n"
_MOT = "1,1,10.5,20,30,40,1,-1,-1,-1\n1,-1,1e2,2,3,4,0.5\n2,1,11,21,30,40,1,-1,-1,-1\n"
_CSV = 'a,b,"c d",y\n1,2.5,red,0\n-3,?,"blue, dark",1\n1e3,,red,0\n'
_ARFF = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n1.5,x\n?,y\n"


class Target(NamedTuple):
    """A function of bytes and a folder to write into, and inputs to begin with."""

    call: Callable[[bytes, Path], None]
    seeds: Callable[[], list[bytes]]


def _named(path: Path, read: Callable[[Path], Any]) -> Any:
    """Read a file; an error must be a ValueError that says which file, in words."""
    try:
        return read(path)
    except ValueError as error:
        message = str(error)
        assert path.name in message, f"the error does not name the file: {error!r}"
        assert len(message) > len(str(path)) + 8, f"the error says nothing: {error!r}"
    return None


def _written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def conllu(data: bytes, folder: Path) -> None:
    """CoNLL-U, gzipped or not; what was read must be read again from what it writes."""
    zipped = data[:2] == b"\x1f\x8b"
    sentences = _named(_written(folder, "f.conllu" + ".gz" * zipped, data), read_conllu)
    if sentences:
        for sentence in sentences:
            assert len(sentence.heads) == len(sentence.forms) == len(sentence)
        again = list(parse_conllu("".join(map(str, sentences)).split("\n")))
        assert [s.rows for s in again] == [s.rows for s in sentences]


def columns(data: bytes, folder: Path) -> None:
    """Columns as in the CoNLL shared tasks."""
    zipped = data[:2] == b"\x1f\x8b"
    sentences = _named(_written(folder, "f.txt" + ".gz" * zipped, data), read_columns)
    if sentences:
        assert len({len(token) for sentence in sentences for token in sentence}) == 1


def mot(data: bytes, folder: Path) -> None:
    """Boxes of videos."""
    zipped = data[:2] == b"\x1f\x8b"
    boxes = _named(_written(folder, "f.txt" + ".gz" * zipped, data), read_mot)
    if boxes is not None:
        assert np.isfinite(boxes.box).all()
        assert boxes.frame.min() >= 1
        if boxes.frame.max() < 10_000:
            assert sum(rows.size for rows in boxes.rows_by_frame()) == len(boxes)


def csv(data: bytes, folder: Path) -> None:
    """Tables: comma-separated, as the papers' sets and as anybody's own."""
    path = _written(folder, "f.csv", data)
    found = _named(path, _read)
    if found is not None:
        header, body, _ = found
        _named(path, lambda path: _numbers(header[:-1], body[:-1], path))
        assert len(_labels(body[-1])) == len(body[-1])
    table = _named(path, read_table)
    if table is not None:
        assert len(table.features) > 0


def arff(data: bytes, folder: Path) -> None:
    """Tables in ARFF."""
    _named(_written(folder, "f.arff", data), read_table)


@functools.cache
def _model() -> bytes:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with tempfile.TemporaryDirectory() as folder:
        persistence.save(NashClassifier(max_iter=20, tol=0.5).fit(X, np.arange(30) % 3), Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def model(data: bytes, folder: Path) -> None:
    """Saved models: the bytes themselves, or a schema of objects in an archive with the right checksum."""
    if data[:1] == b"{":
        data = _forged(data)
    path = _written(folder, "f.model", data)
    _named(path, persistence.read_info)
    loaded = _named(path, persistence.load)
    if loaded is not None and type(loaded) is NashClassifier:
        try:
            loaded.predict(np.zeros((1, 2)))
        except Exception:
            return  # parameters may be any: whoever can forge a checksum can make a model that fails


def _forged(schema: bytes) -> bytes:
    """The archive of a model with another schema, and with the checksum that belongs to it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_model())) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            if name not in ("schema.json", "nashlearn.json"):
                new.writestr(name, old.read(name))
        new.writestr("schema.json", schema)
        info = json.loads(old.read("nashlearn.json"))
        del info["sha256"]
        info["sha256"] = persistence._digest(new, info)
        new.writestr("nashlearn.json", json.dumps(info))
    return buffer.getvalue()


def _model_seeds() -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(_model())) as archive:
        return [_model(), archive.read("schema.json")]


@functools.cache
def _checkpoint() -> bytes:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        NashClassifier(max_iter=20, tol=0.5, checkpoint=path).fit(X, np.arange(30) % 3)
        return path.read_bytes()


def checkpoint(data: bytes, folder: Path) -> None:
    """Checkpoints: the bytes themselves, or one array in an archive with the right checksum."""
    if data[:1] == b"\x93":
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(_checkpoint())) as old, zipfile.ZipFile(buffer, "w") as new:
            for name in old.namelist():
                new.writestr(name, data if name == "w.npy" else old.read(name))
        data = buffer.getvalue()
    path = _written(folder, "f.checkpoint", data)
    _named(path, lambda path: Checkpoint(path, "of another problem").load())


def _checkpoint_seeds() -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(_checkpoint())) as archive:
        return [_checkpoint(), archive.read("w.npy")]


def _texts(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [*(text.encode() for text in texts), gzip.compress(texts[0].encode(), mtime=0)]


TARGETS = {
    "conllu": Target(conllu, _texts(_CONLLU)),
    "columns": Target(columns, _texts(_COLUMNS)),
    "mot": Target(mot, _texts(_MOT)),
    "csv": Target(csv, _texts(_CSV, _CSV.replace(",", ";"))),
    "arff": Target(arff, _texts(_ARFF)),
    "model": Target(model, _model_seeds),
    "checkpoint": Target(checkpoint, _checkpoint_seeds),
}
