# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 and CIFAR-100: the Python (pickle) or binary files, in ./CIFAR_data or data_directory.

CIFAR-10: data uint8 (n, 32, 32, 3), labels one-hot float64 (n, 10).  CIFAR-100: data uint8 (n, 3072), fine labels one-hot
(n, 100).  The first valid_pct of the training rows are for validation.  `normalize` is not used, as in MaTEx.  Each split is
cut into contiguous blocks, one per rank."""
from lockstep.data.binding import DataError, Source
from lockstep.data.families import common


def load_10(wanted, part):
    folder = _folder(wanted, ("cifar-10-batches-py", "cifar-10-batches-bin"))
    suffix = "" if (folder / "data_batch_1").exists() else ".bin"
    train = [common.find_file(folder, f"data_batch_{i}{suffix}") for i in range(1, 6)]
    return _load(wanted, part, train, common.find_file(folder, f"test_batch{suffix}"), "label", 10)


def load_100(wanted, part):
    folder = _folder(wanted, ("cifar-100-python", "cifar-100-binary"))
    suffix = "" if (folder / "train").exists() else ".bin"
    train = [common.find_file(folder, f"train{suffix}")]
    return _load(wanted, part, train, common.find_file(folder, f"test{suffix}"), "fine_label", 100)


def _folder(wanted, names):
    for name in names[:-1]:
        folder = common.find_folder(wanted, "CIFAR_data", name)
        if folder.name == name or not (folder / names[-1]).is_dir():
            return folder
    return common.find_folder(wanted, "CIFAR_data", names[-1])


def _load(wanted, part, train_files, test_file, label, num_classes):
    train = _open(train_files, part, label)
    test = _open([test_file], part, label)
    num_valid = int(train.num_rows * wanted.valid_pct)
    splits = {"train": _rows(train, part, num_valid, train.num_rows - num_valid, num_classes),
              "test": _rows(test, part, 0, test.num_rows, num_classes)}
    if num_valid:
        splits["validation"] = _rows(train, part, 0, num_valid, num_classes)
    return splits


def _open(paths, part, label):
    source = Source(paths, part, format="cifar")
    names = [field.name for field in source.fields]
    if label not in names:
        raise DataError(f"{paths[0]}: it has {', '.join(names)}, not {label}: is it the other CIFAR?")
    source.wanted = [0, names.index(label)]
    return source


def _rows(source, part, first, count, num_classes):
    data, labels = common.read_block(source, part, first, count, source.wanted)
    data = data.transpose(0, 2, 3, 1).copy() if num_classes == 10 else data.reshape(-1, 3072)
    return data, common.one_hot(labels, num_classes)
