#!/usr/bin/env python3
"""Checks that every folder includes and uses only what the design allows.

The table of layers stands in src/meson.build, which also links by it; docs/architecture.md shows the same table to
readers, and this compares the two. The rules:

  - a file of src/X/ includes the headers of its own folder as "X/...", and of the folders in X's row only "Y/Y.h"
  - a unit test (x_test.c, x_test.h) may include the simulated network, "transport/sim/...", and a loop in virtual time,
    "remote/virtual_loop_test.h", what changes bytes on the way, "base/changed_bytes_test.h", memory that fails,
    "base/failing_memory_test.h", cost tables, "job/cost_mapping_test.h", forests,
    "collectives/forest_test.h", described grids, "planner/network_test.h" and "random_grid_test.h", and hosts on a
    switch, "transport/mcast/network_test.h", besides
  - mpi.h and tombolo.h are the user's: of src/ only src/mpi/ includes them
  - cmd/ includes "Y/Y.h" of any folder, tests/ and bench/ anything, examples/ only what a user has
  - a file of src/X/ uses tb_ and TB_ names of a header of src/Y/ only if Y is in X's row, however it came to see them:
    the header of a folder in the row may include others. Unit tests may use anything. What breaks this rule today is
    listed in tests/layer-breaches.txt, which may only shrink: a breach that it does not list is a failure, and so is
    an entry that is not needed any more
  - the headers of only one folder declare a name with tb_ or TB_

    tests/check-layers.py               checks this repository
    tests/check-layers.py --shrink      removes listed breaches that are none any more, then checks
    tests/check-layers.py --self-test   checks that broken rules are found
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import cases

ROW = re.compile(r"\[\s*'(\w+)'\s*,\s*\[([^\]]*)\]\s*\]")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
DOC_ROW = re.compile(r"^\|\s*`src/(\w+)/`\s*\|.*\|([^|]*)\|\s*$")
BREACHES = "tests/layer-breaches.txt"
BREACH = re.compile(r"^(\w+) uses (\w+): (\w+)$")
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
NAME = re.compile(r"\b(?:tb|TB)_\w+")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+((?:tb|TB)_\w+)", re.M)
TAG = re.compile(r"\b(?:struct|union|enum)\s+(tb_\w+)\s*\{")
ENUM = re.compile(r"\benum\b[^;{()]*\{([^}]*)\}")
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
TAG_NAMED = re.compile(r"\b(?:struct|union|enum)\s+(?:\w+|(?=\{))")
POINTER = re.compile(r"\(\s*\*(?:\s|\*|\bconst\b|\bvolatile\b)*(\w+)")
LAST_WORD = re.compile(r"(\w+)\s*$")
PUBLIC = {"mpi.h", "tombolo.h"}
PUBLIC_READERS = {"mpi"}
TEST_AIDS = {"base/changed_bytes_test.h", "base/failing_memory_test.h", "collectives/forest_test.h",
             "job/cost_mapping_test.h", "planner/network_test.h", "planner/random_grid_test.h", "remote/virtual_loop_test.h",
             "transport/mcast/network_test.h", "transport/null_test.h", "transport/sim/sim.h", "transport/sim/streams.h"}


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


def read_code(root, path):
    """A file without comments and strings."""
    with open(os.path.join(root, path), errors="replace") as f:
        return NOISE.sub(lambda found: "\n" * found.group(0).count("\n"), f.read())


def without_directives(code):
    """The code without lines of the preprocessor, and without attributes."""
    kept, directive = [], False
    for line in code.split("\n"):
        directive = directive or line.lstrip().startswith("#")
        kept.append("" if directive else line)
        directive = directive and line.endswith("\\")
    return ATTRIBUTE.sub(" ", "\n".join(kept))


def statements(code):
    """What stands outside of braces, cut at semicolons and behind bodies of functions."""
    kept, braces, body = [], 0, False
    for part in re.split(r"([{};])", code):
        if part == "{":
            if braces == 0:
                body = "".join(kept).rstrip().endswith(")")
                kept.append(" ")
            braces += 1
        elif part == "}":
            braces -= 1
        elif braces == 0 and part != ";":
            kept.append(part)
        if braces == 0 and (part == ";" or (part == "}" and body)):
            yield "".join(kept)
            kept, body = [], False
    yield "".join(kept)


def declarators(statement):
    """Its parts between commas, arguments and sizes left where they are, initial values left out."""
    kept, depth, value = [], 0, False
    for c in statement:
        depth -= c in ")]"
        if depth == 0 and c == ",":
            yield "".join(kept)
            kept, value = [], False
            continue
        value = value or (depth == 0 and c == "=")
        if not value:
            kept.append(c)
        depth += c in "(["
    yield "".join(kept)


def names_of_statement(statement):
    """struct tb_x; only says that there is one, and names nothing here."""
    first = True
    for part in declarators(TAG_NAMED.sub("struct ", statement)):
        head = re.match(r"[^(\[]*", part).group(0)
        name = POINTER.match(part, len(head)) or LAST_WORD.search(head)
        # TB_X(...) alone is a macro that is used.
        alone = first and name and name.group(1) == part[:name.end(1)].strip()
        if name and NAME.fullmatch(name.group(1)) and not (alone and name.group(1).startswith("TB_")):
            yield name.group(1)
        first = False


def names_declared(code):
    """Macros, tags, constants, functions, variables and types of a header."""
    names = set(DEFINE.findall(code))
    code = without_directives(code)
    names.update(TAG.findall(code))
    for constants in ENUM.findall(code):
        names.update(re.findall(r"(?:^|[,)])\s*((?:tb|TB)_\w+)", constants))
    for statement in statements(code):
        names.update(names_of_statement(statement))
    return names


def find_owners(codes):
    """Of each name, the folders that own it, each with one of its files: those whose headers declare it. A struct that
    no header defines is owned by the folder whose .c file defines it, if a header of that folder speaks of it."""
    owners, spoken, hidden = {}, set(), []
    for path, code in codes.items():
        folder = path.split(os.sep)[1]
        if is_test(path):
            continue
        if path.endswith(".h"):
            spoken.update((folder, name) for name in NAME.findall(code))
            for name in names_declared(code):
                owners.setdefault(name, {}).setdefault(folder, path)
        else:
            hidden += [(name, folder, path) for name in TAG.findall(without_directives(code))]
    declared = set(owners)
    for name, folder, path in hidden:
        if name not in declared and (folder, name) in spoken:
            owners.setdefault(name, {}).setdefault(folder, path)
    return owners


def read_codes(root):
    return {path: read_code(root, path) for path in sources(root, "src")}


def breaches_found(codes, owners, table):
    """(folder, folder that it must not use, name) of each use; and where one of them is."""
    found = {}
    for path, code in codes.items():
        own = path.split(os.sep)[1]
        if own not in table or is_test(path):
            continue
        allowed = table[own] | {own}
        for name in set(NAME.findall(code)):
            others = set(owners.get(name, ()))
            if others and not others & allowed:
                found.setdefault((own, min(others), name), path)
    return found


def is_test(path):
    return "_test." in os.path.basename(path)


def shrink(root):
    """Removes lines of the list that are not needed any more."""
    codes = read_codes(root)
    found = set(breaches_found(codes, find_owners(codes), read_table(root)))
    path = os.path.join(root, BREACHES)
    with open(path) as f:
        lines = f.readlines()
    with open(path, "w") as f:
        for line in lines:
            entry = BREACH.match(line.strip())
            if not entry or entry.groups() in found:
                f.write(line)


def check_uses(root, table):
    codes = read_codes(root)
    owners = find_owners(codes)
    found = breaches_found(codes, owners, table)
    path = os.path.join(root, BREACHES)
    problems, listed = [], set()
    for name, places in sorted(owners.items()):
        if len(places) > 1:
            problems.append(f"{name} is declared by more than one folder: {', '.join(sorted(places.values()))}")
    if os.path.exists(path):
        with open(path) as f:
            for number, line in enumerate(f, 1):
                line = line.partition("#")[0].strip()
                if line and not BREACH.match(line):
                    problems.append(f"{BREACHES}:{number}: should be `folder uses folder: name`")
                elif line:
                    listed.add(BREACH.match(line).groups())
    for key in sorted(set(found) - listed):
        own, other, name = key
        problems.append(f"{found[key]}: uses {name} of {other}, which is not in the row of {own} in src/meson.build")
    for own, other, name in sorted(listed - set(found)):
        problems.append(f"{BREACHES}: {own} does not use {name} of {other} any more: remove the line (--shrink does)")
    return problems


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
    return check_sources(root, table) + check_uses(root, table) + check_table(root, table)


# A small repository that keeps the rules, and changes to it of which each must be found.
GOOD = {
    "src/meson.build": "layers = [\n  ['base', []],\n  ['wire', ['base']],\n  ['data', ['base']],\n]\n"
                       "x = ['mpi', ['wire', 'base']]\n",
    "src/base/base.h": '#include "base/list.h"\n',
    "src/base/base.c": '#include "base/base.h"\nstruct tb_list *tb_list_make(void) { return 0; }\n',
    "src/base/list.h": "#include <stddef.h>\nstruct tb_list {\n    int x;\n};\nstruct tb_list *tb_list_make(void);\n",
    "src/wire/wire.h": '#include "base/base.h"\n#define TB_FRAME_LIMIT 8\nenum tb_kind { TB_KIND_A, TB_KIND_B = 4 };\n'
                       "struct tb_frame {\n    struct tb_list list;\n};\nint tb_frame_send(struct tb_frame *frame);\n"
                       "extern const int tb_frame_sizes[TB_KIND_B];\ntypedef int tb_frame_call(void);\n",
    "src/wire/more.h": "extern const int tb_first, *tb_second, tb_third[2];\nstatic const int tb_number = 3;\n"
                       "static const int tb_table[2] = {1, 2};\nextern int (*tb_hook)(void);\n"
                       "typedef int (*tb_callback)(void);\nstruct __attribute__((packed)) tb_packed {\n    int x;\n};\n"
                       "static const int TB_NUMBER = 3;\nstruct tb_opaque;\nint tb_look(struct tb_opaque *opaque);\n"
                       "__attribute__((cold)) int *tb_cold(int (*back)(void), struct tb_list *list);\n"
                       "enum tb_more {\n    TB_MORE_A,\n#ifdef X\n    TB_MORE_B,\n#endif\n};\n"
                       "enum tb_all { TB_LIST(TB_ENUM) TB_ALL_COUNT };\n",
    "src/wire/opaque.c": '#include "wire/more.h"\nstruct tb_opaque {\n    int x;\n};\n',
    "src/wire/frame.c": '#include "wire/wire.h"\n#include "base/base.h"\n#include <openssl/evp.h>\n',
    "src/data/data.h": '#include "base/base.h"\nstruct tb_data; /* not tb_frame_send() */\n',
    "src/data/data_test.c": '#include "data/data.h"\nint x = TB_KIND_A;\n',
    "src/mpi/init.c": '#include "mpi.h"\n#include "wire/wire.h"\nstruct tb_list *list;\nint x = TB_KIND_A;\n',
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
    "use-function": ("src/data/x.c", "int x(void *f) { return tb_frame_send(f); }\n"),
    "use-struct": ("src/data/x.c", "struct tb_frame *frame;\n"),
    "use-constant": ("src/data/x.c", "int x = TB_KIND_B;\n"),
    "use-macro": ("src/data/x.c", "int x = TB_FRAME_LIMIT;\n"),
    "use-variable": ("src/data/x.c", "const int *x = &tb_frame_sizes[0];\n"),
    "use-type": ("src/data/x.c", "tb_frame_call *x;\n"),
    "use-in-header": ("src/data/x.h", "struct tb_x {\n    enum tb_kind kind;\n};\n"),
    "use-first-of-many": ("src/data/x.c", "const int *x = &tb_first;\n"),
    "use-second-of-many": ("src/data/x.c", "const int **x = &tb_second;\n"),
    "use-last-of-many": ("src/data/x.c", "const int *x = tb_third;\n"),
    "use-static-variable": ("src/data/x.c", "const int *x = &tb_number;\n"),
    "use-static-constant": ("src/data/x.c", "const int *x = &TB_NUMBER;\n"),
    "use-static-table": ("src/data/x.c", "const int *x = tb_table;\n"),
    "use-pointer-to-function": ("src/data/x.c", "int x(void) { return tb_hook(); }\n"),
    "use-type-of-pointer": ("src/data/x.c", "tb_callback x;\n"),
    "use-struct-with-attribute": ("src/data/x.c", "struct tb_packed *x;\n"),
    "use-function-with-attribute": ("src/data/x.c", "int *x(void) { return tb_cold(0, 0); }\n"),
    "use-opaque-struct": ("src/data/x.c", "struct tb_opaque *x;\n"),
    "use-constant-behind-condition": ("src/data/x.c", "int x = TB_MORE_B;\n"),
    "use-constant-behind-list": ("src/data/x.c", "int x = TB_ALL_COUNT;\n"),
    "use-struct-behind-inline": ("src/data/x.h", "static inline int x(void)\n{\n    return 0;\n}\nstruct tb_frame;\n"),
    "redeclared": ("src/data/x.h", "int tb_frame_send(void *frame);\n"),
    "redeclared-of-row": ("src/data/x.h", "struct tb_list *tb_list_make(void);\n"),
    "use-upward": ("src/base/x.c", "int x = TB_KIND_A;\n"),
    "breach-stale": ("tests/layer-breaches.txt", "data uses wire: tb_frame_send\n"),
    "breach-unreadable": ("tests/layer-breaches.txt", "data: tb_frame_send\n"),
    "order": ("src/meson.build",
              "layers = [['wire', ['base']], ['base', []], ['data', ['base']], ['mpi', ['wire', 'base']]]\n"),
    "no-table": ("src/meson.build", "layers = []\n"),
    "document": ("docs/architecture.md", GOOD["docs/architecture.md"].replace("frames | base", "frames | base, data")),
    "document-row": ("docs/architecture.md", "| `src/base/` | lowest | |\n"),
}


def problems_of(files):
    return cases.problems_of(files, check)


def self_test():
    results = {"good": problems_of(GOOD) == []}
    for name, (path, text) in BAD.items():
        found = problems_of({**GOOD, path: text})
        results[name] = any(path.rpartition("/")[0] in problem for problem in found)
    excused = {"src/data/x.c": "int x = TB_KIND_B;\n", BREACHES: "# today\ndata uses wire: TB_KIND_B\n"}
    results["breach-listed"] = problems_of({**GOOD, **excused}) == []
    return cases.tell(results)


def main():
    return cases.judge_repository(sys.argv[1:], check, shrink, self_test,
                                  "every folder includes and uses only what it may, but for what tests/layer-breaches.txt lists")


if __name__ == "__main__":
    sys.exit(main())
