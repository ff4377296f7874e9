"""One module a source: how its raw files are read, and how each of its tasks is cut from the result."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources import acs2012, adult, communities, compas, dutch, german
from fairfront.datasets.sources.base import Table

__all__ = ["RAW", "TASKS", "Table"]

#: File of the registry -> function from its raw files to the frame that is embedded.
RAW: Mapping[str, Callable[[Sequence[Path]], pd.DataFrame]] = {
    "acs2012": acs2012.read,
    "adult": adult.read,
    "german": german.read,
    "communities": communities.read,
    "compas": compas.read,
    "dutch": dutch.read,
}

#: Data set of the registry -> function from the embedded frame to the task's rows.
TASKS: Mapping[str, Callable[[pd.DataFrame], Table]] = {
    "acs2012-employment": acs2012.employment,
    "acs2012-income": acs2012.income,
    "acs2012-travel-time": acs2012.travel_time,
    "adult": adult.task,
    "german": german.task,
    "communities": communities.task,
    "compas": compas.task,
    "dutch": dutch.task,
}
