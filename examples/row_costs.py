"""Credit, churn and upsell: what a customer is worth decides what a mistake costs, so every row has costs of its own.

    python -m examples.row_costs ["TV churn" "bank upsell" "PAKDD credit" "VUB credit"]

One random split of each set, 5,000 rows to train on: what is saved of the cost of the better constant answer by a model
that is trained on the costs, by one that knows only their mean, and by logistic regression that takes the cheapest
answer. ``python -m benchmarks.row_costs`` does it for ten splits, with gradient boosting and empulse's CSLogit beside.
Needs the package empulse, which has the data (pip install empulse pandas), and the root of the project as the folder.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.empulse_sets import SETS, load
from benchmarks.row_costs import TRAINED_ON, savings
from nashlearn import NashClassifier


def main() -> None:
    for data in load(sys.argv[1:] or SETS):
        X, X_test, y, y_test, costs, costs_test = train_test_split(
            data.X, data.y, data.costs, train_size=TRAINED_ON, stratify=data.y, random_state=0
        )
        columns = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
            (StandardScaler(), make_column_selector(dtype_include=np.number)),
        )
        X, X_test = columns.fit_transform(X), columns.transform(X_test)

        nash = NashClassifier().fit(X, y, costs=costs)
        blind = NashClassifier(costs.mean(axis=0)).fit(X, y)
        logistic = LogisticRegression(max_iter=1000).fit(X, y)
        expected = np.einsum("iaj,ij->ia", costs_test, logistic.predict_proba(X_test))

        print(f"{data.name}: {y.size:,} rows to train on, {y_test.size:,} to be judged by, gap {nash.dual_gap_:.0e}")
        for name, answers in {
            "nashlearn, costs of each row": nash.predict(X_test, costs=costs_test),
            "nashlearn, their mean": blind.predict(X_test),
            "logistic + cheapest answer": expected.argmin(axis=1),
        }.items():
            print(f"  {name:30s} saves {savings(costs_test, y_test, answers):6.1%}")


if __name__ == "__main__":
    main()
