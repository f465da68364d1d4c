# SPDX-License-Identifier: Apache-2.0
"""Each check of tools/check can fail: a small tree that breaks its rule, and one that keeps it."""
import shutil
import subprocess

import pytest
from jobs import ROOT

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GOOD_C = SPDX + '#include "base/one.h"\n\nint ls_one_get(void)\n{\n    return 1;\n}\n'
GOOD_H = SPDX + "int ls_one_get(void);\n"


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """A checkout in small that passes every check of text."""
    write(tmp_path, "src/base/one.c", GOOD_C)
    write(tmp_path, "src/base/one.h", GOOD_H)
    write(tmp_path, "src/transport/net.h", SPDX)
    write(tmp_path, "src/engine/engine.h", SPDX)
    write(tmp_path, "src/schedule/schedule.c", SPDX + '#include "base/one.h"\n#include "lockstep.h"\n')
    return tmp_path


def check(root, name):
    return subprocess.run([ROOT / "tools" / "check", "--root", root, name], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


BREAKS = [
    ("layers", "src/base/two.c", SPDX + '#include "engine/engine.h"\n', "two.c:2: base includes engine/engine.h"),
    ("layers", "src/schedule/two.c", SPDX + '#include "transport/net.h"\n', "without a network"),
    ("layers", "src/base/two.c", SPDX + '#include "one.h"\n', "two.c:2: \"one.h\" is not"),
    ("layers", "src/base/two.c", SPDX + "#include <mpi.h>\n", "two.c:2: mpi.h outside"),
    ("layers", "src/attic/two.c", SPDX, "src/attic is no layer"),
    ("getenv", "src/base/two.c", SPDX + 'void *x = getenv("A");\n', "two.c:2: reads the environment"),
    ("spdx", "src/base/two.c", "int x;\n", "two.c:1: no SPDX"),
    ("spdx", "tools/two", "#!/bin/bash\ntrue\n", "tools/two:1: no SPDX"),
    ("sizes", "src/base/two.c", SPDX + "\n" * 500, "501 lines"),
    ("sizes", "src/base/two.c", SPDX + "void f(void)\n{\n" + "    f();\n" * 79 + "}\n", "two.c:3: a function of 81"),
    ("dead-code", "src/base/two.c", SPDX + "/* TODO: all */\n", "two.c:2: unfinished"),
    ("dead-code", "src/base/two.c", SPDX + "#if 0\n#endif\n", "two.c:2: unfinished"),
    ("dead-code", "src/base/two.c", SPDX + "void f(void)\n{\n#ifdef A\n#endif\n}\n", "two.c:4: #if inside"),
    ("whitespace", "src/base/two.c", SPDX + "\tint x;\n", "two.c:2: tab"),
    ("links", "docs/two.md", "see [one](../src/base/one.c)\nand [three](three.md)\n", "two.md:2: links three.md, which"),
    ("links", "docs/two.md", "# A name\n[here](#a-name) and [there](two.md#b)\n", "two.md:2: links two.md#b: no heading"),
    ("links", "README.md", "`[code](x)` and [web](https://x.org) and [none](docs/)\n", "README.md:1: links docs/, which"),
    ("whitespace", "tests/two.py", "# " + SPDX + "x = 1 \n", "two.py:2: blanks"),
]


@pytest.mark.parametrize("name, path, text, complaint", BREAKS)
def test_a_broken_rule_is_found(tree, name, path, text, complaint):
    assert check(tree, name).returncode == 0
    write(tree, path, text)
    result = check(tree, name)
    assert result.returncode == 1
    assert complaint in result.stdout


def test_getenv_is_allowed_in_config_and_in_comments(tree):
    write(tree, "src/base/config.c", SPDX + 'void *x = getenv("A");\n')
    write(tree, "src/base/two.c", SPDX + "/* no getenv()\n * here */\n")
    assert check(tree, "getenv").returncode == 0


def test_an_unknown_check_is_an_error(tree):
    result = check(tree, "spelling")
    assert result.returncode == 2
    assert "no check spelling; there are layers" in result.stdout


@pytest.fixture
def buildable(tree):
    """The same with the real build files, to be compiled."""
    for name in ("CMakeLists.txt", "tools", "include"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    if (ROOT / ".venv").is_dir():
        (tree / ".venv").symlink_to(ROOT / ".venv")
    (tree / "src/schedule/schedule.c").unlink()
    return tree


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_warning_is_found(buildable, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    good = check(buildable, compiler)
    assert good.returncode == 0, good.stdout
    write(buildable, "src/base/two.c", SPDX + "int ls_two(long x);\nint ls_two(long x)\n{\n    return x;\n}\n")
    bad = check(buildable, compiler)
    assert bad.returncode == 1
    assert "conversion" in bad.stdout


def test_an_old_man_page_is_found(tmp_path):
    for name in ("tools", "python"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    write(tmp_path, "docs/man/lockstep.1", "old\n")
    old = check(tmp_path, "man")
    assert old.returncode == 1 and "run tools/man" in old.stdout
    subprocess.run([tmp_path / "tools" / "man"], check=True)
    assert check(tmp_path, "man").returncode == 0


def test_an_old_docs_page_is_found(buildable):
    write(buildable, "src/base/print.c", SPDX + "#include <unistd.h>\n#include \"lockstep.h\"\n"
          "const char *ls_last_error(void) { return \"\"; }\n"
          "ls_status_t ls_print_settings(int fd, int with_values) { (void)fd; (void)with_values; return LS_OK; }\n"
          "ls_status_t ls_print_choices(int fd) { return write(fd, \"ring\\n\", 5) == 5 ? LS_OK : LS_ERR_SYSTEM; }\n")
    write(buildable, "docs/env.md", "# Settings\n")
    old = check(buildable, "docs")
    assert old.returncode == 1
    assert "+ring" in old.stdout and "run make docs" in old.stdout
    subprocess.run([buildable / "tools" / "docs"], check=True)
    assert check(buildable, "docs").returncode == 0
