# SPDX-License-Identifier: Apache-2.0
"""tools/setup, with stand-ins for the package manager that write down how they were called."""
import os
import shutil
import subprocess

import pytest
from jobs import ROOT


class Machine:
    """A copy of tools/setup and a folder of commands in front of the system's."""

    def __init__(self, folder):
        self.folder, self.bin, self.calls = folder, folder / "bin", folder / "calls"
        self.bin.mkdir()
        (folder / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "setup", folder / "tools")
        (folder / ".venv").symlink_to(ROOT / ".venv")
        self.command("id", "echo 0")
        self.command("dpkg-query", "echo installed")
        self.command("apt-get", f'echo "$@" >>{self.calls}')

    def command(self, name, text):
        path = self.bin / name
        path.write_text("#!/bin/bash\n" + text + "\n")
        path.chmod(0o755)

    def setup(self, *args):
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run([self.folder / "tools" / "setup", *args], cwd="/", env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def apt_calls(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_nothing_is_installed_when_nothing_is_missing(machine):
    result = machine.setup()
    assert result.returncode == 0, result.stdout
    assert machine.apt_calls() == []


def test_as_root_only_what_is_missing_is_installed(machine):
    machine.command("dpkg-query", 'case "$4" in libopenmpi-dev|cmake) exit 1 ;; *) echo installed ;; esac')
    result = machine.setup()
    assert result.returncode == 0, result.stdout
    assert machine.apt_calls() == ["update", "install -y --no-install-recommends cmake libopenmpi-dev"]


def test_a_failed_installation_says_what_to_do(machine):
    machine.command("dpkg-query", "exit 1")
    machine.command("apt-get", "echo E: no such package >&2; exit 100")
    result = machine.setup()
    assert result.returncode == 1
    assert "E: no such package" in result.stdout
    assert "setup: FAILED: apt-get could not install gcc" in result.stdout
    assert "install them by hand" in result.stdout


def test_a_helpful_package_that_is_not_to_be_had_is_no_failure(machine):
    machine.command("dpkg-query", 'case "$4" in clang) exit 1 ;; *) echo installed ;; esac')
    machine.command("apt-get", '[[ $1 == update ]]')
    result = machine.setup()
    assert result.returncode == 0, result.stdout
    assert "going on without clang" in result.stdout


def test_without_root_the_package_manager_is_left_alone(machine):
    machine.command("id", "echo 1000")
    machine.command("dpkg-query", "exit 1")
    result = machine.setup()
    assert result.returncode == 0, result.stdout
    assert machine.apt_calls() == []


def test_help_and_unknown_words_change_nothing(machine):
    assert machine.setup("--help").returncode == 0
    assert machine.setup("--fast").returncode == 2
    assert not (machine.folder / "build").exists()
