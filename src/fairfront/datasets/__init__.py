"""Real data in, rows ready for a model out: ``load("acs2012-employment", sensitive=["gender"])``."""

from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.loading import load
from fairfront.datasets.own import LeakWarning, from_frame
from fairfront.datasets.registry import Attribute, DatasetInfo, FileInfo, info, names

__all__ = ["Attribute", "DatasetInfo", "FileInfo", "GroupedData", "LeakWarning", "from_frame", "info", "load", "names"]
