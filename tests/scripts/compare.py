# SPDX-License-Identifier: Apache-2.0
"""Compares what two runs of a script left: lines, numbers in them, files.

Numbers may differ by rounding: a sum of slices is not added up in the order of one process."""
import re
import tempfile
import zipfile
from pathlib import Path

import numpy as np

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)\b")
TIMES = re.compile(r"\d+(?:\.\d+)?(?:s|ms|us)(?:/(?:step|epoch|batch))?\b")  # of Keras's progress lines
BACKSPACES = re.compile(r"[^\n]*[\b\r]")
IGNORED_FOLDERS = ("rank-logs",)


def near(one, other, tolerance):
    return np.allclose(one, other, rtol=tolerance, atol=tolerance / 10, equal_nan=True)


def _is_same_number(one, other, tolerance):
    """Equal numbers in print: two that lie close together may round to neighbouring last digits."""
    if near(float(one), float(other), tolerance):
        return True
    decimals = {len(text.partition(".")[2]) if "e" not in text.lower() and "." in text else 0 for text in (one, other)}
    return len(decimals) == 1 and decimals != {0} and abs(float(one) - float(other)) < 1.01 * 10.0 ** -decimals.pop()


def _lines(text):
    text = TIMES.sub("TIME", BACKSPACES.sub("", text))
    return [line.rstrip() for line in text.splitlines()]


def compare_text(one, other, tolerance, what):
    """Same lines, up to the rounding of numbers."""
    one, other = _lines(one), _lines(other)
    for number, (a, b) in enumerate(zip(one, other), 1):
        assert NUMBER.sub("#", a) == NUMBER.sub("#", b), f"{what}, line {number}:\n  one process: {a}\n  ranks:       {b}"
        pairs = zip(NUMBER.findall(a), NUMBER.findall(b))
        assert all(_is_same_number(*pair, tolerance) for pair in pairs), \
            f"{what}, line {number}:\n  one process: {a}\n  ranks:       {b}"
    assert len(one) == len(other), f"{what}: {len(one)} lines with one process, {len(other)} with ranks:\n" + "\n".join(other)


def compare_log(one, log, tolerance, what):
    """The log of a rank has the lines of standard output, in this order; between them are those of standard error."""
    log = iter(_lines(log))
    for number, line in enumerate(_lines(one), 1):
        words = NUMBER.sub("#", line)
        found = next((other for other in log if NUMBER.sub("#", other) == words), None)
        assert found is not None, f"{what} has no line like line {number} of one process:\n  {line}"
        compare_text(line, found, tolerance, f"{what}, line {number} of one process")


def compare_folders(one, other, tolerance):
    """Same files, same content."""
    files, other_files = _files(one), _files(other)
    assert list(files) == list(other_files), f"files of one process: {list(files)}\nof ranks: {list(other_files)}"
    for name, path in files.items():
        _compare_files(path, other_files[name], tolerance)


def _files(folder):
    """Paths by name; names of event files have the time in them."""
    found, events = {}, 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if set(name.parts) & set(IGNORED_FOLDERS):
            continue
        if name.name.startswith("events.out.tfevents."):
            events += 1
            name = name.with_name(f"events.out.tfevents, number {events}")
        found[str(name)] = path
    return found


def _compare_files(one, other, tolerance):
    if one.suffix == ".npz":
        _compare_arrays(dict(np.load(one)), dict(np.load(other)), tolerance, one)
    elif one.suffix == ".npy":
        _compare_arrays({"": np.load(one)}, {"": np.load(other)}, tolerance, one)
    elif one.suffix in (".h5", ".hdf5"):
        _compare_arrays(_read_h5(one), _read_h5(other), tolerance, one)
    elif one.suffix == ".keras":
        _compare_keras(one, other, tolerance)
    elif one.suffix in (".csv", ".txt", ".log", ".json"):
        compare_text(one.read_text(), other.read_text(), tolerance, str(one))
    elif one.suffix == ".index":
        _compare_arrays(_read_checkpoint(one), _read_checkpoint(other), tolerance, one)
    elif one.name == "checkpoint":
        compare_text(*("".join(line for line in path.open() if "timestamp" not in line) for path in (one, other)), 0, str(one))
    elif one.name == "saved_model.pb":
        assert _load_saved_model(one.parent) == _load_saved_model(other.parent), f"{one}: other functions"
    elif one.name.startswith("events.out.tfevents"):
        _compare_arrays(_read_events(one), _read_events(other), tolerance, one)
    elif one.suffix in (".bin", ".tfrecord", ".pkl"):
        assert one.read_bytes() == other.read_bytes(), f"{one} and {other} differ"


def _read_checkpoint(index):
    """Values of a TensorFlow checkpoint; the description of its objects is not compared."""
    import tensorflow as tf
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    values = {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()
              if "OBJECT_GRAPH" not in name}
    if not any(name.startswith("_all_variables/") for name in values):
        return values
    # Keras exports variables in the order of a set of objects, another one in each process.
    return {str(i): value for i, value in enumerate(sorted(values.values(), key=lambda value: (value.shape, value.sum())))}


def _load_saved_model(folder):
    """Names of its signatures.  Lockstep is not active here, so a model with something of it inside does not load."""
    import tensorflow as tf
    return sorted(tf.saved_model.load(str(folder)).signatures)


def _read_events(path):
    import tensorflow as tf
    values = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            if value.HasField("tensor") and value.tensor.dtype in (tf.float32.as_datatype_enum, tf.float64.as_datatype_enum):
                values[f"{value.tag} {event.step}"] = tf.make_ndarray(value.tensor)
    return values


def _compare_arrays(one, other, tolerance, path):
    assert one.keys() == other.keys(), f"{path}: {sorted(one)} and {sorted(other)}"
    for name, array in one.items():
        assert array.shape == other[name].shape, f"{path}: {name} has shape {array.shape} and {other[name].shape}"
        if array.dtype.kind in "OSU":
            assert np.array_equal(array, other[name]), f"{path}: {name} differs"
            continue
        gap = np.abs(array.astype(np.float64) - other[name].astype(np.float64)).max() if array.size else 0
        assert near(array, other[name], tolerance), f"{path}: {name} differs by up to {gap}"


def _read_h5(path):
    import h5py
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return {name: np.asarray(value) for name, value in arrays.items()}


def _compare_keras(one, other, tolerance):
    """A .keras file is a zip of a description and an HDF5 file."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [_unpack(path, Path(folder, name)) for path, name in ((one, "one"), (other, "other"))]
        descriptions = [re.sub(r'"shared_object_id": \d+', "", (part / "config.json").read_text()) for part in parts]
        assert descriptions[0] == descriptions[1], f"{one} and {other} describe other models"
        _compare_files(parts[0] / "model.weights.h5", parts[1] / "model.weights.h5", tolerance)


def _unpack(path, folder):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder
