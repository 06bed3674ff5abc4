"""Bounds of a true mean: laws and exact references. How often they hold, test_coverage.py counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest

from nashlearn import certificates
from nashlearn.certificates import _bet, _paid_out, _upper, error_p_value, passed_in_turn, refuted
from nashlearn.metrics import mean_bounds

SHARES = st.floats(0.0, 1.0, allow_subnormal=False)
SAMPLES = arrays(np.float64, st.integers(1, 80), elements=SHARES)


@given(SAMPLES, st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_bounds_are_ordered_within_the_range(losses, confidence):
    found = mean_bounds(losses, 0, 1, confidence)
    assert 0 <= found.lower <= found.loss <= found.upper <= 1
    assert (found.loss, found.n) == (pytest.approx(losses.mean()), losses.size)


@given(SAMPLES)
def test_more_confidence_makes_wider_bounds(losses):
    nested = [mean_bounds(losses, 0, 1, confidence) for confidence in (0.5, 0.8, 0.95, 0.99)]
    grid = 2 / 33  # means are tested on a grid whose points differ by no more
    assert all(b.upper >= a.upper - grid and b.lower <= a.lower + grid for a, b in pairwise(nested))
    exact = [mean_bounds(losses.round(), 0, 1, confidence, binary=True) for confidence in (0.5, 0.8, 0.95, 0.99)]
    assert all(b.upper >= a.upper and b.lower <= a.lower for a, b in pairwise(exact))


@given(SAMPLES, st.floats(-5, 5), st.floats(0.1, 100))
def test_bounds_move_with_the_unit(losses, shift, scale):
    one, other = mean_bounds(losses, 0, 1), mean_bounds(shift + scale * losses, shift, shift + scale)
    assert np.allclose(other[:3], [shift + scale * bound for bound in one[:3]], atol=1e-6 * scale)


@given(SAMPLES)
def test_gains_are_losses_upside_down(losses):
    one, other = mean_bounds(losses, 0, 1), mean_bounds(1 - losses, 0, 1)
    assert np.allclose([1 - one.upper, 1 - one.lower], [other.lower, other.upper], atol=1e-6)


def test_bounds_shrink_with_the_number_of_examples():
    rng = np.random.default_rng(0)
    for draw in (rng.random, lambda n: (rng.random(n) < 0.1) * 1.0, np.zeros):
        widths = [np.subtract(*mean_bounds(draw(n), 0, 1)[1:3]) for n in (1, 10, 100, 1000, 10_000)]
        assert widths == sorted(widths, reverse=True) and widths[-1] < 0.02


@pytest.mark.parametrize(("errors", "n"), [(0, 1), (1, 1), (0, 30), (3, 30), (30, 30), (411, 1000)])
def test_errors_have_the_exact_binomial_interval(errors, n):
    found = mean_bounds([2.0] * (n - errors) + [7.0] * errors, 2, 7, 0.9, binary=True)
    exact = binomtest(errors, n).proportion_ci(0.9, "exact")
    assert np.allclose([found.lower, found.upper], [2 + 5 * exact.low, 2 + 5 * exact.high])
    assert error_p_value(errors, n, 0.3) == pytest.approx(binomtest(errors, n, 0.3, "less").pvalue)


def test_without_losses_betting_is_as_good_as_the_exact_interval():
    for n in (10, 100, 1000):
        assert mean_bounds(np.zeros(n), 0, 1).upper < 1.12 * mean_bounds(np.zeros(n), 0, 1, binary=True).upper


def test_the_opening_bet_lets_capital_grow_with_the_mean():
    """For whatever row: the grid may then be laid after the opening."""
    g = np.linspace(1e-6, 1 - 1e-6, 20_001)
    for doubt in (0.25, 0.025, 1e-4):
        for n in (1, 16, 1000, 10**6):
            bet = _bet(np.full(g.size, doubt), g * (1 - g), n, 0.99 / (1 - g))
            for row in (0.0, 0.4, 1.0):
                factor = 1 + bet * (g - row)
                assert (factor > 0).all() and (np.diff(factor) >= -1e-12).all()


@pytest.mark.parametrize("opening", [16, 4])
@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.3)])
def test_upper_bounds_fail_as_rarely_as_they_say(monkeypatch, opening, values):
    """Enumerated: all samples of 8 losses of two values, for many means; before and after the grid is laid."""
    monkeypatch.setattr(certificates, "_OPENING", opening)
    doubt, (low, high) = 0.1, values
    samples = np.array(list(np.ndindex(*[2] * 8)), dtype=float)
    uppers = np.array([_upper(low + (high - low) * sample, doubt) for sample in samples])
    ones = samples.sum(axis=1)
    for share in np.linspace(0.005, 0.995, 199):
        chance = share**ones * (1 - share) ** (8 - ones)
        assert chance[uppers <= low + (high - low) * share].sum() <= doubt + 1e-12
    assert uppers.min() < 0.4


def test_samples_are_bet_on_side_by_side_as_alone():
    rng = np.random.default_rng(0)
    x, g = rng.random((60, 200)) ** 2, rng.uniform(0.1, 0.9, 200)
    alone = [refuted(one, g[i : i + 1], 0.1)[0] for i, one in enumerate(x.T)]
    assert np.array_equal(refuted(x, g, 0.1), alone) and 0 < np.mean(alone) < 1


def test_capital_beyond_all_numbers_refutes_and_what_is_lost_never_does():
    near = 1 - 1e-9  # a loss of 0 multiplies the capital against this mean by 1e9, one of 1 divides it by 100
    g = np.array([near])
    assert refuted(np.zeros(64), g, 0.01).all()
    assert not refuted(np.ones(5000), g, 0.01).any()
    lost = _paid_out(np.array([1e-250]), 0.99 / (1 - g), g, np.zeros((40, 1)))
    assert not (lost >= 1.0).any()


@pytest.mark.parametrize("wrong", [range(8), [0, 3, 4, 7], [7], [2]])
def test_wrong_tests_pass_as_rarely_as_they_should_however_p_values_depend(wrong):
    """The worst dependence: wrong tests pass in events that share nothing, all the others always."""
    doubt, m, steps = 0.1, 8, 8000
    uniform = (np.arange(steps) + 0.5) / steps
    shift = dict(zip(wrong, np.r_[0, np.cumsum(np.diff([-1, *wrong]))], strict=False))
    broken = 0
    for u in uniform:
        values = [(u - shift[i] * doubt / m) % 1.0 if i in shift else 0.0 for i in range(m)]
        passed = passed_in_turn(values, doubt)
        broken += any(passed[i] for i in shift)
    assert broken / steps == pytest.approx(doubt * (max(wrong) + 1) / m, abs=2 / steps)


def test_levels_are_inherited_from_tests_that_pass():
    assert passed_in_turn([0.01, 0.02, 0.03], 0.03) == [True, True, True]
    assert passed_in_turn([0.011, 0.011, 0.01], 0.03) == [False, False, True]
    assert passed_in_turn([0.01, 0.021, 0.02], 0.03) == [True, False, False]


def test_sorted_rows_are_bounded_as_any_others():
    losses = np.r_[np.zeros(900), np.ones(100)]
    found = mean_bounds(losses, 0, 1)
    assert found.lower < 0.1 < found.upper < 0.14


def test_a_hundred_thousand_losses_take_less_than_a_second():
    import time

    losses = np.random.default_rng(0).random(100_000)
    start = time.process_time()
    mean_bounds(losses, 0, 1)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], 0, 1), "at least one number"),
        (([[0.0]], 0, 1), "one number for each example"),
        ((["a"], 0, 1), "must be numbers"),
        (([np.nan], 0, 1), "finite"),
        (([2.0], 0, 1), "between 0 and 1"),
        (([0.5], 1, 0), "low <= high"),
        (([0.5], 0, np.inf), "finite"),
        (([0.5], 0, 1, 1.0), "confidence must lie"),
        (([0.5], 0, 1, 0), "confidence must lie"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        mean_bounds(*arguments)


def test_other_bad_input():
    with pytest.raises(TypeError, match="confidence must be a number"):
        mean_bounds([0.5], 0, 1, "much")
    with pytest.raises(ValueError, match="nothing between them"):
        mean_bounds([0.5], 0, 1, binary=True)
    assert mean_bounds([3.0], 3, 3)[:3] == (3, 3, 3)
