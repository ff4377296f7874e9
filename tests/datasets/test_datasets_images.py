"""Image sets in each of their forms, and the stand-ins."""

from __future__ import annotations

import hashlib
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from fairfront.datasets import image_info, image_names, images, load_images
from fairfront.errors import ArgumentError, DataError


def batches(name: str, folder: Path, per_file: int = 20) -> Path:
    """Write the canonical layout with few images, pickled as Python 2 did."""
    folder.mkdir(parents=True)
    draw, classes = np.random.default_rng(0), 10 if name == "cifar10" else 100
    names = [f"class {k}" for k in range(classes)]
    for file in images.MD5[name]:
        if file.endswith("meta"):
            content: dict = {images.CLASSES[name]: names}
        else:
            pixels = draw.integers(0, 256, (per_file, 3072), dtype=np.uint8)
            content = {"data": pixels, images.LABELS[name]: draw.integers(0, classes, per_file).tolist()}
        (folder / file).write_bytes(pickle.dumps(content, protocol=2))
    return folder


@pytest.fixture(params=["cifar10", "cifar100"])
def made(request, tmp_path, monkeypatch):
    """The set's name and its folder as torchvision leaves it, with the MD5 of the made files."""
    name = request.param
    folder = batches(name, tmp_path / {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}[name])
    sums = {file: hashlib.md5((folder / file).read_bytes()).hexdigest() for file in images.MD5[name]}
    monkeypatch.setitem(images.MD5, name, sums)
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    return name, folder


def test_torchvisions_layout(made):
    name, folder = made
    data = load_images(name)
    train = ["train"] if name == "cifar100" else [f"data_batch_{k}" for k in range(1, 6)]
    raw = [pickle.loads((folder / file).read_bytes()) for file in train]
    assert data.images.shape == (20 * len(train), 32, 32, 3) and data.test_images.shape == (20, 32, 32, 3)
    np.testing.assert_array_equal(data.labels, np.concatenate([batch[images.LABELS[name]] for batch in raw]))
    # Stored colour by colour, row by row.
    first = raw[0]["data"][0]
    np.testing.assert_array_equal(data.images[0, :, :, 1], first[1024:2048].reshape(32, 32))
    assert data.classes[3] == "class 3" and len(data.classes) == image_info(name).classes


def test_a_changed_and_an_absent_file(made):
    name, folder = made
    last = next(iter(images.MD5[name]))
    (folder / last).write_bytes((folder / last).read_bytes() + b"x")
    with pytest.raises(DataError, match=f"{last}: corrupted, its MD5 is not"):
        load_images(name)
    (folder / last).unlink()
    with pytest.raises(DataError, match=f"{last}: absent"):
        load_images(name)


def test_a_pickle_that_would_run_something(made, monkeypatch):
    name, folder = made
    meta = list(images.MD5[name])[-1]
    ran = folder / "ran"

    class Evil:
        def __reduce__(self):
            return (Path.touch, (ran,))

    content = pickle.dumps(Evil(), protocol=2)
    (folder / meta).write_bytes(content)
    monkeypatch.setitem(images.MD5[name], meta, hashlib.md5(content).hexdigest())
    with pytest.raises(DataError, match=r"it asks for (pathlib|__builtin__|builtins)"):
        load_images(name)
    assert not ran.exists()


def test_the_archive_itself(made, tmp_path, monkeypatch, own_data):
    name, folder = made
    archive = tmp_path / "elsewhere" / "cifar" / f"{name.replace('cifar', 'cifar-')}-python.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, folder.name)
    known = image_info(name).file.raw[0].sha256
    monkeypatch.setenv("FAIRFRONT_DATA", str(archive.parents[1]))
    with pytest.raises(DataError, match=r"tar\.gz: corrupted, its SHA-256 is"):
        load_images(name)
    own_data((known, hashlib.sha256(archive.read_bytes()).hexdigest()))
    assert len(load_images(name).test_labels) == 20


@pytest.mark.usefixtures("with_raw_files")
def test_the_subsets():
    ten, hundred = load_images("cifar10"), load_images("cifar100")
    assert ten.images.shape == (10000, 32, 32, 3) and ten.test_images.shape == (2000, 32, 32, 3)
    assert hundred.images.shape == (5000, 32, 32, 3)
    assert (
        np.bincount(hundred.labels).tolist() == [50] * 100 and np.bincount(hundred.test_labels).tolist() == [10] * 100
    )
    assert ten.classes[0] == "airplane" and "apple" in hundred.classes
    assert "A part: 10,000 training and 2,000 test images" in ten.notice and "A part" in repr(hundred)


def test_stand_ins_are_named_as_such():
    assert image_names() == ("cifar10", "cifar100", "digits", "synthetic100")
    digits, made = load_images("digits"), load_images("synthetic100")
    assert len(digits.images) + len(digits.test_images) == 1797 and len(digits.classes) == 10
    assert "not CIFAR-10" in digits.notice and "SYNTHETIC" in made.notice and "not CIFAR-100" in repr(made)
    assert made.images.shape == (5000, 16, 16, 3) and np.bincount(made.labels).tolist() == [50] * 100
    for data in (digits, made):
        assert data.images.dtype == np.uint8 and data.images.std() > 10
        again = load_images(data.name)
        np.testing.assert_array_equal(again.images, data.images)
        assert again.digest == data.digest
    assert load_images("synthetic100", seed=1).digest != made.digest


def test_a_class_of_the_synthetic_set_can_be_told_but_not_perfectly():
    from sklearn.neighbors import NearestCentroid

    data = load_images("synthetic100")
    flat = [part.reshape(len(part), -1) / 255 for part in (data.images, data.test_images)]
    share = NearestCentroid().fit(flat[0], data.labels).score(flat[1], data.test_labels)
    assert 0.3 < share < 0.999


def test_an_unknown_set_and_an_absent_file():
    with pytest.raises(ArgumentError, match="name: unknown: 'cifar1000'"):
        load_images("cifar1000")
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz: absent; downloads are switched off"):
        load_images("cifar10")
