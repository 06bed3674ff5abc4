"""An ordered target: progression of diabetes in five grades, judged by how many grades the answer is off.

The same network trained with the adversarial absolute loss and with cross-entropy, over ten random splits. The latter
answers with the likeliest grade and with the median under its probabilities, which is the better rule for this loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

import nashlearn.torch as nt

Rule = Callable[[torch.Tensor], torch.Tensor]


def largest(scores: torch.Tensor) -> torch.Tensor:
    """The grade of the largest score."""
    return scores.argmax(1)


def median(scores: torch.Tensor) -> torch.Tensor:
    """The first grade up to which half of the probability lies."""
    return (scores.softmax(1).cumsum(1) < 0.5).sum(1)


GAME = nt.NashLoss("absolute")
METHODS: dict[str, tuple[nn.Module, Rule]] = {
    "absolute": (GAME, GAME.predict),
    "cross-entropy, median": (nn.CrossEntropyLoss(), median),
    "cross-entropy": (nn.CrossEntropyLoss(), largest),
}


def mean_error(loss: nn.Module, rule: Rule, seed: int) -> float:
    """Mean absolute error, in grades, on the test part of one split."""
    X, progression = load_diabetes(return_X_y=True)
    grade = np.digitize(progression, np.quantile(progression, [0.2, 0.4, 0.6, 0.8]))
    X, X_test, y, y_test = train_test_split(X, grade, test_size=0.3, random_state=seed)
    scale = StandardScaler().fit(X)
    x, x_test = (torch.as_tensor(scale.transform(part), dtype=torch.float32) for part in (X, X_test))
    y = torch.as_tensor(y)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        loss(model(x), y).backward()
        optimiser.step()
    return float(np.abs(rule(model(x_test).detach()).numpy() - y_test).mean())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, (loss, rule) in METHODS.items():
        errors = [mean_error(loss, rule, seed) for seed in range(10)]
        print(f"{name:22} mean error {np.mean(errors):.3f} grades ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.3f}")
