"""Image sets with classes: CIFAR in any of its forms, and stand-ins that need no download, named as such."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfront.datasets import files
from fairfront.datasets.registry import ImageInfo, image_info
from fairfront.datasets.splits import stratified_split
from fairfront.errors import DataError

__all__ = ["ImageData", "load_images"]

# The files of the canonical archives with the MD5 that their users (torchvision among them) check.
MD5: Mapping[str, Mapping[str, str]] = {
    "cifar10": {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    },
    "cifar100": {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
}
LABELS = {"cifar10": "labels", "cifar100": "fine_labels"}
CLASSES = {"cifar10": "label_names", "cifar100": "fine_label_names"}
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images with one class each, in a training and a test part.

    Attributes
    ----------
    name, title : str
        The set's name in the registry, and what a caption calls it.
    images, test_images : ndarray of uint8, shape (n, height, width, channels)
        The pixels, 0 to 255.
    labels, test_labels : ndarray of int64, shape (n,)
        The class of each image, in 0..K-1.
    classes : tuple of str
        The classes' names (K).
    digest : str
        SHA-256, in hexadecimal, of the file, or of the pixels where there is none.
    notice : str
        What a reader must be told wherever the set appears: whether it is a stand-in, a part, or synthetic.
    """

    name: str
    title: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    digest: str
    notice: str

    def __repr__(self) -> str:
        """Return one line that says what the data are."""
        shape = "x".join(map(str, self.images.shape[1:]))
        sizes = f"{len(self.images):,} training and {len(self.test_images):,} test images of {shape}"
        return f"ImageData({self.name}: {sizes}, {len(self.classes)} classes; {self.notice})"


def load_images(name: str, *, seed: int = 0) -> ImageData:
    """Load an image set.

    CIFAR is looked for as its archive, as torchvision unpacks it, and as the subsets in NumPy's format, below
    FAIRFRONT_DATA and in the cache; else the archive is downloaded. The stand-ins need no file.

    Parameters
    ----------
    name : str
        One of `image_names()`: "cifar10", "cifar100", "digits" (10 classes, with scikit-learn), "synthetic100".
    seed : int, default 0
        Seed of the stand-ins' split and of the synthetic images.

    Returns
    -------
    ImageData

    Raises
    ------
    ArgumentError
        There is no such set.
    DataError
        A file is corrupt, or absent and cannot be downloaded.
    """
    known = image_info(name)
    if known.file is None:
        return _STAND_INS[name](known, seed)
    ((path, digests),) = files.locate(known.file)
    return _read(known, files.verified(path, digests))


def _read(known: ImageInfo, path: Path) -> ImageData:
    try:
        if path.suffix == ".npz":
            return _from_npz(known, path)
        return _from_batches(known, path, _unpack(known, path))
    except (OSError, KeyError, ValueError, pickle.UnpicklingError, tarfile.TarError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as {known.title}: {error}") from error


def _unpack(known: ImageInfo, path: Path) -> dict[str, bytes]:
    """Return the content of each file of the canonical archive, from the archive or from its folder."""
    wanted = MD5[known.name]
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            opened = {Path(item.name).name: archive.extractfile(item) for item in archive if item.isfile()}
            contents = {name: file.read() for name, file in opened.items() if file and name in wanted}
    else:
        contents = {name: (path.parent / name).read_bytes() for name in wanted if (path.parent / name).is_file()}
    for name, md5 in wanted.items():
        if name not in contents:
            raise DataError(f"{path.parent / name}: absent; {known.title} has {', '.join(wanted)}")
        if hashlib.md5(contents[name], usedforsecurity=False).hexdigest() != md5:
            raise DataError(f"{path.parent / name}: corrupted, its MD5 is not {md5}; remove it, or get it anew")
    return contents


def _from_batches(known: ImageInfo, path: Path, contents: dict[str, bytes]) -> ImageData:
    loaded = {name: _Arrays(io.BytesIO(content), encoding="latin1").load() for name, content in contents.items()}
    test = [name for name in loaded if name.startswith("test")]
    train = sorted(name for name in loaded if name.startswith(("data", "train")))
    meta = next(batch for name, batch in loaded.items() if name not in (*train, *test))

    def part(batches: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        pixels = np.concatenate([loaded[name]["data"] for name in batches])
        images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        return images, np.concatenate([loaded[name][LABELS[known.name]] for name in batches]).astype(np.int64)

    digest = hashlib.sha256(b"".join(contents[name] for name in MD5[known.name])).hexdigest()
    return _images(known, part(train), part(test), tuple(meta[CLASSES[known.name]]), digest)


def _from_npz(known: ImageInfo, path: Path) -> ImageData:
    with np.load(path, allow_pickle=False) as arrays:
        train = arrays["x_train"], arrays["y_train"].astype(np.int64)
        test = arrays["x_test"], arrays["y_test"].astype(np.int64)
        classes = tuple(map(str, arrays["classes"])) if "classes" in arrays else CIFAR10_CLASSES
    notice = f"{known.notice} A part: {len(train[0]):,} training and {len(test[0]):,} test images."
    return _images(known, train, test, classes, hashlib.sha256(path.read_bytes()).hexdigest(), notice)


def _digits(known: ImageInfo, seed: int) -> ImageData:
    from sklearn.datasets import load_digits  # takes long to import

    digits: Any = load_digits()
    images = (digits.images[..., None] * (255 / 16)).round().astype(np.uint8)
    labels = digits.target.astype(np.int64)
    train, test = stratified_split(labels, 0.2, np.random.default_rng(seed))
    classes = tuple(map(str, digits.target_names))
    return _images(known, (images[train], labels[train]), (images[test], labels[test]), classes, _digest(images))


def _synthetic(known: ImageInfo, seed: int) -> ImageData:
    """Return 100 classes: a smooth random pattern each, shown shifted, brighter or darker, and with noise."""
    per_class, size, generator = 60, 16, np.random.default_rng(seed)
    waves = generator.normal(size=(known.classes, 3, 4, 4))
    grid = np.arange(size) / size
    basis = np.cos(np.pi * np.outer(np.arange(4), grid))
    patterns = np.einsum("kcij,ix,jy->kxyc", waves, basis, basis)
    labels = np.repeat(np.arange(known.classes), per_class)
    shifts = generator.integers(-2, 3, size=(len(labels), 2))
    shown = np.stack([np.roll(patterns[k], tuple(shift), axis=(0, 1)) for k, shift in zip(labels, shifts, strict=True)])
    brightness = generator.normal(1.0, 0.25, size=(len(labels), 1, 1, 1))
    noisy = shown * brightness + generator.normal(0, 3.0, size=shown.shape)
    images = np.clip(128 + 24 * noisy, 0, 255).astype(np.uint8)
    train, test = stratified_split(labels, 1 / 6, generator)
    classes = tuple(f"pattern {k}" for k in range(known.classes))
    return _images(known, (images[train], labels[train]), (images[test], labels[test]), classes, _digest(images))


_STAND_INS: Mapping[str, Callable[[ImageInfo, int], ImageData]] = {"digits": _digits, "synthetic100": _synthetic}


def _images(
    known: ImageInfo,
    train: tuple[NDArray[np.uint8], NDArray[np.int64]],
    test: tuple[NDArray[np.uint8], NDArray[np.int64]],
    classes: tuple[str, ...],
    digest: str,
    notice: str = "",
) -> ImageData:
    for images, labels in (train, test):
        if len(images) != len(labels) or (labels < 0).any() or (labels >= len(classes)).any():
            raise DataError(f"{known.name}: labels that are not 0..{len(classes) - 1}, or not one an image")
    if len(classes) != known.classes:
        raise DataError(f"{known.name}: {len(classes)} classes in the place of {known.classes}")
    return ImageData(known.name, known.title, *train, *test, classes, digest, notice or known.notice)


def _digest(images: NDArray[np.uint8]) -> str:
    return hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()


class _Arrays(pickle.Unpickler):
    """An unpickler that makes arrays, texts, numbers and containers of them, and runs nothing."""

    def find_class(self, module: str, name: str) -> Any:
        word = f"{module.replace('numpy.core', 'numpy._core')}.{name}"
        if word in ("numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype", "_codecs.encode"):
            return super().find_class(*word.rsplit(".", 1))
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")
