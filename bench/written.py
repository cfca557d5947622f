"""What programs of this folder put into docs/guide/measured.md with --write: lines are kept as they are printed, in a lab in a file that
is read outside, and go between the marks that the page has for the program. What is void is not written."""
import json
import os

PAGE = "measured.md"


class Said:
    """Prints lines, and keeps them."""

    def __init__(self):
        self.lines = []

    def __call__(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def keep(self, path, void):
        """For who waits outside of the lab; `void`: '' if they count."""
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"text": "\n".join(self.lines).strip("\n"), "void": void}, f)


def kept(path):
    """The text of a file that was kept, and removes it; '' if there is none, or it is void."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    os.unlink(path)
    return "" if found["void"] else found["text"]


def write(document_write, program, blocks):
    """Those that have a text. `document_write`: that of bench/planning."""
    for name in (name for name, text in blocks.items() if not text):
        print(f"nothing is written of {name}: it failed, or what was measured is void")
    document_write({name: text for name, text in blocks.items() if text}, program, PAGE)
