"""Figures in prose: each is registered with the stored result that it quotes, compared with it and rewritten from it.

A claim is a piece of a page with ``{}`` for every measured figure, and a function that makes these figures from result
files. A figure of the page that no claim covers must match one of the page's patterns of numbers that are no
measurements, such as sizes and versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Claim", "Page"]

ROOT = Path(__file__).resolve().parents[1]
_WORDS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twice|thrice|half|halves|quarters?|thirds?|dozens?"
_NUMBER = re.compile(
    rf"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|\b(?:{_WORDS}|tens|hundreds?|thousands?|millions?)\b|[½¼¾⅓⅔]", re.I
)


@dataclass(frozen=True)
class Claim:
    """Words with ``{}`` for each figure, and what the files say for these."""

    words: str
    figures: Callable[[], Sequence[str]]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The words with any figures, wherever lines are broken."""
        parts = [re.sub(r"(?:\\ |\\\n)+", r"\\s+", re.escape(part)) for part in self.words.split("{}")]
        return re.compile("([^|]{1,40}?)".join(parts))

    @property
    def expected(self) -> str:
        """The words with the figures of the files."""
        return self.words.format(*self.figures())


@dataclass(frozen=True)
class Page:
    """A page, or the part of it from ``start`` on and before ``end``; its claims, and patterns of other numbers."""

    path: str
    claims: Sequence[Claim]
    others: Sequence[str]
    start: str = ""
    end: str = ""

    def _split(self) -> tuple[str, str, str]:
        text = (ROOT / self.path).read_text(encoding="utf-8")
        first = text.index(self.start) if self.start else 0
        last = text.index(self.end, first) if self.end else len(text)
        return text[:first], text[first:last], text[last:]

    def text(self) -> str:
        """The part that is checked."""
        return self._split()[1]

    def _matches(self, text: str) -> list[tuple[Claim, list[re.Match[str]]]]:
        return [(claim, list(claim.pattern.finditer(text))) for claim in self.claims]

    def wrong(self) -> list[str]:
        """What to mend: claims that are not there once, or with other figures than those of the files."""
        found = []
        for claim, matches in self._matches(self.text()):
            if len(matches) != 1:
                found.append(f"{self.path} must say once: {claim.expected}")
            elif _figures(matches[0]) != list(claim.figures()):
                said = " ".join(matches[0].group().split())
                found.append(f"{self.path} says: {said}\n  the files say: {claim.expected}")
        return found

    def unregistered(self) -> list[str]:
        """Numbers that no claim covers and that are not known to be something else, each with its surroundings."""
        text = self.text()
        hidden = re.sub(r"^(`{3,}).*?^\1$", lambda block: " " * len(block.group()), text, flags=re.M | re.S)
        hidden = re.sub(r"`[^`\n]*`|\]\([^)]*\)", lambda code: " " * len(code.group()), hidden)
        for _, matches in self._matches(text):
            for match in matches:
                for group in range(1, match.re.groups + 1):
                    first, last = match.span(group)
                    hidden = hidden[:first] + " " * (last - first) + hidden[last:]
        for other in self.others:
            hidden = re.sub(re.sub(" +", r"\\s+", other), lambda known: " " * len(known.group()), hidden)
        found = []
        for number in _NUMBER.finditer(hidden):
            around = " ".join(text[max(number.start() - 40, 0) : number.end() + 30].split())
            found.append(f"{self.path}: {number.group()!r} in {around!r}")
        return found

    def rewrite(self) -> int:
        """Put the files' figures into the claims that are on the page; how many figures were others."""
        before, text, after = self._split()
        changed = 0
        for claim, matches in self._matches(text):
            for match in matches:
                changed += sum(a != b for a, b in zip(_figures(match), claim.figures(), strict=True))
        for claim in self.claims:
            figures = claim.figures()
            text = claim.pattern.sub(lambda match, figures=figures: _put(match, figures), text)
        (ROOT / self.path).write_text(before + text + after, encoding="utf-8")
        return changed


def _figures(match: re.Match[str]) -> list[str]:
    """The figures of a claim as the page has them, wherever lines are broken."""
    return [" ".join(group.split()) for group in match.groups()]


def _put(match: re.Match[str], figures: Sequence[str]) -> str:
    """The matched words with other figures in the place of its groups."""
    text, start = match.group(), match.start()
    for group, figure in reversed(list(enumerate(figures, 1))):
        first, last = (place - start for place in match.span(group))
        text = text[:first] + figure + text[last:]
    return text
