"""Export to ONNX: labels, scores and probabilities of linear and kernel classifiers, alone or ending a pipeline.

    from nashlearn.onnx import to_onnx

    graph = to_onnx(model)
    open("wine.onnx", "wb").write(graph.SerializeToString())

The converters are registered with skl2onnx, so that its own ``to_onnx`` converts pipelines with these classifiers too.
Outputs are ``label`` and ``scores``, one for each class; and, of models with ``smoothing_`` above 0, ``probabilities``
(n, classes), those of ``predict_proba``, and ``strategy`` (n, options), the predictor's ``p``, whose largest entry is
what ``predict_or_abstain`` takes. All are computed in double precision.

Strategies are written as a fixed number of operators for the zero-one loss, with weights too, the absolute loss and
thresholds, a cost matrix of two options and two classes, and abstention at a price of at most 1/2. Others take
iterations that a graph does not hold: such a model is exported with labels and scores only, where its labels follow
from scores, and else refused. Needs the extra ``onnx``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nashlearn.estimators._sparse_coef import dense_coef

__all__ = ["register", "to_onnx"]

_OPSET = 17


def to_onnx(model: Any) -> Any:
    """A fitted classifier, or a pipeline that ends in one, as an ONNX graph.

    Inputs are ``X`` (n, d) of doubles; for a pipeline of :func:`nashlearn.tabular.table_pipeline` with categories they
    are its columns, (n, 1) each, doubles and strings, empty strings and NaN where missing; numbers that were written as
    text are given as numbers, and dates as what ``model["columns"].transform`` makes of them. Where a column is called
    as an output, the output has ``_`` after its name.

    Raises
    ------
    ValueError
        Where the model's labels need a strategy, or it has a kernel or reads free text, that a graph of operators does
        not hold.
    """
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
    from sklearn.impute import SimpleImputer

    register()
    steps = getattr(model, "steps", [("model", model)])
    _check(steps[-1][1])
    kinds = _inputs(steps[0][1])
    width = steps[0][1].n_features_in_ if kinds is None else len(kinds)
    inputs = [("X", DoubleTensorType([None, width]))]
    own: dict[str, Any] = {}
    if kinds is not None:
        model = model[1:]
        own = {
            "custom_conversion_functions": {SimpleImputer: _filled},
            "custom_shape_calculators": {SimpleImputer: _same_shape},
        }
        if "category" in kinds.values():
            types = {"number": DoubleTensorType([None, 1]), "category": StringTensorType([None, 1])}
            inputs = [(name, types[kind]) for name, kind in kinds.items()]
    taken = {name for name, _ in inputs}
    names, opset = [(_free(name, taken), None) for name in _outputs(steps[-1][1])], {"": _OPSET, "ai.onnx.ml": 3}
    return convert_sklearn(model, initial_types=inputs, final_types=names, target_opset=opset, **own)


def _inputs(first: Any) -> dict[str, str] | None:
    """What the columns of a table are once they are read, "number" or "category"; None where there is no table."""
    if not hasattr(first, "made"):
        return None
    kinds: dict[str, str] = first.made()
    text = [name for name, kind in kinds.items() if kind == "text"]
    if text:
        raise ValueError(f"The column {text[0]!r} is free text, whose words have no ONNX form. Train without it.")
    return kinds


def _free(name: str, taken: set[str]) -> str:
    """A name for an output that no input has."""
    while name in taken:
        name = f"{name}_"
    return name


def _filled(scope: Any, operator: Any, container: Any) -> None:
    """Doubles with NaN replaced, of which onnxruntime's own operator knows floats only."""
    X, ops = operator.inputs[0], _Operators(container.target_opset)
    fill = np.asarray(operator.raw_operator.statistics_, dtype=np.float64)[None]
    ops.Where(ops.IsNaN(X), fill, X, output_names=[operator.outputs[0].full_name]).add_to(scope, container)


def _same_shape(operator: Any) -> None:
    operator.outputs[0].type = operator.inputs[0].type


def _check(estimator: Any) -> None:
    if not hasattr(estimator, "_functions"):
        raise ValueError(f"{type(estimator).__name__} has no ONNX form; only classifiers of rows have.")
    game, abstains = estimator._game, hasattr(estimator, "abstain_label")
    if game.n_options != game.n_labels and not abstains:
        raise ValueError("A cost matrix that is not square has no ONNX form: predictions need the game.")
    if _by_strategy(estimator) and _form(estimator) is None:
        raise ValueError(
            "Predictions by decision_='equilibrium' have an ONNX form for cost matrices of two classes, but not for "
            "this loss: its game takes iterations. With set_params(decision='scores') the model predicts by the "
            "largest score, which may cost more, and only labels and scores are exported."
        )
    kernel = estimator._kernel
    if kernel is not None and not kernel.proven:
        raise ValueError("Only the kernels rbf, poly and laplacian have an ONNX form.")


def _by_strategy(estimator: Any) -> bool:
    """Whether labels are those of the largest entries of ``p``."""
    return getattr(estimator, "decision_", "scores") == "equilibrium"


def _form(estimator: Any) -> Any:
    """What writes the strategy of the estimator's game as operators, None where nothing does."""
    game = estimator._game
    make = _FORMS.get(type(game.params).__name__)
    return None if make is None else make(game)


def _outputs(estimator: Any) -> list[str]:
    """Names of what is exported."""
    tempered = estimator.smoothing_ > 0 and _form(estimator) is not None
    return ["label", "scores", *(["probabilities", "strategy"] if tempered else [])]


def register() -> None:
    """Register the converters with skl2onnx; again is harmless."""
    from skl2onnx import update_registered_converter

    from nashlearn.estimators import NashAbstainer, NashClassifier, NashOrdinalClassifier

    for kind in (NashClassifier, NashOrdinalClassifier, NashAbstainer):
        update_registered_converter(kind, f"Nashlearn{kind.__name__}", _shapes, _convert, parser=_parse)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs, whose number depends on the model."""
    from skl2onnx.common.data_types import DoubleTensorType

    _check(model)
    operator = scope.declare_local_operator(f"Nashlearn{type(model).__name__}", model)
    operator.inputs = list(inputs)
    for name in _outputs(model):
        operator.outputs.append(scope.declare_local_variable(name, DoubleTensorType()))
    return operator.outputs


def _shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    estimator = operator.raw_operator
    n = operator.inputs[0].get_first_dimension()
    text = _names(estimator).dtype.kind == "U"
    operator.outputs[0].type = StringTensorType([n]) if text else Int64TensorType([n])
    widths = estimator.classes_.size, estimator.classes_.size, estimator._game.n_options
    for output, width in zip(operator.outputs[1:], widths, strict=False):
        output.type = DoubleTensorType([n, width])


def _names(estimator: Any) -> np.ndarray:
    """What is predicted, by place: texts or integers."""
    names = np.asarray(getattr(estimator, "_options", estimator.classes_))
    return np.array(names.tolist(), dtype=np.str_) if names.dtype.kind in "UO" else names.astype(np.int64)


class _Operators:
    """The operators of ONNX by their names, all of one version."""

    def __init__(self, opset: int):
        self.opset = opset

    def __getattr__(self, name: str) -> Any:
        from skl2onnx.algebra import onnx_ops

        return partial(getattr(onnx_ops, f"Onnx{name}"), op_version=self.opset)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The graph: scores of classes, strategies and probabilities where wanted, the best option, its label."""
    from onnx import TensorProto

    estimator, ops = operator.raw_operator, _Operators(container.target_opset)
    label, scores, *more = operator.outputs
    functions = _functions(estimator, ops.Cast(operator.inputs[0], to=TensorProto.DOUBLE), ops)
    every = ops.Identity(_every_class(estimator, functions, ops), output_names=[scores.full_name])
    every.add_to(scope, container)
    best = every
    if more or _by_strategy(estimator):
        mu, f = estimator._mu, ops.Mul(every, np.array([estimator._unit]))
        p = _form(estimator)(f, mu, ops)
        best = p if _by_strategy(estimator) else every
        if more:
            gain = ops.MatMul(p, np.ascontiguousarray(estimator._game.costs))
            logits = ops.Div(ops.Add(f, gain), np.array([mu]))
            ops.Softmax(logits, axis=1, output_names=[more[0].full_name]).add_to(scope, container)
            ops.Identity(p, output_names=[more[1].full_name]).add_to(scope, container)
    flat = np.array([-1], dtype=np.int64)
    place = ops.Reshape_13(ops.ArgMax(best, axis=1, keepdims=0), flat, op_version=13)
    found = ops.ArrayFeatureExtractor(_names(estimator), place, op_version=1)
    ops.Reshape_13(found, flat, op_version=13, output_names=[label.full_name]).add_to(scope, container)


def _functions(estimator: Any, X: Any, ops: Any) -> Any:
    """What the weights say of each row, without intercepts."""
    if estimator._kernel is None:
        return ops.MatMul(X, np.ascontiguousarray(dense_coef(estimator).T, dtype=np.float64))
    support = estimator.support_vectors_
    if not support.shape[0]:  # the zero function
        return ops.MatMul(X, np.zeros((estimator.n_features_in_, estimator.dual_coef_.shape[0])))
    support = np.asarray(support.todense() if hasattr(support, "todense") else support, dtype=np.float64)
    kernel = _KERNELS[estimator.kernel](X, support, ops=ops, **estimator._kernel._pairs.keywords)
    return ops.MatMul(kernel, np.ascontiguousarray(estimator.dual_coef_.T))


def _gaussian(X: Any, support: np.ndarray, *, gamma: float, ops: Any, centre: Any = 0.0) -> Any:
    """``exp(-gamma |x - s|^2)``, the square expanded about the centre; rounding may not make it negative."""
    X, support = ops.Sub(X, np.atleast_1d(centre)), support - centre
    rows = ops.ReduceSum(ops.Mul(X, X), np.array([1], dtype=np.int64), keepdims=1)
    inner = ops.MatMul(X, np.ascontiguousarray(2.0 * gamma * support.T))
    others = -gamma * np.einsum("ij,ij->i", support, support)[None]
    exponent = ops.Add(ops.Add(inner, ops.Mul(rows, np.array([-gamma]))), others)
    return ops.Exp(ops.Min(exponent, np.array([0.0])))


def _polynomial(X: Any, support: np.ndarray, *, gamma: float, degree: float, coef0: float, ops: Any) -> Any:
    inner = ops.MatMul(X, np.ascontiguousarray(gamma * support.T))
    return ops.Pow(ops.Add(inner, np.array([float(coef0)])), np.array([float(degree)]))


def _laplacian(X: Any, support: np.ndarray, *, gamma: float, ops: Any) -> Any:
    """``exp(-gamma |x - s|_1)``; all differences (n, s, d) at once."""
    apart = ops.Sub(ops.Unsqueeze(X, np.array([1], dtype=np.int64)), support[None])
    total = ops.ReduceSum(ops.Abs(apart), np.array([2], dtype=np.int64), keepdims=0)
    return ops.Exp(ops.Mul(total, np.array([-gamma])))


_KERNELS: dict[str, Any] = {"rbf": _gaussian, "poly": _polynomial, "laplacian": _laplacian}


def _every_class(estimator: Any, functions: Any, ops: Any) -> Any:
    """Scores (n, k) from the functions: one for each class, opposite halves for two, prefix sums for grades."""
    k, b = estimator.classes_.size, estimator.intercept_
    if hasattr(estimator, "thresholds_"):
        linear, constant = np.arange(k)[None], np.concatenate([[0.0], np.cumsum(b)])
    elif k == 2:
        linear = np.array([[-0.5, 0.5]])
        constant = b * linear[0]
    else:
        linear, constant = np.eye(k), b
    return ops.Add(ops.MatMul(functions, linear.astype(np.float64)), constant[None].astype(np.float64))


def _soft_max(x: Any, mu: float, axis: int, ops: Any) -> Any:
    """``mu log sum exp(x / mu)`` along an axis, which is kept; the maximum for ``mu = 0``."""
    if not mu:
        return ops.ReduceMax(x, axes=[axis], keepdims=1)
    return ops.Mul(ops.ReduceLogSumExp(ops.Div(x, np.array([mu])), axes=[axis], keepdims=1), np.array([mu]))


def _between(x: Any, low: Any, high: Any, ops: Any) -> Any:
    return ops.Min(ops.Max(x, np.asarray(low, dtype=np.float64)), np.asarray(high, dtype=np.float64))


def _weighted(w: np.ndarray) -> Any:
    """``p = [b - tau]_+ / w`` with ``b = f + w + mu log w``, for mistakes that cost ``w`` of the true label.

    ``tau`` makes it sum to 1: the largest of ``(sum b / w - 1) / sum 1 / w`` over the labels of the largest ``b``.
    """

    def strategy(f: Any, mu: float, ops: Any) -> Any:
        b = ops.Add(f, (w + mu * np.log(w))[None])
        ranked = ops.TopK(b, np.array([w.size], dtype=np.int64), axis=1)
        shares = ops.Gather(1.0 / w, ranked[1], axis=0)
        last = np.array(1, dtype=np.int64)
        total = ops.Sub(ops.CumSum(ops.Mul(ranked[0], shares), last), np.array([1.0]))
        tau = ops.ReduceMax(ops.Div(total, ops.CumSum(shares, last)), axes=[1], keepdims=1)
        return ops.Mul(ops.Max(ops.Sub(b, tau), np.array([0.0])), (1.0 / w)[None])

    return strategy


def _ranked(t: np.ndarray) -> Any:
    """Between neighbours of the positions ``t``: ``p`` interpolates ``z``, the best position for ``|t - z|``.

    Between ``t_j`` and ``t_{j+1}`` the loss of ``z`` is ``smax(P_j + z, S_j - z)``, of the soft maxima of ``f - t`` up
    to ``j`` and of ``f + t`` after it: least at ``(S_j - P_j) / 2``, which falls with ``j``. So ``z`` passes all of the
    intervals before the one where it lies, and none after it.
    """
    k, gap = t.size, np.diff(t)
    before = np.where(np.arange(k) <= np.arange(k - 1)[:, None], 0.0, -np.inf)
    after = np.where(np.arange(k) > np.arange(k - 1)[:, None], 0.0, -np.inf)
    steps = np.eye(k)[1:] - np.eye(k)[:-1]

    def strategy(f: Any, mu: float, ops: Any) -> Any:
        rows, last = ops.Unsqueeze(f, np.array([1], dtype=np.int64)), np.array([2], dtype=np.int64)
        low = ops.Squeeze(_soft_max(ops.Add(rows, (before - t)[None]), mu, 2, ops), last)
        high = ops.Squeeze(_soft_max(ops.Add(rows, (after + t)[None]), mu, 2, ops), last)
        at = ops.Sub(ops.Mul(ops.Sub(high, low), np.array([0.5])), t[None, :-1])
        passed = _between(ops.Div(at, gap[None]), [0.0], [1.0], ops)
        return ops.Add(ops.MatMul(passed, steps), np.eye(k)[:1])

    return strategy


def _priced(price: float, k: int) -> Any:
    """The label of the largest score or nothing, at a price up to 1/2 for nothing; None for others."""
    if not 0 < price <= 0.5:
        return None

    def strategy(f: Any, mu: float, ops: Any) -> Any:
        top = ops.Equal(ops.ArgMax(f, axis=1, keepdims=1), np.arange(k, dtype=np.int64)[None])
        rest = _soft_max(ops.Where(top, np.array([-np.inf]), f), mu, 1, ops)
        lead = ops.Sub(ops.ReduceMax(f, axes=[1], keepdims=1), rest)
        sure = _between(ops.Sub(lead, np.array([mu * np.log(1.0 / price - 1.0)])), [0.0], [1.0], ops)
        return ops.Concat(ops.Where(top, sure, np.array([0.0])), ops.Sub(np.array([[1.0]]), sure), axis=1)

    return strategy


def _of_two(L: np.ndarray) -> Any:
    """Two options and two labels: the second is taken with a probability that is linear in the scores, cut at 0 and 1.

    With what each option costs more than the other, ``a = L_10 - L_00`` and ``b = L_01 - L_11``, both cost the same
    where ``q_1 / q_0 = a / b``. None for larger matrices, or where one option is never the worse.
    """
    if L.shape != (2, 2):
        return None
    a, b = L[1, 0] - L[0, 0], L[0, 1] - L[1, 1]
    if not a * b > 0:
        return None

    def strategy(f: Any, mu: float, ops: Any) -> Any:
        lead = ops.MatMul(f, np.array([[-1.0], [1.0]]))
        shifted = ops.Add(lead, np.array([L[0, 1] - L[0, 0] - mu * np.log(a / b)]))
        second = _between(ops.Div(shifted, np.array([a + b])), [0.0], [1.0], ops)
        return ops.Concat(ops.Sub(np.array([[1.0]]), second), second, axis=1)

    return strategy


# How strategies are written, by the parameters of games: functions of scores in costs, the smoothing and the operators.
_FORMS: dict[str, Any] = {
    "ZeroOne": lambda game: _weighted(np.ones(game.n_labels)),
    "WeightedZeroOne": lambda game: _weighted(np.asarray(game.params.weights)),
    "Absolute": lambda game: _ranked(np.asarray(game.params.t)),
    "Abstain": lambda game: _priced(game.params.cost, game.n_labels),
    "Cost": lambda game: _of_two(game.costs),
}
