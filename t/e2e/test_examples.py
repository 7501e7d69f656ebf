#!/usr/bin/env python3
"""The programs in doc/examples, built against the library, with a sandbox of this machine; and that libhandrail(3) has
every call that the library exports, and nothing else."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402


def example(h, name, *words):
    return subprocess.run([os.path.join(BUILD, "doc/examples", name)] + list(words), env=h.env, cwd=h.path("cwd"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=PATIENCE)


def run():
    with Host() as h:
        done = example(h, "run", "echo \"it's\" \"$((6 * 7))\"; (exit 3)")
        equal((done.returncode, done.stdout), (3, "it's 42\n"), done.stderr)
        equal(h.ok("ps", "--json").strip(), "[]", "it has ended")
        h.env["RUNTIME"] = "nothing"
        done = example(h, "run", "true")
        equal((done.returncode, done.stdout, done.stderr.startswith("run: ")), (1, "", True), done.stderr)


def visit():
    with Host() as h:
        done = example(h, "visit", h.path("state"), "box", "/etc/hostname", "/tmp")
        equal((done.returncode, done.stdout, "handrail up box" in done.stderr), (1, "", True), done.stderr)
        h.ok("up", "-n", "box")
        directory = h.ok("run", "-n", "box", "mkdir there && cd there && pwd").strip()
        with open(h.path("cwd", "notes"), "w") as f:
            f.write("text\n")
        done = example(h, "visit", h.path("state"), "box", "notes", directory)
        equal(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        equal(re.match(r"box is running at http://127\.0\.0\.1:\d+$", lines[0]) is not None, True, lines)
        equal(lines[1:], ["before: []", 'after: ["notes"]'])
        equal(h.ok("read", "-n", "box", "notes"), "text\n", "and it is still there")


def manual_has_every_call():
    with open(os.path.join(SRC, "src/host/libhandrail.map")) as f:
        exported = set(re.findall(r"^\t(hr_\w+);$", f.read(), re.M))
    with open(os.path.join(SRC, "man/libhandrail.3")) as f:
        told = re.findall(r"^\.It .*\bFn (hr_\w+) (.*)$", f.read(), re.M)
    equal(sorted(name for name, _ in told), sorted(exported))
    with open(os.path.join(SRC, "src/host/handrail.h")) as f:
        header = re.sub(r"/\*.*?\*/", " ", f.read() + "const char *hr_err_class(const struct hr_err *err);", flags=re.S)
    for name, words in told:
        found = re.search(r"\b%s\(([^()]*)\);" % name, header)
        equal(found is not None, True, name + " is in handrail.h")
        of_header = ", ".join(" ".join(part.split()) for part in found.group(1).split(","))
        of_manual = ", ".join(re.findall(r'"([^"]*)"', words)) or words
        equal(of_manual, of_header, name)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (run, visit, manual_has_every_call):
        tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
