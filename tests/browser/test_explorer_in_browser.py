"""The loss explorer in a real browser: its solver agrees with the library, the thesis's figures come out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reading import keep, overflow, unreadable

from nashlearn import games, report

pytestmark = pytest.mark.slow

_SOLVE = "([L, scores]) => { const f = Nash.game.facets(L); return scores.map((one) => Nash.game.solve(L, one, f)); }"
# Facets that the thesis counts: 2^k - 1 for zero-one (eq. 2.19), k (k + 1) / 2 for grades, k^2 with abstention, of
# which some collide at the cost 1/2.
FACETS = {"3": 3, "4a": 7, "7a": 6, "7b": 6, "7c": 6, "9a": 4, "9b": 3, "10a": 9, "10b": 6}


def players(page: Any, L: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
    solved = page.evaluate(_SOLVE, [L.tolist(), scores.tolist()])
    return {name: np.array([one[name] for one in solved]) for name in ("value", "p", "q", "gap")}


def test_its_solver_agrees_with_the_games(visit: Any) -> None:
    page, rng = visit(report.write_explorer), np.random.default_rng(0)
    named = [make(k) for make in (games.zero_one, games.absolute, games.squared) for k in (2, 3)]
    named += [games.abstain(k, cost) for k in (2, 3) for cost in (0.0, 0.2, 1 / 3, 0.5, 0.7, 1.0)]
    matrices = [rng.uniform(0, 4, size=(m, k)) for k in (2, 3) for m in (2, 3, 4) for _ in range(4)]
    matrices += [rng.integers(0, 3, size=(m, 3)).astype(float) for m in (3, 4) for _ in range(8)]
    for game in [*named, *map(games.cost, matrices)]:
        L = game.costs
        scores = np.vstack([rng.normal(scale=2, size=(20, L.shape[1])), rng.integers(-2, 3, size=(12, L.shape[1]))])
        found, eq = players(page, L, scores), game.solve(scores.astype(float))
        assert found["value"] == pytest.approx(eq.value, abs=1e-9)
        assert (found["gap"] <= 1e-9).all()
        for strategy in (found["p"], found["q"]):
            assert (strategy >= 0).all() and strategy.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        # The library's own measure of both strategies: what each secures alone.
        upper, lower = game.upper(scores, found["p"]), game.lower(scores, found["q"])
        assert upper == pytest.approx(eq.value, abs=1e-9) and lower == pytest.approx(eq.value, abs=1e-9)


def test_losses_and_surrogates_are_what_they_are_called(visit: Any) -> None:
    page, rng = visit(report.write_explorer), np.random.default_rng(1)
    for name, make in (("zero_one", games.zero_one), ("absolute", games.absolute), ("squared", games.squared)):
        assert np.array_equal(page.evaluate(f"Nash.game.losses.{name}(3)"), make(3).costs)
    assert np.array_equal(page.evaluate("Nash.game.losses.abstain(3, 0.25)"), games.abstain(3, 0.25).costs)
    scores = rng.normal(scale=2, size=(30, 3))
    for y in range(3):
        psi = scores - scores[:, [y]]
        margin = np.delete(psi + 1.0, y, axis=1)
        expected = {
            "crammer_singer": np.maximum(margin.max(axis=1), 0),
            "weston_watkins": np.maximum(margin, 0).sum(axis=1),
            "logistic": np.log(np.exp(psi).sum(axis=1)),
        }
        for name, values in expected.items():
            script = f"([L, y, all]) => all.map((psi) => Nash.game.surrogates.{name}(L, y, psi))"
            found = page.evaluate(script, [games.zero_one(3).costs.tolist(), y, psi.tolist()])
            assert found == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("figure", [*FACETS, "4b", "4c", "8a", "8b", "8c"])
def test_the_figures_of_the_thesis(visit: Any, figure: str) -> None:
    page = visit(report.write_explorer, fragment=f"#figure-{figure}")
    words = page.locator("#surface-words")
    assert words.inner_text().startswith(f"Figure {figure}.")
    if figure in FACETS:
        assert f"the largest of {FACETS[figure]} planes" in words.inner_text()
    assert page.locator(f'[data-figure="{figure}"]').get_attribute("aria-pressed") == "true"
    keep(page, f"explorer-figure-{figure}")


def test_the_binary_loss_bends_where_figure_3_does(visit: Any) -> None:
    page = visit(report.write_explorer, fragment="#figure-3")
    grid = np.linspace(-3, 3, 61)
    found = page.evaluate(
        "(grid) => grid.map((t) => Nash.game.solve(Nash.game.losses.zero_one(2), [0, t]).value)", grid.tolist()
    )
    assert found == pytest.approx(np.maximum.reduce([np.zeros(61), grid, (grid + 1) / 2]), abs=1e-12)


def test_the_surface_is_painted_as_the_loss(visit: Any) -> None:
    """Pixels of the map have the same colour where the loss is in the same band, and another where it is not."""
    page = visit(report.write_explorer, fragment="#figure-4a")
    pixels = """(points) => {
      const canvas = document.querySelector("#stage canvas"), n = canvas.width;
      const data = canvas.getContext("2d").getImageData(0, 0, n, n).data;
      const at = (v) => Math.floor(((v + 3) / 6) * n);
      const first = ([a, b]) => 4 * ((n - 1 - at(b)) * n + at(a));
      return points.map((point) => data.slice(first(point), first(point) + 4).join());
    }"""
    flat, low, same, high = page.evaluate(pixels, [[-2, -2], [0.3, -2], [-2, 0.3], [2.6, 0]])
    assert low == same and len({flat, low, high}) == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_it_can_be_read(visit: Any, theme: str, width: int) -> None:
    page = visit(report.write_explorer, theme=theme, width=width)
    assert overflow(page) == 0
    keep(page, f"explorer-{theme}-{width}")
    assert unreadable(page) == []
    page.click('[data-figure="9a"]')
    page.wait_for_timeout(150)
    assert overflow(page) == 0
    assert unreadable(page) == []


def numbers(page: Any, player: str) -> list[float]:
    return [float(text.replace("\u2212", "-")) for text in page.locator(f".{player} .number").all_inner_texts()]


def test_the_cursor_moves_by_keys_and_pointer(visit: Any) -> None:
    page = visit(report.write_explorer)
    canvas = page.locator("#stage canvas")
    canvas.focus()
    for _ in range(30):
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("Shift+ArrowDown")
    assert page.locator("#where").inner_text() == "At ψ₂ = −3, ψ₃ = −3."
    assert numbers(page, "adversary") == [1, 0, 0] and numbers(page, "predictor") == [1, 0, 0]
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert numbers(page, "adversary") == pytest.approx([1 / 3] * 3, abs=2e-3)
    assert page.locator(".sums dd").first.inner_text() in ("0.6667", "0.6666", "0.6668")


def test_costs_can_be_edited(visit: Any) -> None:
    page = visit(report.write_explorer)
    cell = page.get_by_label("Cost of answer 1 for label 2")
    cell.fill("5")
    assert page.locator("#loss").input_value() == "custom"
    L = games.zero_one(3).costs.copy()
    L[0, 1] = 5.0
    expected = games.cost(L).solve(np.array([[0.0, -0.4, 0.3]])).value[0]
    assert float(page.locator(".sums dd").first.inner_text()) == pytest.approx(expected, abs=1e-3)
    cell.fill("-1")
    assert cell.get_attribute("aria-invalid") == "true"
    assert float(page.locator(".sums dd").first.inner_text()) == pytest.approx(expected, abs=1e-3)


def test_controls_change_the_picture(visit: Any) -> None:
    page = visit(report.write_explorer)
    picture = "document.querySelector('#stage canvas').toDataURL()"
    seen = [page.evaluate(picture)]

    def changed() -> bool:
        seen.append(page.evaluate(picture))
        return seen[-1] != seen[-2]

    page.locator("#facet-lines").check()
    assert changed()
    page.locator("#loss").select_option("abstain")
    assert changed() and page.get_by_label("Cost of abstain for label 1").input_value() == "0.5"
    page.locator("#price").fill("0.2")
    assert changed() and page.get_by_label("Cost of abstain for label 1").input_value() == "0.2"
    page.locator("#label").get_by_role("button", name="3").click()
    assert "ψ₁" in page.locator("#where").inner_text()
    page.locator('[data-surface="logistic"]').click()
    assert changed()
    page.get_by_role("button", name="Relief").click()
    assert changed()
    page.locator("#turn").fill("120")
    assert changed()
    keep(page, "explorer-relief")
    page.get_by_role("button", name="Map").click()
    page.locator("#range").fill("5")
    assert changed()
    page.get_by_role("button", name="Dark").click()
    assert changed()
    page.locator("#slice-way").get_by_role("button", name="along ψ₂").click()
    assert "ψ₂" in page.locator("#slice").inner_text()
    page.locator("#classes").get_by_role("button", name="two").click()
    assert page.locator("#slice-card").is_hidden() and page.locator("#stage .curve").count() >= 4
