"""What stands at the top of a report: the cost, the certificate and the guarantee, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["figure", "summarised"]

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


def summarised(
    kind: str,
    title: str,
    estimator: Any,
    facts: Mapping[str, Any] | None,
    sections: list[dict[str, Any]],
) -> dict[str, Any]:
    """The whole of a report: its sections under a summary of the comparison, the certificate and the worst case."""
    from nashlearn import __version__

    by_type = {section["type"]: section for section in sections}
    compared = by_type["comparison"]
    cards = [_cost_card(compared), _peer_card(compared), _certificate_card(by_type["certificate"])]
    cards += [_worst_card(by_type["risk"])]
    return {
        "kind": kind,
        "title": title,
        "version": __version__,
        "model": type(estimator).__name__,
        "headline": _headline(compared),
        "words": [_against(compared), _certified(by_type["certificate"]), _guaranteed(by_type["risk"])],
        "cards": cards,
        "facts": [[str(name), value] for name, value in {**(facts or {}), **_parameters(estimator)}.items()],
        "sections": sections,
    }


def _headline(compared: Mapping[str, Any]) -> str:
    measure = compared["measures"][0]
    own, percent = measure["rows"][0], measure["percent"]
    interval = f"{figure(own['low'], percent)} to {figure(own['high'], percent)}"
    return (
        f"{measure['name']} {figure(own['value'], percent)} on {compared['n']:,} {compared['unit']}, with a "
        f"{100 * compared['confidence']:g} % interval from {interval}."
    )


def _best(compared: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The best of the baselines by the first measure."""
    measure = compared["measures"][0]
    peers = [row for row in measure["rows"][1:] if np.isfinite(row["value"])]
    return min(peers, key=lambda row: row["value"] if measure["lower"] else -row["value"]) if peers else None


def _verdict(row: Mapping[str, Any], lower: bool) -> str:
    apart = row["difference"]
    if not (apart["low"] > 0 or apart["high"] < 0):
        return "no clear difference"
    return "better" if (apart["high"] < 0) == lower else "worse"


def _cost_card(compared: Mapping[str, Any]) -> dict[str, str]:
    measure = compared["measures"][0]
    own, percent = measure["rows"][0], measure["percent"]
    note = f"{figure(own['low'], percent)} to {figure(own['high'], percent)}, {compared['n']:,} {compared['unit']}"
    return {"name": measure["name"], "value": figure(own["value"], percent), "note": note}


def _peer_card(compared: Mapping[str, Any]) -> dict[str, str]:
    best, measure = _best(compared), compared["measures"][0]
    if best is None:
        return {"name": "Best baseline", "value": "none", "note": "no baseline was given"}
    note = f"{best['name']}; this model: {_verdict(best, measure['lower'])}"
    return {"name": "Best baseline", "value": figure(best["value"], measure["percent"]), "note": note}


def _certificate_card(section: Mapping[str, Any]) -> dict[str, str]:
    note = f"from the best objective at most, after {section['n_iter']:,} iterations"
    return {"name": "Certified distance", "value": figure(section["gap"], True), "note": note}


def _worst_card(section: Mapping[str, Any]) -> dict[str, str]:
    marks = dict(map(tuple, section["marks"]))
    if 0.95 in marks:
        bound = section["base"] + section["slope"] * marks[0.95]
        note = f"{section['unit']} at most, with 95 % confidence"
        if section["largest"] is not None and bound >= section["largest"]:
            note = f"above the largest cost, {figure(section['largest'])}: too few rows to say more"
        return {"name": "Worst case", "value": figure(bound), "note": note}
    note = f"{section['unit']} at most, for the training moments"
    return {"name": "Worst case", "value": figure(section["base"]), "note": note}


def _against(compared: Mapping[str, Any]) -> str:
    best, measure = _best(compared), compared["measures"][0]
    if best is None:
        return "No baseline was given to hold it against."
    percent, apart = measure["percent"], best["difference"]
    words = {
        "better": "this model does better",
        "worse": "this model does worse",
        "no clear difference": "the data show no clear difference",
    }[_verdict(best, measure["lower"])]
    interval = f"{figure(apart['low'], percent)} and {figure(apart['high'], percent)}"
    return (
        f"The best baseline, {best['name']}, has {figure(best['value'], percent)}: {words} "
        f"(the difference lies between {interval})."
    )


def _certified(section: Mapping[str, Any]) -> str:
    gap, tol = section["gap"], section["tol"]
    if not np.isfinite(gap):
        return "Training gave no certificate."
    smooth = " of the smoothed game" if section["smoothing"] else ""
    reached = "as near as was asked" if gap <= tol else f"not as near as the {figure(tol, True)} asked: train longer"
    within = "0.001 %" if gap < 1e-5 else figure(gap, True)
    return f"Training is proven to be within {within} of the best objective{smooth}, {reached}."


def _guaranteed(section: Mapping[str, Any]) -> str:
    base = figure(section["base"])
    said = (
        f"If new labels have the moments of the training data, randomised answers have at most {base} {section['unit']}"
    )
    marks = dict(map(tuple, section["marks"]))
    if 0.95 not in marks:
        return f"{said}, whatever else the distribution does."
    bound = section["base"] + section["slope"] * marks[0.95]
    if section["largest"] is not None and bound >= section["largest"]:
        return f"{said}; allowing for chance with 95 % confidence, the bound says nothing: too few rows."
    return f"{said}; allowing for chance with 95 % confidence, at most {figure(bound)}."


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
    return found
