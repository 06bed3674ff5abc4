"""The games, one factory for each. Every game is a :class:`nashlearn.game.Game`. Imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nashlearn._lazy import lazily

if TYPE_CHECKING:
    from nashlearn.games.catalogue import absolute, abstain, cost, row_costs, squared, zero_one
    from nashlearn.games.enumerated import Enumerated
    from nashlearn.games.hamming import Hamming
    from nashlearn.games.matchings.matching import MatchingGame, Matchings
    from nashlearn.games.networks import Labeling, MarkovGame
    from nashlearn.games.rows.row_costs import RowCostGame
    from nashlearn.games.rows.simplex import Simplex, SimplexGame
    from nashlearn.games.structures import (
        arborescence,
        markov,
        matching,
        partial_matching,
        spanning_tree,
        tree_parts,
    )
    from nashlearn.games.trees.arborescence import ArborescenceGame, Arborescences
    from nashlearn.games.trees.parts import TreePartsGame
    from nashlearn.games.trees.spanning import SpanningTrees

__all__ = [
    "ArborescenceGame",
    "Arborescences",
    "Enumerated",
    "Hamming",
    "Labeling",
    "MarkovGame",
    "MatchingGame",
    "Matchings",
    "RowCostGame",
    "Simplex",
    "SimplexGame",
    "SpanningTrees",
    "TreePartsGame",
    "absolute",
    "abstain",
    "arborescence",
    "cost",
    "markov",
    "matching",
    "partial_matching",
    "row_costs",
    "spanning_tree",
    "squared",
    "tree_parts",
    "zero_one",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "ArborescenceGame": f"{__name__}.trees.arborescence",
        "Arborescences": f"{__name__}.trees.arborescence",
        "Enumerated": f"{__name__}.enumerated",
        "Hamming": f"{__name__}.hamming",
        "Labeling": f"{__name__}.networks",
        "MarkovGame": f"{__name__}.networks",
        "MatchingGame": f"{__name__}.matchings.matching",
        "Matchings": f"{__name__}.matchings.matching",
        "RowCostGame": f"{__name__}.rows.row_costs",
        "Simplex": f"{__name__}.rows.simplex",
        "SimplexGame": f"{__name__}.rows.simplex",
        "SpanningTrees": f"{__name__}.trees.spanning",
        "TreePartsGame": f"{__name__}.trees.parts",
        "absolute": f"{__name__}.catalogue",
        "abstain": f"{__name__}.catalogue",
        "arborescence": f"{__name__}.structures",
        "cost": f"{__name__}.catalogue",
        "markov": f"{__name__}.structures",
        "matching": f"{__name__}.structures",
        "partial_matching": f"{__name__}.structures",
        "row_costs": f"{__name__}.catalogue",
        "spanning_tree": f"{__name__}.structures",
        "squared": f"{__name__}.catalogue",
        "tree_parts": f"{__name__}.structures",
        "zero_one": f"{__name__}.catalogue",
    },
)
