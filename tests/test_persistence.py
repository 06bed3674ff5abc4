"""Saved models: the same after loading, refused where changed, foreign, cut off or later; old ones still load."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nashlearn
from nashlearn import (
    NashAbstainer,
    NashClassifier,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashTagger,
    games,
    persistence,
)
from nashlearn.persistence import ModelFileError

# That words have no order is said, and tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:y holds words and no order")

STORED = Path(__file__).parent / "stored"
rng = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
WORDS = [[{"word": "the"}, {"word": "cat"}], [{"word": "cats"}, {"word": "sleep"}]]
GRAPHS = [(rng.normal(size=(3, 2)), np.array([[0, 1], [1, 2]])) for _ in range(3)]
ARCS = [rng.normal(size=(n, n + 1, 3)) for n in (3, 4)]
PAIRS = [rng.normal(size=(3, 3, 2)) for _ in range(2)]
COSTS = [[0, 1, 2], [3, 0, 1], [1, 1, 0]]

MODELS = {
    "linear": (NashClassifier(), IRIS, SPECIES),
    "costs": (NashClassifier(np.array(COSTS)), IRIS, SPECIES),
    "names": (NashClassifier("squared"), IRIS, np.array(["a", "b", "c"])[SPECIES]),
    "rbf": (NashClassifier("absolute", kernel="rbf", alpha=1e-2), IRIS, SPECIES),
    "poly": (NashClassifier(kernel="poly", alpha=1e-1), IRIS, SPECIES),
    "laplacian": (NashClassifier(kernel="laplacian", alpha=1e-1), IRIS, SPECIES),
    "ordinal": (NashOrdinalClassifier(), IRIS, SPECIES),
    "abstainer": (NashAbstainer(0.3), IRIS, SPECIES),
    "exact": (NashClassifier(np.array(COSTS), smoothing=0.0), IRIS, SPECIES),
    "tempered rbf": (NashClassifier(kernel="rbf", smoothing=1.0, alpha=1e-2), IRIS, SPECIES),
    "ordered": (NashOrdinalClassifier(order=["c", "a", "b"]), IRIS, np.array(["c", "a", "b"])[SPECIES]),
    "warm": (NashClassifier(warm_start=True, class_weight="balanced"), sparse.csr_array(IRIS), SPECIES),
    "warm, l1": (NashClassifier(penalty="l1", warm_start=True), IRIS, SPECIES),
    "sparse kernel": (NashClassifier(kernel="rbf", alpha=0.1), sparse.csr_matrix(IRIS), SPECIES),
    "pipeline": (make_pipeline(StandardScaler(), NashClassifier()), IRIS, SPECIES),
    "tagger": (NashTagger(alpha=0.01), WORDS, [["DET", "NOUN"], ["NOUN", "VERB"]]),
    "network": (NashMarkovNetwork(alpha=0.1), GRAPHS, [[0, 1, 1], [1, 0, 0], [0, 0, 1]]),
    "parser": (NashParser(alpha=0.1), ARCS, [np.array([0, 1, 1]), np.array([0, 1, 1, 2])]),
    "matcher": (NashMatcher(alpha=0.1), PAIRS, [np.arange(3)] * 2),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """One saved classifier, as bytes."""
    path = tmp_path_factory.mktemp("model") / "iris.model"
    nashlearn.save(NashClassifier().fit(IRIS, SPECIES), path, schema={"columns": 4}, summary={"rows": 150})
    return path.read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_is_the_same_after_loading(name, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y)
    nashlearn.save(model, tmp_path / "it.model")
    loaded = nashlearn.load(tmp_path / "it.model")
    for method in ("predict", "predict_proba", "decision_function"):
        for ours, theirs in zip(getattr(model, method)(X), getattr(loaded, method)(X), strict=True):
            for a, b in zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]:
                np.testing.assert_array_equal(a, b)
    last = loaded[-1] if name == "pipeline" else loaded
    certificate = persistence.read_info(tmp_path / "it.model")["certificate"]["model"]
    assert certificate["dual_gap"] == last.dual_gap_ and certificate["objective"] == last.objective_
    assert certificate["history"][-1][-1] == pytest.approx(last.history_[-1].gap)
    assert last.worst_case_risk(0.1) == (model[-1] if name == "pipeline" else model).worst_case_risk(0.1)
    assert list(tmp_path.iterdir()) == [tmp_path / "it.model"]


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_training_goes_on_after_loading(penalty, tmp_path):
    model = NashClassifier(penalty=penalty, warm_start=True, alpha=1e-3).fit(IRIS, SPECIES)
    nashlearn.save(model, tmp_path / "m")
    loaded = nashlearn.load(tmp_path / "m")
    steps = loaded.n_iter_
    assert loaded._trained.penalty == model._trained.penalty
    loaded.fit(IRIS, SPECIES)
    assert loaded.n_iter_ < steps and loaded.objective_ == pytest.approx(model.objective_, rel=1e-9)


def test_what_a_file_says(saved, tmp_path):
    (tmp_path / "m").write_bytes(saved)
    info = persistence.read_info(tmp_path / "m")
    assert info["format"] == persistence.FORMAT and info["nashlearn"] == nashlearn.__version__
    assert info["schema"] == {"columns": 4} and info["summary"] == {"rows": 150}


def test_a_stream_goes_on_after_loading(tmp_path):
    model = NashClassifier().partial_fit(IRIS, SPECIES, classes=[0, 1, 2])
    nashlearn.save(model, tmp_path / "m")
    loaded = nashlearn.load(tmp_path / "m")
    assert persistence.read_info(tmp_path / "m")["certificate"]["model"]["dual_gap"] is None
    for one in (model, loaded):
        one.partial_fit(IRIS[::-1], SPECIES[::-1])
    np.testing.assert_array_equal(model.coef_, loaded.coef_)


def test_many_names_are_saved_compactly(tmp_path):
    """The names of features are two arrays, not as many objects; any text survives."""
    names = [f"wörd\n{i}" for i in range(2000)]
    X = [[[name] for name in names[i : i + 20]] for i in range(0, 2000, 20)]
    y = [[i % 2 for i in range(20)] for _ in X]
    tagger = NashTagger(alpha=0.1, max_iter=3, tol=10.0).fit(X, y)
    nashlearn.save(tagger, tmp_path / "t")
    loaded = nashlearn.load(tmp_path / "t")
    assert loaded.feature_names_ == tagger.feature_names_ == names
    with zipfile.ZipFile(tmp_path / "t") as archive:
        assert len(archive.read("schema.json")) < 100_000


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_costs_with_names_are_saved_as_dictionaries(smoothing, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = np.array(["a", "b", "c"])[SPECIES]
    frame = pandas.DataFrame(COSTS, index=["b", "?", "c"], columns=["c", "a", "b"])
    model = NashClassifier(frame, smoothing=smoothing).fit(IRIS, names)
    with pytest.raises(ModelFileError, match=r"loss is a data frame.*to_dict\(orient='index'\)"):
        nashlearn.save(model, tmp_path / "m")
    model.set_params(loss=model.loss.to_dict(orient="index"))  # as the message says: no need to train again
    nashlearn.save(model, tmp_path / "m")
    loaded = nashlearn.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(IRIS), model.predict(IRIS))
    assert set(loaded.options_) == {"?", "b", "c"} and loaded.score(IRIS, names) == model.score(IRIS, names)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"loss": lambda k: games.zero_one(k)}, "loss"),
        ({"callback": print}, "callback"),
        ({"kernel": lambda A, B: A @ B.T}, "kernel"),
    ],
)
def test_functions_are_not_saved(parameters, named, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NashClassifier(alpha=1.0).set_params(**parameters).fit(IRIS, SPECIES)
    with pytest.raises(ModelFileError, match=f"{named} is a function"):
        nashlearn.save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(ModelFileError, match="no fitted estimator"):
        nashlearn.save(NashClassifier(), tmp_path / "m")
    with pytest.raises(ModelFileError, match="no fitted estimator"):
        nashlearn.save({"a": 3}, tmp_path / "m")


def test_a_file_cut_off_anywhere_is_refused(saved, tmp_path):
    path = tmp_path / "m"
    for size in (0, 1, 30, len(saved) // 2, len(saved) - 30, len(saved) - 1):
        path.write_bytes(saved[:size])
        with pytest.raises(ModelFileError, match=str(path)):
            nashlearn.load(path)


def test_a_file_with_a_byte_changed_is_refused_or_the_same(saved, tmp_path):
    """Bytes of the archive's own bookkeeping, such as dates, may differ; nothing that makes the model may."""
    path = tmp_path / "m"
    path.write_bytes(saved)
    expected = nashlearn.load(path).coef_
    refused = 0
    for position in np.random.default_rng(0).integers(len(saved), size=150):
        changed = bytearray(saved)
        changed[position] ^= 0x41
        path.write_bytes(bytes(changed))
        try:
            found = nashlearn.load(path).coef_
        except ModelFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(found, expected)
    assert refused > 100


def rewritten(content: bytes, change) -> bytes:
    """The archive with its entries, a dictionary of bytes, changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)
    return buffer.getvalue()


def with_info(content: bytes, honest: bool = False, **values) -> bytes:
    def change(entries):
        info = {**json.loads(entries["nashlearn.json"]), **values}
        entries["nashlearn.json"] = json.dumps(info).encode()

    changed = rewritten(content, change)
    if not honest:
        return changed

    def sign(entries):
        info = json.loads(entries["nashlearn.json"])
        info.pop("sha256")
        with zipfile.ZipFile(io.BytesIO(changed)) as archive:
            entries["nashlearn.json"] = json.dumps({**info, "sha256": persistence._digest(archive, info)}).encode()

    return rewritten(changed, sign)


def refusal(tmp_path, content: bytes) -> str:
    path = tmp_path / "m"
    path.write_bytes(content)
    for reader in (nashlearn.load, persistence.read_info):
        with pytest.raises(ModelFileError) as caught:
            reader(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_tampering_is_noticed(saved, tmp_path):
    assert "changed after it was saved" in refusal(tmp_path, with_info(saved, summary={"rows": 1}))

    def nudge(entries):
        name = next(name for name in entries if name.endswith(".npy"))
        entries[name] = entries[name][:-1] + bytes([entries[name][-1] ^ 1])

    assert "changed after it was saved" in refusal(tmp_path, rewritten(saved, nudge))


def test_foreign_files_are_refused(saved, tmp_path):
    assert "no saved model" in refusal(tmp_path, b"a,b\n1,2\n")
    assert "no nashlearn.json" in refusal(tmp_path, rewritten(saved, lambda entries: entries.pop("nashlearn.json")))
    assert "Upgrade" in refusal(tmp_path, with_info(saved, honest=True, format=persistence.FORMAT + 1))
    assert "lacks a format" in refusal(tmp_path, rewritten(saved, lambda e: e.update({"nashlearn.json": b"{}"})))
    with pytest.raises(FileNotFoundError):
        nashlearn.load(tmp_path / "absent")


@pytest.mark.parametrize("part", ["schema", "scikit-learn", "model", "certificate", "summary"])
def test_a_right_checksum_over_nonsense_is_refused(part, saved, tmp_path):
    assert f"nonsense, of {part}" in refusal(tmp_path, with_info(saved, honest=True, **{part: 3}))


def test_certificates_are_looked_at(saved, tmp_path):
    assert "of certificate" in refusal(tmp_path, with_info(saved, honest=True, certificate={"model": {"tol": 1}}))


def test_archives_that_unpack_to_far_more_are_refused(saved, tmp_path, monkeypatch):
    def add(entries):
        entries["zeros.npy"] = bytes(1 << 22)

    buffer = io.BytesIO(rewritten(saved, add))
    with zipfile.ZipFile(buffer) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for packed in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression=packed) as archive:
            for name, entry in entries.items():
                archive.writestr(name, entry)
        monkeypatch.setattr(persistence, "_FREE", 1 << 20 if packed == zipfile.ZIP_DEFLATED else 1 << 28)
        assert "table of contents" in refusal(tmp_path, buffer.getvalue())


def test_weights_that_are_all_zero_are_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "_FREE", 1 << 16)
    model = NashClassifier().fit(np.eye(4), [0, 1, 0, 1])
    model.coef_ = np.zeros((1, 1 << 20))
    nashlearn.save(model, tmp_path / "m")
    assert (tmp_path / "m").stat().st_size > model.coef_.nbytes
    assert nashlearn.load(tmp_path / "m").coef_.shape == model.coef_.shape


def test_links_are_followed(saved, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    nashlearn.save(NashClassifier().fit(IRIS, SPECIES), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").is_file()


def test_a_file_that_asks_for_code_is_refused(tmp_path, monkeypatch):
    """A right checksum does not help: what is not ours is never built, nor called."""
    import os
    from functools import partial

    model = NashClassifier(kernel="rbf", alpha=0.1).fit(IRIS, SPECIES)
    model._kernel._pairs = partial(os.path.join, "a")  # stands for anything that a forger would like to be called
    monkeypatch.setattr(persistence, "TRUSTED", (*persistence.TRUSTED, "posixpath.join", "ntpath.join"))
    nashlearn.save(model, tmp_path / "m")
    assert nashlearn.load(tmp_path / "m")._kernel._pairs("b") == os.path.join("a", "b")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"is refused: it asks for types that are not trusted.*path\.join"):
        nashlearn.load(tmp_path / "m")


def test_a_failed_write_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(saved)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        nashlearn.save(NashClassifier(alpha=0.1).fit(IRIS, SPECIES), path)
    assert path.read_bytes() == saved and list(tmp_path.iterdir()) == [path]


def stored_models():
    """What lies in the folder of stored models; a new minor version adds its own and keeps the old."""
    return sorted(STORED.glob("*.json"))


def test_there_are_stored_models():
    assert {"table-0.1.json", "tagger-0.1.json"} <= {path.name for path in stored_models()}


@pytest.mark.parametrize("expected", stored_models(), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_models_of_earlier_versions_load_and_answer_the_same(expected):
    wanted = json.loads(expected.read_text())
    path = expected.with_suffix(".model")
    assert persistence.read_info(path)["nashlearn"].startswith(expected.stem.split("-")[1])
    model = nashlearn.load(path)
    X = wanted["X"]
    if isinstance(X, dict):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(X)
    assert [np.asarray(answer).tolist() for answer in model.predict(X)] == wanted["predictions"]
    if path.name == "table-0.1.model":  # from before there was a choice that depends on the loss
        assert model[-1].decision == model[-1].decision_ == "scores"
    for found, p in zip(model.predict_proba(X), wanted["p"], strict=True):
        np.testing.assert_allclose(found, p, atol=1e-9)
    if "risk" in wanted:
        np.testing.assert_allclose([model.worst_case_risk(r) for r in (0.0, 0.1)], wanted["risk"], rtol=1e-9)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        if path.stem.endswith("-0.1"):  # exact games in their own units
            assert (model.smoothing, model.smoothing_, model.intercept_scaling) == (0.0, 0.0, 1.0)
