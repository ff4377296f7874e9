"""Linear classifiers and regressors whose group weights solve the bilevel problem of the first paper."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from fairfront import metrics
from fairfront.bilevel import (
    BilevelSolution,
    badr_gd,
    badr_sgd,
    exhaustive_search,
    frank_wolfe,
    multi_start,
    slsqp,
    trust_constr,
)
from fairfront.errors import ArgumentError, unknown_name
from fairfront.estimators.certificate import ModelCertificate, pareto_certificate, stored_certificate
from fairfront.estimators.groups import SensitiveGroups, groups_or_all, small_groups_by_name
from fairfront.estimators.tables import check_length, checked_features, score_columns
from fairfront.metrics import BoundMetric, Metric
from fairfront.pareto import (
    Scalarization,
    balanced_weights,
    erm_weights,
    minimax,
    simplex_weights,
    uniform_weights,
)
from fairfront.risks import LOSSES, Array, GroupRisks, encode_labels

__all__ = ["SOLVERS", "FairParetoClassifier", "FairParetoRegressor"]


@dataclass(frozen=True)
class _Solver:
    solve: Callable[..., BilevelSolution]
    tolerance: str | None
    iterations: bool = True
    random: bool = False


_SOLVERS = {
    "slsqp": _Solver(slsqp, "ftol"),
    "trust-constr": _Solver(trust_constr, "gtol"),
    "frank-wolfe": _Solver(frank_wolfe, "gap"),
    "multi-start": _Solver(multi_start, "ftol"),
    "exhaustive": _Solver(exhaustive_search, None, iterations=False),
    "badr-gd": _Solver(badr_gd, "tolerance"),
    "badr-sgd": _Solver(badr_sgd, "tolerance", random=True),
}
SOLVERS: tuple[str, ...] = tuple(_SOLVERS)
"""Names of the bilevel solvers, see `fairfront.bilevel`."""

_WEIGHTS: dict[str, Callable[[GroupRisks], Array]] = {
    "uniform": lambda risks: uniform_weights(risks.n_groups),
    "erm": lambda risks: erm_weights(risks.group_sizes),
    "balanced": lambda risks: balanced_weights(risks.group_sizes),
    "minimax": lambda risks: minimax(risks).model.weights,
}


class _FairPareto(BaseEstimator):
    """What both estimators do; the parameters are documented with them."""

    _task: ClassVar[metrics.base.Task]

    def __init__(
        self,
        metric: str | Metric | Callable[..., Any] = "demographic_parity",
        *,
        variant: metrics.base.Variant = "cited",
        l2: float = 1e-2,
        solver: str = "slsqp",
        group_weights: str | ArrayLike | None = None,
        n_groups: int | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.variant = variant
        self.l2 = l2
        self.solver = solver
        self.group_weights = group_weights
        self.n_groups = n_groups
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, X: Any, y: Array, sensitive_features: Any, loss: str) -> Self:
        """Fit to labels that are numbers already; X is checked and `n_features_in_` known."""
        self._check_parameters()
        rows = score_columns(X, self.fit_intercept)
        groups, ids = groups_or_all(sensitive_features, len(y), self.n_groups)
        with small_groups_by_name(groups.names, ids, stacklevel=4), _in_the_users_words():
            risks = GroupRisks(
                rows,
                y,
                ids,
                loss=loss,
                l2=self.l2,
                intercept=0 if self.fit_intercept else None,
                penalize_intercept=self.penalize_intercept,
            )
            self._fit_weights(risks, groups)
        self._groups = groups
        self.groups_ = groups.names
        self.group_sizes_ = risks.group_sizes
        self.merged_groups_ = groups.merged
        return self

    def _fit_weights(self, risks: GroupRisks, groups: SensitiveGroups) -> None:
        metric = self._metric()
        bound = None if risks.n_groups == 1 else _bound(metric, risks, groups)
        if bound is not None and self.group_weights is None:
            solution = self._solve(risks, bound)
            model, self.fairness_, self.n_iter_ = solution.model, solution.value, max(len(solution.history), 1)
            self.solver_message_ = solution.message
            if not solution.converged:
                warnings.warn(f"{self.solver}: {solution.status}; {solution.message}", ConvergenceWarning, stacklevel=4)
        else:
            model = Scalarization(risks).solve(self._given_weights(risks))
            # With one group there is nothing to compare.
            self.fairness_ = float("nan") if bound is None else bound.value(model.point.scores)
            self.n_iter_, self.solver_message_ = max(model.iterations, 1), "weights as given"
        self.group_weights_, self.group_losses_ = model.weights, model.losses
        first = 1 if self.fit_intercept else 0
        self._set_coefficients(model.w[first:].copy(), float(model.w[0]) if self.fit_intercept else 0.0)
        self._certificate = stored_certificate(risks, model, groups.names)

    def _metric(self) -> Metric:
        if isinstance(self.metric, Metric):
            if self.metric.task != self._task:
                raise ArgumentError("metric", f"is made for {self.metric.task}", f"one with task={self._task!r}")
            return self.metric
        if isinstance(self.metric, str):
            return metrics.get(self.metric, variant=self.variant, task=self._task)
        if callable(self.metric):
            return metrics.custom(self.metric, task=self._task)
        raise ArgumentError(
            "metric", f"is {self.metric!r}", "a name, a metric, or a function of scores, labels, groups"
        )

    def _solve(self, risks: GroupRisks, metric: BoundMetric) -> BilevelSolution:
        solver = _SOLVERS[self.solver]
        options: dict[str, Any] = {}
        if self.tol is not None and solver.tolerance is not None:
            options[solver.tolerance] = self.tol
        if self.max_iter is not None and solver.iterations:
            options["max_iterations"] = self.max_iter
        if solver.random:
            options["generator"] = _generator(self.random_state)
        return solver.solve(risks, metric, **options)

    def _given_weights(self, risks: GroupRisks) -> Array:
        if self.group_weights is None:
            return uniform_weights(risks.n_groups)
        if isinstance(self.group_weights, str):
            return _WEIGHTS[self.group_weights](risks)
        return simplex_weights(self.group_weights, risks.n_groups, "group_weights")

    def _check_parameters(self) -> None:
        if self.solver not in _SOLVERS:
            raise unknown_name("solver", self.solver, _SOLVERS)
        if isinstance(self.group_weights, str) and self.group_weights not in _WEIGHTS:
            raise unknown_name("group_weights", self.group_weights, _WEIGHTS)
        if self.max_iter is not None and not self.max_iter >= 1:
            raise ArgumentError("max_iter", f"must be at least 1, got {self.max_iter}")
        if self.tol is not None and not (np.isfinite(self.tol) and self.tol > 0):
            raise ArgumentError("tol", f"must be a positive number, got {self.tol}")

    def _set_coefficients(self, coefficients: Array, intercept: float) -> None:
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = checked_features(self, X, reset=False)
        return rows @ np.ravel(self.coef_) + float(np.ravel(self.intercept_)[0])

    def pareto_certificate(self, X: Any = None, y: Any = None, sensitive_features: Any = None) -> ModelCertificate:
        """Return what is known about the model's Pareto efficiency among linear models of its penalty and loss.

        Parameters
        ----------
        X : frame or array of shape (n, d), optional
            Rows. Without rows the certificate is that of the training rows, which the fit made.
        y : array of shape (n,), optional
            Their labels.
        sensitive_features : frame, series or array, optional
            Their sensitive features; they fall into the groups of the fit.

        Returns
        -------
        ModelCertificate
            ``efficient()`` says whether the model is proved efficient, ``dominating_losses`` whether it is dominated.

        Raises
        ------
        ArgumentError
            When X is given and y is not, or the sensitive features hold a group that the fit had not.
        """
        check_is_fitted(self)
        if X is None:
            return self._certificate
        if y is None:
            raise ArgumentError("y", "is missing", "labels for the rows of X")
        return pareto_certificate(self, X, y, sensitive_features)


class FairParetoClassifier(ClassifierMixin, _FairPareto):
    """Linear classifier that is Pareto-efficient over sensitive groups and as fair as such a model can be.

    Among the minimisers of weighted sums of the groups' risks, each of which is Pareto-efficient (Proposition 1 of the
    first paper), it is the one with the least unfairness (Equation 8) that the solver finds. Without sensitive features
    it is a plain regularised fit.

    Parameters
    ----------
    metric : str, Metric or callable, default "demographic_parity"
        Unfairness to minimise: one of `fairfront.metrics.names`, a metric object, or a function of scores, labels and
        groups that JAX can trace (`fairfront.metrics.custom`).
    variant : {"cited", "paper"}, default "cited"
        Definition of a metric that is given by name.
    loss : {"logistic", "squared_hinge"}, default "logistic"
        Logistic regression, or the paper's smoothed SVM (which has no probabilities).
    l2 : float, default 1e-2
        Weight of ``|w|^2 / 2`` in every group's risk, which is a mean over rows: for one group this is
        ``C = 1 / (l2 * n)`` of scikit-learn's LogisticRegression.
    solver : str, default "slsqp"
        One of :data:`SOLVERS`. The objective has several local minima: "multi-start" looks for several, "exhaustive"
        finds all of two groups.
    group_weights : array of shape (S,) or {"uniform", "erm", "balanced", "minimax"}, optional
        Weights in the simplex to use as they are, or a strategy that the paper compares with; default: solve for them.
    n_groups : int, optional
        Merge the smallest groups until so many are left, from 2 to 36; default: merge none.
    fit_intercept : bool, default True
        Whether scores have a constant.
    penalize_intercept : bool, default True
        Whether the constant is in the penalty, as the theorems need.
    tol : float, optional
        Stopping tolerance of the solver, in its own terms; default: its default.
    max_iter : int, optional
        Most iterations of the solver; default: its default.
    random_state : int, Generator or RandomState, optional
        Of "badr-sgd", the only solver that draws.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second is the positive one.
    coef_ : array of shape (1, d)
        Coefficients.
    intercept_ : array of shape (1,)
        Constant.
    group_weights_ : array of shape (S,)
        lambda.
    fairness_ : float
        The metric on the training rows; NaN with one group.
    group_losses_ : array of shape (S,)
        Group risks F_a, penalty included.
    groups_ : tuple of str
        Names of the groups, ("all",) without sensitive features.
    group_sizes_ : array of shape (S,)
        Training rows of each.
    merged_groups_ : dict
        Name of a merged group: names of the groups in it.
    n_iter_ : int
        Points at which the solver computed the metric.
    solver_message_ : str
        What the solver says.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    See Also
    --------
    fairfront.estimators.pareto_certificate : The certificate, for models of any make.

    Notes
    -----
    Groups of one row and of one class are used where the metric is defined on them; groups of fewer than 5 rows are
    named in a `fairfront.risks.SmallGroupWarning`. With metadata routing enabled, ``set_fit_request(
    sensitive_features=True)`` lets a Pipeline or a GridSearchCV hand the sensitive features on.

    Examples
    --------
    >>> import numpy as np
    >>> from fairfront.estimators import FairParetoClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = np.where(rng.random(400) < 0.3, "b", "a")
    >>> X = rng.normal(size=(400, 2)) + (group == "b")[:, None]
    >>> y = X[:, 0] + X[:, 1] * (group == "a") > rng.normal(size=400)
    >>> model = FairParetoClassifier().fit(X, y, sensitive_features=group)
    >>> model.groups_, model.group_weights_.shape, model.pareto_certificate().efficient()
    (('a', 'b'), (2,), True)
    """

    _task = "classification"

    def __init__(
        self,
        metric: str | Metric | Callable[..., Any] = "demographic_parity",
        *,
        variant: metrics.base.Variant = "cited",
        loss: str = "logistic",
        l2: float = 1e-2,
        solver: str = "slsqp",
        group_weights: str | ArrayLike | None = None,
        n_groups: int | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            metric,
            variant=variant,
            l2=l2,
            solver=solver,
            group_weights=group_weights,
            n_groups=n_groups,
            fit_intercept=fit_intercept,
            penalize_intercept=penalize_intercept,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.loss = loss

    def __sklearn_tags__(self) -> Any:
        """Return the tags: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : frame or array of shape (n, d)
            Features, all numbers: pandas, polars, Arrow or NumPy.
        y : array of shape (n,)
            Labels of two classes.
        sensitive_features : frame, series or array of shape (n,) or (n, m), optional
            One or several columns of any type; of several, each combination that occurs is a group.

        Returns
        -------
        FairParetoClassifier
            Itself.

        Raises
        ------
        ArgumentError
            Naming the argument: for a parameter out of range, columns that are not numbers, other than two classes,
            missing sensitive features, lengths that differ, a group on which the metric is not defined.
        ValueError
            What scikit-learn says of NaN, infinite values or an empty X.

        Warns
        -----
        SmallGroupWarning
            For groups of fewer than 5 rows, with their sizes.
        """
        rows = checked_features(self, X, reset=True)
        labels, self.classes_ = _encoded(y, rows)
        allowed = [name for name, loss in LOSSES.items() if loss.task == "classification"]
        if self.loss not in allowed:
            raise unknown_name("loss", self.loss, allowed)
        return self._fit(rows, labels, sensitive_features, self.loss)

    def decision_function(self, X: Any) -> Array:
        """Return the scores, shape (n,): positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels, shape (n,)."""
        positive = (self._scores(X) > 0).astype(int)
        return self.classes_[positive]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes, shape (n, 2); with the logistic loss only."""
        positive = expit(self._scores(X))
        return np.column_stack([1.0 - positive, positive])

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities, shape (n, 2); with the logistic loss only."""
        scores = self._scores(X)
        return -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])

    def _set_coefficients(self, coefficients: Array, intercept: float) -> None:
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])


class FairParetoRegressor(RegressorMixin, _FairPareto):
    """Ridge regression that is Pareto-efficient over sensitive groups and as fair as such a model can be.

    As `FairParetoClassifier`, with the squared loss ``(y - z)^2``.

    Parameters
    ----------
    metric : str, Metric or callable, default "demographic_parity"
        Unfairness to minimise, one that is defined for regression.
    variant : {"cited", "paper"}, default "cited"
        Definition of a metric that is given by name.
    l2 : float, default 1e-2
        Weight of ``|w|^2 / 2`` in every group's risk, which is a mean over rows of ``(y - z)^2``: for one group this is
        ``alpha = l2 * n / 2`` of scikit-learn's Ridge.
    solver, group_weights, n_groups, fit_intercept, penalize_intercept, tol, max_iter, random_state
        As of `FairParetoClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients.
    intercept_ : float
        Constant.
    group_weights_, fairness_, group_losses_, groups_, group_sizes_, merged_groups_, n_iter_, solver_message_
        As of `FairParetoClassifier`.
    """

    _task = "regression"

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Fit the model; parameters, errors and warnings as `FairParetoClassifier.fit`, with numbers as labels."""
        rows = checked_features(self, X, reset=True)
        return self._fit(rows, _targets(y, rows), sensitive_features, "squared")

    def predict(self, X: Any) -> Array:
        """Return the predictions, shape (n,)."""
        return self._scores(X)

    def _set_coefficients(self, coefficients: Array, intercept: float) -> None:
        self.coef_, self.intercept_ = coefficients, intercept


def _encoded(y: Any, rows: Array) -> tuple[Array, np.ndarray]:
    """Return the labels as 0 and 1, and the two classes."""
    if y is None:
        raise ArgumentError("y", "requires y to be passed, but the target y is None", "labels of two classes")
    values = column_or_1d(y, warn=True)
    check_length(values, rows)
    if values.dtype.kind == "O" and pd.isna(values).any():
        raise ArgumentError("y", "holds missing values", "drop those rows first")
    kind = type_of_target(values, input_name="y", raise_unknown=True)
    if kind == "multiclass":
        count = len(np.unique(values))
        raise ArgumentError(
            "y", f"Only binary classification is supported. The labels are of {count} classes (multiclass)"
        )
    if kind != "binary":
        raise ArgumentError("y", f"Unknown label type: {kind}", "labels of two classes")
    if len(found := np.unique(values)) == 1:
        raise ArgumentError("y", f"must hold two classes, got 1 class: {found[0]}")
    labels, classes = encode_labels(values)
    return labels, np.array(classes, dtype=values.dtype)


def _targets(y: Any, rows: Array) -> Array:
    if y is None:
        raise ArgumentError("y", "requires y to be passed, but the target y is None", "a number for each row")
    values = column_or_1d(y, warn=True)
    check_length(values, rows)
    try:
        targets = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("y", "holds something other than numbers", "a number for each row") from None
    if not np.isfinite(targets).all():
        raise ArgumentError("y", "Input contains NaN or infinity", "drop those rows first")
    return targets


def _bound(metric: Metric, risks: GroupRisks, groups: SensitiveGroups) -> BoundMetric:
    try:
        return metric.bind(risks.y, risks.groups)
    except ArgumentError as error:
        if error.argument != "y" or risks.classes is None:
            raise
        shares = np.add.reduceat(risks.y, risks.offsets[:-1]) / risks.group_sizes
        single = [groups.names[a] for a in np.flatnonzero((shares == 0.0) | (shares == 1.0))]
        listed = ", ".join(map(repr, single[:5])) + (", ..." if len(single) > 5 else "")
        problem = f"{metric.name} needs rows of both classes: the labels are all the same in {listed}"
        raise ArgumentError("sensitive_features", problem, "merge groups (n_groups=...), or another metric") from error


@contextmanager
def _in_the_users_words() -> Iterator[None]:
    """Name the argument that the user gave, where the engine names one of its own."""
    own = {"function": "metric", "groups": "sensitive_features", "risks": "sensitive_features"}
    try:
        yield
    except ArgumentError as error:
        if error.argument not in own:
            raise
        said = str(error).removeprefix(f"{error.argument}: ")
        raise ArgumentError(own[error.argument], said) from error


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
