"""How words are written."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["affixes", "kind", "manner", "shape", "short_shape", "spelt"]


def shape(word: str) -> str:
    """Letters as X and x, digits as 9, all else as it is."""
    return "".join("X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word)


def short_shape(word: str) -> str:
    """:func:`shape` without repetitions: "Xx" for "Paris"."""
    whole = shape(word)
    return "".join(c for i, c in enumerate(whole) if i == 0 or c != whole[i - 1])


def affixes(word: str, starts: Sequence[int], ends: Sequence[int]) -> list[str]:
    """Names of the first and last letters of a word, so many of them, in small letters."""
    last = [f"s{n}={word[-n:].lower()}" for n in ends if n <= len(word)]
    return last + [f"b{n}={word[:n].lower()}" for n in starts if n <= len(word)]


def spelt(word: str) -> list[str]:
    """The names of ``TokenFeatures(spelling=True)``."""
    return [f"lower={word.lower()}", f"shape={short_shape(word)}", *affixes(word, (1, 2, 3), (1, 2, 3, 4))]


def kind(word: str) -> str:
    """What a word is by its looks: a web address, #topic, @name, number, mark, or in which case its letters are."""
    if word.startswith(("http:", "https:", "www.")):
        return "web"
    if word[:1] in ("@", "#"):
        return word[0] if len(word) == 1 else word[0] + "word"
    if not any(map(str.isalpha, word)):
        return "number" if any(map(str.isdigit, word)) else "mark"
    if any(map(str.isdigit, word)):
        return "letters and digits"
    if word.islower():
        return "small"
    if word.isupper():
        return "initial" if len(word) == 1 else "capitals"
    rest = "small" if word[1:].islower() else "mixed"
    return f"title, {rest}" if word[0].isupper() else rest


def manner(kinds: Sequence[str]) -> str:
    """How a whole sentence is written: where most words are in capitals, capitals tell little."""
    words = [one for one in kinds if one in ("small", "initial", "capitals") or one.startswith("title")]
    for name, share in (("capitals", 0.6), ("title", 0.8), ("small", 1.0)):
        if words and sum(one.startswith(name) for one in words) >= share * len(words):
            return name
    return "plain"
