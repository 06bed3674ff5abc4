"""Users of other libraries find their names, or are told what to write instead."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import nashlearn
from nashlearn import (
    NashAbstainer,
    NashClassifier,
    NashFScore,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashPredictor,
    NashTagger,
    games,
)

ROWS = (NashClassifier, NashOrdinalClassifier, NashAbstainer, NashFScore)
STRUCTURES = (NashTagger, NashMarkovNetwork, NashMatcher, NashParser)
WORDS = [["the", "cat", "sleeps"], ["cats", "sleep"], ["the", "dog", "eats", "fish"]]
TAGS = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"], ["DET", "NOUN", "VERB", "NOUN"]]
SENTENCES = [[{"word": word, "ending": word[-1]} for word in words] for words in WORDS]


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.4, 0.5])


@pytest.fixture(scope="module")
def tagger():
    return NashTagger(alpha=1e-2).fit(SENTENCES, TAGS)


@pytest.mark.parametrize("make", ROWS)
def test_C_is_answered_with_the_conversion(make):
    words = re.escape(f"{make.__name__} has no argument 'C'. Write alpha = 1 / (n * 10.0) for n rows")
    with pytest.raises(TypeError, match=words):
        make(C=10.0)
    with pytest.raises(ValueError, match=words):
        make().set_params(C=10.0)
    with pytest.raises(ValueError, match=r"Write alpha = 1 / \(n \* 1\)"):
        GridSearchCV(make(), {"C": [1]}, cv=2).fit(rows()[0], rows()[1] > 0)


@pytest.mark.parametrize("make", STRUCTURES)
def test_C_of_structures_counts_their_variables(make):
    with pytest.raises(
        TypeError, match=r"Write alpha = 1 / \(N \* 0.1\), where N is the number of predicted variables"
    ):
        make(C=0.1)


FOREIGN = [
    (NashClassifier, {"solver": "lbfgs"}, "the method follows from the loss"),
    (NashClassifier, {"multi_class": "ovr"}, "all classes are trained together"),
    (NashClassifier, {"probability": True}, "predict_proba is there"),
    (NashClassifier, {"l1_ratio": 0.5}, "penalty='l1' or penalty='l2'"),
    (NashClassifier, {"cost_matrix": np.eye(2)}, "Pass the costs as the first argument, `loss`"),
    (NashClassifier, {"class_weights": "balanced"}, "Write class_weight='balanced'."),
    (NashClassifier, {"smothing": 1}, "Did you mean 'smoothing'?"),
    (NashClassifier, {"bagging": 1}, "It takes alpha, "),
    (NashOrdinalClassifier, {"max_iterations": 5}, "Write max_iter=5."),
    (NashTagger, {"c2": 0.1}, "Write alpha = 2 * 0.1 / N, where N is the number of labels"),
    (NashTagger, {"c1": 0.3}, "Write penalty='l1', alpha=0.3 / N"),
    (NashTagger, {"max_iterations": 100}, "Write max_iter=100."),
    (NashTagger, {"algorithm": "lbfgs"}, "the method follows from the loss"),
    (NashTagger, {"all_possible_states": True}, "Write unseen_pairs=True."),
    (NashTagger, {"all_possible_transitions": True}, "all transitions have weights"),
    (NashTagger, {"model_filename": "crf"}, "nashlearn.save(model, path)"),
    (NashMarkovNetwork, {"inference_method": "ad3"}, "inference is exact where that is possible"),
]


@pytest.mark.parametrize(("make", "given", "words"), FOREIGN, ids=[f"{m.__name__} {[*g]}" for m, g, _ in FOREIGN])
def test_arguments_of_others_are_answered(make, given, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        make(**given)


def test_all_foreign_arguments_are_named_at_once():
    with pytest.raises(TypeError, match=r"'c1'.*'c2'.*'max_iterations'"):
        NashTagger(c1=0.1, c2=0.1, max_iterations=100)


@pytest.mark.parametrize("make", [*ROWS, *STRUCTURES])
def test_scikit_learn_reads_the_parameters_as_before(make):
    names = set(inspect.signature(make).parameters)
    assert names == set(make().get_params()) and {"alpha", "tol"} <= names and "given" not in names
    other = clone(make(alpha=0.5)).set_params(tol=0.25)
    assert (other.alpha, other.tol) == (0.5, 0.25)
    assert pickle.loads(pickle.dumps(other)).get_params() == other.get_params()
    assert NashPredictor(games.zero_one(3), alpha=0.1).get_params(deep=False)["alpha"] == 0.1


class Steady(NashClassifier):
    """A class of a user, with a parameter of its own."""

    def __init__(self, patience=3, alpha=0.1):
        super().__init__("zero_one", alpha=alpha)
        self.patience = patience


def test_subclasses_keep_their_own_parameters():
    assert clone(Steady(patience=5)).set_params(patience=7).patience == 7
    with pytest.raises(ValueError, match=r"Steady has no argument 'C'. Write alpha"):
        Steady().set_params(C=1)


@pytest.mark.parametrize("make", ROWS)
def test_the_linear_kernel_is_linear_training(make):
    X, y = rows()
    y = y > 0 if make is NashFScore else y
    one, other = (make(kernel=kernel, random_state=0).fit(X, y) for kernel in ("linear", None))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.smoothing_ == other.smoothing_ > 0
    assert one.coef_.shape[1] == SVC(kernel="linear").fit(X, y).coef_.shape[1]
    if make is not NashFScore:  # neither streams nor sparse weights refuse it
        assert make(kernel="linear").partial_fit(X, y, classes=[0, 1, 2]).coef_.shape == one.coef_.shape
        assert make(kernel="linear", penalty="l1").fit(X, y).n_nonzero_ <= one.coef_.size


def test_kernels_say_that_they_have_no_weights_of_features():
    X, y = rows()
    model = NashClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(AttributeError, match=r"kernel='rbf' has no coef_.*dual_coef_"):
        assert model.coef_ is None
    with pytest.raises(AttributeError, match="no coef_ before it is fitted"):
        assert NashClassifier().coef_ is None
    assert not hasattr(model, "coef_") and hasattr(model, "dual_coef_")
    assert model.set_params(kernel=None).fit(X, y).coef_.shape == (3, 3)


def test_grades_are_judged_as_mord_judges_them():
    X, y = rows()
    model = NashOrdinalClassifier().fit(X, y)
    np.testing.assert_array_equal(model.theta_, model.thresholds_)
    assert model.score(X, y) == pytest.approx(-mean_absolute_error(y, model.predict(X)))


@pytest.mark.parametrize("make", [NashOrdinalClassifier, NashClassifier])
def test_an_alpha_beside_the_sum_is_noticed(make):
    X, y = rows(400)
    with pytest.warns(UserWarning, match=r"alpha=10.0 is so large that all rows get the same answer.*alpha=0.025"):
        model = make(alpha=10.0).fit(X, y)
    assert np.unique(model.predict(X)).size == 1
    order = np.argsort(y, kind="stable")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[order], columns=["a", "b", "c"])
    model = make(alpha=0.6).fit(frame, y[order])  # sorted by class, with names: no warning of either
    assert np.unique(model.predict(frame)).size > 1


@pytest.mark.parametrize(("price", "k"), [(2, 2), (0.51, 2), (0.7, 3), ([0.8, 0.9, 1.0], 3)])
def test_a_price_that_is_never_worth_paying_is_said_to_be(price, k):
    """A guess among k labels costs at most 1 - 1/k, whatever their probabilities."""
    X, y = rows()
    with pytest.warns(UserWarning, match="is never worth paying: a wrong label costs 1"):
        model = NashAbstainer(price).fit(X, np.minimum(y, k - 1))
    assert (model.predict_or_abstain(10 * rows(seed=1)[0]) != -1).all()
    NashAbstainer(1 - 1 / k).fit(X, np.minimum(y, k - 1))


def test_words_come_in_lists_of_str_and_numbers_in_arrays(tagger):
    answers = tagger.predict(SENTENCES)
    assert answers == TAGS and all(type(tag) is str for tag in answers[0])
    numbers = [[["DET", "NOUN", "VERB"].index(tag) for tag in tags] for tags in TAGS]
    assert all(isinstance(one, np.ndarray) for one in NashTagger(alpha=1e-2).fit(SENTENCES, numbers).predict(SENTENCES))


def test_seqeval_takes_the_answers():
    seqeval = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    tags = [["B-NP", "I-NP", "O"], ["B-NP", "O"], ["B-NP", "I-NP", "O", "B-NP"]]
    model = NashTagger(alpha=1e-2).fit(SENTENCES, tags)
    assert seqeval.f1_score(tags, model.predict(SENTENCES)) == 1.0


def test_names_of_crfsuite_are_those_of_the_tagger(tagger):
    assert tagger.predict_single(SENTENCES[1]) == TAGS[1]
    marginals, q = tagger.predict_marginals(SENTENCES), tagger.predict_proba(SENTENCES)
    assert [len(one) for one in marginals] == [3, 2, 4]
    for one, rows_of_q in zip(marginals, q, strict=True):
        for found, row in zip(one, rows_of_q, strict=True):
            assert list(found) == ["DET", "NOUN", "VERB"] and list(found.values()) == row.tolist()
            assert sum(found.values()) == pytest.approx(1.0)
    assert tagger.predict_marginals_single(SENTENCES[1]) == marginals[1]


def test_weights_have_names(tagger):
    moves, states = tagger.transition_features_, tagger.state_features_
    assert len(moves) == np.count_nonzero(tagger.transitions_)
    assert moves["DET", "NOUN"] == tagger.transitions_[0, 1] > 0
    assert len(states) == np.count_nonzero(tagger.coef_.toarray())
    column = tagger.feature_names_.index("word:the")
    assert states["word:the", "DET"] == tagger.coef_[0, column] > 0
    assert ("word:the", "VERB") not in states  # a pair that training has not seen has no weight
    dense = NashTagger(alpha=1e-2).fit([np.eye(3), np.eye(3)], [[0, 1, 2], [0, 1, 2]])
    assert dense.state_features_[0, 0] == dense.coef_[0, 0]


def test_development_data_watch_and_change_nothing(capsys):
    plain = NashTagger(alpha=1e-2).fit(SENTENCES, TAGS)
    watched = NashTagger(alpha=1e-2, verbose=1).fit(SENTENCES, TAGS, X_dev=SENTENCES[:2], y_dev=TAGS[:2])
    np.testing.assert_array_equal(watched._weights, plain._weights)
    assert not hasattr(plain, "dev_history_")
    assert [one.n_iter for one in watched.dev_history_] == [one.n_iter for one in watched.history_]
    assert watched.dev_history_[-1].score == watched.score(SENTENCES[:2], TAGS[:2])
    lines = capsys.readouterr().out.splitlines()
    assert sum("dev " in line for line in lines) == len(watched.history_)
    assert not hasattr(watched.fit(SENTENCES, TAGS), "dev_history_")


def test_development_data_are_judged_by_the_loss_that_was_named():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, (6, 8))
    X = [np.eye(3)[row] + 0.5 * rng.normal(size=(8, 3)) for row in y]
    for loss, decision in (("absolute", "auto"), ([[0, 1, 5], [1, 0, 1], [2, 1, 0]], "equilibrium")):
        model = NashTagger(loss, alpha=1e-2, decision=decision).fit(X[:4], y[:4], X_dev=X[4:], y_dev=y[4:])
        assert model.dev_history_[-1].score == pytest.approx(model.score(X[4:], y[4:]))


def test_bad_development_data_are_refused_before_training():
    calls = []
    model = NashTagger(alpha=1e-2, callback=calls.append)
    with pytest.raises(ValueError, match="X_dev and y_dev must be given together"):
        model.fit(SENTENCES, TAGS, X_dev=SENTENCES)
    with pytest.raises(ValueError, match="y holds the label 'ADJ', which was not seen in fit"):
        model.fit(SENTENCES, TAGS, X_dev=SENTENCES[:1], y_dev=[["ADJ", "NOUN", "VERB"]])
    assert not calls and not hasattr(model, "classes_")


def test_saved_taggers_keep_their_history(tmp_path):
    pytest.importorskip("skops")
    model = NashTagger(alpha=1e-2).fit(SENTENCES, TAGS, X_dev=SENTENCES, y_dev=TAGS)
    nashlearn.save(model, tmp_path / "tagger.model")
    assert nashlearn.load(tmp_path / "tagger.model").predict(SENTENCES) == TAGS
