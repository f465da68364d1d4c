# SPDX-License-Identifier: Apache-2.0
"""Ranks ahead of rank 0 wait for what it writes where TensorFlow reads files in C++, however long the files are; ranks behind it
read what they have written; so do ranks ahead of it in Python."""
import shutil
import time

import tensorflow as tf

import lockstep
from lockstep.effects import overlay

overlay.SETTLE_SECONDS = 1e6  # who waits for a size that never comes does not end
EPOCHS, LATE_S = 3, 0.5

rank = lockstep.rank()
data = tf.data.Dataset.range(4)
for epoch in range(EPOCHS):
    with open("log.txt", "a") as file:
        file.write("x" * (5 * rank + 1) + "\n")
    for _ in data:
        pass
    tf.train.Checkpoint(epoch=tf.Variable(epoch)).save("checkpoints/one")  # where ranks meet

if rank == 0:
    time.sleep(LATE_S)
with open("words.txt", "w") as file:
    file.write("\n".join(["one", "two", "three"][:3 - rank]))
words = [word.numpy().decode() for word in tf.data.TextLineDataset("words.txt")]
assert words == ["one", "two", "three"], words
if rank == 0:
    time.sleep(LATE_S)
with open("words.txt", "w") as file:  # of the old length
    file.write("one\ntwo\nseven")
assert tf.io.read_file("words.txt").numpy() == b"one\ntwo\nseven"
if rank == 0:
    time.sleep(LATE_S)
with open("fresh.txt", "w") as file:
    file.write("fresh")
shutil.copy2("fresh.txt", "copy.txt")  # which also asks for the file's attributes
for text in ("first", "second"):
    if rank != 0:
        time.sleep(LATE_S)  # rank 0 is ahead by one text
    with open("words.txt", "w") as file:
        file.write(text)
    assert tf.io.read_file("words.txt").numpy() == text.encode()
print(f"rank {rank} of {lockstep.size()} is right", flush=True)
