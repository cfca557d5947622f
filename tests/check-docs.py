#!/usr/bin/env python3
"""Checks the documents against what they describe: links lead to files, the parameters of docs/guide/running.md are those
of the program with their defaults, and its options are those that mpiexec --help names;
docs/guide/other-launchers.md has every option of the table in the sources and no other; files that docs/architecture.md and
docs/words.md name are there, and the tables of parts in docs/architecture.md name every file of their folders; functions of its walks
(which tests/walk/run follows) are where it says; what docs/guide/groups.md shows of distributing portions is tested. A case
for each."""
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNNING = "docs/guide/running.md"
ARCHITECTURE = "docs/architecture.md"
FOREIGN = "docs/guide/other-launchers.md"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def documents():
    yield from ("README.md", "CONTRIBUTING.md")
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        yield from (os.path.relpath(os.path.join(folder, n), ROOT) for n in sorted(names) if n.endswith(".md"))


def broken_links():
    for document in documents():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(document)):
            if "://" not in target and not os.path.exists(os.path.join(ROOT, os.path.dirname(document), target)):
                yield f"{document}: there is no {target}"


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def wrong_parameters():
    rows = re.findall(r'^TB_PARAM_\w+_ROW\(\s*(\w+),\s*"([^"]*)"', read("src/base/param_table.h"), re.M)
    for path in sorted(glob.glob(os.path.join(ROOT, "src/transport/*/*_param.c"))):
        rows += re.findall(r'\.name = "(\w+)",.*?\.fallback = "([^"]*)"', read(path), re.S)
    shown = {}
    for names, values in re.findall(r"^\| (`[^|]*)\|([^|]*)\|", section(read(RUNNING), "Parameters"), re.M):
        names = re.findall(r"`(\w+)`", names)
        values = re.findall(r"`([^`]*)`", values) or [""] * len(names)
        shown.update(zip(names, values))
    for name, value in rows:
        if name not in shown:
            yield f"{RUNNING}: the parameter {name} is missing"
        elif shown.pop(name) != value:
            yield f"{RUNNING}: the default of {name} is '{value}'"
    for name in shown:
        yield f"{RUNNING}: there is no parameter {name}"


def wrong_options():
    build = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))
    done = subprocess.run([os.path.join(build, "bin", "mpiexec"), "--help"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        yield f"mpiexec --help ended with {done.returncode}"
    word = r"(?<![\w-])(--?[a-zA-Z][\w-]*)"
    known = set(re.findall(word, done.stdout))
    shown = set()
    for row in re.findall(r"^\| (`-.*)$", section(read(RUNNING), "Options"), re.M):
        shown.update(w for quoted in re.findall(r"`([^`]*)`", row) for w in re.findall(word, quoted))
    yield from (f"{RUNNING}: mpiexec --help does not name {option}" for option in sorted(shown - known))
    yield from (f"{RUNNING}: the option {option} is missing" for option in sorted(known - shown))


def wrong_foreign_options():
    known = set(re.findall(r'^    (?:WORKS|SILENT|IGNORED|REFUSED)\("([\w-]+)"', read("src/launch/options_table.c"), re.M))
    shown = set()
    for row in re.findall(r"^\| (`-[^|]*)\|", read(FOREIGN), re.M):
        shown.update(re.findall(r"`--?([\w-]+)", row))
    if not known:
        yield "src/launch/options_table.c has no options"
    yield from (f"{FOREIGN}: there is no option {option}" for option in sorted(shown - known))
    yield from (f"{FOREIGN}: the option {option} is missing" for option in sorted(known - shown))


def wrong_files():
    for document in (ARCHITECTURE, "docs/words.md"):
        for name in re.findall(r"`((?:[\w-]+/)+[\w-]+\.[a-z]+)`", read(document)):
            places = (name, os.path.join("src", name), os.path.join("docs", name))
            if not any(os.path.exists(os.path.join(ROOT, place)) for place in places):
                yield f"{document}: there is no file {name}"


def wrong_parts():
    tables = re.findall(r"^\| part of `(src/\w+)/` .*\n\|[ -|]*\n((?:\|.*\n)*)", read(ARCHITECTURE), re.M)
    if not tables:
        yield f"{ARCHITECTURE}: there are no tables of parts"
    for folder, rows in tables:
        named = {part.removesuffix(".c") for row in rows.splitlines() for part in re.findall(r"`([\w.]+)`", row)}
        sources = re.match(r"sources \+= files\(([^)]*)\)", read(f"{folder}/meson.build")).group(1)
        nouns = set(re.findall(r"'(\w+)\.c'", sources))
        for part in (part for row in rows.splitlines() for part in re.findall(r"`([\w.]+)`", row.split("|")[1])):
            if not any(os.path.exists(os.path.join(ROOT, folder, part.removesuffix(".c") + end)) for end in (".c", ".h")):
                yield f"{ARCHITECTURE}: there is no {folder}/{part}"
        yield from (f"{ARCHITECTURE}: the parts of {folder}/ lack {noun}" for noun in sorted(nouns - named))


def wrong_walks():
    tables = re.findall(r"<!-- walk \w+ -->\n((?:\|.*\n)+)", read(ARCHITECTURE))
    if len(tables) < 2:
        yield f"{ARCHITECTURE}: there are no walks"
    for layer, functions in re.findall(r"^\|[^|]*\|[^|]*\| (\w+) \|([^|]*)\|$", "".join(tables), re.M):
        sources = [read(path) for path in glob.glob(os.path.join(ROOT, "src", layer, "**", "*.[ch]"), recursive=True)]
        if layer == "mpi":
            sources.append(read("include/mpi.h"))
        for name in re.findall(r"`(\w+)`", functions):
            made = rf"^MPI_ABI_CALL\(\w+, {name[1:]}," if name.startswith("PMPI_") else rf"^(?:[\w*]+[ *]+)+{name}\("
            if not any(re.search(made, text, re.M) for text in sources):
                yield f"{ARCHITECTURE}: there is no function {name} in {layer}"


def wrong_distributor():
    """What the guide shows instead of ECCLib's distributor is what is tested."""
    shown = re.findall(r"```c\n(int counts.*?)```", read("docs/guide/groups.md"), re.S)
    tested = [line.strip() for line in read("tests/mpi/distributor.c").splitlines()]
    if len(shown) != 1 or "MPI_Scatterv" not in shown[0] or "MPI_Gatherv" not in shown[0]:
        yield "docs/guide/groups.md does not show how portions are distributed"
    for line in (line.strip() for text in shown for line in text.splitlines()):
        if line != "..." and line not in tested:
            yield f"docs/guide/groups.md: nobody has tested {line}"


def main():
    finders = {"links": broken_links, "parameters": wrong_parameters, "options": wrong_options,
               "foreign-options": wrong_foreign_options, "files": wrong_files,
               "parts": wrong_parts, "walks": wrong_walks, "distributor": wrong_distributor}
    return cases.tell_problems(finders, (OSError, AttributeError, subprocess.SubprocessError))


if __name__ == "__main__":
    sys.exit(main())
