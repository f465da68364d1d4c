# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of a folder one after another in one process, each in a working directory of its own: TensorFlow, which
takes longer to start than most of them to train, starts once.

    together.py FOLDER "script.py arguments" ..."""
import os
import runpy
import shlex
import sys

folder, *lines = sys.argv[1:]
places = {line: os.path.abspath(line.replace(" ", "-")) for line in lines}
for place in places.values():
    os.makedirs(place, exist_ok=True)
for line, place in places.items():
    script, *arguments = shlex.split(line)
    os.chdir(place)
    sys.argv = [script, *arguments]
    print("==", line, flush=True)
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].compat.v1.reset_default_graph()
    runpy.run_path(os.path.join(folder, script), run_name="__main__")
