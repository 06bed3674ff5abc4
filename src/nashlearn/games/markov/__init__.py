"""Markov networks: the game of labelings of a graph whose scores and losses add up over nodes and edges."""

from nashlearn.games.markov.game import MarkovGame
from nashlearn.games.markov.outcome import Labeling

__all__ = ["Labeling", "MarkovGame"]
