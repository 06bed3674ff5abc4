"""Numbers and dates as people write them: what is written is read, in every style, whatever stands beside it."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nashlearn.tabular.dates import DATE_FORMATS, DateStyle, find_date_style
from nashlearn.tabular.numbers import NumberStyle, find_number_style

MARKS = [(".", ","), (".", " "), (".", "'"), (".", "’"), (",", "."), (",", " "), (",", "\u202f"), (",", "\u00a0")]
UNITS = [("", ""), ("$", ""), ("€ ", ""), ("", " €"), ("CHF ", ""), ("", " kg"), ("", "km/h"), ("", " °C"), ("", " m²")]
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31))


def written(value: float, decimal: str, thousands: str, before: str = "", behind: str = "") -> str:
    """A number with two decimals, as a locale and a unit have it."""
    digits = f"{abs(value):,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))
    return ("-" if value < 0 else "") + before + digits + behind


numbers = st.lists(st.integers(-(10**11), 10**11).map(lambda cents: cents / 100), min_size=1, max_size=12)


@given(numbers, st.sampled_from(MARKS), st.sampled_from(UNITS))
def test_what_is_written_is_read(values, marks, unit):
    """Two decimals tell the marks apart: every column comes back exactly, and nothing is said to be ambiguous."""
    texts = [written(value, *marks, *unit) for value in values]
    style, _, ambiguous = find_number_style(texts)
    np.testing.assert_array_equal(style.parse(texts), values)
    assert not ambiguous


@given(st.lists(st.integers(0, 10**6), min_size=1), st.sampled_from(["%", " %", "\u00a0%"]), st.sampled_from(".,"))
def test_percentages(thousandths, sign, decimal):
    texts = [f"{value / 1000:.3f}".replace(".", decimal) + sign for value in thousandths]
    style = find_number_style(texts, decimal).style
    np.testing.assert_array_equal(style.parse(texts), [float(f"{value}e-5") for value in thousandths])
    assert np.isnan(style.parse(["12"])).all()  # 12 % or 1,200 %: nobody knows


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1))
def test_negative_amounts_of_accountants(values):
    texts = [f"({-value:,})" if value < 0 else f"{value:,}" for value in values]
    style = find_number_style(texts).style
    np.testing.assert_array_equal(style.parse(texts), values)


@given(st.lists(st.integers(1000, 999_999), min_size=1))
def test_commas_that_do_not_tell_are_for_thousands_and_that_is_known(values):
    texts = [f"{value:,}" for value in values]
    style, decided, ambiguous = find_number_style(texts)
    assert ambiguous and not decided and style.parse(texts).tolist() == values
    other = find_number_style(texts, ",").style
    assert other.parse(texts).tolist() == [value / 1000 for value in values]
    style, decided, ambiguous = find_number_style([*texts, "1,5"])  # one entry settles it for the column
    assert decided and not ambiguous and style.parse(texts).tolist() == [value / 1000 for value in values]


@given(numbers, st.sampled_from(MARKS), st.lists(st.text(max_size=12), max_size=5))
def test_neighbours_do_not_matter(values, marks, others):
    style, texts = NumberStyle(*marks), [written(value, *marks) for value in values]
    alone = [style.parse([text])[0] for text in texts]
    np.testing.assert_array_equal(style.parse([*texts, *others])[: len(texts)], alone)


@given(st.text(max_size=15))
def test_any_text_is_a_number_or_none(text):
    for marks in MARKS[:3]:
        value = NumberStyle(*marks).parse([text])[0]
        assert np.isnan(value) or any(map(str.isdigit, text))


@pytest.mark.parametrize(
    "texts", [["Q1", "Q2"], ["A4", "A5"], ["1-2", "3-4"], ["10.0.0.1"], ["1,2,3"], ["--5"], ["(5"], [""]]
)
def test_codes_are_no_numbers(texts):
    found = find_number_style(texts)
    assert found is None or np.isnan(found[0].parse(texts)).any()


@pytest.mark.parametrize(
    ("text", "value"),
    [("12,34,567.5", 1234567.5), ("US$ 5", 5), ("-$5", -5), ("$-5", -5), ("−5", -5), ("1e3 kg", 1000), (".5", 0.5)],
)
def test_other_ways_to_write(text, value):
    assert find_number_style([text])[0].parse([text])[0] == value


@settings(max_examples=150)
@given(st.sampled_from(DATE_FORMATS), st.lists(MOMENTS, min_size=2, max_size=6))
def test_dates_that_are_written_are_read(format, moments):
    """By the format itself always; by the one that is found, where days tell themselves from months."""
    moments = [moment.replace(second=0, microsecond=0) for moment in moments]
    texts = [one.isoformat() if format == "ISO8601" else one.strftime(format) for one in moments]
    expected = [
        one if format == "ISO8601" else datetime.strptime(text, format)
        for one, text in zip(moments, texts, strict=True)
    ]
    assert DateStyle(format).parse(texts).to_pydatetime().tolist() == expected
    found, ambiguous = find_date_style(texts)
    swapped = {"%m/%d", "%d/%m", "%m-%d", "%d-%m"}
    assume(not (ambiguous and any(one in format for one in swapped)))
    if format != "%Y%m%d":  # also ISO's
        assert DateStyle(found).parse(texts).to_pydatetime().tolist() == expected


def test_days_and_months_that_may_change_places():
    assert find_date_style(["01/02/2020", "03/04/2020"]) == ("%m/%d/%Y", True)
    assert find_date_style(["01/02/2020", "13/04/2020"]) == ("%d/%m/%Y", False)
    late = [*["01/02/2020"] * 1000, "13/04/2020", *["01/02/2020"] * 1000]  # not in a sample
    assert find_date_style(late) == ("%d/%m/%Y", False)
    assert find_date_style(["01.02.2020"]) == ("%d.%m.%Y", False)
    assert find_date_style(["5 apples", "abc"]) is None


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from([("year", "month", "day of week", "hour"), ()]))
def test_parts_are_those_of_the_calendar(moments, parts):
    style = DateStyle("ISO8601", parts)
    days = style.parse([one.isoformat() for one in moments])
    found = {name: values for name, (_, values) in style.features(days).items()}
    since = [(one - datetime(1970, 1, 1)) / timedelta(days=1) for one in moments]
    np.testing.assert_allclose(found["elapsed"], since, rtol=1e-12)
    if parts:
        assert found["month"].tolist() == [one.strftime("%m") for one in moments]
        assert found["day of week"].tolist() == [one.strftime("%a") for one in moments]
        assert found["hour"].tolist() == [one.strftime("%H") for one in moments]
        assert found["year"].tolist() == [one.year for one in moments]


def test_gaps_have_no_parts():
    style = DateStyle("ISO8601", ("year", "month", "day of week", "hour"))
    found = {name: values[1] for name, (_, values) in style.features(style.parse(["2020-01-01", "no"])).items()}
    assert np.isnan(found["elapsed"]) and np.isnan(found["year"])
    assert (found["month"], found["day of week"], found["hour"]) == ("", "", "")
