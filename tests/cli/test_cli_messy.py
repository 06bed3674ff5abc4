"""Messy tables on the command line: every guess is said, one flag overrules it, a model reads every row alike."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from commands import answer, call, complaint, flowers

from nashlearn import persistence

WORDS = ["good", "bad", "film", "very", "never", "again", "story", "music", "long", "night"]
GUESSED = {
    "price": ("number", "numbers such as '$"),
    "weight": ("number", "in 'kg'"),
    "share": ("number", "percentages such as '"),
    "amount": ("number", "with a decimal comma"),
    "day": ("date", "(month/day/year), read as elapsed, month, day of week"),
    "at": ("date", "(year-month-day), read as elapsed, day of week, hour"),
    "review": ("text", "free text such as '"),
    "age": ("number", "'unknown' taken for missing"),
    "customer_id": ("id", "name rows: left out"),
    "key": ("id", "names rows, as 'K"),
}


def messy(n: int = 150, seed: int = 0) -> pd.DataFrame:
    """A label that a price, an amount, a day and words tell of, each written as people do."""
    rng = np.random.default_rng(seed)
    price, days = rng.uniform(1e3, 9e4, n), rng.integers(0, 300, n)
    amount, words = rng.uniform(0, 5000, n), rng.choice(WORDS, (n, 6))
    good = (words == "good").sum(1) - (words == "bad").sum(1)
    score = price / 2e4 + amount / 1e3 + days / 100 + 2 * good + rng.normal(size=n)
    dates = pd.Timestamp("2021-01-01") + pd.to_timedelta(days, unit="D")
    marks = str.maketrans(",.", ".,")
    return pd.DataFrame(
        {
            "customer_id": 5000 + rng.permutation(n) * 3,
            "key": [f"K{i:05x}" for i in rng.permutation(n * 7)[:n]],
            "price": [f"${value:,.0f}" for value in price],
            "amount": [f"{value:,.2f}".translate(marks) for value in amount],
            "weight": [f"{value:.1f} kg" for value in rng.uniform(1, 99, n)],
            "share": [f"{value:.1f} %" for value in rng.uniform(0, 100, n)],
            "day": dates.strftime("%m/%d/%Y"),
            "at": [f"2022-05-{1 + i % 28:02d} {i % 24:02d}:30" for i in rng.integers(0, 900, n)],
            "review": [" ".join(row) for row in words],
            "age": [str(value) if value > 25 else "unknown" for value in rng.integers(18, 90, n)],
            "size": rng.normal(size=n).round(3),
            "label": np.where(score > np.median(score), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A messy file, a model trained on it without a flag, and what was said meanwhile."""
    here = tmp_path_factory.mktemp("messy")
    messy().to_csv(here / "messy.csv", index=False)
    messy(80, seed=1).to_csv(here / "test.csv", index=False)
    said = call("train", here / "messy.csv", "-t", "label", "-o", here / "m").stderr
    (here / "said.txt").write_text(said)
    return here


def kinds_of(path) -> dict[str, str]:
    return {one["name"]: one["kind"] for one in persistence.read_info(path)["schema"]["columns"]}


def test_every_guess_is_said_and_stored(folder):
    said, kinds = (folder / "said.txt").read_text(), kinds_of(folder / "m")
    for name, (kind, words) in GUESSED.items():
        line = next(line for line in said.splitlines() if line.startswith(f"column {name!r}: "))
        assert words in line and f"If that is wrong: --as {name}=" in line
        assert kinds.get(name, "id") == kind
    assert "column 'size'" not in said and kinds["size"] == "number"
    assert answer("evaluate", folder / "m", folder / "test.csv")["accuracy"] > 0.75
    told = call("info", folder / "m").stdout
    assert "%m/%d/%Y" in told and "unit kg" in told


@pytest.mark.parametrize("name", GUESSED)
def test_one_flag_overrules_a_guess(name, folder, tmp_path):
    """The one that is offered, and every other that makes sense."""
    line = next(one for one in (folder / "said.txt").read_text().splitlines() if one.startswith(f"column {name!r}: "))
    offered = line.partition(f"--as {name}=")[2].rstrip(".")
    arguments = (
        "train",
        folder / "messy.csv",
        "-t",
        "label",
        "-o",
        tmp_path / "m",
        "--max-iter",
        2,
        "--check",
        "--json",
    )
    for kind in {offered, "category", "drop"}:
        found = json.loads(call(*arguments, "--as", f"{name}={kind}").stdout)
        kinds = {one["name"]: one["kind"] for one in found["columns"]}
        expected = {"decimal-comma": "number", "day-first": "date"}.get(kind, kind)
        assert kinds[name] == expected
        others = {other: guess for other, (guess, _) in GUESSED.items() if other != name}
        assert {other: kinds[other] for other in others} == others


def test_a_row_is_read_alike_in_every_file(folder):
    """Alone or among others: what its entries mean was settled in training."""
    frame = pd.read_csv(folder / "test.csv", dtype=str, keep_default_na=False)
    whole = answer("predict", folder / "m", folder / "test.csv", "--proba")
    for row in (0, 17, 79):
        alone = answer("predict", folder / "m", "-", "--proba", stdin=frame.iloc[[row]].to_csv(index=False))
        for name, values in alone.items():
            assert values[0] == pytest.approx(whole[name][row], abs=1e-12)


def test_ids_are_never_looked_at(folder):
    frame = messy(80, seed=1)
    expected = answer("predict", folder / "m", folder / "test.csv")
    without = frame.drop(columns=["customer_id", "key"])
    other = frame.assign(customer_id=0, key=frame["label"])
    for one in (without, other):
        assert answer("predict", folder / "m", "-", stdin=one.to_csv(index=False)) == expected


def test_few_strange_entries(tmp_path):
    frame = flowers().astype({"petals": object})
    frame.loc[[7, 30], "petals"] = ["many", "few"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    arguments = ("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m")
    message = complaint(*arguments)
    assert "row 8 (line 9 of a.csv) has 'many'" in message and "--na many,few" in message
    call(*arguments, "--na", "many,few")
    assert kinds_of(tmp_path / "m")["petals"] == "number"
    whole = answer("predict", tmp_path / "m", tmp_path / "a.csv")["prediction"]
    frame.loc[[7, 30], "petals"] = ""
    assert answer("predict", tmp_path / "m", "-", stdin=frame.to_csv(index=False))["prediction"] == whole
    frame.loc[0, "petals"] = "lots"
    assert "row 1 has 'lots'" in complaint("predict", tmp_path / "m", "-", stdin=frame.to_csv(index=False))
    call("predict", tmp_path / "m", "-", "--na", "lots", stdin=frame.to_csv(index=False))
    call("evaluate", tmp_path / "m", "-", "--na", "lots", stdin=frame.to_csv(index=False))


@pytest.mark.parametrize("options", [[], ["--report", "r.html"], ["--report", "r.html", "--seed", "3"], ["--tune"]])
def test_errors_name_the_line_in_every_mode(options, tmp_path, monkeypatch):
    """Also where an entry before it goes over several lines, and where the row is held out."""
    monkeypatch.chdir(tmp_path)
    frame = flowers().astype({"petals": object})
    frame["remark"] = "fine"
    frame.loc[2, "remark"], frame.loc[100, "petals"] = "two\nlines", "many"
    frame.to_csv("a.csv", index=False)
    line = next(i for i, text in enumerate((tmp_path / "a.csv").read_text().splitlines(), 1) if ",many," in text)
    message = complaint("train", "a.csv", "-t", "kind", "-o", "m", *options)
    assert f"row 101 (line {line} of a.csv) has 'many'" in message and line == 103
    flowers().assign(remark="fine").to_csv("b.csv", index=False)
    assert f"row 101 (line {line} of a.csv)" in complaint("train", "b.csv", "-t", "kind", "-o", "m", "--test", "a.csv")
    assert not (tmp_path / "m").exists()  # nothing was trained in vain


def test_rows_without_a_label(tmp_path):
    frame = flowers()
    frame.loc[[3, 5, 8], "kind"] = [None, "?", "tbd"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    arguments = ("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m", "--na", "tbd")
    assert "no label in 3 rows, the first of which is row 4. Leave these rows out with --drop-unl" in complaint(
        *arguments
    )
    assert answer(*arguments, "--drop-unlabelled")["rows"] == 117
    assert answer("evaluate", tmp_path / "m", tmp_path / "a.csv", "--drop-unlabelled", "--na", "tbd")["rows"] == 117
    late = frame.astype({"petals": object})
    late.loc[100, "petals"] = "many"
    late.to_csv(tmp_path / "b.csv", index=False)
    message = complaint("train", tmp_path / "b.csv", *arguments[2:], "--drop-unlabelled")
    assert "row 101 (line 102 of b.csv)" in message  # as the file counts, not as the rows that are left do


def test_the_page_about_the_data(tmp_path):
    frame = messy()
    frame["refund"] = np.where(frame["label"] == "yes", 1, 0) + np.arange(150) % 2 * 10
    frame["same"], frame["again"] = 1.5, frame["weight"].str.replace(" kg", "")
    frame.loc[20:, "share"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    arguments = ("train", tmp_path / "a.csv", "-t", "label", "--check")
    page = call(*arguments).stdout
    for words in (
        "'refund' alone tells 100.0% of the labels",
        "'same' has the same entry in every row",
        "'again' and 'weight' hold the same",
        "'share' is missing in 87% of the rows",
        "whole numbers that name rows: left out",
        "Nothing was trained",
    ):
        assert words in page
    assert "yes" in page and "50.0%" in page and list(tmp_path.iterdir()) == [tmp_path / "a.csv"]
    found = answer(*arguments)
    assert found["rows"] == 150 and {one["rows"] for one in found["classes"]} == {75}
    assert not any("refund" in line for line in answer(*arguments, "--drop", "refund")["suspicious"])


def test_all_that_training_refuses_is_shown_at_once(tmp_path):
    frame = flowers().astype(object)
    frame.loc[7, "petals"], frame.loc[9, "height"], frame.loc[[3, 4], "kind"] = "many", "tall", None
    frame.to_csv(tmp_path / "a.csv", index=False)
    page = call("train", tmp_path / "a.csv", "-t", "kind", "--check").stdout
    assert "row 8 has 'many'" in page and "row 10 has 'tall'" in page and page.count("refused") >= 2
    assert "2 rows have no label. Training refuses them" in page


def test_no_column_of_honest_data_leaks(tmp_path):
    flowers().to_csv(tmp_path / "a.csv", index=False)
    assert not any(
        "leaks" in line for line in answer("train", tmp_path / "a.csv", "-t", "kind", "--check")["suspicious"]
    )


def test_rare_classes_and_copies_are_told(tmp_path):
    frame = pd.concat([flowers(), flowers().iloc[:20]])
    frame.loc[frame.index[0], "kind"] = "orchid"
    frame.to_csv(tmp_path / "a.csv", index=False)
    page = call("train", tmp_path / "a.csv", "-t", "kind", "--check").stdout
    assert "rare classes: 'orchid'" in page and "rows are copies of others" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--as", "petals=numbr"],
            "no kind of column 'numbr'. Did you mean 'number'? Kinds are number, category, date",
        ),
        (["--as", "petal=number"], "no column 'petal'. Did you mean 'petals'?"),
        (["--as", "petals"], "--as needs a column and a kind, as in --as zip=category; got 'petals'"),
        (["--as", "petals=number", "--as", "petals=text"], "two things of the column 'petals': number and text"),
        (["--as", "colour=number"], "'colour' does not hold numbers throughout: row "),
        (["--as", "colour=date"], "'colour' holds no dates in one of the known formats: row "),
        (["--as", "height=drop", "--as", "colour=drop", "--as", "petals=drop"], "All columns are left out"),
    ],
)
def test_flags_that_make_no_sense(options, said, tmp_path):
    flowers().to_csv(tmp_path / "a.csv", index=False)
    assert said in complaint("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m", *options)
    assert not (tmp_path / "m").exists()


def test_training_needs_a_place_for_the_model(tmp_path):
    flowers().to_csv(tmp_path / "a.csv", index=False)
    assert "--out" in call("train", tmp_path / "a.csv", "-t", "kind", code=2).stderr


def test_entries_that_are_written_otherwise_are_refused(folder):
    frame = messy(80, seed=1)
    for name, entry, words in (
        ("price", "€5", "numbers written as '1,234.5 $'"),
        ("share", "12", "numbers written as"),
        ("day", "2021-01-31", "dates written as month/day/year"),
    ):
        wrong = frame.astype(object)
        wrong.loc[4, name] = entry
        message = complaint("predict", folder / "m", "-", stdin=wrong.to_csv(index=False))
        assert f"{name!r} must hold {words}" in message and f"row 5 has {entry!r}" in message
        wrong.loc[4, name] = "n/a"  # a gap is none
        call("predict", folder / "m", "-", stdin=wrong.to_csv(index=False))


def test_dates_of_parquet_files(tmp_path):
    frame = flowers().assign(day=pd.date_range("2020-01-01", periods=120), took=pd.to_timedelta(range(120), unit="s"))
    frame.to_parquet(tmp_path / "a.parquet")
    said = call("train", tmp_path / "a.parquet", "-t", "kind", "-o", tmp_path / "m").stderr
    assert "column 'day': dates such as" in said and "column 'took': durations, read as seconds" in said
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = answer("predict", tmp_path / "m", tmp_path / "a.parquet")
    assert answer("predict", tmp_path / "m", "-", stdin=frame.assign(took=range(120)).to_csv(index=False)) == expected
