"""What stands around the words of a sentence of a treebank: attributes for :class:`nashlearn.parsing.HashedSentences`.

>>> from nashlearn.datasets import parse_conllu
>>> rows = ["1 on on ADP IN _ 3 case _ _", "2 his his DET PRP$ _ 3 det _ _", "3 way way NOUN NN _ 0 root _ _"]
>>> sentence = next(parse_conllu([row.replace(" ", "\\t") + "\\n" for row in rows]))
>>> marker(sentence)
['start', 'on', 'on']
>>> before(sentence)
['< <', '< IN', 'IN PRP$']
"""

from __future__ import annotations

from collections.abc import Callable

from nashlearn.datasets.conllu import Sentence

__all__ = ["SURROUNDINGS", "after", "before", "marker"]

_MARKERS = frozenset({"ADP", "SCONJ", "CCONJ"})
_WITHIN = frozenset({"DET", "ADJ", "NUM", "NOUN", "PROPN", "ADV", "AUX", "PART", "SYM", "X"})  # of a phrase, before it
_FAR = 7  # words before it that are looked at


def _fine(sentence: Sentence) -> list[str]:
    """Fine tags; coarse ones where a treebank has no others."""
    return [coarse if fine == "_" else fine for coarse, fine in zip(sentence.upos, sentence.xpos, strict=True)]


def before(sentence: Sentence) -> list[str]:
    """The fine tags of the two words before each."""
    tags = ["<", "<", *_fine(sentence)]
    return [f"{tags[i]} {tags[i + 1]}" for i in range(len(sentence))]


def after(sentence: Sentence) -> list[str]:
    """The fine tags of the two words after each."""
    tags = [*_fine(sentence), ">", ">"]
    return [f"{tags[i + 1]} {tags[i + 2]}" for i in range(len(sentence))]


def marker(sentence: Sentence) -> list[str]:
    """The lemma of the preposition or conjunction that introduces each word, else the tag that ends the search for it.

    In Universal Dependencies it hangs from the word that it introduces: the head of that word depends on it, but no
    arc between the two shows it.
    """
    found, tags, lemmas = [], sentence.upos, sentence.lemmas
    for i in range(len(tags)):
        own = "start"
        for j in range(i - 1, max(i - 1 - _FAR, -1), -1):
            if tags[j] in _MARKERS:
                own = lemmas[j]
                break
            if tags[j] not in _WITHIN:
                own = f"|{tags[j]}"
                break
        found.append(own)
    return found


SURROUNDINGS: dict[str, Callable[[Sentence], list[str]]] = {"before": before, "after": after, "marker": marker}
