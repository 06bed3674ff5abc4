"""
The binary loss beside its relatives
====================================

With two classes and a margin :math:`m` of the true one over the other, the game's loss is
:math:`\\max(0, (1 - m)/2, -m)`. At the boundary it is 1/2, which is what guessing costs. The hinge charges 1 there.
"""

import matplotlib.pyplot as plt
import numpy as np

from nashlearn import games

margin = np.linspace(-2.5, 2.5, 401)
scores = np.column_stack([margin, np.zeros_like(margin)])
nash = games.zero_one(2).loss_value(scores, np.zeros(margin.size, dtype=int))

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(margin, (margin < 0).astype(float), color="0.6", label="zero-one loss")
ax.plot(margin, np.maximum(0, 1 - margin), "--", label="hinge")
ax.plot(margin, np.log2(1 + np.exp(-margin)), ":", label="logistic (base 2)")
ax.plot(margin, nash, linewidth=2.5, label="game")
ax.set(xlabel="margin of the true class", ylabel="loss", ylim=(-0.1, 3))
_ = ax.legend()

# %%
# The predictor's strategy goes linearly from one class to the other as the margin goes from -1 to 1. It is exactly 0 or
# 1 outside: sparse, and no estimate of a probability.

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(margin, games.zero_one(2).solve(scores).p[:, 0], label="game: probability of answering the class")
ax.plot(margin, 1 / (1 + np.exp(-margin)), ":", label="logistic: estimated probability of the class")
ax.set(xlabel="margin")
_ = ax.legend()
