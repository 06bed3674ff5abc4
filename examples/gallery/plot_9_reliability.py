"""
Probabilities and how reliable they are
=======================================

The tempered game trains for costs and for probabilities at once: ``predict_proba`` is the adversary's ``q``. At
smoothing 0 there is no such thing, and what is returned is the predictor's strategy ``p``: with which probability to
predict each label, not how probable the labels are. The diagrams show, for digits that are blurred by noise, how often
predictions of a given probability are right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import scale

from nashlearn import NashClassifier

X, y = load_digits(return_X_y=True)
X = scale(X + np.random.default_rng(0).normal(scale=8.0, size=X.shape))
ALPHA = 1e-2
models = {
    "tempered game, q": NashClassifier(alpha=ALPHA),
    "LogisticRegression": LogisticRegression(C=1 / (0.8 * len(y) * ALPHA)),
    "exact game, p": NashClassifier(alpha=ALPHA, smoothing=0),
}
probabilities = {name: cross_val_predict(model, X, y, cv=5, method="predict_proba") for name, model in models.items()}

fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", sharey=True)
edges = np.linspace(0, 1, 11)
for ax, (name, P) in zip(axes, probabilities.items(), strict=True):
    sure, right = P.max(axis=1), P.argmax(axis=1) == y
    place = np.clip(np.digitize(sure, edges) - 1, 0, 9)
    bins = [i for i in range(10) if np.count_nonzero(place == i) >= 10]
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":")
    ax.plot([sure[place == i].mean() for i in bins], [right[place == i].mean() for i in bins], "o-")
    ax.set(title=f"{name}\nerror {1 - right.mean():.3f}", xlabel="probability of the prediction")
    ax.set(xlim=(0, 1), ylim=(0, 1))
_ = axes[0].set(ylabel="share that is right")

# %%
# The log loss says the same in one number. That of the exact game's ``p`` has no meaning: many labels that do occur
# have probability 0.

for name, P in probabilities.items():
    impossible = np.mean(P[np.arange(len(y)), y] == 0)
    said = f"{log_loss(y, P):.2f}" if not impossible else f"infinite: {impossible:.0%} of the labels have probability 0"
    print(f"{name:20} log loss {said}")
