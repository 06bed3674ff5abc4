"""What stored results say of the commands at their defaults."""

from __future__ import annotations

import numpy as np

from benchmarks.quoted import fixed, records

__all__ = ["entities", "messy", "treebank"]


def treebank() -> tuple[str, ...]:
    """UAS and LAS of ``parse`` on EWT, its gap in percent, CPU seconds of the whole command."""
    found = records("treebank")
    test = found["scores"]["test"]
    scores = fixed((100 * test["uas_without_punctuation"], 100 * test["las_without_punctuation"]), 1)
    return *scores, f"{100 * found['made']['dual_gap']:.0f}", f"{found['cpu_s']:.0f}"


def entities() -> tuple[str, ...]:
    """Phrase F1 of ``tag`` and of crfsuite with its usual features, on tweets and then on CoNLL-2000."""
    f1 = {(record["set"], record["method"]): record["f1"] for record in records("entities")}
    methods = ("nashlearn tag, defaults", "crfsuite, its usual features")
    return fixed((f1[name, how] for name in ("Broad Twitter Corpus", "CoNLL-2000") for how in methods), 1)


def messy() -> tuple[str, ...]:
    """Tables, and how many points ``train`` is below the twin cleaned by hand at worst, and above it at best."""
    found = records("messy")
    means = [
        [100 * np.mean(record["models"][name]["accuracy"]) for name in ("nashlearn train", "by hand + logistic")]
        for record in found
    ]
    points = [ours - theirs for ours, theirs in means]
    counts = {3: "three", 4: "four", 5: "five"}
    return counts[len(found)], *fixed((-min(points), max(points)), 1)
