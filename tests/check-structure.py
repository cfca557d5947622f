#!/usr/bin/env python3
"""Checks how the code is cut: what a reader can see whole, and in which order files can be read.

  - circles: of the files of a folder, none uses another that uses it, directly or through others. File A uses file B
    if A.c or A.h names a function that B.c or B.h defines. B_rest.h without a B_rest.c belongs to B, too; any other
    header without a .c file is used by whoever includes it, and uses what it includes. The header of a folder,
    agent/agent.h, is for others: who includes it uses nothing yet. Headers never include each other in circles. Data
    that a header declares extern are not followed: a table of what other files offer, such as the catalogue of the
    algorithms, would be in a circle with each of them. Files that are in circles yet are listed in
    tests/structure-exceptions.txt
  - functions: none has more than 70 lines, in src/, cmd/, include/, tests/ and bench/
  - files: none has more than 600 lines there, unless a comment in its first 40 lines says "Longer than 600 lines because ..."
  - tags: no struct, union or enum tag is defined in two places of src/ and cmd/. A tag without tb_ that only one .c
    file knows is its own affair, unless a header or another file of the folder defines it too
  - transports: what src/transport/transports.c lists, nobody outside of src/transport/ names, but tests; so that a new
    one is a folder and a line

The list of exceptions may only shrink: what is not in it is a failure, and so is an entry that is not needed any more.

    tests/check-structure.py               checks this repository
    tests/check-structure.py --shrink      removes exceptions that are not needed any more, then checks
    tests/check-structure.py --self-test   checks that broken rules are found
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import cases

FUNCTION_LINES = 70
FILE_LINES = 600
HEAD_LINES = 40
REASON = "Longer than 600 lines because"
EXCEPTIONS = "tests/structure-exceptions.txt"
STALE = " is no exception any more: remove the line (--shrink does)"

NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
TRANSPORTS = os.path.join("src", "transport", "transports.c")
TRANSPORT = re.compile(r"&(tb_transport_\w+)")
TAG = re.compile(r"\b(struct|union|enum)\s+([A-Za-z_]\w*)\s*\{")
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")


def without_noise(text):
    """The text without comments and strings; lines stay where they are."""
    def blank(found):
        word = found.group(0)
        return "\n" * word.count("\n") if word[0] == "/" else '""'
    return NOISE.sub(blank, text)


class Source:
    """A file: its functions as (name, first line, last line, is static), and what it uses."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), errors="replace") as f:
            self.text = f.read()
        self.code = without_noise(self.text)
        self.lines = self.code.splitlines()
        # Includes are read from the text itself, since their names are strings.
        self.includes = INCLUDE.findall(self.text)
        self.functions = []
        self.used = set()
        self.read()

    def read(self):
        """The style helps: a function begins in the first column and behind a blank line, its last brace stands there too.
        The first brace may be behind the signature, and the last one behind the body."""
        header = self.path.endswith(".h")
        macro = False
        i = 0
        while i < len(self.lines):
            line = self.lines[i]
            if line.startswith("#") or macro:
                if macro or line.lstrip("# \t").startswith("define"):
                    self.used.update(WORD.findall(line))
                macro = line.endswith("\\")
                i += 1
                continue
            if "{" in line:
                first, signature = self.signature_of(i)
                if self.is_signature(signature):
                    i = self.read_function(first, i, signature)
                    continue
            if not header:
                self.used.update(WORD.findall(line))
            i += 1

    def signature_of(self, brace):
        """What stands before the first brace of line `brace`, and the line where it begins."""
        first = brace
        while first > 0 and self.lines[first - 1].strip() and not self.lines[first - 1].startswith(("#", "}", "{")) \
                and not self.lines[first - 1].endswith((";", "}")):
            first -= 1
        before = self.lines[first:brace] + [self.lines[brace].partition("{")[0]]
        return first, ATTRIBUTE.sub("", " ".join(before)).rstrip()

    @staticmethod
    def is_signature(text):
        return re.match(r" ?[A-Za-z_]", text) and text.endswith(")") and "=" not in text

    def read_function(self, first, brace, signature):
        last, open_braces = brace, 0
        while True:
            open_braces += self.lines[last].count("{") - self.lines[last].count("}")
            if open_braces == 0 or last + 1 == len(self.lines) or (last > brace and self.lines[last].startswith("}")):
                break
            last += 1
        self.functions.append((CALLED.search(signature).group(1), first + 1, last + 1, "static" in signature.split()))
        for line in self.lines[brace:last + 1]:
            self.used.update(WORD.findall(line.partition("{")[2] if line is self.lines[brace] else line))
        return last + 1


def sources(root, tops):
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield Source(root, os.path.relpath(os.path.join(folder, name), root))


def mark_tests(files):
    """Unit tests, and headers that nobody else includes, with their .c file unless it defines a function that others
    use: circles and tags of theirs are not judged."""
    stem = {f.path: os.path.splitext(f.path)[0] for f in files}
    tests = {stem[f.path] for f in files if "_test." in f.path}
    certain = set(tests)
    includers, defined = {}, {}
    for f in files:
        for include in f.includes:
            includers.setdefault(os.path.splitext(os.path.join("src", include))[0], set()).add(stem[f.path])
        if f.path.endswith(".c"):
            defined[stem[f.path]] = {name for name, _, _, static in f.functions if not static}
    before = -1
    while before != len(tests):
        before = len(tests)
        tests |= {name for name, users in includers.items() if users - {name} and users - {name} <= tests}
    before = -1
    while before != len(tests):
        before = len(tests)
        used = set()
        for f in files:
            if stem[f.path] not in tests and f.path.startswith(("src" + os.sep, "cmd" + os.sep)):
                used |= f.used
        tests = {name for name in tests if name in certain or not defined.get(name, set()) & used}
    for f in files:
        f.is_test = stem[f.path] in tests


# ---- circles ---------------------------------------------------------------------------------------------------------

def folder_of(path):
    """src/agent/x.c: src/agent; what is in folders below belongs to it."""
    parts = path.split(os.sep)
    return "/".join(parts[:2]) if parts[0] == "src" else parts[0]


def node_of(path, stems):
    """The file without ending that a file belongs to; a header that belongs to none is by itself."""
    stem = os.path.splitext(path)[0]
    while stem not in stems:
        stem, underscore, _ = stem.rpartition("_")
        if not underscore:
            return path
    return stem


def uses(files):
    """Who uses whom among the files of one folder."""
    stems = {os.path.splitext(f.path)[0] for f in files if f.path.endswith(".c")}
    nodes = {f.path: node_of(f.path, stems) for f in files}
    home, own = {}, {}
    for f in files:
        for name, _, _, static in f.functions:
            own.setdefault(f.path, set()).add(name)
            if not static or f.path.endswith(".h"):
                home.setdefault(name, set()).add(nodes[f.path])
    graph = {node: set() for node in nodes.values()}
    for f in files:
        node = nodes[f.path]
        for name in f.used - own.get(f.path, set()):
            graph[node].update(home.get(name, ()))
        for include in f.includes:
            header = os.path.join("src", include)
            folder, _, rest = include.partition("/")
            by_itself = nodes.get(header) == header or node == f.path
            if header in nodes and by_itself and rest != folder + ".h":
                graph[node].add(nodes[header])
        graph[node].discard(node)
    return graph


def includes_of_headers(files):
    """Which headers of one folder include which others."""
    headers = {f.path: f for f in files if f.path.endswith(".h")}
    return {path: {os.path.join("src", include) for include in f.includes} & set(headers) for path, f in headers.items()}


def reachable(graph, start):
    seen, ahead = set(), [start]
    while ahead:
        for other in graph[ahead.pop()]:
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return seen


def shortest_circle(graph, start):
    """Of those through `start`, for the message."""
    before, ahead = {start: None}, [start]
    for node in ahead:
        for other in sorted(graph[node]):
            if other == start:
                way = [start]
                while node is not None:
                    way.append(node)
                    node = before[node]
                return way[::-1]
            if other not in before:
                before[other] = node
                ahead.append(other)
    return [start]


def check_circles(files, excepted):
    problems, folders = [], {}
    for f in files:
        if not f.is_test and f.path.startswith("src" + os.sep):
            folders.setdefault(folder_of(f.path), []).append(f)
    needed = set()
    for folder, members in sorted(folders.items()):
        for graph in uses(members), includes_of_headers(members):
            told = set()
            for node in sorted(graph):
                if node not in reachable(graph, node):
                    continue
                needed.add(node)
                if node not in excepted and node not in told:
                    way = shortest_circle(graph, node)
                    told.update(way)
                    problems.append(f"{folder}: a circle of files: " + " -> ".join(way))
    return problems, needed


# ---- sizes -----------------------------------------------------------------------------------------------------------

def check_sizes(files, excepted):
    problems, needed = [], set()
    for f in files:
        for name, first, last, _ in f.functions:
            if last - first + 1 > FUNCTION_LINES:
                key = f"{f.path}:{name}"
                needed.add(key)
                if key not in excepted:
                    problems.append(f"{f.path}:{first}: {name} has {last - first + 1} lines, more than {FUNCTION_LINES}")
        lines = f.text.count("\n")
        head = " ".join("\n".join(f.text.splitlines()[:HEAD_LINES]).replace("\n *", " ").split())
        if lines > FILE_LINES and REASON not in head:
            needed.add(f.path)
            if f.path not in excepted:
                problems.append(f"{f.path}: {lines} lines, more than {FILE_LINES}, and no reason in its head "
                                f"(\"{REASON} ...\")")
    return problems, needed


# ---- tags ------------------------------------------------------------------------------------------------------------

def check_tags(files, excepted):
    places, problems, needed = {}, [], set()
    for f in files:
        if f.path.split(os.sep)[0] not in ("src", "cmd") or f.is_test:
            continue
        for found in TAG.finditer(f.code):
            places.setdefault(found.group(2), []).append((f.path, f.code.count("\n", 0, found.start()) + 1))
    for tag, where in sorted(places.items()):
        shared = tag.startswith("tb_") or any(path.endswith(".h") for path, _ in where)
        near = len({folder_of(path) for path, _ in where}) < len(where)
        if len(where) > 1 and (shared or near):
            needed.add(tag)
            if tag not in excepted:
                places_text = ", ".join(f"{path}:{line}" for path, line in where)
                problems.append(f"{where[0][0]}: tag {tag} is defined in {len(where)} places: {places_text}")
    return problems, needed


# ---- transports ------------------------------------------------------------------------------------------------------

def check_transports(files):
    listed = {name for f in files if f.path == TRANSPORTS for name in TRANSPORT.findall(f.code)}
    problems = []
    for f in files:
        if f.is_test or f.path.split(os.sep)[0] not in ("src", "cmd") or folder_of(f.path) == "src/transport":
            continue
        for name in sorted(listed & set(WORD.findall(f.code))):
            problems.append(f"{f.path}: names {name}, which is a matter of src/transport")
    return problems


# ---- all together ----------------------------------------------------------------------------------------------------

def read_exceptions(root):
    """Lines `circle FILE`, `function FILE:NAME`, `file FILE`, `tag NAME`; # begins a comment."""
    excepted = {"circle": set(), "function": set(), "file": set(), "tag": set()}
    path = os.path.join(root, EXCEPTIONS)
    problems = []
    if os.path.exists(path):
        with open(path) as f:
            for number, line in enumerate(f, 1):
                words = line.partition("#")[0].split()
                if not words:
                    continue
                if len(words) != 2 or words[0] not in excepted:
                    problems.append(f"{EXCEPTIONS}:{number}: should be circle, function, file or tag, and a name")
                    continue
                excepted[words[0]].add(words[1])
    return excepted, problems


def shrink(root):
    """Removes lines of the list that are not needed, and headings of nothing."""
    stale = {problem.split(" ", 1)[1].removesuffix(STALE) for problem in check(root) if problem.endswith(STALE)}
    path = os.path.join(root, EXCEPTIONS)
    with open(path) as f:
        parts = f.read().rstrip("\n").split("\n\n")
    kept = []
    for part in parts:
        lines = [line for line in part.split("\n") if line.strip() not in stale]
        if part is parts[0] or any(not line.startswith("#") for line in lines):
            kept.append("\n".join(lines))
    with open(path, "w") as f:
        f.write("\n\n".join(kept) + "\n")


def check(root):
    excepted, problems = read_exceptions(root)
    files = list(sources(root, ("src", "cmd", "include", "tests", "bench")))
    mark_tests(files)
    circles, in_circles = check_circles(files, excepted["circle"])
    sizes, too_large = check_sizes(files, excepted["function"] | excepted["file"])
    tags, twice = check_tags(files, excepted["tag"])
    needed = {"circle": in_circles, "function": too_large, "file": too_large, "tag": twice}
    for kind, names in excepted.items():
        for name in sorted(names - needed[kind]):
            problems.append(f"{EXCEPTIONS}: {kind} {name}{STALE}")
    return problems + circles + sizes + tags + check_transports(files)


# A small repository that keeps the rules, and changes to it of which each must be found.
LONG_FUNCTION = "int tb_long(void)\n{\n" + "    tb_low();\n" * 68 + "}\n"
GOOD = {
    "src/a/low.h": "#ifndef X\nint tb_low(void);\nint tb_high(void);\n#endif\n",
    "src/a/low.c": '#include "a/low.h"\n\nstatic int helper(void) { return 0; }\n\nint tb_low(void)\n{\n'
                   "    return helper(); /* not tb_high() */\n}\n",
    "src/a/high.h": '#include "a/low.h"\nstruct tb_high {\n    int x;\n};\n',
    "src/a/high.c": '#include "a/high.h"\n\nstruct mine {\n    int x;\n};\n\nstatic int helper(void)\n{\n'
                    '    return tb_low();\n}\n\nint tb_high(void)\n{\n    return helper() + tb_tested();\n}\n\n'
                    "static int one(void) { return 1; }\nint tb_brief(int x,\n    int y) { return one(); }\n\n"
                    "int tb_behind(void) {\n    return 0;\n}\n\nint tb_line(void)\n{ return 0; }\n",
    "src/a/tested.h": "int tb_tested_plainly(void);\n",
    "src/a/tested.c": '#include "a/tested.h"\n\nint tb_tested(void)\n{\n    return 0;\n}\n',
    "src/a/tested_test.c": '#include "a/tested.h"\n',
    "src/a/world.c": '#include "a/world.h"\n',
    "src/a/world.h": "struct mine {\n    int x;\n};\n",
    "src/a/high_test.c": '#include "a/world.h"\n' "struct mine {\n    int x;\n};\n\nint main(void)\n{\n    return tb_high();\n}\n",
    "src/b/state.h": '#include "b/b.h"\nstruct tb_b {\n    int x;\n};\n',
    "src/b/b.c": '#include "b/state.h"\n\nstruct mine {\n    int x;\n};\n\nint tb_b(void)\n{\n    return 0;\n}\n',
    "src/b/b.h": "int tb_b(void);\n",
    "src/b/part.h": "int tb_part(void);\n",
    "src/b/part.c": '#include "b/state.h"\n',
    "src/b/long.c": "/* A list.\n *\n * Longer than 600\n * lines because it is a list. */\n" + "int x;\n" * 700,
    "src/transport/transports.c": "const struct tb_t *const tb_transports[] = {&tb_transport_x, &tb_transport_y};\n",
    "src/transport/x.c": "int x = &tb_transport_x;\n",
    "src/b/b_test.c": "int x = &tb_transport_x;\n",
    "tests/check.c": LONG_FUNCTION.replace("    tb_low();\n", "", 1),
    EXCEPTIONS: "# nothing\n",
}
BAD = {
    "circle": ("src/a/low.c", GOOD["src/a/low.c"].replace("return helper()", "return tb_high()"), "circle"),
    "circle-by-table": ("src/a/low.c", GOOD["src/a/low.c"] + "\nstatic int (*table[])(void) = {tb_high};\n", "circle"),
    "circle-by-inline": ("src/a/low.h", GOOD["src/a/low.h"] + "\nstatic inline int x(void)\n{\n    return tb_high();\n}\n",
                         "circle"),
    "circle-by-header": ("src/b/state.h", '#include "b/part.h"\n', "circle"),
    "circle-by-short-body": ("src/a/low.c", GOOD["src/a/low.c"] + "\nint x(void) { return tb_high(); }\n", "circle"),
    "circle-to-short-body": ("src/a/low.c", GOOD["src/a/low.c"].replace("return helper", "return tb_brief"), "circle"),
    "circle-to-brace-behind": ("src/a/low.c", GOOD["src/a/low.c"].replace("return helper", "return tb_behind"), "circle"),
    "circle-to-brace-line": ("src/a/low.c", GOOD["src/a/low.c"].replace("return helper", "return tb_line"), "circle"),
    "circle-of-headers": ("src/a/low.h", '#include "a/high.h"\n' + GOOD["src/a/low.h"], "circle"),
    "circle-of-tested": ("src/a/tested.c", GOOD["src/a/tested.c"].replace("return 0", "return tb_high()"), "circle"),
    "function-brace-behind": ("tests/check.c", LONG_FUNCTION.replace(")\n{", ") {\n"), "tb_long has 71 lines"),
    "function-brace-behind-arguments": ("tests/check.c", LONG_FUNCTION.replace("(void)\n{", "(int x,\n    int y) {", 1),
                                        "tb_long has 71 lines"),
    "function": ("tests/check.c", LONG_FUNCTION, "tb_long has 71 lines"),
    "function-with-attribute": ("tests/check.c", "__attribute__((format(printf, 1, 2), cold)) " + LONG_FUNCTION,
                                "tb_long has 71 lines"),
    "function-attribute-behind": ("tests/check.c", LONG_FUNCTION.replace("\n{", " __attribute__((cold)) {\n", 1),
                                  "tb_long has 71 lines"),
    "function-of-source": ("src/b/b.c", LONG_FUNCTION, "tb_long has 71 lines"),
    "file": ("src/b/long.c", "int x;\n" * 700, "700 lines"),
    "file-late-reason": ("src/b/long.c", "int x;\n" * 700 + "/* Longer than 600 lines because. */\n", "701 lines"),
    "tag": ("src/b/b.c", "struct tb_high {\n    int y;\n};\n", "tag tb_high"),
    "tag-of-other-kind": ("src/b/b.c", "enum tb_high { X };\n", "tag tb_high"),
    "tag-of-used-header": ("src/a/low.c", '#include "a/world.h"\n', "tag mine"),
    "tag-beside": ("src/a/low.c", "struct mine {\n    int y;\n};\n", "tag mine"),
    "transport": ("src/b/b.c", "int x = &tb_transport_y;\n", "names tb_transport_y"),
    "transport-of-command": ("cmd/run.c", "int x = &tb_transport_x;\n", "names tb_transport_x"),
    "exception-unknown": (EXCEPTIONS, "round src/a/low\n", "should be"),
    "exception-stale-circle": (EXCEPTIONS, "circle src/a/low\n", "remove the line"),
    "exception-stale-function": (EXCEPTIONS, "function src/b/b.c:tb_b\n", "remove the line"),
    "exception-stale-file": (EXCEPTIONS, "file src/b/b.c\n", "remove the line"),
    "exception-stale-tag": (EXCEPTIONS, "tag tb_b\n", "remove the line"),
}


def problems_of(files):
    return cases.problems_of(files, check)


def self_test():
    results = {"good": problems_of(GOOD) == []}
    for name, (path, text, expected) in BAD.items():
        results[name] = any(expected in problem for problem in problems_of({**GOOD, path: text}))
    excused = {**GOOD, "src/b/b.c": LONG_FUNCTION, EXCEPTIONS: "function src/b/b.c:tb_long\n"}
    results["exception"] = problems_of(excused) == []
    return cases.tell(results)


def main():
    return cases.judge_repository(sys.argv[1:], check, shrink, self_test,
                                  f"no circles, no long functions or files, no tag twice, transports known by nobody, but for what {EXCEPTIONS} lists")


if __name__ == "__main__":
    sys.exit(main())
