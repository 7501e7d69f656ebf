#!/usr/bin/env python3
"""The tools of the door for agents that look for files and in files: what they leave out they say, and what is named is
found (doc/agents.md, "Tools")."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_door import call, structured, text  # noqa: E402


def put(s, name, data=b"needle\n"):
    path = os.path.join(s.work_dir, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def lines(s, data, pattern, **args):
    """The numbers of the lines that match."""
    path = put(s, "f", data)
    found = structured(call(s, "grep", path=path, pattern=pattern, **args))
    equal(found["complete"], True, (pattern, found))
    return [m["line"] for m in found["matches"]]


def line_by_line():
    with Server() as s:
        code = b"import os\n\n\n\ndef a():\n    pass\n\n  def b():\n\tdef c():\n"
        equal(lines(s, code, r"^\s*def "), [5, 8, 9])
        equal(lines(s, code, r"^\s*$"), [2, 3, 4, 7])
        equal(lines(s, code, r"os\s+def"), [])
        equal(lines(s, code, r"[^x]pass"), [6])
        equal(lines(s, code, r"\A\s*def"), [5, 8, 9])
        equal(lines(s, code, r"a\(\):\z"), [5])
        equal(lines(s, code, r"(?s)def.*"), [5, 8, 9])
        equal(lines(s, b"# c\n" * 30000 + b"a x\n", r"^[^#]*x"), [30001])
        equal(lines(s, b"a\nb", "b"), [2])
        equal(lines(s, b"\n\n", "^$"), [1, 2])
        equal(lines(s, b"", "^"), [])
        equal("\\n is in none" in text(call(s, "grep", path=put(s, "f", b"a\nb\n"), pattern=r"a\nb")), True)
        s.stop()


def line_ends():
    with Server() as s:
        dos = b"one\r\ntwo \r\nthree\r\n\r\nlast"
        equal(lines(s, dos, "one$"), [1])
        equal(lines(s, dos, r"^\w+$"), [1, 3, 5])
        equal(lines(s, dos, r"\s$"), [2])
        equal(lines(s, dos, "^$"), [4])
        equal(lines(s, dos, r"ee.$"), [])
        equal(lines(s, dos, r"\r"), [1, 2, 3, 4])
        equal(lines(s, dos, r"one\r$"), [1])
        equal(lines(s, dos, "one\r", literal=True), [1])
        equal(lines(s, b"a\rb x\rc", "x$"), [2])
        equal("1:one\n" in text(call(s, "grep", path=put(s, "f", dos), pattern="one")), True)
        for charset, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
            equal(lines(s, mark + "import é\r\nimport x\r\n".encode(charset), "^import .$"), [1, 2], charset)
        equal("binary" in text(call(s, "grep", path=put(s, "f", b"x\0y"), pattern="x")), True)
        s.stop()


def long_lines():
    with Server() as s:
        for word in ("needle", "nädel", "針針針"):
            for before, after in ((0, 5000), (5000, 5000), (5000, 0), (350, 0), (40, 390)):
                r = call(s, "grep", path=put(s, "f", ("é" * before + word + "é" * after + "\n").encode()), pattern=word)
                shown = structured(r)["matches"][0]["text"]
                equal((word in shown, len(shown.encode()) < 420, shown.startswith("[...]"), "\ufffd" in shown),
                      (True, True, before > 90, False), (before, after, shown))
                equal(shown in text(r), True)
        s.stop()


def sizes_of_the_kernel():
    with Server() as s:
        equal(structured(call(s, "grep", path="/proc/self/status", pattern="^Name:"))["total"], 1)
        s.stop()


if __name__ == "__main__":
    sys.exit(run_tests([line_by_line, line_ends, long_lines, sizes_of_the_kernel]))
