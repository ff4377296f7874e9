"""The look of every figure: restyling one never runs a computation again."""

from fairfront.plotting.style import FRONT, PATH, STRATEGIES, UNFAIRNESS_MAP, Mark, mark_strategies, style

__all__ = ["FRONT", "PATH", "STRATEGIES", "UNFAIRNESS_MAP", "Mark", "mark_strategies", "style"]
