"""Pareto certificates of fitted models: of linear ones, and of any that give probabilities, scores or predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from fairfront.errors import ArgumentError, unknown_name
from fairfront.estimators.groups import SensitiveGroups, sensitive_groups, small_groups_by_name
from fairfront.estimators.tables import check_length, score_columns
from fairfront.pareto import Certificate, ConvergenceError, Scalarization, ScalarizedModel, certify, certify_losses
from fairfront.risks import LOSSES, Array, GroupRisks, encode_labels

__all__ = ["ModelCertificate", "pareto_certificate", "stored_certificate"]

# Probabilities of 0 and 1 have an infinite loss where they are wrong; as in scikit-learn's log_loss this moves them.
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ModelCertificate:
    """What is known about a model's Pareto efficiency, group by group.

    Attributes
    ----------
    groups : tuple of str
        Names of the groups (S).
    losses : array of shape (S,)
        The model's loss in each group: of a linear model its risk, penalty included; of any other its mean loss.
    slack : float
        Upper bound on the total improvement that a linear model of the family offers. For a linear model a slack below
        a tolerance proves it efficient to that tolerance.
    multipliers : array of shape (S,)
        Multipliers, at least 1, at which the bound was reached.
    dominating_losses : array of shape (S,) or None
        Losses of a linear model that is at least as good in every group and better in total, checked in floating point;
        None where none was found.
    dominating_coef, dominating_intercept : array of shape (d,) and float, or None
        That model.
    linear : bool
        Whether the model itself is of the family: linear in the features.
    loss : str
        Loss by which models are compared.
    l2 : float
        Penalty weight of the family.
    """

    groups: tuple[str, ...]
    losses: Array
    slack: float
    multipliers: Array
    dominating_losses: Array | None
    dominating_coef: Array | None
    dominating_intercept: float | None
    linear: bool
    loss: str
    l2: float

    @property
    def dominated(self) -> bool:
        """Whether a linear model was found that dominates this one."""
        return self.dominating_losses is not None

    @property
    def improvement(self) -> float:
        """Total improvement that the dominating model brings, 0 where there is none."""
        return 0.0 if self.dominating_losses is None else float((self.losses - self.dominating_losses).sum())

    def efficient(self, tolerance: float = 1e-6) -> bool:
        """Return whether it is proved that no model of the family improves by more than ``tolerance`` in total.

        The tolerance is a share of the largest loss where that is above 1, as it may be in regression.
        """
        return self.slack <= tolerance * max(1.0, float(self.losses.max()))

    def frame(self) -> pd.DataFrame:
        """Return a row a group: loss, loss of the dominating model (NaN where there is none), multiplier."""
        other = np.full(len(self.groups), np.nan) if self.dominating_losses is None else self.dominating_losses
        columns = {"loss": self.losses, "dominating_loss": other, "multiplier": self.multipliers}
        return pd.DataFrame(columns, index=pd.Index(self.groups, name="group"))


def pareto_certificate(
    model: Any,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    loss: str | None = None,
    l2: float | None = None,
    penalize_intercept: bool | None = None,
    n_groups: int | None = None,
) -> ModelCertificate:
    """Return what is known about the Pareto efficiency of a fitted model among linear models.

    A linear model (one with ``coef_`` and ``intercept_``: of this package, of scikit-learn, or the predictor that
    fairlearn's GridSearch chose) is compared with all linear models by its own risks, penalty included: is it
    efficient, and if not, which model dominates it? Any other model is asked for its probabilities, scores or
    predictions, and its mean losses are compared with the *penalised* risks of linear models: one that dominates it has
    mean losses that are smaller still.

    A Pipeline's steps before the last make the features; the best estimator of a GridSearchCV is used.

    Parameters
    ----------
    model : estimator
        Fitted, for two classes or for regression.
    X : frame or array of shape (n, d)
        Rows, as the model takes them.
    y : array of shape (n,)
        Labels.
    sensitive_features : frame, series or array of shape (n,) or (n, m), optional
        Sensitive features; a model of this package puts them into the groups of its fit. Without them there is one
        group.
    loss : {"logistic", "squared_hinge", "squared"}, optional
        Loss to compare by. Default: the model's own if it is of this package; "squared_hinge" for a LinearSVC with that
        loss; otherwise "logistic" for classifiers and "squared" for regressors.
    l2 : float, optional
        Penalty weight of the family, ``l2 |w|^2 / 2`` beside a mean loss. Default: the model's own if it is of this
        package, otherwise 1e-2. (A LogisticRegression with C, fitted to n rows, minimises the risk with
        l2 = 1 / (C n), its intercept free.)
    penalize_intercept : bool, optional
        Whether the penalty holds the constant. Default: as the model if it is of this package, otherwise True.
    n_groups : int, optional
        Merge the smallest groups until so many are left; default: merge none. Not for models of this package, which
        have their groups.

    Returns
    -------
    ModelCertificate

    Raises
    ------
    ArgumentError
        For a model that gives nothing to compare, labels that are not the model's, or bad sensitive features.
    sklearn.exceptions.NotFittedError
        For a model that was not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairfront.estimators import pareto_certificate
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    >>> y = X[:, 0] + 0.5 * group > rng.normal(size=300)
    >>> model = LogisticRegression(C=1e-3).fit(X, y)  # far more regularised than the family
    >>> found = pareto_certificate(model, X, y, group)
    >>> found.dominated, found.efficient()
    (True, False)
    """
    final, rows = _unwrapped(model, X)
    if isinstance(final, BaseEstimator):
        check_is_fitted(final)
    matrix = check_array(rows, dtype=np.float64, accept_sparse=False)
    values = column_or_1d(y, warn=True)
    check_length(values, matrix)
    loss = loss or _own_loss(final)
    if loss not in LOSSES:
        raise unknown_name("loss", loss, LOSSES)
    labels = _labels(final, values, loss)
    names, ids = _groups(final, sensitive_features, len(labels), n_groups)
    penalty = float(getattr(final, "l2", 1e-2)) if l2 is None else l2
    free = not (getattr(final, "penalize_intercept", True) if penalize_intercept is None else penalize_intercept)
    coefficients = _coefficients(final, matrix.shape[1])
    # A linear model without a constant is compared with models without one.
    intercept = bool(getattr(final, "fit_intercept", True)) or (coefficients is not None and coefficients[0] != 0.0)
    with small_groups_by_name(names, ids):
        risks = GroupRisks(
            score_columns(matrix, intercept),
            labels,
            ids,
            loss=loss,
            l2=penalty,
            intercept=0 if intercept else None,
            penalize_intercept=not free,
        )
    if coefficients is None:
        certificate = certify_losses(risks, _mean_losses(final, rows, risks))
    else:
        certificate = certify(risks, coefficients if intercept else coefficients[1:])
    return _named(certificate, risks, names, intercept, coefficients is not None)


def stored_certificate(risks: GroupRisks, model: ScalarizedModel, names: tuple[str, ...]) -> ModelCertificate:
    """Return the certificate of a scalarised model at its own weights, at the cost of one fit.

    Parameters
    ----------
    risks : GroupRisks
        The risks it minimises.
    model : ScalarizedModel
        The model.
    names : tuple of str
        Names of the groups.

    Returns
    -------
    ModelCertificate
        Its slack is the dual value at multipliers proportional to the weights (0 weights raised to 1e-8 of the
        largest), infinite where that fit has no solution. Nothing of the rows is kept.
    """
    multipliers = np.maximum(model.weights, 1e-8 * model.weights.max())
    multipliers /= multipliers.min()
    try:
        nearby = Scalarization(risks, start=model.w).solve(multipliers / multipliers.sum())
        slack = max(float(multipliers @ (model.losses - nearby.losses)), 0.0)
    except ConvergenceError:
        slack = float("inf")
    return ModelCertificate(names, model.losses, slack, multipliers, None, None, None, True, risks.loss.name, risks.l2)


def _named(
    certificate: Certificate, risks: GroupRisks, names: tuple[str, ...], intercept: bool, linear: bool
) -> ModelCertificate:
    better = certificate.dominating
    return ModelCertificate(
        groups=names,
        losses=certificate.losses,
        slack=certificate.slack,
        multipliers=certificate.multipliers,
        dominating_losses=None if better is None else better.losses,
        dominating_coef=None if better is None else better.w[1:] if intercept else better.w,
        dominating_intercept=None if better is None else float(better.w[0]) if intercept else 0.0,
        linear=linear,
        loss=risks.loss.name,
        l2=risks.l2,
    )


def _unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator that predicts, and its features."""
    while True:
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            model, X = model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "predictors_") and hasattr(model, "best_idx_"):  # fairlearn's GridSearch
            model = model.predictors_[model.best_idx_]
        else:
            return model, X.toarray() if hasattr(X, "toarray") else X


def _own_loss(model: Any) -> str:
    own = getattr(model, "loss", None)
    if own in LOSSES and hasattr(model, "group_weights_"):
        return str(own)
    if isinstance(model, BaseEstimator):
        regressor = is_regressor(model)
    else:
        regressor = not any(hasattr(model, name) for name in ("classes_", "predict_proba", "decision_function"))
    if regressor:
        return "squared"
    if own == "squared_hinge" and hasattr(model, "coef_"):
        return "squared_hinge"
    return "logistic"


def _labels(model: Any, values: np.ndarray, loss: str) -> Array:
    if LOSSES[loss].task == "regression":
        return np.asarray(values, dtype=np.float64)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return encode_labels(values)[0]
    if len(classes) != 2:
        raise ArgumentError("model", f"has {len(classes)} classes", "certificates are for two classes")
    strange = np.setdiff1d(values, classes)
    if len(strange):
        raise ArgumentError("y", f"holds {strange[0]}, which is no class of the model")
    return (values == classes[1]).astype(np.float64)


def _groups(
    model: Any, sensitive_features: Any, n_rows: int, n_groups: int | None
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    fitted: SensitiveGroups | None = getattr(model, "_groups", None)
    if sensitive_features is None:
        return ("all",), np.zeros(n_rows, dtype=np.int64)
    if not isinstance(fitted, SensitiveGroups) or not fitted.columns:
        groups, ids = sensitive_groups(sensitive_features, n_rows, n_groups)
        return groups.names, ids
    ids = fitted.encode(sensitive_features, n_rows)
    present, ids = np.unique(ids, return_inverse=True)
    return tuple(fitted.names[a] for a in present), ids


def _coefficients(model: Any, n_features: int) -> Array | None:
    """Return the constant and the coefficients of a linear model, None for another."""
    raw = getattr(model, "coef_", None)
    if raw is None or not hasattr(model, "intercept_") or getattr(model, "kernel", "linear") != "linear":
        return None
    coefficients = np.ravel(raw.toarray() if hasattr(raw, "toarray") else raw).astype(np.float64)
    if len(coefficients) != n_features:
        raise ArgumentError("model", f"has {len(coefficients)} coefficients for {n_features} features")
    return np.concatenate([np.ravel(np.asarray(model.intercept_, dtype=np.float64))[:1], coefficients])


def _mean_losses(model: Any, X: Any, risks: GroupRisks) -> Array:
    """Return the mean loss in each group of a model that is not linear, in the order of the risks' rows."""
    scores = _scores(model, X, risks.loss.name)
    if scores.shape != (risks.n_rows,):
        raise ArgumentError("model", f"gives scores of shape {scores.shape} for {risks.n_rows} rows")
    losses = risks.loss.value(scores[risks.order], risks.y)
    return np.add.reduceat(losses, risks.offsets[:-1]) / risks.group_sizes


def _scores(model: Any, X: Any, loss: str) -> Array:
    if loss == "squared":
        return np.asarray(model.predict(X), dtype=np.float64)
    if loss == "logistic" and hasattr(model, "predict_proba"):
        return logit(np.clip(np.asarray(model.predict_proba(X))[:, 1], _EPSILON, 1.0 - _EPSILON))
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    remedy = "a model with coef_ and intercept_, or with predict_proba or decision_function"
    raise ArgumentError("model", f"a {type(model).__name__} gives nothing to compare by {loss} loss", remedy)
