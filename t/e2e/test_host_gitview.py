#!/usr/bin/env python3
"""What the host shows of a work tree in a sandbox: changes, and the two sides of a file, also where the
sandbox's own helper cannot be used."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, Host  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

GIT_ENV = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", LC_ALL="C.UTF-8")
CHANGES = [{"status": "A", "path": "added"}, {"status": "D", "path": "gone"}, {"status": "M", "path": "kept"}]


def git(where, *argv):
    subprocess.run(["git", "-C", where, "-c", "user.name=a", "-c", "user.email=b"] + list(argv), env=GIT_ENV,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(*names, text=""):
    with open(os.path.join(*names), "w") as f:
        f.write(text)


class Place(Host):
    """A sandbox whose first directory has a clone with a change of each kind, in "it's"."""

    def __init__(self, **env):
        super().__init__(GIT_CONFIG_SYSTEM="/dev/null", LC_ALL="C.UTF-8")
        self.work, origin = self.path("work"), self.path("origin")
        self.repo = os.path.join(self.work, "it's")
        os.mkdir(self.work)
        os.mkdir(origin)
        self.env.update(env, WORKSPACE_BASE=self.work)
        git(origin, "init", "-b", "main")
        write(origin, "kept", text="one\ntwo\n")
        write(origin, "gone", text="x\n")
        git(origin, "add", ".")
        git(origin, "commit", "-m", "x")
        git(self.work, "clone", origin, self.repo)
        write(self.repo, "kept", text="one\n2\n")
        write(self.repo, "added", text="new\n")
        os.unlink(os.path.join(self.repo, "gone"))


def look(h):
    """The same by each way to the helper."""
    equal(json.loads(h.ok("repo", "changes", "--json", "it's")), CHANGES)
    equal(h.ok("repo", "changes", "it's"), "A added\nD gone\nM kept\n")
    equal(json.loads(h.ok("repo", "diff", "-j", "it's/kept")), {"original": "one\ntwo", "modified": "one\n2"})
    equal(json.loads(h.ok("repo", "diff", "-j", "it's/added")), {"original": "", "modified": "new"})


def of_the_kind_local():
    with Place() as h:
        h.ok("up")
        look(h)
        equal(h.ok("repo", "changes"), "A it's/added\nD it's/gone\nM it's/kept\n", "of a repository right below")
        equal(h.ok("repo", "diff", os.path.join(h.repo, "kept")),
              "--- {0}\n+++ {0}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n".format(os.path.join(h.repo, "kept")), "for people")
        h.ok("run", "cd /")
        equal(h.ok("repo", "changes", "it's"), "A added\nD gone\nM kept\n", "wherever the shell is")
        git(h.repo, "stash")
        equal(h.ok("repo", "diff", "it's/kept"), "", "nothing differs")


def branches():
    """By a program, as no command shows them."""
    with Place() as h:
        h.ok("up")

        def branch(directory):
            done = subprocess.run([os.path.join(BUILD, "t/host/branch"), h.path("state"), "default", directory],
                                  env=h.env, cwd=h.path("cwd"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True)
            equal((done.returncode, done.stderr), (0, ""), directory)
            return done.stdout

        equal(branch("it's"), "main\n")
        git(h.repo, "checkout", "-b", "another/one")
        equal(branch("it's"), "another/one\n")
        h.ok("run", "cd /")
        equal(branch("it's"), "another/one\n", "wherever the shell is")
        git(h.repo, "checkout", "--detach")
        equal((branch("it's"), branch("."), branch("missing")), ("-\n", "-\n", "-\n"), "none, or no repository")


def errors():
    with Place() as h:
        h.ok("up")
        write(h.work, "alone", text="x")
        h.fails(1, "the path is not in a git repository", "repo", "diff", "alone")
        h.fails(3, "there is no file it's/missing in the sandbox; a relative path starts in the workspace",
                "repo", "diff", "it's/missing")
        h.fails(1, "the name of the file must not be empty", "repo", "diff", "")
        h.fails(3, "missing: No such file or directory", "repo", "changes", "missing")
        equal((h.ok("repo", "changes", "--json", "."), h.ok("repo", "changes", "/")),
              (h.ok("repo", "changes", "-j"), ""), "no repository")
        shutil.rmtree(os.path.join(h.repo, ".git", "objects"))
        os.mkdir(os.path.join(h.repo, ".git", "objects"))
        h.fails(1, "git in the sandbox: fatal: ", "repo", "changes", "it's")
        h.fails(2, "usage: handrail repo diff", "repo", "diff")


def long_answers():
    """Longer than what an observation shows."""
    text = "".join("line %d of a long file\n" % i for i in range(20000))
    with Place() as h:
        h.ok("up")
        write(h.repo, "long", text=text)
        before = set(os.listdir(h.path("tmp")))
        equal(json.loads(h.ok("repo", "diff", "-j", "it's/long")), {"original": "", "modified": text[:-1]})
        equal(set(os.listdir(h.path("tmp"))) - before, set(), "no file is left")


def given_the_helper():
    """Changes and diff where the helper cannot be run: it is copied to the sandbox, used and removed."""
    with Place() as h:
        h.ok("up")
        os.mkdir(h.path("libexec"))
        for name in os.listdir(BUILD):
            if name.startswith("handrail-") and name.endswith(".so"):
                os.symlink(os.path.join(BUILD, name), h.path("libexec", name))
        shutil.copyfile(os.path.join(BUILD, "handrail-git"), h.path("libexec", "handrail-git"))
        h.env["HANDRAIL_LIBEXECDIR"] = h.path("libexec")
        before = set(os.listdir(h.path("tmp")))
        look(h)
        equal(set(os.listdir(h.path("tmp"))) - before, set(), "nothing of it is left")
        write(h.path("libexec", "handrail-git"),  # as one that lacks its libraries, and then has them beside it
              text="#!/bin/sh\nd=${0%%/*}\nls $d/libjson-c.so* $d/libutf8proc.so* >/dev/null 2>&1 || exit 127\n"
              "[ \"$LD_LIBRARY_PATH\" = \"$d\" ] || exit 127\nexec %s/handrail-git \"$@\" 2>&1\n" % BUILD)
        look(h)
        equal(set(os.listdir(h.path("tmp"))) - before, set(), "nothing of them is left")
        write(h.path("libexec", "handrail-git"), text="#!/bin/sh\necho libc.so.6: no such version\nexit 127\n")
        h.fails(1, "handrail: the image has no /openhands/code/openhands/runtime/utils/git_changes.py, and "
                "handrail-git of this machine cannot run there, which needs git, libjson-c and libutf8proc: libc.so.6",
                "repo", "changes", "it's")
        os.unlink(h.path("libexec", "handrail-git"))
        h.fails(3, "handrail-git does not exist", "repo", "diff", "it's/kept")


def of_the_kind_cli():
    with Place(RUNTIME="cli") as h:
        h.ok("up")
        look(h)


def main():
    if not shutil.which("git"):
        skip_all("no git (Debian: git)")
    process.become_subreaper()
    tap = Tap()
    for test in (of_the_kind_local, branches, errors, long_answers, given_the_helper, of_the_kind_cli):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
