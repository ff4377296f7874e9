"""fairfront: fairness-informed Pareto optimisation and constrained training, as an executed and checked book."""

from importlib.metadata import version

__version__ = version("fairfront")
__all__ = ["__version__"]
