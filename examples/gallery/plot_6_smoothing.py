"""
Smoothing of sequence models
============================

A hidden state stays with probability 0.85 and shows itself with probability 0.6. A good tagger uses neighbours.
How much the game gains from them depends on the smoothing: it is part of the model.
"""

import matplotlib.pyplot as plt
import numpy as np

from nashlearn import NashTagger

STATES, LENGTH = 5, 30


def draw(m, rng):
    """Symbols, as one-hot rows, and states of ``m`` sequences."""
    y = np.empty((m, LENGTH), dtype=int)
    y[:, 0] = rng.integers(STATES, size=m)
    for t in range(1, LENGTH):
        y[:, t] = np.where(rng.random(m) < 0.85, y[:, t - 1], rng.integers(STATES, size=m))
    shown = np.where(rng.random(y.shape) < 0.6, y, rng.integers(STATES, size=y.shape))
    return list(np.eye(STATES)[shown]), list(y)


rng = np.random.default_rng(0)
X, y = draw(100, rng)
X_test, y_test = draw(500, rng)
alone = np.mean([np.mean(x.argmax(axis=1) != labels) for x, labels in zip(X_test, y_test, strict=True)])

smoothings = [0.2, 0.3, 0.5, 1.0, 2.0, 4.0]
errors = [
    NashTagger(alpha=1e-3, smoothing=smoothing, max_iter=300).fit(X, y).task_loss(X_test, y_test)
    for smoothing in smoothings
]

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogx(smoothings, errors, "o-", label="NashTagger")
ax.axhline(alone, color="0.6", linestyle=":", label="the symbol itself, without neighbours")
ax.set(xlabel="smoothing, in units of the loss", ylabel="share of wrong states", ylim=(0, None))
_ = ax.legend()

# %%
# So smoothing is a hyper-parameter: choose it by validation, as ``alpha``.
