"""One module a source: how its raw file is read, and how each of its tasks is cut from it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources import acs2012
from fairfront.datasets.sources.base import Table

__all__ = ["RAW", "TASKS", "Table"]

#: File of the registry -> function from its raw files to the frame that is embedded.
RAW: Mapping[str, Callable[[Sequence[Path]], pd.DataFrame]] = {
    "acs2012": acs2012.read,
}

#: Data set of the registry -> function from the embedded frame to the task's rows.
TASKS: Mapping[str, Callable[[pd.DataFrame], Table]] = {
    "acs2012-employment": acs2012.employment,
    "acs2012-income": acs2012.income,
    "acs2012-travel-time": acs2012.travel_time,
}
