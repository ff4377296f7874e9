"""The metrics under test, rows to try them on, and their formulas written out pair by pair and group by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairfront import metrics


@dataclass(frozen=True)
class Case:
    """One metric with its options."""

    name: str
    variant: str = "cited"
    task: str = "classification"
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.name, self.variant, self.task, *(str(value) for _, value in self.options)])

    def metric(self) -> metrics.Metric:
        return metrics.get(self.name, variant=self.variant, task=self.task, **dict(self.options))


def _cases() -> list[Case]:
    cases = []
    for variant in ("cited", "paper"):
        for name in metrics.names():
            for task in ("classification", "regression"):
                if name in ("equal_opportunity", "equalized_odds") and task == "regression":
                    continue
                if (name, variant, task) == ("disparate_mistreatment", "cited", "regression"):
                    continue
                cases.append(Case(name, variant, task))
    for form in ("false_positive", "false_negative"):
        cases.append(Case("disparate_mistreatment", options=(("form", form),)))
    for loss in ("squared_hinge", "squared_error"):
        cases.append(Case("group_variance", options=(("loss", loss),)))
    for name in ("demographic_parity", "equal_opportunity", "equalized_odds"):
        cases.append(Case(name, options=(("rho", 3.0),)))
        cases.append(Case(name, "paper", options=(("rho", 3.0),)))
    return cases


CASES = _cases()


def rows(seed: int, n_groups: int, task: str, n: int = 60, sort: bool = False):
    """Return scores, labels and groups of unequal sizes; in classification every group has both classes."""
    rng = np.random.default_rng(seed)
    groups = np.concatenate(
        [np.repeat(np.arange(n_groups), 2), rng.integers(0, n_groups, n - 2 * n_groups) ** 2 % n_groups]
    )
    y = np.concatenate([np.tile([0.0, 1.0], n_groups), (rng.random(n - 2 * n_groups) < 0.4).astype(float)])
    if task == "regression":
        y = rng.normal(size=n) * 2
    order = np.argsort(groups, kind="stable") if sort else rng.permutation(n)
    return rng.normal(0.3, 1.5, n), y[order], groups[order]


def central_difference(function, z, step=1e-6):
    """Return the derivative of a function of the scores by central differences, score by score."""
    out = np.empty(len(z))
    for i in range(len(z)):
        e = np.zeros(len(z))
        e[i] = step
        out[i] = (function(z + e) - function(z - e)) / (2 * step)
    return out


# --- the formulas, naively ---


def _lse(values, rho):
    return np.log(sum(np.exp(rho * value) for value in values)) / rho


def _sigma(z):
    return 1 / (1 + np.exp(-z))


def demographic_parity(z, y, groups, n_groups, task, rho=1.0):
    prediction = _sigma(rho * z) if task == "classification" else z
    m = [prediction[groups == a].mean() for a in range(n_groups)]
    return _lse([np.sqrt((m_a - np.mean(m)) ** 2 + 1e-6) for m_a in m], rho)


def _gap(z, y, groups, n_groups, rho, label):
    t = [_sigma(rho * z[(groups == a) & (y == label)]).mean() for a in range(n_groups)]
    return _lse(t, rho) + _lse([-value for value in t], rho)


def equal_opportunity(z, y, groups, n_groups, task, rho=1.0):
    return _gap(z, y, groups, n_groups, rho, 1)


def equalized_odds(z, y, groups, n_groups, task, rho=1.0):
    return (_gap(z, y, groups, n_groups, rho, 1) + _gap(z, y, groups, n_groups, rho, 0)) / 2


def disparate_mistreatment(z, y, groups, n_groups, task):
    return np.mean((groups - groups.mean()) * (z - z.mean())) ** 2


def hsic(z, y, groups, n_groups, task):
    return np.cov(groups, z)[0, 1] ** 2


def group_variance(z, y, groups, n_groups, task, loss=None):
    loss = loss or ("logistic" if task == "classification" else "squared_error")
    pointwise = {
        "logistic": lambda: np.log(1 + np.exp(z)) - y * z,
        "squared_hinge": lambda: np.maximum(0, 1 - (2 * y - 1) * z) ** 2,
        "squared_error": lambda: (y - z) ** 2,
    }[loss]()
    return np.var([pointwise[groups == a].mean() for a in range(n_groups)])


def individual_fairness(z, y, groups, n_groups, task):
    sizes = np.bincount(groups, minlength=n_groups)
    numerator = 0.0
    for a in range(n_groups):
        for b in range(a + 1, n_groups):
            for i in np.flatnonzero(groups == a):
                for j in np.flatnonzero(groups == b):
                    numerator += np.exp(-abs(y[i] - y[j])) * (z[i] - z[j]) ** 2
    pairs = sum(sizes[a] * sizes[b] for a in range(n_groups) for b in range(n_groups) if a != b)
    return numerator / pairs if pairs else 0.0


PAPER = {
    function.__name__: function
    for function in (
        demographic_parity,
        equal_opportunity,
        equalized_odds,
        disparate_mistreatment,
        hsic,
        group_variance,
        individual_fairness,
    )
}


def cited(case, z, y, groups, n_groups):
    """Return the value of a cited variant by its definition."""
    options = dict(case.options)
    if case.name == "hsic":
        # tr(K H L H)/(n - 1)², K the linear kernel on scores, L the indicator kernel on groups.
        n = len(z)
        centring = np.eye(n) - 1 / n
        same = (groups[:, None] == groups).astype(float)
        return np.trace(np.outer(z, z) @ centring @ same @ centring) / (n - 1) ** 2
    if case.name == "disparate_mistreatment":
        form, width, rho = options.get("form", "misclassification"), 0.1, 100.0
        wrongness = []
        for score, label in zip(z, y):
            margin = (2 * label - 1) * score
            counts = form == "misclassification" or label == (form == "false_negative")
            if not counts or margin >= 0:
                wrongness.append(0.0)
            else:
                wrongness.append(-(margin**2) / (2 * width) if margin >= -width else margin + width / 2)
        covariances = [np.cov(groups == a, wrongness, bias=True)[0, 1] for a in range(n_groups)]
        return _lse(np.sqrt(np.square(covariances) + 1e-6), rho) - np.log(n_groups) / rho - 1e-3
    published = PAPER[case.name](z, y, groups, n_groups, case.task, **options)
    rho = options.get("rho", 1.0)
    shift = {
        "demographic_parity": np.log(n_groups) / rho + 1e-3,
        "equal_opportunity": 2 * np.log(n_groups) / rho,
        "equalized_odds": 2 * np.log(n_groups) / rho,
    }
    return published - shift.get(case.name, 0.0)
