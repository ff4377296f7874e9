"""Real data in, rows ready for a model out: ``load("acs2012-employment", sensitive=["gender"])``."""

from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.images import ImageData, load_images
from fairfront.datasets.loading import load
from fairfront.datasets.own import LeakWarning, from_frame
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

__all__ = [
    "Attribute",
    "DatasetInfo",
    "FileInfo",
    "GroupedData",
    "ImageData",
    "ImageInfo",
    "LeakWarning",
    "from_frame",
    "image_info",
    "image_names",
    "info",
    "load",
    "load_images",
    "names",
]
