"""
Loss surfaces of three classes
==============================

The loss of the first of three classes, over the scores of the other two; its own score is 0. Each straight piece is a
set of labels among which the adversary hides. Change the loss, and the pieces change.
"""

import matplotlib.pyplot as plt
import numpy as np

from nashlearn import games

LOSSES = {
    "zero-one": games.zero_one(3),
    "absolute": games.absolute(3),
    "squared": games.squared(3),
    "abstention at 1/4": games.abstain(3, 0.25),
}

grid = np.linspace(-3, 3, 121)
second, third = np.meshgrid(grid, grid)
scores = np.column_stack([np.zeros(second.size), second.ravel(), third.ravel()])

fig, axes = plt.subplots(2, 2, figsize=(7.5, 7), sharex=True, sharey=True, layout="constrained")
for ax, (name, game) in zip(axes.flat, LOSSES.items(), strict=True):
    loss = game.loss_value(scores, np.zeros(len(scores), dtype=int)).reshape(second.shape)
    filled = ax.contourf(second, third, loss, levels=np.linspace(0, 5, 21), extend="max", cmap="viridis")
    ax.contour(second, third, loss, levels=np.linspace(0, 5, 11), colors="white", linewidths=0.5)
    ax.set(title=name, aspect="equal")
fig.supxlabel("score of the second class")
fig.supylabel("score of the third class")
_ = fig.colorbar(filled, ax=axes, shrink=0.8, label="loss")

# %%
# Where the loss is 0, the first class leads both others by enough: by 1 for the zero-one loss. For the squared loss the
# third class, two ranks away, must be further behind than the second.
