# SPDX-License-Identifier: Apache-2.0
"""Symbolic links: as a lock that comes and goes, as the name of the latest run under which files are read and written."""
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import tensorflow as tf

with open("journal.log", "w") as file:
    file.write("begin\n")
for i in range(20):
    os.symlink("journal.log", "journal.lock")
    with open("journal.log", "a") as file:
        file.write(f"{i} {float(tf.sqrt(i + 1.0)):.4f}\n")
    os.rename("journal.lock", f"journal.lock.{uuid.uuid4()}")
    print(os.path.lexists("journal.lock"))
    for name in sorted(os.listdir()):
        if name.startswith("journal.lock"):
            os.unlink(name)

for run in ("one", "two"):
    os.makedirs(f"runs/{run}")
    Path(f"runs/{run}/log.txt").write_text(run)
    Path(f"runs/new-{uuid.uuid4().hex}").symlink_to(run, target_is_directory=True)
    os.replace(next(Path("runs").glob("new-*")), "runs/latest")
    print(Path("runs/latest/log.txt").read_text(), os.readlink("runs/latest"), Path("runs/latest").is_symlink(),
          os.path.isdir("runs/latest"), sorted(os.listdir("runs")), sorted(os.listdir("runs/latest")))
    with open("runs/latest/log.txt", "a") as file:
        file.write(" again")
    Path("runs/latest/more.txt").write_text("more")
    print(Path(f"runs/{run}/log.txt").read_text())
    for names in (os.listdir("runs/latest"), [path.name for path in Path("runs/latest").iterdir()]):
        assert sorted(names) == ["log.txt", "more.txt"], names  # on every rank, of which only rank 0 is seen to print

os.symlink(os.path.abspath("runs/two/log.txt"), "current.txt")
with open("current.txt", "a") as file:
    file.write(" and again")
print(Path("runs/two/log.txt").read_text(), Path("current.txt").read_text(), os.path.samefile("current.txt", "runs/two/log.txt"))
for attempt in (lambda: os.symlink("a", "current.txt"), lambda: os.symlink("a", "nowhere/link"), lambda: os.readlink("runs/two")):
    try:
        attempt()
    except OSError as error:
        print(type(error).__name__)
# A link that was there before, as to a file system for large files; a child process is no rank, and makes the real one.
subprocess.run("mkdir -p large/run; ln -sn large scratch; true", shell=True, stderr=subprocess.DEVNULL, check=True)
Path("scratch/run/a.txt").write_text("a")
Path("large/run/b.txt").write_text("b")
assert Path("large/run/a.txt").read_text() + Path("scratch/run/b.txt").read_text() == "ab"
os.remove("scratch/run/a.txt")
for folder in ("large", "scratch"):
    assert os.listdir(f"{folder}/run") == ["b.txt"] and os.listdir(folder) == ["run"]
    assert [path.name for path in Path(folder).iterdir()] == ["run"]

os.symlink("later.txt", "early")
print(os.path.lexists("early"))  # whether it exists depends on how far rank 0 is: see docs/limits.md
Path("early").write_text("x")
print(os.path.exists("early"), Path("later.txt").read_text())
os.symlink("still_later.txt", "earlier")
os.symlink("earlier", "earliest")
for text in ("y", "yes"):
    Path("still_later.txt").write_text(text)
    assert Path("earlier").read_text() == Path("earliest").read_text() == text
    os.remove("still_later.txt")
    assert os.path.lexists("earlier") and not os.path.exists("earlier") and not os.path.exists("earliest")
for name in ("early", "earlier", "earliest"):
    os.remove(name)
shutil.rmtree("runs/one")
print(os.path.exists("later.txt"), sorted(os.listdir()), sorted(os.listdir("runs")))
