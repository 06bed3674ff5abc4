"""Export to ONNX: the labels and scores of linear and kernel classifiers, alone or at the end of a pipeline.

    from nashlearn.onnx import to_onnx

    graph = to_onnx(model)
    open("wine.onnx", "wb").write(graph.SerializeToString())

The converters are registered with skl2onnx, so that its own ``to_onnx`` converts pipelines with these classifiers too.
Outputs are ``label`` and ``scores``, one for each class, computed in double precision. The equilibrium strategy ``p``
and abstention are not exported: where answers depend on them (``decision_`` is ``"equilibrium"``, as it is by default
for all losses but the zero-one loss), the export is refused. Needs the extra ``onnx``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

__all__ = ["register", "to_onnx"]

_OPSET = 17


def to_onnx(model: Any) -> Any:
    """A fitted classifier, or a pipeline that ends in one, as an ONNX graph.

    Inputs are ``X`` (n, d) of doubles; for a pipeline of :func:`nashlearn.tabular.table_pipeline` with categories they
    are its columns, (n, 1) each, doubles and strings, empty strings and NaN where missing. Where a column is called
    ``label`` or ``scores``, the output has ``_`` after its name.

    Raises
    ------
    ValueError
        Where the model's answers need the equilibrium, or it has a kernel that ONNX cannot hold.
    """
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
    from sklearn.impute import SimpleImputer

    register()
    steps = getattr(model, "steps", [("model", model)])
    _check(steps[-1][1])
    kinds = getattr(steps[0][1], "kinds", None)
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
    names, opset = [(_free(name, taken), None) for name in ("label", "scores")], {"": _OPSET, "ai.onnx.ml": 3}
    return convert_sklearn(model, initial_types=inputs, final_types=names, target_opset=opset, **own)


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
    game = estimator._game
    if game.n_options != game.n_labels and not hasattr(estimator, "abstain_label"):
        raise ValueError("A cost matrix that is not square has no ONNX form: answers need the game.")
    if getattr(estimator, "decision_", "scores") == "equilibrium":
        raise ValueError(
            "Answers by decision_='equilibrium' have no ONNX form: they need the game. With "
            "set_params(decision='scores') the model answers by the largest score, which may cost more."
        )
    kernel = estimator._kernel
    if kernel is not None and not kernel.proven:
        raise ValueError("Only the kernels rbf, poly and laplacian have an ONNX form.")


def register() -> None:
    """Register the converters with skl2onnx; again is harmless."""
    from skl2onnx import update_registered_converter

    from nashlearn.estimators import NashAbstainer, NashClassifier, NashOrdinalClassifier

    for kind in (NashClassifier, NashOrdinalClassifier, NashAbstainer):
        update_registered_converter(kind, f"Nashlearn{kind.__name__}", _shapes, _convert)


def _shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    estimator = operator.raw_operator
    n = operator.inputs[0].get_first_dimension()
    text = estimator.classes_.dtype.kind in "UO"
    operator.outputs[0].type = StringTensorType([n]) if text else Int64TensorType([n])
    operator.outputs[1].type = DoubleTensorType([n, estimator.classes_.size])


class _Operators:
    """The operators of ONNX by their names, all of one version."""

    def __init__(self, opset: int):
        self.opset = opset

    def __getattr__(self, name: str) -> Any:
        from skl2onnx.algebra import onnx_ops

        return partial(getattr(onnx_ops, f"Onnx{name}"), op_version=self.opset)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The graph: scores of classes, the largest of them, its label."""
    from onnx import TensorProto

    estimator, ops = operator.raw_operator, _Operators(container.target_opset)
    _check(estimator)
    label, scores = operator.outputs
    functions = _functions(estimator, ops.Cast(operator.inputs[0], to=TensorProto.DOUBLE), ops)
    every = ops.Identity(_every_class(estimator, functions, ops), output_names=[scores.full_name])
    text = estimator.classes_.dtype.kind in "UO"
    names = np.array(estimator.classes_.tolist() if text else estimator.classes_.astype(np.int64))
    flat = np.array([-1], dtype=np.int64)
    best = ops.Reshape_13(ops.ArgMax(every, axis=1, keepdims=0), flat, op_version=13)
    found = ops.ArrayFeatureExtractor(names, best, op_version=1)
    every.add_to(scope, container)
    ops.Reshape_13(found, flat, op_version=13, output_names=[label.full_name]).add_to(scope, container)


def _functions(estimator: Any, X: Any, ops: Any) -> Any:
    """What the weights say of each row, without intercepts."""
    if estimator._kernel is None:
        return ops.MatMul(X, np.ascontiguousarray(estimator.coef_.T, dtype=np.float64))
    support = estimator.support_vectors_
    if not support.shape[0]:  # the zero function
        return ops.MatMul(X, np.zeros((estimator.n_features_in_, estimator.dual_coef_.shape[0])))
    support = np.asarray(support.todense() if hasattr(support, "todense") else support, dtype=np.float64)
    kernel = _KERNELS[estimator.kernel](X, support, ops=ops, **estimator._kernel._pairs.keywords)
    return ops.MatMul(kernel, np.ascontiguousarray(estimator.dual_coef_.T))


def _gaussian(X: Any, support: np.ndarray, *, gamma: float, ops: Any) -> Any:
    """``exp(-gamma |x - s|^2)``, the square expanded; rounding may not make it negative."""
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
