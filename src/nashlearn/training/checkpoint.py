"""Checkpoints of long training: whole or absent, never half-written, and only for the problem that they belong to.

A checkpoint is a NumPy archive (``.npz``, not compressed) of the state of a run. It is written under another name in
the same folder, brought to the disk and then renamed, so a kill at any instant leaves the last one intact; what was
half-written lies beside it under a name that begins with a point, and is overwritten by the next. Loading executes
nothing: no pickles, and sizes are checked before memory is asked for.

A resumed run ends where an uninterrupted one does, within the certified gap. Matchings and trees repeat it to the last
bit: the file holds the dual point, or the weights, curvature and planes of L-BFGS (some 65 times the weights), and the
state of the random generator, so a seed of None is kept too. So do linear models that one method trains; where the
ascent has given way to Newton's method, bits may differ. Kernel models compute rows of the Gram matrix in other blocks,
and the games of networks start afresh. The file stays when training ends.
Fitting the same data again then returns at once; with a smaller ``tol`` or a larger ``max_iter`` it goes on.

Checkpoints are written every three seconds, or less often where writing would take more than a twentieth of the time,
and when training ends other than by an interrupt.
"""

from __future__ import annotations

import math
import os
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

__all__ = ["Checkpoint", "Saved", "replacing"]

_FORMAT = "nashlearn checkpoint 6"
_SECONDS = 3.0  # between two checkpoints at least,
_SHARE = 0.05  # and of the time at most


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` at once when all is on the disk, or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere folders cannot be opened; there the name may be lost with the power
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class Saved(dict[str, np.ndarray]):
    """Arrays by name, as a file holds them."""

    def __init__(self, path: Path, arrays: Mapping[str, np.ndarray]):
        super().__init__(arrays)
        self.path = path

    def __missing__(self, name: str) -> np.ndarray:
        raise ValueError(f"The checkpoint {self.path} is damaged: it has no {name!r}. Remove it to start anew.")

    def under(self, prefix: str) -> Saved:
        """The arrays whose names begin so, without that beginning."""
        return Saved(self.path, {k.removeprefix(prefix): v for k, v in self.items() if k.startswith(prefix)})


class Checkpoint:
    """The file that a run saves itself to.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist. Runs at the same time need files of their own.
    fingerprint : str
        What the run belongs to, see :mod:`nashlearn.training.fingerprint`: a file of another run is refused.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str):
        self.path, self.fingerprint = Path(path), fingerprint
        if self.path.is_dir():
            raise ValueError(f"checkpoint must be the path of a file; {self.path} is a folder.")
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint must lie in a folder that exists; {self.path.parent} does not.")
        if not os.access(self.path.parent, os.W_OK):
            raise ValueError(f"checkpoint must lie in a folder that can be written to; {self.path.parent} cannot.")
        self._next = time.perf_counter() + _SECONDS

    def part(self, suffix: str, what: str) -> Checkpoint:
        """The checkpoint of a part of this run, ``what``, in a file beside this one whose name ends in ``suffix``."""
        return Checkpoint(self.path.with_name(self.path.name + suffix), f"{self.fingerprint} {what}")

    def load(self) -> Saved | None:
        """The state in the file, None where there is no file; an error where it is damaged, foreign or another's."""
        try:
            saved = Saved(self.path, _read(self.path))
        except FileNotFoundError:
            return None
        if str(saved["format"]) != _FORMAT:
            raise ValueError(f"{self.path} is no checkpoint that this version of nashlearn reads.")
        if str(saved["fingerprint"]) != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.path} belongs to other data or parameters. Remove it, or choose another path."
            )
        return saved

    def due(self) -> bool:
        """Whether the last checkpoint is old enough for another."""
        return time.perf_counter() >= self._next

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Replace the file. Where that fails, warn: training that goes on is worth more than its checkpoint."""
        began = time.perf_counter()
        try:
            with replacing(self.path) as file:
                np.savez(file, format=np.array(_FORMAT), fingerprint=np.array(self.fingerprint), **arrays)
        except OSError as error:
            warnings.warn(f"The checkpoint {self.path} could not be written: {error}.", UserWarning, stacklevel=2)
        now = time.perf_counter()
        self._next = now + max(_SECONDS, (now - began) / _SHARE)


def _read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive, or a ValueError that names the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {item.filename.removesuffix(".npy"): _array(archive, item) for item in archive.infolist()}
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"The checkpoint {path} cannot be read: {error}.") from error
    except Exception as error:  # a damaged archive fails in as many ways as there are bytes
        raise ValueError(f"{path} is damaged, or no checkpoint: {error}. Remove it to start anew.") from error


def _array(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header must account for every byte."""
    if item.compress_type != zipfile.ZIP_STORED:
        raise ValueError("it is compressed")
    with archive.open(item) as file:
        version = npy.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{item.filename} has format {version}")
        shape, fortran, dtype = npy.read_array_header_1_0(file)
        size = dtype.itemsize * math.prod(shape)
        if dtype.hasobject or dtype.kind not in "biufU" or file.tell() + size != item.file_size:
            raise ValueError(f"the header of {item.filename} does not fit its contents")
        values = np.frombuffer(file.read(), dtype=dtype)
    return values.reshape(shape, order="F" if fortran else "C").copy()
