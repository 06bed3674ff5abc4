"""Features of tokens and the F1 of phrases."""

from __future__ import annotations

import pytest

from nashlearn import tagging


def test_names_of_a_token():
    sentence = [["The", "DT"], ["Cat", "NN"], ["ran", "VB"]]
    plain = tagging.TokenFeatures(spelling=False).transform([sentence])[0]
    assert set(plain[1]) >= {"w-1=The", "w0=Cat", "w1=ran", "w2=_", "w-1,0=The|Cat", "1:0=NN", "1:-1,0=DT|NN"}
    assert "1:-1..1=DT|NN|VB" in plain[1] and len(plain[1]) == 19
    spelt = tagging.TokenFeatures().transform([sentence])[0]
    assert set(spelt[1]) - set(plain[1]) >= {"lower=cat", "shape=Xx", "s2=at", "b1=c"}


def test_phrases():
    """An I- of another kind, or after O, begins a phrase of its own."""
    assert tagging.phrases(["B-NP", "I-NP", "I-VP", "O", "I-NP", "B-NP"]) == {
        (0, 2, "NP"),
        (2, 3, "VP"),
        (4, 5, "NP"),
        (5, 6, "NP"),
    }


def test_f1():
    truth = [["B-NP", "I-NP", "O", "B-VP"]]
    assert tagging.phrase_f1(truth, truth) == 1.0
    assert tagging.phrase_f1([["B-NP", "O", "O", "B-VP"]], truth) == pytest.approx(0.5)
    assert tagging.phrase_f1([["O"]], [["O"]]) == 1.0
