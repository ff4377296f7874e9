"""scikit-learn estimators: fair Pareto-efficient linear models, and certificates for models of any make."""

from fairfront.estimators.certificate import ModelCertificate, pareto_certificate
from fairfront.estimators.groups import SensitiveGroups, sensitive_groups
from fairfront.estimators.linear import SOLVERS, FairParetoClassifier, FairParetoRegressor

__all__ = [
    "SOLVERS",
    "FairParetoClassifier",
    "FairParetoRegressor",
    "ModelCertificate",
    "SensitiveGroups",
    "pareto_certificate",
    "sensitive_groups",
]
