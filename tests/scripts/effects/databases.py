# SPDX-License-Identifier: Apache-2.0
"""SQLite databases, as libraries keep their studies and runs in: made, added to, opened again, and only read."""
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import tensorflow as tf


def numbers(database, **options):
    with closing(sqlite3.connect(database, **options)) as connection:
        return connection.execute("select name, value from numbers order by name").fetchall()


with closing(sqlite3.connect("study.db")) as connection, connection:
    connection.execute("create table numbers (name text unique, value real)")
for i in range(3):
    with closing(connect(Path("study.db"))) as connection, connection:
        if not connection.execute("select * from numbers where name = ?", (f"trial {i}",)).fetchall():
            connection.execute("insert into numbers values (?, ?)", (f"trial {i}", float(tf.sqrt(i + 2.0))))
    print(numbers("study.db"))
try:
    with closing(sqlite3.connect("study.db")) as connection, connection:
        connection.execute("insert into numbers values ('trial 1', 0)")
except sqlite3.IntegrityError as error:
    print(error)

with closing(sqlite3.connect("file:study.db?mode=rw", uri=True)) as connection, connection:
    connection.execute("update numbers set value = value + 1")
print(numbers(f"file:{os.path.abspath('study.db')}?mode=ro", uri=True))
for database in ("file:none.db?mode=rw", "file:none.db?mode=ro", "file:nowhere/none.db"):
    try:
        numbers(database, uri=True)
    except sqlite3.OperationalError as error:
        print(error)
with closing(sqlite3.connect(":memory:")) as connection:
    print(connection.execute("select 1 + 1").fetchall())
os.rename("study.db", "kept.db")
print(numbers("kept.db"), os.path.exists("study.db"), os.path.getsize("kept.db"))
with open("rows.txt", "w") as file:
    file.write(f"{numbers('kept.db')}\n")
