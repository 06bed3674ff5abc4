"""To answer or not: how often digits are answered, and how often wrongly, as the price of abstaining grows.

Writes ``results/abstention.png`` beside this file where matplotlib is installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import nashlearn.torch as nt

PRICES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def coverage_and_risk(price: float) -> tuple[float, float]:
    """Share of test digits that are answered, and the share of wrong ones among these."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)
    x, x_test = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(X_test, dtype=torch.float32)
    truth, truth_test = torch.as_tensor(y), torch.as_tensor(y_test)
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    loss = nt.NashLoss("abstain", abstain_cost=price, smoothing=0.0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(300):
        optimiser.zero_grad()
        loss(model(x), truth).backward()
        optimiser.step()
    with torch.no_grad():
        answer = loss.predict(model(x_test))
    answered = answer != 10  # the last option
    return answered.double().mean().item(), (answer != truth_test)[answered].double().mean().item()


def main() -> None:
    """Print the curve, and plot it."""
    torch.set_num_threads(1)
    curve = [coverage_and_risk(price) for price in PRICES]
    for price, (coverage, risk) in zip(PRICES, curve, strict=True):
        print(f"price {price:4.2f}: answers {coverage:6.1%}, of which wrong {risk:6.2%}")
    if find_spec("matplotlib") is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.plot([100 * c for c, _ in curve], [100 * r for _, r in curve], marker="o")
    for price, (coverage, risk) in zip(PRICES, curve, strict=True):
        axes.annotate(f"{price:g}", (100 * coverage, 100 * risk), textcoords="offset points", xytext=(4, 4))
    axes.set(xlabel="coverage: digits answered, %", ylabel="risk: wrong among them, %", title="by price of abstaining")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    figure.savefig(results / "abstention.png", dpi=120)


if __name__ == "__main__":
    main()
