#!/usr/bin/env python3
"""Checks that every folder includes only what the design allows.

The table of layers stands in src/meson.build, which also links by it; docs/architecture.md shows the same table to
readers, and this compares the two. The rules:

  - a file of src/X/ includes the headers of its own folder as "X/...", and of the folders in X's row only "Y/Y.h"
  - a unit test (x_test.c, x_test.h) may include the simulated network besides, "transport/sim/..."
  - mpi.h and tombolo.h are the user's: of src/ only src/mpi/ includes them
  - cmd/ includes "Y/Y.h" of any folder, tests/ and bench/ anything, examples/ only what a user has

    tests/check-layers.py               checks this repository
    tests/check-layers.py --self-test   checks that broken rules are found
"""
import os
import re
import sys
import tempfile

ROW = re.compile(r"\[\s*'(\w+)'\s*,\s*\[([^\]]*)\]\s*\]")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
DOC_ROW = re.compile(r"^\|\s*`src/(\w+)/`\s*\|.*\|([^|]*)\|\s*$")
PUBLIC = {"mpi.h", "tombolo.h"}
PUBLIC_READERS = {"mpi"}
TEST_AIDS = {"transport/sim/sim.h", "transport/sim/streams.h"}


def read_table(root):
    with open(os.path.join(root, "src", "meson.build")) as f:
        text = "\n".join(line.partition("#")[0] for line in f.read().splitlines())
    return {name: set(re.findall(r"'(\w+)'", below)) for name, below in ROW.findall(text)}


def sources(root, top):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), root)


def includes(root, path):
    """(line number, name, quoted) of each #include of a file."""
    with open(os.path.join(root, path), errors="replace") as f:
        for number, line in enumerate(f, 1):
            if found := INCLUDE.match(line):
                yield number, found.group(1) or found.group(2), found.group(1) is not None


def judge(name, quoted, own, table, allowed):
    """Why a file of folder `own` may not include `name`; None if it may."""
    if name in PUBLIC:
        return None if own in PUBLIC_READERS else f"{name} is for users; of src/ only src/mpi/ includes it"
    folder, slash, rest = name.partition("/")
    if not slash or folder not in table:
        if quoted:
            return f'"{name}" should name a layer and its file, as in "base/base.h"'
        return None
    if not quoted:
        return f'<{name}> is ours and should be written "{name}"'
    if folder == own:
        return None
    if folder not in allowed:
        return f"{own} may not include {folder} (its row in src/meson.build: {', '.join(sorted(allowed)) or 'nothing'})"
    if rest != folder + ".h":
        return f'of {folder} others include only "{folder}/{folder}.h"'
    return None


def check_sources(root, table):
    problems = []
    src = os.path.join(root, "src")
    for name in sorted(os.listdir(src)):
        if os.path.isdir(os.path.join(src, name)) and name not in table:
            problems.append(f"src/{name}: has no row in src/meson.build")
    for path in sources(root, "src"):
        own = path.split(os.sep)[1]
        for number, name, quoted in includes(root, path):
            if name in TEST_AIDS and path.endswith(("_test.c", "_test.h")):
                continue
            if why := judge(name, quoted, own, table, table.get(own, set())):
                problems.append(f"{path}:{number}: {why}")
    for path in sources(root, "cmd"):
        for number, name, quoted in includes(root, path):
            folder, slash, rest = name.partition("/")
            if slash and folder in table and rest != folder + ".h":
                problems.append(f'{path}:{number}: of {folder} others include only "{folder}/{folder}.h"')
    for path in list(sources(root, "examples")) + list(sources(root, "include")):
        for number, name, quoted in includes(root, path):
            if name.partition("/")[0] in table:
                problems.append(f"{path}:{number}: what users see does not include {name}")
    return problems


def check_table(root, table):
    """The table itself: lower layers first, and the one shown to readers is the same."""
    problems, seen = [], set()
    for name, below in table.items():
        for other in sorted(below - seen):
            problems.append(f"src/meson.build: {name} includes {other}, which does not stand above it in the table")
        seen.add(name)
    path = os.path.join(root, "docs", "architecture.md")
    with open(path) as f:
        shown = {m.group(1): set(re.findall(r"\w+", m.group(2))) for m in map(DOC_ROW.match, f) if m}
    for name, below in table.items():
        if name not in shown:
            problems.append(f"docs/architecture.md: the table of folders has no row for src/{name}/")
        elif shown[name] != below:
            here, there = (", ".join(sorted(names)) or "nothing" for names in (shown[name], below))
            problems.append(f"docs/architecture.md: src/{name}/ may include {here}; src/meson.build says {there}")
    return problems


def check(root):
    table = read_table(root)
    if not table:
        return ["src/meson.build: no table of layers found"]
    return check_sources(root, table) + check_table(root, table)


# A small repository that keeps the rules, and changes to it of which each must be found.
GOOD = {
    "src/meson.build": "layers = [\n  ['base', []],\n  ['wire', ['base']],\n  ['data', ['base']],\n]\n"
                       "x = ['mpi', ['wire', 'base']]\n",
    "src/base/base.h": '#include "base/list.h"\n',
    "src/base/list.h": "#include <stddef.h>\n",
    "src/wire/wire.h": '#include "base/base.h"\n',
    "src/wire/frame.c": '#include "wire/wire.h"\n#include "base/base.h"\n#include <openssl/evp.h>\n',
    "src/data/data.h": '#include "base/base.h"\n',
    "src/mpi/init.c": '#include "mpi.h"\n#include "wire/wire.h"\n',
    "cmd/run.c": '#include "wire/wire.h"\n#include "run.h"\n',
    "examples/hello.c": "#include <mpi.h>\n#include <stdio.h>\n",
    "tests/mpi/ring.c": '#include "base/list.h"\n',
    "include/mpi.h": "#include <stdint.h>\n",
    "docs/architecture.md": "| `src/base/` | lowest | |\n| `src/wire/` | frames | base |\n"
                            "| `src/data/` | types | base |\n| `src/mpi/` | calls | wire, base |\n",
}
BAD = {
    "upward": ("src/base/list.h", '#include "wire/wire.h"\n'),
    "sideward": ("src/data/data.h", '#include "wire/wire.h"\n'),
    "private-header": ("src/wire/wire.h", '#include "base/list.h"\n'),
    "spaced": ("src/data/data.h", '  #  include   "wire/wire.h"\n'),
    "angled": ("src/data/data.h", "#include <wire/wire.h>\n"),
    "nameless": ("src/wire/frame.c", '#include "frame.h"\n'),
    "outside": ("src/wire/frame.c", '#include "../base/list.h"\n'),
    "public-header": ("src/wire/frame.c", "#include <mpi.h>\n"),
    "command": ("cmd/run.c", '#include "base/list.h"\n'),
    "example": ("examples/hello.c", '#include "base/base.h"\n'),
    "installed-header": ("include/mpi.h", '#include "base/base.h"\n'),
    "folder-without-row": ("src/extra/extra.h", "\n"),
    "subfolder": ("src/data/inner/x.c", '#include "wire/wire.h"\n'),
    "order": ("src/meson.build",
              "layers = [['wire', ['base']], ['base', []], ['data', ['base']], ['mpi', ['wire', 'base']]]\n"),
    "no-table": ("src/meson.build", "layers = []\n"),
    "document": ("docs/architecture.md", GOOD["docs/architecture.md"].replace("frames | base", "frames | base, data")),
    "document-row": ("docs/architecture.md", "| `src/base/` | lowest | |\n"),
}


def problems_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as f:
                f.write(text)
        return check(root)


def self_test():
    results = {"good": problems_of(GOOD) == []}
    for name, (path, text) in BAD.items():
        found = problems_of({**GOOD, path: text})
        results[name] = any(path.rpartition("/")[0] in problem for problem in found)
    for name, good in results.items():
        print(f"case: {name} {'ok' if good else 'failed'}")
    return 0 if all(results.values()) else 1


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    problems = check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    print("\n".join(problems) or "every folder includes only what it may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
