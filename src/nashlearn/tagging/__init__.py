"""Tagging text with :class:`nashlearn.NashTagger`: features of tokens without deep learning, and the F1 of phrases.

>>> from nashlearn import tagging
>>> X = tagging.TokenFeatures(spelling=False).transform([[["The", "DT"], ["cat", "NN"]]])
>>> X[0][1][:3]
['w-2=_', 'w-1=The', 'w0=cat']
>>> tagging.phrase_f1([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
0.0
"""

from __future__ import annotations

from nashlearn.tagging.features import RECIPES, TokenFeatures
from nashlearn.tagging.gazetteers import Gazetteer, read_gazetteer
from nashlearn.tagging.phrases import mark_phrases, phrase_f1, phrase_scores, phrases

__all__ = [
    "RECIPES",
    "Gazetteer",
    "TokenFeatures",
    "mark_phrases",
    "phrase_f1",
    "phrase_scores",
    "phrases",
    "read_gazetteer",
]
