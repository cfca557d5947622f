#!/usr/bin/env python3
"""Checks the manual pages: every command and subcommand has one, a page and --help know the same options, whatever --help says
stands in the page, and the formatter has nothing to complain about. The pages are those of the build."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
PAGES = os.path.join(BUILD, "docs", "man")
BIN = os.path.join(BUILD, "bin")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import cases
import manual

ASKED_FOR_HELP = {"-h", "--help"}  # a help text need not name them
NO_PAGE = {"version", "help"}  # subcommands that tombolo(1) describes


def run(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)


def sources():
    return [manual.Source(path) for path in sorted(glob.glob(os.path.join(ROOT, "docs", "man", "*.txt")))]


def help_of(source):
    """What the command says, or '' if its help is somebody else's (mpicc passes --help on)."""
    words = source.page.split("-", 1) if source.page.startswith("tombolo") else [source.page]
    return run(os.path.join(BIN, words[0]), *words[1:], "--help").stdout if source.help() else ""


def roff(page):
    with open(os.path.join(PAGES, page + ".1"), encoding="ascii") as f:
        return f.read()


def plain(text):
    """A page as it is read, without fonts and macros; tags of lists keep their lines."""
    text = "\n".join(re.sub(r"^\.(SH|SS) ", "", line) for line in text.splitlines() if re.match(r"\.S[HS]|[^.]|$", line))
    text = re.sub(r"\\f[BIR]", "", text).replace("\\&", "").replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`")
    return text.replace("\\(ha", "^").replace("\\(ti", "~").replace("\\e", "\\")


def options_of(text):
    return set(re.findall(manual.OPTION, text))


def option_problems(name, help_text, page_text):
    """Options that one names and the other does not."""
    said, described = options_of(help_text), options_of(plain(page_text))
    yield from (f"{name}.1 lacks {option}, which --help names" for option in sorted(said - described))
    yield from (f"{name} --help lacks {option}, which its page names" for option in sorted(described - said - ASKED_FOR_HELP))


def word_problems(name, help_text, page_text):
    """Words of the help text that the page has lost."""
    def words(text):
        found = {}
        for word in re.findall(r"\w[\w./:=,@-]*\w|\w", text.lower()):
            found[word] = found.get(word, 0) + 1
        return found
    there = words(plain(page_text))
    for word, count in words(help_text.replace("Usage:", "")).items():
        if there.get(word, 0) < count and word not in ("examples", "example"):
            yield f"{name}.1 has '{word}' {there.get(word, 0)} times, --help has it {count} times"


def missing_pages():
    listed = re.findall(r"^  (\w+) ", run(os.path.join(BIN, "tombolo"), "--help").stdout, re.M)
    if not listed:
        yield "tombolo --help lists no subcommands"
    for name in [*(f"tombolo-{word}" for word in listed if word not in NO_PAGE), *sorted(os.listdir(BIN))]:
        path = os.path.join(PAGES, name + ".1")
        if not os.path.exists(path):
            yield f"there is no {name}.1"
        elif (link := re.fullmatch(r"\.so man1/(.*)\n", roff(name))) and not os.path.exists(os.path.join(PAGES, link[1])):
            yield f"{name}.1 leads to {link[1]}, which does not exist"


def other_help():
    for source in sources():
        if help_of(source) != source.help():
            yield f"what {source.page} says to --help is not the text of {os.path.relpath(source.path, ROOT)}"


def other_options():
    for source in sources():
        if source.help():
            also = "--version -V" if source.page == "tombolo" else ""  # other names of its subcommand, which only the page has
            yield from option_problems(source.page, f"{help_of(source)} {also}", roff(source.page))


def lost_words():
    for source in sources():
        if source.help():
            yield from word_problems(source.page, help_of(source), roff(source.page))


def complaints():
    for path in sorted(glob.glob(os.path.join(PAGES, "*.1"))):
        with open(path, encoding="ascii") as f:
            if f.read().startswith(".so "):
                continue
        if shutil.which("groff"):
            done = run("groff", "-man", "-ww", "-Tascii", "-z", path)
            yield from done.stderr.splitlines()
            if done.returncode != 0:
                yield f"{path}: groff ends with {done.returncode}"
        if shutil.which("mandoc"):
            yield from run("mandoc", "-T", "lint", "-W", "warning", path).stdout.splitlines()


SAMPLE = """\
names: sample
about: a sample
date: 2026-11-16

Usage: sample [--one] FILE

Does something. It isn't much.

How
  --one N       the first
                of all
| --two         the second
"""


def undetected():
    """Made-up faults that the cases above would not see."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample.txt")
        with open(path, "w", encoding="ascii") as f:
            f.write(SAMPLE)
        source = manual.Source(path)
        page = manual.page(source, "0")
    if "--two" in source.help() or "of all" not in source.help():
        yield "lines of the page only are in the help text, or others are not"
    if list(option_problems("sample", source.help() + "--two", page)) or list(word_problems("sample", source.help(), page)):
        yield "a sample that is right is complained about"
    if not any("--two" in line for line in option_problems("sample", source.help(), page)):
        yield "an option that only the page has is not seen"
    if not any("--one" in line for line in option_problems("sample", source.help(), page.replace("one", "none"))):
        yield "an option that the page lacks is not seen"
    if not list(word_problems("sample", source.help(), page.replace("something", ""))):
        yield "a lost word is not seen"


def main():
    finders = {"pages": missing_pages, "help": other_help, "options": other_options, "words": lost_words,
               "can-fail": undetected}
    if shutil.which("groff") or shutil.which("mandoc"):
        finders["format"] = complaints
    else:
        print("case: format skipped (there is neither groff nor mandoc)")
    return cases.tell_problems(finders, (OSError, SystemExit, subprocess.SubprocessError))


if __name__ == "__main__":
    sys.exit(main())
