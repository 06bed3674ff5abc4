"""A tour in seconds: three estimators, what they predict and what they prove."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier


def digits() -> None:
    """Classify, with a certified optimum and a bound on the risk."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, random_state=0)
    model = NashClassifier("zero_one", alpha=1e-3).fit(X_train, y_train)
    logistic = LogisticRegression(C=1.0 / (1e-3 * len(y_train))).fit(X_train, y_train)
    print(f"digits: accuracy {model.score(X_test, y_test):.3f} (logistic {logistic.score(X_test, y_test):.3f})")
    print(f"  certified within {model.dual_gap_:.1e} of the optimum")
    print(f"  error on any data with the training moments: at most {model.worst_case_risk():.3f}")


def costs() -> None:
    """Train for a cost matrix: calling an 8 a 3 is ten times worse than other mistakes."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, random_state=0)
    L = 1.0 - np.eye(10)
    L[3, 8] = 10.0
    for name, loss in (("zero-one", "zero_one"), ("cost matrix", L)):
        predicted = NashClassifier(loss, alpha=1e-2, decision="equilibrium").fit(X_train, y_train).predict(X_test)
        print(f"digits, trained for {name}: mean cost {L[predicted, y_test].mean():.3f}")


def doubt() -> None:
    """Abstain where an error costs more than a question."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, random_state=0)
    model = NashAbstainer(abstain_cost=0.2, alpha=1e-2).fit(X_train, y_train)
    answers = model.predict_or_abstain(X_test)
    asked = answers == -1
    right = (answers == y_test)[~asked].mean()
    print(f"digits, abstaining at cost 0.2: {asked.mean():.1%} left open, {right:.1%} of the rest right")


def order() -> None:
    """Predict ordered labels: quintiles of disease progression."""
    X, target = load_diabetes(return_X_y=True)
    y = np.searchsorted(np.quantile(target, [0.2, 0.4, 0.6, 0.8]), target)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    for name, model in (
        ("NashOrdinalClassifier", NashOrdinalClassifier("absolute", alpha=1e-2)),
        ("LogisticRegression", LogisticRegression()),
    ):
        predicted = make_pipeline(StandardScaler(), model).fit(X_train, y_train).predict(X_test)
        print(f"diabetes quintiles, {name}: mean absolute error {np.abs(predicted - y_test).mean():.3f}")


if __name__ == "__main__":
    digits()
    costs()
    doubt()
    order()
