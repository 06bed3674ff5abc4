"""Markov networks: the game of labellings of a graph whose scores and losses add up over nodes and edges."""

from nashlearn.games.networks.game import MarkovGame
from nashlearn.games.networks.outcome import Labeling

__all__ = ["Labeling", "MarkovGame"]
