"""A neural classifier trained under constraints between sensitive groups, for scikit-learn."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fairfront.constrained.constraints import STATISTICS, PairwiseGroups, UserConstraints
from fairfront.constrained.sampling import Objective
from fairfront.constrained.training import EarlyStop, MethodParameters, Rows, TrainingResult, train_mlp
from fairfront.constrained.updates import PenalizedParameters, SPBMParameters, SSLALMParameters
from fairfront.errors import ArgumentError, unknown_name
from fairfront.estimators.groups import groups_or_all
from fairfront.estimators.tables import check_length, checked_features
from fairfront.risks import Array

__all__ = ["ConstrainedClassifier"]

_METHODS = ("spbm", "ssl-alm", "adam")
# Rows of each group in a batch at least, and rows in a batch at least, where no size is given.
_GROUP_ROWS, _BATCH_ROWS = 4, 64
_NEEDED_LABEL = {"true_positive_rate": 1, "false_positive_rate": 0}


class ConstrainedClassifier(ClassifierMixin, BaseEstimator):
    """A ReLU network whose sensitive groups are treated alike, within epsilon, on the training rows.

    It minimises the mean cross-entropy subject to ``s_r - s_q <= epsilon`` for every two groups r and q, s being the
    groups' positive rate, true or false positive rate, or mean loss (Equation 21 of the second paper), by the
    stochastic penalty-barrier method or a rival.  The rates are means of probabilities, not of decisions.

    Parameters
    ----------
    constraint : {"positive_rate", "true_positive_rate", "false_positive_rate", "loss"}, default "positive_rate"
        The statistic.  Rates want two classes, and the second one is the positive one; "loss" takes any number.
    epsilon : float, default 0.1
        The bound, >= 0.
    method : {"spbm", "ssl-alm", "adam"}, default "spbm"
        The stochastic penalty-barrier method, the smoothed augmented Lagrangian, or plain Adam without constraints.
    hidden : tuple of int, default (64, 16)
        Widths of the hidden layers; () gives a linear model.
    learning_rate : float, default 0.01
        Of Adam, at the top of its schedule (a warm-up, then a cosine to 0).
    epochs : int, default 40
        Passes; in each every training row is met at least once.
    batch_size : int, optional
        Rows in a batch, at least the number of groups; by default 4 of each group and 64 or more together.
    objective : {"population", "balanced"}, default "population"
        Whether the mean loss is that over rows, or over groups of equal weight as in the paper's experiments.
    gamma, rule, kappa, rho, phi, mu, lambda_init : optional
        Of "spbm", see `fairfront.constrained.SPBMParameters`; ``rho`` and ``mu`` also of "ssl-alm".  By default
        gamma 0.9, the adaptive rule with kappa 0.5, phi_QL, mu 1; rho 1, or 0 with "ssl-alm".  The multipliers start
        at 1: from the floor of 1e-4, as in the paper's experiments, they need thousands of steps.
    eta : float, default 0.01
        Dual step size of "ssl-alm".
    standardize : bool, default True
        Whether the features are brought to mean 0 and variance 1 first.
    n_groups : int, optional
        Merge the smallest groups until so many are left.
    tol : float, default 0.01
        A largest violation above it gives a `ConvergenceWarning`.
    patience : int, optional
        Stop after so many epochs without a better one; by default never.
    random_state : int, RandomState, Generator or None
        Of the initial network and the batches.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes.
    model_ : torch.nn.Module
        The network, in evaluation mode, on standardised features.
    groups_ : tuple of str
        Names of the groups, ("all",) without sensitive features.
    group_sizes_ : array of shape (R,)
        Training rows of each.
    group_statistics_ : array of shape (R,)
        s_r over the training rows.
    max_constraint_ : float
        max of s_r - s_q - epsilon over the training rows; <= 0 is feasible.  NaN with one group.
    multipliers_ : array of shape (R, R)
        Of the constraint that s_r exceeds s_q; zeros where the method has none.
    history_ : DataFrame
        A row an epoch, see `fairfront.constrained.training.TrainingResult`.
    report_ : KKTReport
        The first-order conditions at the end.
    n_iter_ : int
        Steps taken.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Without sensitive features there is one group and nothing to constrain: the fit is plain Adam's.  With metadata
    routing enabled, ``set_fit_request(sensitive_features=True)`` lets a Pipeline or a GridSearchCV hand the sensitive
    features on.

    Examples
    --------
    >>> import numpy as np
    >>> from fairfront.estimators.constrained import ConstrainedClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = np.where(rng.random(600) < 0.4, "b", "a")
    >>> X = rng.normal(size=(600, 3)) + (group == "b")[:, None]
    >>> y = X.sum(1) > rng.normal(size=600) + 1
    >>> model = ConstrainedClassifier(epsilon=0.05, random_state=0).fit(X, y, sensitive_features=group)
    >>> model.groups_, bool(model.max_constraint_ < 0.02)
    (('a', 'b'), True)
    """

    def __init__(
        self,
        constraint: str = "positive_rate",
        *,
        epsilon: float = 0.1,
        method: Literal["spbm", "ssl-alm", "adam"] = "spbm",
        hidden: tuple[int, ...] = (64, 16),
        learning_rate: float = 0.01,
        epochs: int = 40,
        batch_size: int | None = None,
        objective: Objective = "population",
        gamma: float = 0.9,
        rule: Literal["adapt", "alm", "constant"] = "adapt",
        kappa: float = 0.5,
        rho: float | None = None,
        phi: str = "ql",
        mu: float = 1.0,
        lambda_init: float = 1.0,
        eta: float = 0.01,
        standardize: bool = True,
        n_groups: int | None = None,
        tol: float = 0.01,
        patience: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.constraint = constraint
        self.epsilon = epsilon
        self.method = method
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.objective = objective
        self.gamma = gamma
        self.rule = rule
        self.kappa = kappa
        self.rho = rho
        self.phi = phi
        self.mu = mu
        self.lambda_init = lambda_init
        self.eta = eta
        self.standardize = standardize
        self.n_groups = n_groups
        self.tol = tol
        self.patience = patience
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Return the tags: two classes only, unless the losses are compared; random."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.constraint == "loss"
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : frame or array of shape (n, d)
            Features, all numbers: pandas, polars, Arrow or NumPy.
        y : array of shape (n,)
            Labels.
        sensitive_features : frame, series or array of shape (n,) or (n, m), optional
            One or several columns of any type; of several, each combination that occurs is a group.

        Returns
        -------
        ConstrainedClassifier
            Itself.

        Raises
        ------
        ArgumentError
            Naming the argument: for a parameter out of range, columns that are not numbers, fewer than two classes,
            missing sensitive features, lengths that differ, a batch smaller than the number of groups, a group without
            a row that its rate counts.
        ValueError
            What scikit-learn says of NaN, infinite values or an empty X.

        Warns
        -----
        ConvergenceWarning
            When a constraint is violated by more than ``tol`` at the end.
        """
        if self.constraint not in STATISTICS:
            raise unknown_name("constraint", self.constraint, STATISTICS)
        if not isinstance(self.tol, (int, float)) or not self.tol >= 0:
            raise ArgumentError("tol", f"is {self.tol!r}", "a number >= 0")
        parameters = self._parameters()
        rows = checked_features(self, X, reset=True)
        labels = self._encoded(y, rows)
        groups, ids = groups_or_all(sensitive_features, len(rows), self.n_groups)
        self._groups, self.groups_, self.group_sizes_ = groups, groups.names, np.bincount(ids)
        self._check_counted(labels, ids)
        self._center, self._spread = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.standardize:
            spread = rows.std(0)
            # A constant column is left at 0: its spread may be rounding noise.
            self._spread = np.where(spread > 1e-12 * np.maximum(np.abs(rows).max(0), 1e-300), spread, 1.0)
            self._center = rows.mean(0)
        result = self._trained(Rows.of(self._scaled(rows), labels, ids), parameters)
        self.model_, self.history_, self.report_ = result.model, result.history, result.report
        self.n_iter_ = int(result.history["step"].iloc[-1])
        self.group_statistics_ = self._statistics(rows, labels, ids)
        single = len(self.groups_) == 1
        multipliers = result.optimizer.multipliers.double().numpy(force=True)
        self.multipliers_ = np.zeros((1, 1)) if single else multipliers
        self.max_constraint_ = math.nan if single else float(np.ptp(self.group_statistics_)) - self.epsilon
        if self.max_constraint_ > self.tol and self.method != "adam":
            problem = (
                f"constraint: {self.constraint} differs by {self.max_constraint_ + self.epsilon:.3g} between groups"
            )
            remedy = f"epsilon = {self.epsilon:g}: more epochs, or a smaller gamma, may help"
            warnings.warn(f"{problem} ({remedy})", ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the logits: of the second class, shape (n,), or of every class, shape (n, K)."""
        check_is_fitted(self)
        return self._logits(checked_features(self, X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels, shape (n,)."""
        scores = self.decision_function(X)
        chosen = scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, shape (n, K)."""
        scores = self.decision_function(X)
        return softmax(scores, axis=1) if scores.ndim == 2 else np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities, shape (n, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return log_softmax(scores, axis=1)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    def group_statistics(self, X: Any, y: Any = None, *, sensitive_features: Any) -> pd.Series:
        """Return the constrained statistic of each group on some rows.

        Parameters
        ----------
        X : frame or array of shape (n, d)
            Rows.
        y : array of shape (n,), optional
            Their labels; the positive rate needs none.
        sensitive_features : frame, series or array
            Their sensitive features; they fall into the groups of the fit.

        Returns
        -------
        Series
            A number a group, by its name; NaN for a group without a row that counts.
        """
        check_is_fitted(self)
        rows = checked_features(self, X, reset=False)
        labels = None
        if y is not None:
            values = column_or_1d(y, warn=True)
            check_length(values, rows)
            if not np.isin(values, self.classes_).all():
                raise ArgumentError("y", "holds a class that the fit did not meet")
            labels = np.searchsorted(self.classes_, values)
        ids = self._groups.encode(sensitive_features, len(rows))
        return pd.Series(self._statistics(rows, labels, ids), index=list(self.groups_), name=self.constraint)

    # ------------------------------------------------------------------------------------------------- inside

    def _parameters(self) -> MethodParameters:
        if self.method == "spbm":
            return SPBMParameters(
                phi=self.phi,
                gamma=self.gamma,
                rule=self.rule,
                kappa=self.kappa,
                rho=1.0 if self.rho is None else self.rho,
                mu=self.mu,
                lambda_init=self.lambda_init,
            )
        if self.method == "ssl-alm":
            return SSLALMParameters(eta=self.eta, rho=0.0 if self.rho is None else self.rho, mu=self.mu)
        if self.method == "adam":
            return PenalizedParameters(beta=0.0)
        raise unknown_name("method", self.method, _METHODS)

    def _encoded(self, y: Any, rows: Array) -> np.ndarray:
        """Return the labels as 0..K-1, and learn the classes."""
        if y is None:
            raise ArgumentError("y", "requires y to be passed, but the target y is None", "a label for each row")
        values = column_or_1d(y, warn=True)
        check_length(values, rows)
        if values.dtype.kind == "O" and pd.isna(values).any():
            raise ArgumentError("y", "holds missing values", "drop those rows first")
        check_classification_targets(values)
        self.classes_, labels = np.unique(values, return_inverse=True)
        if len(self.classes_) == 1:
            raise ArgumentError("y", f"must hold two classes, got 1 class: {self.classes_[0]}")
        if len(self.classes_) > 2 and self.constraint != "loss":
            problem = f"Only binary classification is supported. The labels are of {len(self.classes_)} classes"
            raise ArgumentError(
                "y", problem, f'{self.constraint} is a rate of two classes; constraint="loss" takes more'
            )
        return labels

    def _check_counted(self, labels: np.ndarray, ids: np.ndarray) -> None:
        needed = _NEEDED_LABEL.get(self.constraint)
        if needed is None or len(self.groups_) == 1:
            return
        counts = np.bincount(ids[labels == needed], minlength=len(self.groups_))
        absent = [self.groups_[group] for group in np.flatnonzero(counts == 0)]
        if absent:
            listed = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
            problem = f"{self.constraint} needs rows labelled {self.classes_[needed]!r}: there is none in {listed}"
            raise ArgumentError("constraint", problem, "n_groups=... merges small groups")

    def _trained(self, rows: Rows, parameters: MethodParameters) -> TrainingResult:
        n_groups = len(self.groups_)
        batch = n_groups * max(_GROUP_ROWS, -(-_BATCH_ROWS // n_groups)) if self.batch_size is None else self.batch_size
        if n_groups == 1:
            # The loop wants a constraint: one that always holds, and that no method looks at.
            family: Any = UserConstraints(lambda logits, *_: logits.new_full((1,), -1.0), ["none"])
            parameters = PenalizedParameters(beta=0.0)
        else:
            family = PairwiseGroups(n_groups, self.constraint, epsilon=self.epsilon)
        return train_mlp(
            rows,
            family,
            parameters=parameters,
            lr=self.learning_rate,
            hidden=self.hidden,
            batch_size=batch,
            epochs=self.epochs,
            seed=_seed(self.random_state),
            n_outputs=len(self.classes_) if len(self.classes_) > 2 else 1,
            objective=self.objective,
            stop=None if self.patience is None else EarlyStop(self.patience, tolerance=self.tol),
            tolerance=self.tol,
        )

    def _scaled(self, rows: Array) -> np.ndarray:
        return ((rows - self._center) / self._spread).astype(np.float32)

    @torch.no_grad()
    def _logits(self, rows: Array) -> Array:
        logits = self.model_(torch.from_numpy(self._scaled(rows))).double().numpy()
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def _statistics(self, rows: Array, labels: np.ndarray | None, ids: np.ndarray) -> Array:
        family = PairwiseGroups(max(2, len(self.groups_)), self.constraint)
        given = None if labels is None else torch.from_numpy(labels)
        means, present = family.statistics(torch.from_numpy(self._logits(rows)), given, torch.from_numpy(ids))
        known = means if present is None else torch.where(present, means, math.nan)
        return known.numpy()[: len(self.groups_)]


def _seed(random_state: Any) -> int:
    """Return a seed from what scikit-learn and NumPy call a random state; None draws a fresh one."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ArgumentError("random_state", f"is {random_state!r}", "None, a number >= 0, a RandomState or a Generator")
