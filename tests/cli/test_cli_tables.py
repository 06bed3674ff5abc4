"""The command line on tables: every format and loss, the same model in the file, machine-readable answers."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from commands import answer, call, complaint, flowers
from scipy.stats import binomtest

import nashlearn
from nashlearn import persistence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a CSV, and a model trained on it."""
    here = tmp_path_factory.mktemp("flowers")
    flowers().to_csv(here / "flowers.csv", index=False)
    flowers(60, seed=1).to_csv(here / "test.csv", index=False)
    call("train", here / "flowers.csv", "--target", "kind", "--out", here / "flowers.model")
    return here


def test_train_evaluate_predict_and_a_report_in_four_commands(folder):
    """As a new user would: the last command writes a page that opens alone."""
    trained = answer("train", folder / "flowers.csv", "-t", "kind", "-o", folder / "m", "--report", folder / "r.html")
    assert trained["converged"] and trained["rows"] == 96 and trained["held_out"]["rows"] == 24
    judged = answer("evaluate", folder / "m", folder / "test.csv")
    assert judged["accuracy"] > 0.8 and judged["task_loss"] == pytest.approx(1 - judged["accuracy"])
    bounds, exact = judged["certified"], binomtest(round(60 * judged["task_loss"]), 60).proportion_ci(0.95, "exact")
    assert [bounds["lower"], bounds["upper"]] == pytest.approx([exact.low, exact.high]) and bounds["confidence"] == 0.95
    call("predict", folder / "m", folder / "test.csv", "--out", folder / "answers.csv")
    answers = pd.read_csv(folder / "answers.csv")
    assert np.mean(answers["prediction"] == flowers(60, seed=1)["kind"]) == pytest.approx(judged["accuracy"])
    call("evaluate", folder / "m", folder / "test.csv", "--report", folder / "again.html")
    for page in ("r.html", "again.html"):
        text = (folder / page).read_text()
        assert text.lstrip().startswith("<!") and 'src="http' not in text and len(text) < 2_000_000
    assert "logistic regression" in (folder / "r.html").read_text()


def test_the_model_is_one_pipeline_that_python_loads(folder):
    model = nashlearn.load(folder / "flowers.model")
    frame = flowers(60, seed=1)
    predictions = model.predict(frame)
    assert answer("predict", folder / "flowers.model", folder / "test.csv")["prediction"] == predictions.tolist()
    assert [name for name, _ in model.steps] == ["columns", "encode", "model"]
    schema = persistence.read_info(folder / "flowers.model")["schema"]
    assert schema["columns"][1] == {
        "name": "colour",
        "kind": "category",
        "categories": ["", "blue", "green", "red", "white"],
    }
    assert schema["classes"] == ["daisy", "rose", "tulip"] and schema["target"] == "kind"


def test_unseen_categories_and_columns_in_another_order(folder):
    frame = flowers(60, seed=1)
    changed = frame[["petals", "colour", "height"]].assign(colour="mauve", more=3)
    found = answer("predict", folder / "flowers.model", "-", stdin=changed.to_csv(index=False))["prediction"]
    assert np.mean(np.array(found) == frame["kind"]) > 0.6


@pytest.mark.parametrize("ending", ["tsv", "parquet", "arff", "csv.gz"])
def test_every_format_gives_the_same_model(ending, folder, tmp_path):
    frame = flowers()
    path = tmp_path / f"flowers.{ending}"
    if ending == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif ending == "csv.gz":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        rows = frame.astype(object).where(frame.notna(), "?").to_csv(index=False, header=False)
        path.write_text(
            "@relation flowers\n@attribute height numeric\n@attribute colour {red,white,blue,green}\n"
            "@attribute petals numeric\n@attribute kind {daisy,rose,tulip}\n@data\n" + rows
        )
    call("train", path, "-t", "kind", "-o", tmp_path / "m")
    ours, theirs = nashlearn.load(tmp_path / "m"), nashlearn.load(folder / "flowers.model")
    np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_, atol=1e-9)


def test_standard_input(folder, tmp_path):
    text = (folder / "flowers.csv").read_text()
    call("train", "-", "-t", "kind", "-o", tmp_path / "m", stdin=text)
    ours, theirs = nashlearn.load(tmp_path / "m"), nashlearn.load(folder / "flowers.model")
    np.testing.assert_array_equal(ours[-1].coef_, theirs[-1].coef_)
    assert call("predict", tmp_path / "m", "-", stdin=text).stdout.splitlines()[0] == "prediction"


def grades(folder):
    frame = flowers().assign(kind=lambda f: f["kind"].map({"daisy": "low", "rose": "mid", "tulip": "top"}))
    frame.to_csv(folder / "grades.csv", index=False)
    return folder / "grades.csv"


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (["--loss", "absolute", "--order", "top,low,mid"], "NashClassifier"),
        (["--loss", "squared"], "NashClassifier"),
        (["--ordinal", "--order", "low,mid,top"], "NashOrdinalClassifier"),
        (["--loss", "abstain:0.2"], "NashAbstainer"),
        (["--kernel", "rbf", "--alpha", "0.01", "--balanced"], "NashClassifier"),
    ],
)
def test_losses_and_kernels(options, estimator, tmp_path):
    path = grades(tmp_path)
    call("train", path, "-t", "kind", "-o", tmp_path / "m", "--report", tmp_path / "r.html", *options)
    certificate = persistence.read_info(tmp_path / "m")["certificate"]["model"]
    assert certificate["estimator"] == estimator and certificate["dual_gap"] <= 1e-3
    judged = answer("evaluate", tmp_path / "m", path)
    found = set(answer("predict", tmp_path / "m", path)["prediction"])
    assert found <= {"low", "mid", "top", "abstain"} and judged["accuracy"] > 0.8
    assert ("coverage" in judged) == ("abstain:0.2" in options)
    ranks = persistence.read_info(tmp_path / "m")["schema"]["ranks"]
    assert ranks == ("--order" in options)


def test_costs_with_names_in_another_order(tmp_path):
    path = grades(tmp_path)
    (tmp_path / "costs.csv").write_text("answer,top,low,mid\nlow,9,0,1\ntop,0,2,1\nmid,1,1,0\n")
    call("train", path, "-t", "kind", "-o", tmp_path / "m", "--loss", tmp_path / "costs.csv")
    loss = nashlearn.load(tmp_path / "m")[-1].loss
    assert loss.tolist() == [[0, 1, 9], [1, 0, 1], [2, 1, 0]]  # answers and truths low, mid, top


def test_answers_that_are_no_labels(tmp_path):
    path = grades(tmp_path)
    (tmp_path / "costs.csv").write_text(",low,mid,top\nkeep,0,1,4\nsell,4,1,0\nask,1,0.5,1\nwait,2,0,2\n")
    call(
        "train",
        path,
        "-t",
        "kind",
        "-o",
        tmp_path / "m",
        "--loss",
        tmp_path / "costs.csv",
        "--report",
        tmp_path / "r.html",
    )
    assert set(answer("predict", tmp_path / "m", path)["prediction"]) <= {"keep", "sell", "ask", "wait"}
    assert "accuracy" not in answer("evaluate", tmp_path / "m", path)


def test_tuning_takes_the_best_of_the_grid(folder, tmp_path):
    found = answer(
        "train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", "--tune", "--folds", "2", "--kernel", "rbf"
    )
    model = nashlearn.load(tmp_path / "m")[-1]
    assert model.alpha == found["alpha"] in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    assert model.gamma == found["gamma"] and found["cross_validated_loss"] < 0.3


def test_parquet_answers_and_strategies(folder, tmp_path):
    call("predict", folder / "flowers.model", folder / "test.csv", "--proba", "--out", tmp_path / "a.parquet")
    table = pd.read_parquet(tmp_path / "a.parquet")
    np.testing.assert_allclose(table[["p(daisy)", "p(rose)", "p(tulip)"]].sum(axis=1), 1.0)


def test_explained_costs(tmp_path):
    (tmp_path / "costs.csv").write_text(",ill,well\nill,0,1\nwell,10,0\n")
    text = call("explain-cost", tmp_path / "costs.csv").stdout
    assert "answering 'well' when the truth is 'ill' costs 10, 10 times the smallest cost" in text
    found = answer("explain-cost", tmp_path / "costs.csv")
    assert found["knowing_nothing"]["cost_at_worst"] == pytest.approx(10 / 11)
    assert found["mistakes"][0]["cost"] == 10


def test_names_are_shown_as_they_are(folder, tmp_path):
    (tmp_path / "costs.csv").write_text(",[red]a,[/x]\n[red]a,0,1\n:cat:,1,0\n")
    text = call("explain-cost", tmp_path / "costs.csv").stdout
    assert text.count("[red]a") > 2 and text.count("[/x]") > 1 and text.count(":cat:") > 2
    frame = pd.read_csv(folder / "flowers.csv").rename(columns={"colour": "[/x]"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    call("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m")
    assert "[/x]" in call("info", tmp_path / "m").stdout


@pytest.mark.parametrize("schema", [{"columns": ["sepals", "petals"]}, {"columns": 2}])
def test_info_on_a_schema_from_python(schema, tmp_path):
    nashlearn.save(nashlearn.NashClassifier().fit(np.eye(4), [0, 1, 0, 1]), tmp_path / "m", schema=schema)
    assert "columns: " in call("info", tmp_path / "m").stdout


def test_the_record_names_the_loss_that_was_trained_on(tmp_path):
    grades(tmp_path)
    found = answer("train", tmp_path / "grades.csv", "-t", "kind", "-o", tmp_path / "m", "--ordinal")
    assert found["loss"] == nashlearn.persistence.read_info(tmp_path / "m")["summary"]["loss"] == "absolute"


def test_given_parameters_are_not_tuned(folder, tmp_path):
    arguments = ("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", "--tune", "--folds", "2")
    found = answer(*arguments, "--kernel", "rbf", "--gamma", "0.7", "--alpha", "0.05")
    assert (found["gamma"], found["alpha"]) == (0.7, 0.05)


def test_a_report_needs_rows_that_can_be_held_out(tmp_path):
    (tmp_path / "a.csv").write_text("x,kind\n1,a\n2,b\n3,c\n")
    arguments = ("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m")
    assert "can be held out for --report" in complaint(*arguments, "--report", tmp_path / "r.html")
    assert "--folds 2" in complaint(*arguments, "--tune", "--folds", "2")
    assert not (tmp_path / "m").exists()


def test_info_and_explore(folder, tmp_path):
    text = call("info", folder / "flowers.model").stdout
    assert "NashClassifier" in text and "colour" in text and "dual_gap" in text and nashlearn.__version__ in text
    assert answer("info", folder / "flowers.model")["summary"]["rows"] == 120
    call("explore", "--out", tmp_path / "explorer.html")
    assert (tmp_path / "explorer.html").stat().st_size > 1000


def test_the_console_script(folder):
    """A real process: machine-readable standard output, help, usage errors."""
    script = [sys.executable, "-c", "from nashlearn.cli import main; main()"]
    run = subprocess.run([*script, "evaluate", "flowers.model", "test.csv", "--json"], cwd=folder, capture_output=True)
    assert run.returncode == 0 and json.loads(run.stdout)["rows"] == 60
    run = subprocess.run([*script, "train", "flowers.csv"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 2 and "--target" in run.stderr
    run = subprocess.run([*script, "--version"], cwd=folder, capture_output=True, text=True)
    assert run.stdout.split() == ["nashlearn", nashlearn.__version__]


def test_a_checkpoint_is_gone_on_from(folder, tmp_path):
    arguments = ("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", "--checkpoint", tmp_path / "c")
    first = answer(*arguments, "--kernel", "rbf", "--alpha", "1e-4", "--tol", "1e-9", "--max-iter", "1")
    assert not first["converged"] and (tmp_path / "c").exists()
    second = answer(*arguments, "--kernel", "rbf", "--alpha", "1e-4", "--tol", "1e-9")
    assert second["converged"] and persistence.read_info(tmp_path / "m")["certificate"]["model"]["history"][0][0] <= 1
    assert nashlearn.load(tmp_path / "m")[-1].checkpoint is None


def test_a_class_with_a_single_row(tmp_path):
    """It is trained on, wherever the rows are cut."""
    frame = flowers(40)
    frame.loc[0, "kind"] = "orchid"
    frame.to_csv(tmp_path / "a.csv", index=False)
    for seed in range(3):
        options = ("--seed", seed, "--report", tmp_path / "r.html", "--tune", "--folds", "3", "--alpha", "0.1")
        found = answer("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m", *options)
        assert (
            nashlearn.load(tmp_path / "m")[-1].classes_.tolist()
            == found["classes"]
            == ["daisy", "orchid", "rose", "tulip"]
        )


@pytest.mark.parametrize("smoothing", [None, "0", "3"])
def test_probabilities_are_those_of_the_model(folder, tmp_path, smoothing):
    """Of labels, one column each; without smoothing of what may be answered, here three things to do."""
    (tmp_path / "costs.csv").write_text("answer,daisy,rose,tulip\nmow,0,5,5\nwater,1,0,1\nsell,3,2,0\nask,1,1,1\n")
    options = () if smoothing is None else ("--smoothing", smoothing)
    data = folder / "flowers.csv", "-t", "kind", "--loss", tmp_path / "costs.csv", "-o", tmp_path / "m"
    trained = answer("train", *data, *options)
    assert trained["smoothing"] == (1.0 if smoothing is None else float(smoothing))
    call("predict", tmp_path / "m", folder / "test.csv", "--proba", "--out", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    names = ["mow", "water", "sell", "ask"] if smoothing == "0" else ["daisy", "rose", "tulip"]
    assert list(table.columns) == ["prediction", *(f"p({name})" for name in names)]
    model = nashlearn.load(tmp_path / "m")
    np.testing.assert_allclose(table.iloc[:, 1:], model.predict_proba(flowers(60, seed=1)), atol=1e-9)
