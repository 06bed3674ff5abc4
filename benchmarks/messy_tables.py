"""Messy tables made of real ones: columns are disguised as people write them, ids are added, entries are lost.

Each has a clean twin, with the same rows and the same gaps: what somebody would make of the messy one by hand.
``python -m benchmarks.messy_tables FOLDER`` writes the messy ones as files, seven rows in ten to train on, the others
to test on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashlearn.datasets import load_multiclass, load_ordinal
from nashlearn.datasets.home import data_home, text_lines

__all__ = ["HELD_OUT", "TABLES", "Maker", "Messy", "make", "write"]

HELD_OUT = 0.3

_LOST = 0.08  # share of entries that are lost, in columns that lose any


class Messy(NamedTuple):
    """A messy data frame, its clean twin, labels, and the columns that are no plain numbers or categories."""

    name: str
    messy: Any
    clean: Any
    y: np.ndarray
    disguised: tuple[str, ...]
    ids: tuple[str, ...]
    text: tuple[str, ...] = ()


class Maker:
    """Columns of both twins, one after another."""

    def __init__(self, seed: int):
        import pandas

        self.rng = np.random.default_rng(seed)
        self.messy, self.clean = pandas.DataFrame(), pandas.DataFrame()
        self.disguised: list[str] = []
        self.ids: list[str] = []

    def plain(self, name: str, values: Any) -> None:
        self.messy[name] = self.clean[name] = values

    def written(self, name: str, values: np.ndarray, write: Callable[[Any], str], gap: str | None = None) -> None:
        """Values as text, some of them lost where there is a word for a gap."""
        texts = np.array([write(value) for value in values.tolist()], dtype=object)
        kept = np.asarray(values, dtype=np.float64)
        if gap is not None:
            lost = self.rng.random(len(texts)) < _LOST
            texts[lost], kept = gap, np.where(lost, np.nan, kept)
        self.messy[name], self.clean[name] = texts, kept
        self.disguised.append(name)

    def names(self, name: str, write: Callable[[int], Any], n: int) -> None:
        """A column that names the rows; the clean twin has none."""
        self.messy[name] = [write(int(i)) for i in self.rng.permutation(n)]
        self.ids.append(name)

    def made(self, name: str, y: np.ndarray, text: tuple[str, ...] = ()) -> Messy:
        return Messy(name, self.messy, self.clean, y, tuple(self.disguised), tuple(self.ids), text)


def _comma(value: float) -> str:
    return f"{value:g}".replace(".", ",")


def _day(days: float, first: str, write: str) -> str:
    import pandas

    return (pandas.Timestamp(first) + pandas.Timedelta(days=days)).strftime(write)


def houses(rows: int = 6000) -> Messy:
    """Districts of California: incomes in dollars, the year of building as a date, thousands, gaps, ids."""
    found = load_ordinal("calhousing")
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(found.target))[:rows])
    columns = dict(zip(found.feature_names, found.data[chosen].T, strict=True))
    made, n = Maker(1), chosen.size
    made.names("district_id", lambda i: 100_000 + i, n)
    made.plain("longitude", columns["longitude"])
    made.plain("latitude", columns["latitude"])
    made.written("income", np.round(columns["medianIncome"] * 1e4), lambda v: f"${v:,.0f}", gap="")
    made.written("rooms", columns["totalRooms"], lambda v: f"{v:,.0f}")
    made.written("bedrooms", columns["totalBedrooms"], lambda v: f"{v:,.0f} rooms", gap="unknown")
    made.written("population", columns["population"], lambda v: f"{v:,.0f} people")
    made.plain("households", columns["households"])
    built = 365 * (60 - columns["housingMedianAge"])  # days since 1930
    made.written("built", built, lambda v: _day(v, "1930-01-01", "%m/%d/%Y"), gap="n/a")
    return made.made("houses", (found.target[chosen] > 5).astype(int))


def wine() -> Messy:
    """Red wines in grades, most of them 5 and 6: decimal commas, percentages, units, gaps, codes of samples."""
    found = load_multiclass("redwine")
    columns = dict(zip(found.feature_names, found.data.T, strict=True))
    made, n = Maker(2), found.target.size
    made.names("sample", lambda i: f"RW-{i:05d}", n)
    for name in ("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar"):
        made.written(name, columns[name], lambda v: f"{_comma(v)} g/l")
    made.written("chlorides", columns["chlorides"], _comma, gap="-")
    for name in ("free_sulfur_dioxide", "total_sulfur_dioxide"):
        made.written(name, columns[name], lambda v: f"{_comma(v)} mg/l", gap="")
    made.written("density", columns["density"], lambda v: _comma(round(v, 5)))
    made.written("pH", columns["pH"], _comma)
    made.written("sulphates", columns["sulphates"], _comma, gap="unknown")
    made.written("alcohol", columns["alcohol"] / 100, lambda v: f"{_comma(round(100 * v, 2))} %")
    return made.made("wine", found.target)


def reviews() -> Messy:
    """Sentences of product reviews, which are negative, neither or positive: free text, stars, a product, ids."""
    lines = text_lines(data_home() / "sequences" / "finegrained_sentiment.tsv.gz")
    rows = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    made, n = Maker(3), len(rows)
    made.names("sentence", lambda i: f"{i:04x}-{(i * 7919) % 65536:04x}", n)
    made.plain("product", [row[1] for row in rows])
    made.written("stars", np.array([float(row[2]) for row in rows]), lambda v: f"{v:g} star{'s' if v != 1 else ''}")
    made.written("place", np.array([float(row[3]) for row in rows]), lambda v: f"{v:g}", gap="unknown")
    made.plain("sentence_text", [row[5] for row in rows])
    mood = {"neg": "negative", "pos": "positive"}
    return made.made("reviews", np.array([mood.get(row[4], "neither") for row in rows]), ("sentence_text",))


def blocks() -> Messy:
    """Blocks of pages, nine in ten of them text: pixels, percentages, thousands, a time of scanning, gaps, ids."""
    found = load_multiclass("pageblocks")
    columns = dict(zip(found.feature_names, found.data.T, strict=True))
    made, n = Maker(4), found.target.size
    made.names("block_no", lambda i: i + 1, n)
    made.written("height", columns["height"], lambda v: f"{v:g} px", gap="?")
    made.written("length", columns["lenght"], lambda v: f"{v:g}px")
    for name in ("area", "blackpix", "blackand"):
        made.written(name, columns[name], lambda v: f"{v:,.0f}")
    made.plain("eccen", columns["eccen"])
    for name in ("p_black", "p_and"):
        made.written(name, columns[name], lambda v: f"{100 * v:.1f} %", gap="")
    made.plain("mean_tr", columns["mean_tr"])
    made.written("scanned", columns["wb_trans"], lambda v: _day(v / 1440, "2020-01-01", "%Y-%m-%dT%H:%M"))
    return made.made("blocks", found.target)


TABLES: dict[str, Callable[[], Messy]] = {"houses": houses, "wine": wine, "reviews": reviews, "blocks": blocks}


def make(name: str) -> Messy:
    """One of the tables."""
    return TABLES[name]()


def write(folder: Path, names: Iterable[str] = TABLES) -> None:
    """Write ``NAME.csv`` and ``NAME.test.csv`` with a column ``label``: the first split of the benchmark."""
    from sklearn.model_selection import StratifiedShuffleSplit

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        one = make(name)
        train, test = next(StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=0).split(one.y, one.y))
        table = one.messy.assign(label=one.y)
        table.iloc[train].to_csv(folder / f"{name}.csv", index=False)
        table.iloc[test].to_csv(folder / f"{name}.test.csv", index=False)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
