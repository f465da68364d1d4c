# SPDX-License-Identifier: Apache-2.0
"""What is in a file: format, fields with their types and shapes, the first rows, and which rank would read what.

Reads IDX, CIFAR, NumPy, TFRecord, CSV, HDF5 and NetCDF, as lockstep.data does; needs no MPI and no TensorFlow."""
import argparse

from lockstep.cli import start
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep read train-images-idx3-ubyte.gz
  lockstep read -n 4 --rows 5 --columns age,income table.csv
  lockstep read 'part-*.tfrecord'
  lockstep read --delimiter tab --no-header numbers.txt"""

DELIMITERS = {"tab": "\t", "blank": " "}


def add_arguments(parser):
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="files, folders or patterns; several are one data set")
    add("-n", "--ranks", type=start.positive, default=1, metavar="N", help="show which of so many ranks would read which rows")
    add("--rows", type=natural, default=3, metavar="N", help="how many of the first rows to show (3)")
    add("--columns", metavar="NAME,...", help="only these fields")
    add("--format", metavar="NAME", help="instead of finding it out: idx, cifar, npy, npz, tfrecord, csv, hdf5 or netcdf")
    group = parser.add_argument_group("tables of text")
    add = group.add_argument
    add("--delimiter", metavar="C", help="one character, 'tab' or 'blank'; found out when not given")
    add("--header", action="store_true", default=None, help="the first row has the names of the columns")
    add("--no-header", dest="header", action="store_false", help="the first row is data")


def natural(text):
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 up")
    return int(text)


def main(args):
    try:
        from lockstep import data
    except ImportError as error:
        raise Problem(f"the readers cannot be loaded ({error})", "pip install numpy") from None
    options = {"format": args.format, "header": args.header, "delimiter": DELIMITERS.get(args.delimiter, args.delimiter),
               "columns": args.columns.split(",") if args.columns else None}
    try:
        print(data.show(args.paths, args.ranks, args.rows, **options))
    except (data.DataError, ValueError) as error:
        raise Problem(str(error)) from None
    return 0
