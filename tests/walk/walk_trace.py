"""Reads what trace.c has noted: for each process the calls that it made, as trees, with the layer of each function, which is
the folder of src/ that its file is in."""
import array
import os
import re
import subprocess

ROOM = 1 << 20
HEAD_BYTES = 4096
THREAD_SHIFT = 52
LEFT = 1 << 63


class Call:
    """One call of a function, and the calls that it made."""

    def __init__(self, function, file, begin, caller):
        self.function, self.file, self.begin, self.end, self.caller, self.calls = function, file, begin, None, caller, []
        found = re.findall(r"(?:^|/)src/(\w+)/", file)
        self.layer = found[-1] if found else None

    def within(self):
        """It and all calls below, in the order in which they began."""
        stack = [self]
        while stack:
            call = stack.pop()
            yield call
            stack += reversed(call.calls)


def names_of(addresses, maps):
    """{address: (function, file)} of those that lie in a file with symbols."""
    areas, bases = [], {}
    for line in maps.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith("/"):
            begin, end = (int(number, 16) for number in words[0].split("-"))
            bases.setdefault(words[5], begin)
            areas.append((begin, end, words[5]))
    wanted = {}
    for address in addresses:
        for begin, end, path in areas:
            if begin <= address < end:
                wanted.setdefault(path, []).append(address)
    names = {}
    for path, there in wanted.items():
        lines = subprocess.run(["addr2line", "-f", "-e", path], input="\n".join(hex(a - bases[path]) for a in there), text=True,
                               capture_output=True, check=True, timeout=60).stdout.splitlines()
        for address, function, place in zip(there, lines[::2], lines[1::2]):
            names[address] = (function, place.rsplit(":", 1)[0])
    return names


def notes_of(path):
    """(when, what) in order."""
    with open(path, "rb") as f:
        count = int.from_bytes(f.read(8), "little")
        f.seek(HEAD_BYTES)
        words = array.array("Q")
        words.frombytes(f.read(16 * min(count, ROOM)))
    first = count % ROOM if count > ROOM else 0
    for i in range(min(count, ROOM)):
        at = 2 * ((first + i) % ROOM)
        yield words[at], words[at + 1]


def calls_of(path):
    """The outermost calls of a process, of all its threads. What was going on when the first note was made, or when the last
    one was, is a part of them as far as it is known."""
    notes = list(notes_of(path))
    with open(path + ".maps", encoding="utf-8") as f:
        names = names_of({what & ((1 << THREAD_SHIFT) - 1) for _, what in notes}, f.read())
    roots, stacks = [], {}
    for when, what in notes:
        address, stack = what & ((1 << THREAD_SHIFT) - 1), stacks.setdefault(what >> THREAD_SHIFT & 0x7FF, [])
        function, file = names.get(address, ("?", "?"))
        if what & LEFT:
            while stack and stack[-1].function != function:
                stack.pop().end = when
            if stack:
                stack.pop().end = when
            continue
        call = Call(function, file, when, stack[-1] if stack else None)
        (stack[-1].calls if stack else roots).append(call)
        stack.append(call)
    return roots


def processes(folder):
    """{number: its outermost calls}."""
    return {int(name): calls_of(os.path.join(folder, name)) for name in os.listdir(folder) if name.isdigit()}
