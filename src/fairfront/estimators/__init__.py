"""scikit-learn estimators: fair Pareto-efficient linear models, and certificates for models of any make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairfront.estimators.certificate import ModelCertificate, pareto_certificate
from fairfront.estimators.groups import SensitiveGroups, sensitive_groups
from fairfront.estimators.linear import SOLVERS, FairParetoClassifier, FairParetoRegressor

if TYPE_CHECKING:
    from fairfront.estimators.constrained import ConstrainedClassifier

__all__ = [
    "SOLVERS",
    "ConstrainedClassifier",
    "FairParetoClassifier",
    "FairParetoRegressor",
    "ModelCertificate",
    "SensitiveGroups",
    "pareto_certificate",
    "sensitive_groups",
]


def __getattr__(name: str) -> Any:
    """Import the network's estimator when it is first asked for: it needs torch, which the linear ones do without."""
    if name == "ConstrainedClassifier":
        from fairfront.estimators.constrained import ConstrainedClassifier

        return ConstrainedClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what there is, the estimator that is imported late among it."""
    return sorted(__all__)
