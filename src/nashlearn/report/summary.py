"""What stands at the top of a report: the cost, the best baseline, what is proven, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from nashlearn.certificates import Losses
from nashlearn.report.page import plain
from nashlearn.report.sections import Unit, certificate, comparison, new_data, risk, smoothing_of

__all__ = ["Page", "PageOptions", "figure"]

_ALWAYS = ("loss", "alpha", "abstain_cost", "smoothing", "kernel")


def figure(value: float, percent: bool = False) -> str:
    """A number as it is read: three figures, or a percentage; a proper minus sign."""
    if percent:
        scaled = 100 * value
        if 0 < abs(scaled) < 0.001:
            return "< 0.001 %" if scaled > 0 else "> \u22120.001 %"
        text = f"{scaled:.2g} %" if 0 < abs(scaled) < 0.05 else f"{scaled:.1f} %"
    elif abs(value) < 1e-9:
        text = "0"
    elif abs(value) < 1e-4:
        text = f"{value:.1e}".replace("e-0", "e-")
    else:
        text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", "\u2212")


class PageOptions(TypedDict, total=False):
    """Arguments that every report takes, beside its title."""

    facts: Mapping[str, Any] | None
    confidence: float
    random_state: int
    learning: Mapping[str, Any] | None


@dataclass(frozen=True)
class Page:
    """What heads a report, how its intervals are drawn, a learning curve, and baselines that are not installed."""

    title: str
    facts: Mapping[str, Any] | None = None
    confidence: float = 0.95
    random_state: int = 0
    learning: Mapping[str, Any] | None = None
    absent: Sequence[str] = ()

    def report(
        self,
        kind: str,
        model: Any,
        names: Iterable[str],
        measures: Any,
        unit: str,
        own: list[Any],
        measured: float | None,
        losses: Losses | None,
        loss_unit: Unit,
    ) -> dict[str, Any]:
        """The whole of a report as plain data: a summary, comparison, sections of its own, what is proven.

        ``measured`` is what the randomised answers cost. ``losses`` are those of the examples, in ``loss_unit``, None
        where they are not independent: no bound for new data follows from those. Sections that are None are left out.
        """
        from nashlearn import __version__

        compared = comparison(list(names), measures, unit, self.confidence, self.random_state, self.absent)
        trained = certificate(model)
        said = [_cost(compared), _against(compared), _certified(trained)]
        learning = (
            None
            if self.learning is None
            else {**self.learning, "loss": {"name": loss_unit.name, "percent": loss_unit.percent}}
        )
        bounds = None if losses is None else new_data(losses, self.confidence, loss_unit, unit)
        if bounds is not None:
            said.append(_on_new_data(bounds))
        found_sections = (compared, *own, learning, bounds, trained, risk(model, loss_unit, measured))
        sections = [section for section in found_sections if section is not None]
        facts = {**(self.facts or {}), **_parameters(model)}
        found = {
            "kind": kind,
            "title": self.title,
            "version": __version__,
            "model": type(model).__name__,
            "headline": said[0][1],
            "words": [words for _, words in said[1:]],
            "cards": [dict(zip(("name", "value", "note"), card, strict=True)) for card, _ in said],
            "facts": [[str(name), value] for name, value in facts.items()],
            "sections": sections,
        }
        return plain(found)


Said = tuple[tuple[str, str, str], str]  # a card (name, value and note), and the same in words


def _cost(compared: Mapping[str, Any]) -> Said:
    measure = compared["measures"][0]
    value, low, high = (figure(measure["rows"][0][name], measure["percent"]) for name in ("value", "low", "high"))
    seen = f"{compared['n']:,} {compared['unit']}"
    confidence = f"{100 * compared['confidence']:g}\u00a0% interval"
    words = f"{measure['name']} {value} on {seen}, with a {confidence} from {low} to {high}."
    return (measure["name"], value, f"{low} to {high}, {seen}"), words


def _against(compared: Mapping[str, Any]) -> Said:
    """The best of the baselines by the first measure."""
    measure, name = compared["measures"][0], "Best baseline"
    peers = [row for row in measure["rows"][1:] if np.isfinite(row["value"])]
    if not peers:
        return (name, "none", "no baseline was given"), "No baseline was given to hold it against."
    best = min(peers, key=lambda row: row["value"] if measure["lower"] else -row["value"])
    apart = best["difference"]
    value, low, high = (figure(one, measure["percent"]) for one in (best["value"], apart["low"], apart["high"]))
    verdict, clause = "no clear difference", "the data show no clear difference"
    if apart["low"] > 0 or apart["high"] < 0:
        verdict = "better" if (apart["high"] < 0) == measure["lower"] else "worse"
        clause = f"this model does {verdict}"
    words = f"The best baseline, {best['name']}, has {value}: {clause} (the difference lies between {low} and {high})."
    return (name, value, f"{best['name']}; this model: {verdict}"), words


def _certified(section: Mapping[str, Any]) -> Said:
    gap, tol = section["gap"], section["tol"]
    note = f"from the best objective at most, after {section['n_iter']:,} iterations"
    card = ("Certified distance", figure(gap, True), note)
    if not np.isfinite(gap):
        return card, "Training gave no certificate."
    smooth = " of the smoothed game" if section["smoothing"] else ""
    within = "0.001 %" if gap < 1e-5 else figure(gap, True)
    words = f"Training is proven to be within {within} of the best objective{smooth}"
    if gap > tol:
        return card, f"{words}, which misses the tolerance of {figure(tol, True)}: train longer."
    return card, f"{words}, which meets the tolerance of {figure(tol, True)}."


def _on_new_data(section: Mapping[str, Any]) -> Said:
    loss, lower, upper = (figure(section[name], section["percent"]) for name in ("loss", "lower", "upper"))
    unit = section["unit"]
    confidence = f"{100 * section['confidence']:g}\u00a0% confidence"
    words = (
        f"On new {section['examples']}, drawn like these, it has between {lower} and {upper} {unit}, with "
        f"{confidence}; here it has {loss}."
    )
    return ("New data", upper, f"{unit} at most, with {confidence}; here {loss}"), words


def _parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of a model that are not at their defaults, and its loss and regularisation."""
    import inspect

    defaults = {name: one.default for name, one in inspect.signature(type(estimator).__init__).parameters.items()}
    found: dict[str, Any] = {"model": type(estimator).__name__}
    for name, value in estimator.get_params(deep=False).items():
        short = isinstance(value, str | bool | int | float)
        if value is None or not (name in _ALWAYS or (short and value != defaults.get(name))):
            continue
        found[name] = value if short else "a cost matrix" if hasattr(value, "__len__") else "given by a callable"
    if "smoothing" in found:
        found["smoothing"] = smoothing_of(estimator)
    return found
