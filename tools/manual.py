#!/usr/bin/env python3
"""Makes the texts of --help and the manual pages from one source for each command, docs/man/NAME.txt.

    manual.py --header help_texts.h SOURCE...                 TB_HELP_NAME, a string, for each command that has such a text
    manual.py --pages FOLDER --version VERSION SOURCE...      NAME.1, and a page for each other name, which leads there

A source begins with lines `key: value` and ends these with an empty line:

    names: mpiexec, mpirun, tombolo run         as the page begins; the first is its title
    also: mpirun, tombolo-run                   other pages that lead to this one (may be missing)
    about: start MPI programs                   the rest of its first line
    date: 2026-11-16                            of the last change

What follows is the text of --help, word by word. Lines that begin with "|" are only in the page; behind the mark and a space they
are like others:

    Usage: ...                  the synopsis; lines right below belong to it
    A paragraph.                unindented lines
    What the ranks get          a heading: a line with indented ones right below
      --wdir DIR    where       a row: two or more spaces before its text, which may go on in lines that are indented further;
                                it may also be unindented, and then have indented rows of its own
    Examples, EXAMPLES          rows below this are commands, as they are; likewise `Example: command`
    EXIT STATUS                 in capitals: a section of the page
"""
import argparse
import os
import re
import sys
import textwrap

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
KEYS = {"names", "also", "about", "date"}
OPTION = r"(?<![\w-])--?[a-zA-Z][\w-]*"
WIDTH = 79  # of the lines of a page
ROW = re.compile(r"( *)(\S.*?)(?: {2,}(\S.*))?")


def problem(path, number, text):
    sys.exit(f"{path}:{number}: {text}")


class Source:
    def __init__(self, path):
        self.path, self.page = path, os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        self.keys = {}
        end = lines.index("") if "" in lines else len(lines)
        for number, line in enumerate(lines[:end], 1):
            key, colon, value = line.partition(": ")
            if not colon or key not in KEYS:
                problem(path, number, f"'{line}' is none of: {', '.join(sorted(KEYS))}")
            self.keys[key] = value
        for key in sorted(KEYS - {"also"} - self.keys.keys()):
            problem(path, 1, f"the line `{key}:` is missing")
        self.body = lines[end + 1:]

    def listed(self, key):
        return [name.strip() for name in self.keys.get(key, "").split(",") if name.strip()]

    def help(self):
        """The text of --help; '' if all of it is for the page."""
        text = "\n".join(line for line in self.body if not line.startswith("|")).strip("\n")
        return text + "\n" if text else ""

    def lines(self):
        """Those of the page."""
        return [re.sub(r"^\| ?", "", line).rstrip() for line in self.body]


# ---- the header ------------------------------------------------------------------------------------------------------


def header(sources):
    out = ["/* Made by tools/manual.py from docs/man/: the texts of --help. */"]
    for source in sources:
        if source.help():
            words = [line.replace("\\", "\\\\").replace('"', '\\"') for line in source.help().splitlines()]
            out.append(f"#define TB_HELP_{re.sub(r'[^A-Z]', '_', source.page.upper())} \\")
            out.append(" \\\n".join(f'    "{line}\\n"' for line in words))
    return "\n".join(out) + "\n"


# ---- the page --------------------------------------------------------------------------------------------------------


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    for character, name in (("'", "aq"), ("`", "ga"), ("^", "ha"), ("~", "ti")):
        text = text.replace(character, f"\\({name}")
    return text


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def italic(text):
    return f"\\fI{escape(text)}\\fR"


def prose(text):
    """Lines of a text. Options and what is in backticks are bold; a sentence begins a line, as is usual in roff."""
    out, at = "", 0
    for found in re.finditer(r"`([^`]+)`|" + OPTION, text):
        out += escape(text[at:found.start()]) + bold(found[1] or found[0])
        at = found.end()
    out += escape(text[at:])
    lines = []
    for one in re.split(r"(?<=[a-z)][.]) +(?=[^a-z])", out):
        lines += textwrap.wrap(one, WIDTH, break_long_words=False, break_on_hyphens=False)
    return ["\\&" + line if line.startswith(".") else line for line in lines]


def words_of(text):
    """Options and commands bold, what stands for something else, in capitals, slanted."""
    out, at = "", 0
    for found in re.finditer(OPTION + r"|\b[A-Z][A-Z0-9_]*(?:\.\w+|/[A-Z]+)?\b|\b[a-z]\w*", text):
        word = found[0]
        out += escape(text[at:found.start()]) + (italic(word) if word[0].isupper() and "_" not in word else bold(word))
        at = found.end()
    return out + escape(text[at:])


def sentence(text):
    """A row's text, which begins small and has no full stop, as a sentence."""
    if re.match(r"[a-z]+\b", text):
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".:" else text + "."


class Page:
    """Reads the lines of a source and collects the sections, as lists of lines of roff."""

    def __init__(self, source):
        self.source = source
        self.parts = {"SYNOPSIS": [], "DESCRIPTION": []}
        self.part = self.parts["DESCRIPTION"]
        self.inside = False  # of the rows of an unindented row
        self.lines = source.lines()
        self.added = [line.startswith("|") for line in source.body]

    def read(self):
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            if not line:
                at += 1
            elif line.startswith("Usage: "):
                at = self.synopsis(at)
            elif line in ("Example", "Examples", "EXAMPLES"):
                at = self.examples(at + 1)
            elif line in SECTIONS:
                self.section(line)
                at += 1
            elif line.startswith("Example: "):
                self.section("EXAMPLES")
                self.part += [".EX", f"  {escape(line[9:])}", ".EE"]
                at += 1
            elif line.startswith(" ") or ROW.fullmatch(line)[3]:
                at = self.row(at)
            elif at + 1 < len(self.lines) and re.match(r"  ?\S", self.lines[at + 1]):
                self.leave_row()
                self.part.append(f".SS {escape(line)}")
                at += 1
            else:
                at = self.paragraph(at)
        self.leave_row()
        return self

    def leave_row(self):
        if self.inside:
            self.part.append(".RE")
        self.inside = False

    def section(self, name):
        self.leave_row()
        self.part = self.parts.setdefault(name, [])

    def synopsis(self, at):
        self.lines[at] = self.lines[at].replace("Usage:", "      ", 1)
        part = self.parts["SYNOPSIS"]
        while at < len(self.lines) and self.lines[at].startswith("       "):
            line = self.lines[at].strip()
            name = next((n for n in sorted(self.source.listed("names"), key=len, reverse=True) if line.startswith(n)), None)
            if name is None:
                problem(self.source.path, 1, f"the synopsis '{line}' begins with no name of the command")
            part += [*([".br"] if part else []), f"{bold(name)}{words_of(line[len(name):])}"]
            at += 1
        return at

    def examples(self, at):
        self.section("EXAMPLES")
        self.part.append(".EX")
        while at < len(self.lines) and self.lines[at].startswith("  "):
            self.part.append(escape(self.lines[at]))
            at += 1
        self.part.append(".EE")
        return at

    def row(self, at):
        indent, tag, text = ROW.fullmatch(self.lines[at]).groups()
        text = text or ""
        at += 1
        while at < len(self.lines) and self.lines[at].startswith("    "):
            if self.added[at] and not self.added[at - 1]:
                text = sentence(text)
            text = f"{text} {self.lines[at].strip()}".strip()
            at += 1
        if not indent:
            self.leave_row()
        self.part += [".TP", words_of(tag), *(prose(sentence(text)) or ["\\&"])]
        if not indent and at < len(self.lines) and re.match(r"  -", self.lines[at]):
            self.part.append(".RS")
            self.inside = True
        return at

    def paragraph(self, at):
        self.leave_row()
        text = []
        while at < len(self.lines) and self.lines[at] and not self.lines[at].startswith(" "):
            if self.lines[at] in SECTIONS or ROW.fullmatch(self.lines[at])[3]:
                break
            text.append(self.lines[at])
            at += 1
        self.part += [*([".PP"] if self.part else []), *prose(" ".join(text))]
        return at


def page(source, version):
    names = source.listed("names")
    out = [f'.\\" Made by tools/manual.py from docs/man/{os.path.basename(source.path)}.',
           f'.TH {source.page.upper()} 1 {source.keys["date"]} "Tombolo {version}" "User commands"',
           ".nh", ".ad l", ".SH NAME", f"{escape(', '.join(names))} \\- {escape(source.keys['about'])}"]
    parts = Page(source).read().parts
    for name in SECTIONS:
        if parts.get(name):
            out += [f".SH {name}", *parts[name]]
    return "\n".join(out) + "\n"


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header")
    parser.add_argument("--pages")
    parser.add_argument("--version", default="")
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    sources = [Source(path) for path in options.sources]
    if options.header:
        write(options.header, header(sources))
    for source in sources if options.pages else ():
        write(os.path.join(options.pages, source.page + ".1"), page(source, options.version))
        for name in source.listed("also"):
            write(os.path.join(options.pages, name + ".1"), f".so man1/{source.page}.1\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
