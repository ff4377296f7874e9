"""Real data in, rows ready for a model out: ``load("acs2012-employment", sensitive=["gender"])``."""

from fairfront.datasets.conversion import Converted, convert
from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.images import ImageData, load_images
from fairfront.datasets.loading import load
from fairfront.datasets.own import LeakWarning, from_frame
from fairfront.datasets.partitions import DaskRows, connect
from fairfront.datasets.registry import (
    Attribute,
    DatasetInfo,
    FileInfo,
    ImageInfo,
    image_info,
    image_names,
    info,
    names,
)
from fairfront.datasets.synthetic import synthetic_acs

__all__ = [
    "Attribute",
    "Converted",
    "DaskRows",
    "DatasetInfo",
    "FileInfo",
    "GroupedData",
    "ImageData",
    "ImageInfo",
    "LeakWarning",
    "connect",
    "convert",
    "from_frame",
    "image_info",
    "image_names",
    "info",
    "load",
    "load_images",
    "names",
    "synthetic_acs",
]
