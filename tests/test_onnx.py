"""ONNX: what onnxruntime answers is what the model answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, NashTagger, games, tabular

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
pandas = pytest.importorskip("pandas")

from nashlearn.onnx import to_onnx  # noqa: E402

# What is said of words for grades and of prices that are never paid is tested elsewhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore:y holds words and no order"),
    pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying"),
]

IRIS, SPECIES = load_iris(return_X_y=True)
CANCER, BENIGN = load_breast_cancer(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]


def answered(model, inputs):
    """What onnxruntime returns, by the names of outputs."""
    graph = to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


def shifted(X):
    return X + 0.1 * np.random.default_rng(0).standard_normal(X.shape) * X.std(axis=0)


def scores_of(model, X):
    scores = model.decision_function(X)
    last = model[-1] if hasattr(model, "steps") else model
    if scores.ndim == 1:
        halves = (0.0, 1.0) if isinstance(last, NashOrdinalClassifier) else (-0.5, 0.5)
        return np.column_stack([part * scores for part in halves])
    return scores


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (NashClassifier(), IRIS, NAMES),
        (NashClassifier(np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0]]), decision="scores"), IRIS, SPECIES + 5),
        (make_pipeline(StandardScaler(), NashClassifier(alpha=1e-2)), CANCER, BENIGN),
        (NashClassifier("absolute", kernel="rbf", alpha=1e-2, decision="scores"), IRIS, SPECIES),
        (make_pipeline(StandardScaler(), NashClassifier(kernel="rbf", alpha=1e-2)), CANCER, BENIGN),
        (NashClassifier(kernel="poly", alpha=1e-1, coef0=1.0, degree=2), IRIS, NAMES),
        (NashClassifier(kernel="laplacian", alpha=1e-1), IRIS, SPECIES),
        (NashOrdinalClassifier(decision="scores"), IRIS, SPECIES),
        (NashOrdinalClassifier(kernel="rbf", alpha=1e-2, decision="scores"), IRIS, SPECIES),
        (make_pipeline(StandardScaler(), NashOrdinalClassifier(alpha=1e-2)), CANCER, BENIGN),
        (NashAbstainer(0.3), IRIS, NAMES),
        (NashAbstainer(0.3, kernel="rbf", alpha=1e-2), IRIS, SPECIES),
        (NashAbstainer(0.0, kernel="rbf"), IRIS, SPECIES),  # no support vector
        (NashAbstainer(0.0, kernel="poly"), IRIS, SPECIES),
        (NashAbstainer(0.0, kernel="laplacian"), IRIS, SPECIES),
    ],
)
def test_labels_and_scores(model, X, y):
    new = shifted(X)
    found = answered(model.fit(X, y), {"X": new})
    assert found["label"].tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(found["scores"], scores_of(model, new), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("smoothing", [0.03, 1.0, 30.0])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (NashClassifier(), NAMES),
        (NashClassifier("absolute"), SPECIES),
        (NashClassifier(lambda k: games.absolute(k, [0.0, 1.0, 5.0])), SPECIES),
        (NashClassifier(lambda k: games.zero_one(k, [1.0, 2.0, 5.0])), SPECIES),
        (NashClassifier([[0, 1], [10, 0]]), SPECIES > 1),
        (NashClassifier([[1, 12], [3, 2]]), SPECIES > 0),
        (NashClassifier({"wait": {False: 0, True: 4}, "act": {False: 1, True: 0}}), SPECIES > 0),
        (NashOrdinalClassifier(), SPECIES),
        (NashAbstainer(0.2), SPECIES),
        (NashAbstainer(0.5), SPECIES),
        (NashClassifier(kernel="rbf"), SPECIES),
    ],
)
def test_probabilities_and_strategies(model, y, smoothing):
    new = shifted(IRIS)
    model = clone(model).set_params(smoothing=smoothing, alpha=1e-2).fit(IRIS, y)
    found = answered(model, {"X": new})
    assert found["label"].tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=1e-6)
    np.testing.assert_allclose(found["strategy"], model.strategy(new), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (NashClassifier("absolute", smoothing=0.0), SPECIES),
        (NashOrdinalClassifier(smoothing=0.0), SPECIES),
        (NashClassifier([[0, 1], [10, 0]], smoothing=0.0), SPECIES > 1),
        (NashAbstainer(0.7), SPECIES),  # its strategy caps several labels: no fixed number of operators
        (NashClassifier([[0, 1, 2], [3, 0, 1], [1, 1, 0]], decision="scores"), SPECIES),
    ],
)
def test_labels_without_probabilities(model, y):
    found = answered(model.fit(IRIS, y), {"X": shifted(IRIS)})
    assert set(found) == {"label", "scores"}
    assert found["label"].tolist() == model.predict(shifted(IRIS)).tolist()


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_table_with_categories_and_gaps(kernel):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"size": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80), "age": np.arange(80)}
    )
    y = np.where(frame["size"] + (frame["colour"] == "red") > 0.5, "yes", "no")
    frame.loc[3, "size"], frame.loc[4, "colour"] = np.nan, None
    model = tabular.table_pipeline(NashClassifier(kernel=kernel, alpha=1e-2), frame)
    tabular.fit_table(model, frame, y)
    new = frame.assign(colour=[*frame["colour"][:-1], "mauve"])
    inputs = {name: new[[name]].to_numpy(np.float64) for name in ("size", "age")}
    inputs["colour"] = new[["colour"]].fillna("").to_numpy(dtype=object)
    found = answered(model, inputs)
    assert found["label"].tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(found["scores"], scores_of(model, new), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (NashClassifier("squared"), "equilibrium"),
        (NashClassifier(np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0]])), "set_params"),
        (NashClassifier(np.array([[0, 1, 1], [1, 0, 0]])), "not square"),
        (NashClassifier(kernel=lambda A, B: A @ B.T, alpha=1.0), "kernels"),
    ],
)
def test_what_needs_the_game_is_refused(model, said):
    with pytest.raises(ValueError, match=said):
        to_onnx(model.fit(IRIS, SPECIES))


def test_only_classifiers_of_rows():
    tagger = NashTagger(alpha=0.1).fit([[["a"], ["b"]]], [[0, 1]])
    with pytest.raises(ValueError, match="NashTagger has no ONNX form"):
        to_onnx(tagger)


def test_columns_with_the_names_of_outputs():
    frame = pandas.DataFrame({"label": np.arange(20.0), "scores": ["a", "b"] * 10})
    y = np.arange(20) // 10
    model = tabular.fit_table(tabular.table_pipeline(NashClassifier(alpha=1e-2), frame), frame, y)
    graph = to_onnx(model)
    assert [one.name for one in graph.graph.output] == ["label_", "scores_", "probabilities", "strategy"]
    inputs = {"label": frame[["label"]].to_numpy(), "scores": frame[["scores"]].to_numpy(dtype=object)}
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(["label_"], inputs)[0].tolist() == model.predict(frame).tolist()


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from nashlearn.cli.app import app

    frame = pandas.DataFrame(IRIS, columns=list("abcd")).assign(kind=NAMES)
    frame.to_csv(tmp_path / "iris.csv", index=False)
    for command in (["train", "iris.csv", "-t", "kind", "-o", "m"], ["export-onnx", "m", "-o", "m.onnx"]):
        arguments = [str(tmp_path / part) if part in ("iris.csv", "m", "m.onnx") else part for part in command]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    session = onnxruntime.InferenceSession((tmp_path / "m.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    assert np.mean(session.run(None, {"X": IRIS})[0] == NAMES) > 0.9
