"""One module a source: how its raw files are read, and how each of its tasks is cut from the result."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources import (
    acs2012,
    adult,
    arrhythmia,
    communities,
    compas,
    dutch,
    german,
    government,
    lsac,
    parkinsons,
    pums2011,
    student,
)
from fairfront.datasets.sources.base import Table

__all__ = ["RAW", "TASKS", "Table"]

#: Table of the registry -> function from its raw files to the frame that is embedded, or kept.
RAW: Mapping[str, Callable[[Sequence[Path]], pd.DataFrame]] = {
    "acs2012": acs2012.read,
    "adult": adult.read,
    "german": german.read,
    "communities": communities.read,
    "compas": compas.read,
    "dutch": dutch.read,
    "lsac": lsac.read,
    "parkinsons": parkinsons.read,
    "arrhythmia": arrhythmia.read,
    "student": student.read,
    "government": government.read,
    "pums2011": pums2011.read,
}

#: Data set of the registry -> function from that frame to the task's rows. The tasks on a survey are in `acs`.
TASKS: Mapping[str, Callable[..., Table]] = {
    "acs2012-employment": acs2012.employment,
    "acs2012-income": acs2012.income,
    "acs2012-travel-time": acs2012.travel_time,
    "adult": adult.task,
    "german": german.task,
    "communities": communities.task,
    "compas": compas.task,
    "dutch": dutch.task,
    "lsac": lsac.task,
    "lsac-law-school": lsac.task_law_school,
    "parkinsons": parkinsons.task,
    "arrhythmia": arrhythmia.task,
    "student": student.task,
    "acs2018-government": government.task,
    "pums2011-employment": pums2011.employment,
    "pums2011-income": pums2011.income,
    "pums2011-travel-time": pums2011.travel_time,
}
