"""The games, one factory for each. Every game is a :class:`nashlearn.game.Game`."""

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
