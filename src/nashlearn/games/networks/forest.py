"""Chains and trees as one forest, as the compiled sweep in the probability domain reads it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Forest"]


class Forest(NamedTuple):
    """Nodes in preorder: parents, first children and next siblings (-1: none), and the tables of their edges.

    ``table[i]`` is the table of the edge to the parent, read as (parent, child), or the other way where ``flipped``.
    """

    parent: np.ndarray
    child: np.ndarray
    sibling: np.ndarray
    table: np.ndarray
    flipped: np.ndarray
