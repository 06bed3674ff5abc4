"""The loss as skorch's criterion: a network inside a scikit-learn grid search."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from torch import nn

import nashlearn.torch as nt


def network(width: int = 32) -> nn.Module:
    """Scores, not probabilities, come out last."""
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    net = NeuralNetClassifier(
        network,
        criterion=nt.NashLoss,
        criterion__loss="zero_one",
        predict_nonlinearity=nt.functional.predict_proba,
        optimizer=torch.optim.Adam,
        lr=3e-3,
        max_epochs=10,
        train_split=None,
        verbose=0,
    )
    search = GridSearchCV(net, {"module__width": [16, 64]}, cv=3)
    search.fit((X / 16).astype(np.float32), y)
    print(f"best width {search.best_params_['module__width']}, accuracy {search.best_score_:.3f}")
