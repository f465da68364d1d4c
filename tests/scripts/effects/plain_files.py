# SPDX-License-Identifier: Apache-2.0
"""Files that a script writes, appends to, renames, removes and reads back by every way Python has."""
import glob
import json
import logging
import os
import pickle
import shutil
import tempfile
import uuid
from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf

# What was there before is read, changed, and read again, with nothing in between.
Path("earlier.txt").write_text("7")
if not os.path.exists("data.npz"):
    np.savez("data.npz", x=np.arange(300000.0))
print(np.load("data.npz")["x"].sum())
count = int(Path("earlier.txt").read_text())
Path("earlier.txt").write_text(str(count + 1))
print(Path("earlier.txt").read_text())
try:
    runs = json.load(open("runs.json"))
except FileNotFoundError:
    runs = []
with open("runs.json", "w") as file:
    json.dump([*runs, {"name": "first"}], file)
print(json.load(open("runs.json")))

work = Path("work")
work.mkdir()
(work / "inner").mkdir()
(work / "a.txt").write_text("hello")
with open("work/a.txt", "r+") as file:
    file.write("J")
for line in ("one\n", "two\n"):
    with open(work / "log.txt", "a") as file:
        file.write(line)
print((work / "a.txt").read_text(), (work / "log.txt").read_text().split(), (work / "a.txt").stat().st_size)
os.rename("work/a.txt", "work/b.txt")
shutil.copy("work/b.txt", "work/c.txt")
shutil.move("work/c.txt", "work/inner/d.txt")
print(sorted(os.listdir("work")), sorted(glob.glob("work/**/*.txt", recursive=True)), os.path.exists("work/a.txt"))
print([(folder, sorted(folders), sorted(files)) for folder, folders, files in os.walk("work")])

for attempt in (lambda: open("work/b.txt", "x"), lambda: os.mkdir("work"), lambda: open("nowhere/file", "w"),
                lambda: os.remove("work/a.txt"), lambda: open("work/a.txt"), lambda: shutil.rmtree("nowhere"),
                lambda: os.makedirs("work/inner", exist_ok=True), lambda: os.makedirs("work/inner")):
    try:
        attempt()
        print("fine")
    except OSError as error:
        print(type(error).__name__)
for i in range(3):
    Path(f"part-{i}").write_text("x")
i = 0
while True:
    try:
        os.remove(f"part-{i}")
    except FileNotFoundError:
        break
    i += 1
print(i, "parts removed")

with open("object.pkl", "wb") as file:
    pickle.dump({"a": [1, 2]}, file)
with h5py.File("table.h5", "w") as file:
    file["x"] = np.arange(5)
with h5py.File("table.h5") as file:
    print(file["x"][()], pickle.load(open("object.pkl", "rb")))
logging.basicConfig(filename="run.log", level=logging.INFO, force=True)
logging.info("started")
with open("run.log") as file:
    print(file.read().strip())
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "scratch").write_text("1")
    print(os.listdir(folder))

# Written beside its place, and put there when it is whole; also in a folder that has another name on each rank.
for i in range(3):
    with tempfile.NamedTemporaryFile("w", dir="work", suffix=".part", delete=False) as file:
        file.write(f"state {i}")
    os.replace(file.name, "work/state.txt")
    print(Path("work/state.txt").read_text(), glob.glob("work/*.part"))
own = f"work/{uuid.uuid4().hex}"
os.mkdir(own)
with tempfile.NamedTemporaryFile("w", dir=own) as file:
    print(file.write("scratch"))
shutil.rmtree(own)
whole = tempfile.mkdtemp(dir="work")
Path(whole, "x.txt").write_text("in a folder")
os.rename(whole, "work/whole")
print(Path("work/whole/x.txt").read_text(), sorted(os.listdir("work")))
os.makedirs("work/empty")
os.rename(tempfile.mkdtemp(dir="work"), "work/empty")
print(os.listdir("work/empty"))
shutil.rmtree("work/whole")

# Written by Python, read by TensorFlow, and the other way round.
with open("words.txt", "w") as file:
    file.writelines(f"word{i}\n" for i in range(2000))
print(sum(1 for _ in tf.data.TextLineDataset("words.txt")))
table = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
    "words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1)
print(table.lookup(tf.constant(["word7", "word1999"])).numpy())
tf.io.gfile.makedirs("deep/er")
with tf.io.gfile.GFile("deep/er/x.txt", "w") as file:
    file.write("abc")
print(tf.io.gfile.listdir("deep/er"), tf.io.gfile.glob("deep/*/*.txt"), open("deep/er/x.txt").read())
tf.io.write_file("deep/image.bin", b"x" * 1000)
print(len(tf.io.read_file("deep/image.bin").numpy()), os.path.getsize("deep/image.bin"))

os.chdir("work")
print(sorted(os.listdir(".")))
os.chdir("..")
shutil.rmtree("work/inner")
os.makedirs("work/inner")
print(os.listdir("work/inner"), sorted(os.listdir(".")))
