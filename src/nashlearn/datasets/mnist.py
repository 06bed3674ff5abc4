"""MNIST in the idx format of LeCun, Cortes and Burges, gzipped."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import numpy as np

from nashlearn.datasets.home import bunch, find

__all__ = ["load_mnist"]


def _idx(name: str) -> np.ndarray:
    """An array of bytes: two zeros, type 8, the number of axes, the axes' lengths (big-endian), the entries."""
    path = find("mnist", name)
    try:
        content = gzip.decompress(path.read_bytes())
        zeros, kind, axes = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{axes}I", content, 4)
    except (OSError, EOFError, struct.error) as error:
        raise ValueError(f"{path} is not a gzipped idx file: {error}.") from None
    if (zeros, kind) != (0, 8) or len(content) != 4 + 4 * axes + int(np.prod(shape)):
        raise ValueError(f"{path} is not a complete idx file of bytes.")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


def load_mnist(n: int | None = None, *, part: str = "train") -> Any:
    """Handwritten digits: the first ``n`` images of a part (all by default), pixels between 0 and 1.

    Parameters
    ----------
    n : int, optional
        The files are shuffled already, so the first ``n`` are a sample.
    part : {"train", "test"}

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n, 784), float32; ``target`` (n,), integers 0 to 9.
    """
    prefixes = {"train": "train", "test": "t10k"}
    if part not in prefixes:
        raise ValueError(f"part must be 'train' or 'test'; got {part!r}.")
    images, labels = _idx(f"{prefixes[part]}-images-idx3-ubyte.gz"), _idx(f"{prefixes[part]}-labels-idx1-ubyte.gz")
    if len(images) != len(labels):
        raise ValueError(f"MNIST has {len(images)} images but {len(labels)} labels in the part {part!r}.")
    if n is not None and not 1 <= n <= len(images):
        raise ValueError(f"n must lie between 1 and {len(images)}; got {n!r}.")
    data = images[:n].reshape(-1, images[0].size).astype(np.float32) / np.float32(255)
    return bunch(name="mnist", data=data, target=labels[:n].astype(np.int64))
