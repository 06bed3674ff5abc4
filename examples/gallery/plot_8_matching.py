"""
Both players of a matching game
===============================

Scores of pairs, and how the two players answer them. The adversary spreads over matchings with high scores that no
single matching agrees with. The predictor answers with a mixture of matchings.
"""

import matplotlib.pyplot as plt
import numpy as np

from nashlearn import games

rng = np.random.default_rng(3)
scores = rng.normal(size=(1, 7, 7)) + 1.5 * np.eye(7)
game = games.matching(7)
found = game.solve(scores)
best = game.argmax(scores)[0]

fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
titles = ("scores, best matching", "the adversary's q", "the predictor's p")
for ax, title, table in zip(axes, titles, (scores[0], found.q[0], found.p[0]), strict=True):
    image = ax.imshow(table, cmap="Blues")
    ax.set(title=title, xlabel="right", ylabel="left")
    fig.colorbar(image, ax=ax, shrink=0.75)
_ = axes[0].plot(best, np.arange(7), "o", color="tab:orange")

# %%
# Rows and columns add up to 1 for both, and the gap says that neither could do better.

print(f"value {found.value[0]:.3f}, gap {found.gap[0]:.1e}, rows of p add up to {found.p[0].sum(axis=1).round(9)}")
