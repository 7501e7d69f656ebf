#!/usr/bin/env python3
"""The commands that the documents show, as a reader would type them: each document is one session of bash in an empty
directory, with the programs of the build on its PATH.

    $ COMMAND           is run, and has to end with status 0
    > MORE              goes on with it
    OUTPUT              behind it, in the same block: what it has to print; "..." is any text, alone in a line any lines
    % COMMAND  # WHY    is not run: the remark says what it needs that a test has not

Of a manual these are the lines of its EXAMPLES, ".Dl COMMAND"; one behind the remark '.\\" % WHY' is not run.

Other blocks, of these documents and all others, are files, settings or what somebody else prints. Ports that documents
name are free ones here. With names of documents as arguments only the commands of those are run."""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.supervised import ROOT, free_port, need_entrance  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

DOCUMENTS = ("README.md", "doc/tutorial.md", "doc/operators.md", "doc/install.md", "doc/images.md", "doc/clouds.md",
             "doc/kubernetes.md", "doc/live.md", "doc/isolation.md", "doc/troubleshooting.md", "doc/recipe-1000.md",
             "doc/figures.md", "doc/e2b.md", "doc/host.md", "man/handrail.1", "man/handraild.8.in")
# Root runs their commands a second time as an ordinary user, whose defaults differ.
ORDINARY = ("README.md", "doc/tutorial.md", "doc/install.md", "doc/host.md")
ORDINARY_PATH = "/usr/local/bin:/usr/bin:/bin"  # Debian's login has no sbin
PORTS = ("3000", "3001", "8000", "8443")
BARE = re.compile(r"^    (?:handrail[a-z-]* |curl |apt-get |make |docker |kubectl |\./|packaging/\w).*", re.M)


def has_kernel():
    """Whether the interpreter that handrail-jupyter takes has one."""
    usual = "/usr/bin/python3"
    python = usual if os.access(usual, os.X_OK) else "python3"
    return subprocess.run([python, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode == 0


# what a command needs that is no part of a Debian: who looks for it, and how to get it
NEEDS = (
    (re.compile(r"\bhandrail py\b"), has_kernel, "there is no ipykernel: apt-get install python3-ipykernel"),
    (re.compile(r"\bpromtool\b"), lambda: shutil.which("promtool"), "there is no promtool: apt-get install prometheus"),
)


class Command:
    def __init__(self, line, text):
        self.line, self.text, self.prints = line, text, []
        self.missing = next((why for what, have, why in NEEDS if what.search(text) and not have()), None)


def examples_of(manual):
    """Of a manual, as a document has them, line for line."""
    shown, why, inside = [], None, False
    for line in manual.split("\n"):
        inside = line == ".Sh EXAMPLES" if line.startswith(".Sh ") else inside
        text = line[4:].replace(r"\(dq", '"').replace(r"\e", "\\")
        shown.append("" if not inside or not line.startswith(".Dl ") else
                     "    %% %s  # %s" % (text, why) if why else "    $ " + text)
        why = line[6:] if line.startswith(r'.\" % ') else None
    return "\n".join(shown)


def commands_of(text):
    """(those that are run, the others)"""
    run, others, now = [], [], None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("    "):
            now = None
            continue
        line = line[4:]
        if line[:2] in ("$ ", "% "):
            now = Command(number, line[2:])
            (run if line[0] == "$" else others).append(now)
        elif now is not None and line.startswith("> ") and not now.prints:
            now.text += "\n" + line[2:]
        elif now is not None:
            now.prints.append(line)
    return run, others


def as_pattern(lines):
    """Of what has to be printed."""
    text = ""
    for line in lines:
        if line == "...":
            text += r"(?:.*\n)*?"
        else:
            text += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.compile(text)


def typed(h, commands, ports, user):
    """Runs the commands as `user` (None: this account). Returns [(status, output)]."""
    if user is not None:
        for name in ("", "home", "tmp", "cwd", "run"):
            shutil.chown(h.path(name), user)
        del h.env["XDG_RUNTIME_DIR"]  # only a login sets it
    script = h.path("script")
    with open(script, "w", encoding="utf-8") as f:
        for n, c in enumerate(commands):
            f.write("printf '\\001%d\\n'\n%s\nprintf '\\002%%d\\n' $?\n" % (n, ports(c.text)))
    with open(h.path("output"), "w+b") as out:
        path = h.env["PATH"] + ":/usr/sbin:/sbin" if user is None else ORDINARY_PATH
        env = dict(h.env, PATH="%s:%s" % (BUILD, path), SRC=SRC, LC_ALL="C.UTF-8",
                   HANDRAIL_FLEETD=os.path.join(BUILD, "handrail-fleetd"))
        subprocess.run(["bash", "--norc", script], env=env, cwd=h.path("cwd"), stdin=subprocess.DEVNULL, stdout=out,
                       stderr=out, timeout=10 * PATIENCE, user=user, extra_groups=[] if user else None)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    done = {int(n): (int(status), said) for n, said, status in re.findall(r"\x01(\d+)\n(.*?)\x02(\d+)\n", text, re.S)}
    return [done.get(n, (None, text)) for n in range(len(commands))]


def judge(command, status, said, ports):
    equal(status, 0, "line %d: %s\n%s" % (command.line, command.text, said))
    said += "" if said.endswith("\n") else "\n"
    if command.prints and not as_pattern([ports(line) for line in command.prints]).fullmatch(said):
        equal(said, "\n".join(command.prints), "line %d: %s" % (command.line, command.text))


def run_document(tap, name, user=None):
    with open(os.path.join(SRC, name), encoding="utf-8") as f:
        text = f.read()
    commands, others = commands_of(examples_of(text) if name.startswith("man/") else text)
    if name.startswith("man/"):
        tap.is_(len(commands + others) > 0, True, name + ": has examples")
    tap.is_([c.text for c in others if not re.search(r" # \w", c.text)], [], "%s: what is not run says why" % name)
    chosen = {port: str(free_port()) for port in PORTS}

    def ports(text):
        return re.sub(r"\b(%s)\b" % "|".join(PORTS), lambda m: chosen[m.group(1)], text)

    run = [c for c in commands if c.missing is None]
    with Host() as h:
        results = typed(h, run, ports, user)
        for command in commands:
            title = "%s:%d: %s%s" % (name, command.line, "as %s: " % user if user else "", command.text.split("\n")[0])
            if command.missing is not None:
                tap.skip(title, command.missing)
            else:
                tap.run(title, judge, command, *results.pop(0), ports)


def run_ordinary(tap, name):
    need_entrance()
    run_document(tap, name, "nobody")


def main():
    process.become_subreaper()
    tap = Tap()
    for name in ["README.md"] + glob.glob("doc/*.md", root_dir=SRC):
        with open(os.path.join(SRC, name), encoding="utf-8") as f:
            tap.is_(BARE.findall(f.read()), [], "%s: each command has its prompt" % name)
    for name in sys.argv[1:] or DOCUMENTS:
        tap.run(name + ": nothing is left behind", run_document, tap, name)
        if ROOT and name in ORDINARY:
            tap.run(name + ": nothing is left behind by an ordinary user", run_ordinary, tap, name)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
