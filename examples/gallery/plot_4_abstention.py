"""
What abstaining buys
====================

Three classes that overlap, and a price for not answering. As the price falls, fewer cases are answered, and those that
are, better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from nashlearn import NashAbstainer

X, y = make_blobs(n_samples=6000, centers=[[0, 1.5], [-1.3, -0.75], [1.3, -0.75]], random_state=0)
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]
prices = [0.1, 0.12, 0.15, 0.2, 0.3, 0.4, 0.5]
answered, wrong = [], []
for price in prices:
    answers = NashAbstainer(price, alpha=1e-3).fit(X_train, y_train).predict_or_abstain(X_test)
    given = answers != -1
    answered.append(given.mean())
    wrong.append(np.mean(answers[given] != y_test[given]))

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(answered, wrong, "o-")
for price, share, error in zip(prices, answered, wrong, strict=True):
    ax.annotate(f"{price:g}", (share, error), textcoords="offset points", xytext=(8, -4))
ax.set(
    xlabel="share of cases answered", ylabel="share of answers that are wrong", title="price of abstaining, at the dots"
)
_ = ax.set_ylim(bottom=0)

# %%
# Where it abstains at a price of 0.2: between the classes, and most in the middle of all three.

ticks = np.linspace(-4, 4, 200)
plane = np.column_stack([part.ravel() for part in np.meshgrid(ticks, ticks)])
model = NashAbstainer(0.2, alpha=1e-3).fit(X_train, y_train)

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
shade = ax.contourf(ticks, ticks, model.abstain_proba(plane).reshape(200, 200), levels=20, cmap="Greys")
ax.scatter(*X_train[:600].T, c=y_train[:600], s=6, cmap="viridis")
_ = fig.colorbar(shade, label="probability of abstaining")
