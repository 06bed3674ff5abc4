"""What stands at the top of a report: the cost, the certificate and the guarantee, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from nashlearn.certificates import Losses
from nashlearn.report.page import plain
from nashlearn.report.sections import certificate, comparison, new_data, risk, smoothing_of

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


@dataclass(frozen=True)
class Page:
    """What heads a report, and how its intervals are drawn."""

    title: str
    facts: Mapping[str, Any] | None = None
    confidence: float = 0.95
    random_state: int = 0

    def report(
        self,
        kind: str,
        model: Any,
        names: Iterable[str],
        measures: Any,
        unit: str,
        own: list[Any],
        worst: Any,
        losses: Losses | None,
    ) -> dict[str, Any]:
        """The whole of a report as plain data: a summary, comparison, sections of its own, certificate and worst case.

        ``worst`` has the unit of the worst case, what was measured of it and the largest cost. ``losses`` are those of
        the examples, None where they are not independent: no bound for new data follows from those.
        """
        from nashlearn import __version__

        compared = comparison(list(names), measures, unit, self.confidence, self.random_state)
        proofs = [certificate(model), risk(model, *worst)]
        said = [_cost(compared), _against(compared), _certified(proofs[0]), _guaranteed(proofs[1])]
        if losses is not None:
            proofs.insert(0, new_data(losses, self.confidence, worst[0], unit))
            said[-1] = _on_new_data(proofs[0])
        sections = [compared, *own, *proofs]
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
    confidence = f"{100 * compared['confidence']:g} % interval"
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
    reached = "as near as was asked" if gap <= tol else f"not as near as the {figure(tol, True)} asked: train longer"
    within = "0.001 %" if gap < 1e-5 else figure(gap, True)
    return card, f"Training is proven to be within {within} of the best objective{smooth}, {reached}."


def _on_new_data(section: Mapping[str, Any]) -> Said:
    lower, upper, unit = figure(section["lower"]), figure(section["upper"]), section["unit"]
    confidence = f"{100 * section['confidence']:g} % confidence"
    words = (
        f"On new {section['examples']}, drawn like these, it has between {lower} and {upper} {unit}, with {confidence}."
    )
    return ("New data", upper, f"{unit} at most, with {confidence}"), words


def _guaranteed(section: Mapping[str, Any]) -> Said:
    bounds, unit, largest = dict(map(tuple, section["points"])), section["unit"], section["largest"]
    base = bounds[0.0]
    said = f"If new labels have the moments of the training data, randomised answers have at most {figure(base)} {unit}"
    marks = dict(map(tuple, section["marks"]))
    if 0.95 not in marks:
        words = f"{said}, whatever else the distribution does."
        return ("Worst case", figure(base), f"{unit} at most, for the training moments"), words
    bound = bounds.get(marks[0.95], np.nan)
    note, chance = f"{unit} at most, with 95 % confidence", f"at most {figure(bound)}."
    if largest is not None and not bound < largest:
        note = f"above the largest cost, {figure(largest)}: too few rows to say more"
        chance = "the bound says nothing: too few rows."
    return ("Worst case", figure(bound), note), f"{said}; allowing for chance with 95 % confidence, {chance}"


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
