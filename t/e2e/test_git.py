#!/usr/bin/env python3
"""handrail-git: the changes of a work tree and the diff of a file, and the paths by which clients ask."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import BUILDDIR, SRCDIR, find_program  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402

HELPER = os.path.join(BUILDDIR, "handrail-git")
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


class Place:
    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="e2e-git-")
        return self

    def __exit__(self, *what):
        shutil.rmtree(self.top)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def git(self, where, *args):
        subprocess.run(["git", "-C", self.path(where), "-c", "init.defaultBranch=main"] + list(args), env=ENV,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(self, *names, text=""):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())

    def ask(self, where, *args, program=(HELPER,), env=ENV):
        return subprocess.run(list(program) + list(args), cwd=self.path(where), env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def changes(self, where="w", *options):
        done = self.ask(where, "changes", *options)
        equal((done.returncode, done.stderr), (0, b""))
        equal(done.stdout.endswith(b"\n") and done.stdout.isascii(), True, done.stdout)
        return json.loads(done.stdout)

    def diff(self, path, where="w"):
        done = self.ask(where, "diff", path)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode().strip()

    def clone(self):
        """An origin and a clone of it on a branch with changes of every kind."""
        os.mkdir(self.path("origin"))
        self.git("origin", "init")
        for name in ("same", "c-mod", "c-del", "s-mod", "s-del", "u-mod", "u-del"):
            self.write("origin", name, text="old %s\n" % name)
        self.git("origin", "add", ".")
        self.git("origin", "commit", "-m", "one")
        self.git("", "clone", "origin", "w")
        self.git("w", "checkout", "-b", "feature")
        for kind, after in (("c", ["commit", "-m", "two"]), ("s", None), ("u", None)):
            self.write("w", kind + "-add", text="added\n")
            self.write("w", kind + "-mod", text="changed\n")
            os.unlink(self.path("w", kind + "-del"))
            if kind != "u":
                self.git("w", "add", "-A")
            if after:
                self.git("w", *after)


def listed(*lines):
    return [{"status": line[0], "path": line[2:]} for line in lines]


def branch_with_everything():
    with Place() as p:
        p.clone()
        want = listed("A c-add", "D c-del", "M c-mod", "A s-add", "D s-del", "M s-mod", "A u-add", "D u-del",
                      "M u-mod")
        equal(p.changes(), want)
        p.git("origin", "checkout", "--detach")
        p.git("w", "push", "origin", "feature")
        equal(p.changes(), want[3:], "after a push")
        done = p.ask("w", "changes")
        equal(done.stdout.startswith(b'[{"status": "A", "path": "s-add"}, '), True, done.stdout)
        equal(p.diff("s-mod"), {"modified": "changed", "original": "old s-mod"})
        equal(p.diff("same"), {"modified": "old same", "original": "old same"})
        equal(p.diff("u-add"), {"modified": "added", "original": ""})
        equal(p.diff(p.path("w", "u-mod"), ""), {"modified": "changed", "original": "old u-mod"})


def unpushed_commit():
    with Place() as p:
        p.clone()
        equal(p.diff("c-mod"), {"modified": "changed", "original": "old c-mod"})


def no_remote_and_no_repository():
    with Place() as p:
        os.mkdir(p.path("w"))
        equal(p.changes(), [])
        p.git("w", "init")
        equal(p.changes(), [])
        p.write("w", "d/ü x.txt", text="1")
        p.write("w", "b", text="2")
        p.write("w", ".gitignore", text="ignored\n")
        p.write("w", "ignored", text="3")
        p.git("w", "add", "b")
        equal(p.changes(), listed("A \"d/\\303\\274 x.txt\"", "A .gitignore", "A b"))
        p.write("alone", "f", text="x")
        equal(p.diff("f", "alone"), "no_repository")
        equal(p.diff("missing"), "No such file or directory")


def nested():
    with Place() as p:
        p.clone()
        for name in ("inner", "in ner", ".hidden"):
            os.makedirs(p.path("w", name))
            p.git(os.path.join("w", name), "init")
            p.write("w", name, "f", text="x")
        p.write("w", "innermost.txt", text="hidden by its name")
        got = [c["path"] for c in p.changes()]
        equal("in ner/f" in got and "inner/f" in got, True, got)
        equal([g for g in got if g.startswith("innermost") or g == "inner/"], [])
        equal(got, sorted(got))
        equal(p.diff("inner/f"), {"modified": "x", "original": ""})


def odd_changes():
    with Place() as p:
        os.mkdir(p.path("w"))
        p.git("w", "init")
        for name in ("a.txt", "b b.txt"):
            p.write("w", name, text="x" * 100)
            p.git("w", "add", name)
        equal(p.changes(), {"error": "unexpected_value_in_git_diff:['A\\ta.txt', 'A\\tb b.txt']"})
    with Place() as p:
        p.clone()
        os.unlink(p.path("w", "same"))
        os.symlink("u-mod", p.path("w", "same"))
        equal(p.changes()["error"].startswith("unexpected_status_in_git_diff:["), True)
    with Place() as p:
        p.clone()
        p.git("w", "stash", "-u")
        p.git("w", "reset", "--hard", "origin/main")
        p.git("w", "mv", "same", "renamed")
        equal(p.changes(), listed("A renamed", "D same"))
        shutil.rmtree(p.path("w", ".git", "objects"))
        os.mkdir(p.path("w", ".git", "objects"))
        equal(p.changes()["error"].startswith("error_running_cmd:128:fatal: "), True)


def deleted_and_untracked():
    """A file that left the index but not the work tree: first what the comparison has, then what is untracked."""
    with Place() as p:
        p.clone()
        p.git("w", "rm", "--cached", "c-mod", "same")
        got = [c for c in p.changes() if c["path"] in ("c-mod", "same")]
        equal(got, listed("D c-mod", "A c-mod", "D same", "A same"))


def any_changes():
    """What the list for clients of the original leaves out or fails at, for all others."""
    names = [" lead", "a\tb", "a b.txt", "line\nfeed", "trail ", "ü/文.txt", '"q"', "\\", "-x", "foo/g", "foobar"]
    with Place() as p:
        os.mkdir(p.path("w"))
        equal(p.changes("w", "--any"), [])
        p.git("w", "init")
        for name in names:
            p.write("w", name, text=name * 20)
        equal([c["path"] for c in p.changes("w", "--any")], sorted(names, key=str.encode))
        p.git("w", "add", "--", *names[::2])
        equal(p.changes("w", "--any"), [{"status": "A", "path": n} for n in sorted(names, key=str.encode)])
        p.git("w", "init", "foo")
        equal([c["path"] for c in p.changes("w", "--any")], sorted(names, key=str.encode))
        shutil.rmtree(p.path("w", "foo", ".git"))
        p.git("w", "add", "--", *names)
        p.git("w", "commit", "-m", "one")
        p.git("w", "mv", names[2], "new name")
        os.unlink(p.path("w", "foobar"))
        os.symlink("a b", p.path("w", "foobar"))
        equal(p.changes("w", "--any", "--ref", "HEAD"), listed("D a b.txt", "M foobar", "A new name"))
        equal(p.ask("w", "changes", "--any", "--ref", "nothing").returncode, 1)
        equal(p.changes("w/ü", "--any"), listed("A 文.txt"))
        # a conflict
        p.git("w", "checkout", "-f", "-b", "other")
        p.git("w", "reset", "--hard")
        for branch in ("other", "main"):
            p.git("w", "checkout", branch)
            p.write("w", "foo bar", text=branch)
            p.git("w", "add", "-A")
            p.git("w", "commit", "-m", branch)
        p.ask("w", "merge", "other", program=("git",))
        equal(p.changes("w", "--any", "--ref", "HEAD"), listed("M foo bar"))
        p.write("w", ".git/index", text="no index")
        equal("index file" in p.changes("w", "--any")["error"], True)
        os.mkdir(p.path("s"))
        p.git("s", "init", "--object-format=sha256")
        p.write("s", "x", text="1")
        p.git("s", "add", "x")
        equal(p.changes("s", "--any"), listed("A x"))


def of_another_owner():
    with Place() as p:
        if os.geteuid() != 0:
            raise Skip("needs root, to give a repository away")
        p.clone()
        for name in ("w", "w/.git"):
            os.chown(p.path(name), 65534, 65534)
        equal("dubious ownership" in p.changes("w", "--any")["error"], True)
        p.git("", "init", "outer")
        os.rename(p.path("w"), p.path("outer", "w"))
        equal("dubious ownership" in p.changes("outer", "--any")["error"], True, "one below it")


def texts():
    with Place() as p:
        os.mkdir(p.path("w"))
        p.git("w", "init")
        p.write("w", "blank", text="  lead\n\ntrail  \n\n")
        p.git("w", "add", ".")
        p.git("w", "commit", "-m", "x")
        p.git("", "clone", "w", "v")
        equal(p.diff("blank", "v"), {"original": "lead\n\ntrail", "modified": "  lead\n\ntrail  \n"})
        p.write("v", "lines", text="a\r\nb\rc\vd\x0ce\x1cf\x85g\u2028h\ud7ffé😀\n".replace("\x85", "\u0085"))
        done = p.ask("v", "diff", "lines")
        equal(done.stdout.isascii(), True)
        equal(json.loads(done.stdout)["modified"], "a\nb\nc\nd\ne\nf\ng\nh\ud7ffé😀")
        p.write("v", "large", text=b"x" * (1 << 20))
        equal(len(p.diff("large", "v")["modified"]), 1 << 20)
        p.write("v", "large", text=b"x" * ((1 << 20) + 1))
        equal(p.diff("large", "v"), "file_to_large")
        p.write("v", "binary", text=b"\xff\xfe")
        equal(p.diff("binary", "v"), "the file is not UTF-8")
        equal(p.ask("v", "diff").returncode, 2)


def named_commits():
    """Against a commit that is named, and what one commit changed, of files that are gone as well."""
    with Place() as p:
        os.mkdir(p.path("w"))
        p.git("w", "init")
        p.write("w", "d", "a", text="one\n")
        p.write("w", "b", text="b\n")
        for name, text in (("first", "one\n"), ("second", "two\n")):
            p.write("w", "d", "a", text=text)
            p.git("w", "add", ".")
            p.git("w", "commit", "-m", name)
            p.git("w", "tag", name)
        shutil.rmtree(p.path("w", "d"))
        p.git("w", "commit", "-am", "third")
        p.write("w", "b", text="changed")
        p.write("w", "inner", "f", text="x")
        p.git("w/inner", "init")

        def said(*args, where="w"):
            done = p.ask(where, *args)
            return json.loads(done.stdout) if done.returncode == 0 else (done.returncode, done.stderr.decode().strip())
        equal(said("changes", "--ref", "HEAD"), listed("M b"))
        equal(said("changes", "--ref", "first"), listed("M b", "D d/a"))
        equal(said("diff", "--ref", "HEAD", "b"), {"modified": "changed", "original": "b"})
        sha = subprocess.run(["git", "-C", p.path("w"), "rev-parse", "HEAD~1", "HEAD", "HEAD~2"], env=ENV,
                             stdout=subprocess.PIPE, check=True).stdout.decode().split()
        equal(said("diff", "--commit", sha[0], "d/a"), {"modified": "two", "original": "one"})
        equal(said("diff", "--commit", sha[1][:8], p.path("w", "d", "a")), {"modified": "", "original": "two"})
        equal(said("diff", "--commit", sha[2], "d/a"), {"modified": "one", "original": ""})
        for of in sha[:2]:
            equal(said("diff", "--commit", of, "d"), (1, "that is a directory"))
        p.write("w", "d", text="a file now\n")
        p.git("w", "add", "d")
        p.git("w", "commit", "-m", "fourth")
        equal(said("diff", "--commit", "HEAD", "d"), {"modified": "a file now", "original": ""})
        os.unlink(p.path("w", "d"))
        p.write("w", "d", "a", text="x\n")
        p.git("w", "add", "-A", "d")
        p.git("w", "commit", "-m", "fifth")
        equal(said("diff", "--commit", "HEAD", "d"), {"modified": "", "original": "a file now"})
        for args in (("changes", "--ref", "none"), ("diff", "--ref", "none", "b"), ("diff", "--commit", "beef", "b"),
                     ("changes", "--ref", "^HEAD"), ("diff", "--ref", "^HEAD", "b"),
                     ("diff", "--commit", "^HEAD", "b")):
            equal(said(*args), (1, "there is no such commit in that repository"))
        for args in (("changes", "--ref", "--output=x"), ("changes", "--ref", ""), ("diff", "--commit", "-x", "b"),
                     ("diff", "--ref", "HEAD"), ("changes", "--commit", "HEAD"), ("changes", "--ref")):
            equal(said(*args)[0], 2, args)
        for size in (1 << 20, 1 << 20 | 1, 3 << 20):
            p.write("w", "large", text="x" * size)
            p.git("w", "add", "large")
            p.git("w", "commit", "-m", "large")
            got = said("diff", "--commit", "HEAD", "large")
            if size == 1 << 20:
                equal(got == {"modified": "x" * size, "original": ""}, True)
            else:
                equal(got, (1, "the original is too large"), size)
        os.mkdir(p.path("alone"))
        equal(said("changes", "--ref", "HEAD", where="alone"), [])
        equal(said("diff", "--commit", sha[0], "f", where="alone"), (1, "no_repository"))


def at_the_clients_paths():
    """python3 /openhands/code/openhands/runtime/utils/git_*.py, in an image with Python and in one without."""
    with Place() as p:
        p.clone()
        want = p.changes()
        prefix, tools = p.path("openhands"), p.path("tools")
        os.mkdir(tools)
        for name in ("sh", "sed", "mkdir", "chmod", "cp", "ln", "dirname", "git"):
            os.symlink(find_program(name), os.path.join(tools, name))
        subprocess.run(["sh", os.path.join(SRCDIR, "runtime-image", "install-shims.sh"), prefix, p.path("bin")],
                       env={"PATH": tools}, check=True)
        os.symlink(HELPER, os.path.join(prefix, "libexec", "handrail", "handrail-git"))
        utils = os.path.join(prefix, "code", "openhands", "runtime", "utils")
        without = dict(ENV, PATH=tools)
        for python, env in ((sys.executable, ENV), (p.path("bin", "python3"), without)):
            done = p.ask("w", os.path.join(utils, "git_changes.py"), program=(python,), env=env)
            equal((done.returncode, json.loads(done.stdout)), (0, want), done.stderr)
            done = p.ask("w", os.path.join(utils, "git_diff.py"), "u-mod", program=(python,), env=env)
            equal(json.loads(done.stdout), {"modified": "changed", "original": "old u-mod"}, done.stderr)
            done = p.ask("w", os.path.join(utils, "git_diff.py"), "gone", program=(python,), env=env)
            equal(done.returncode, 1)
        done = p.ask("w", "other.py", program=(p.path("bin", "python3"),), env=without)
        equal((done.returncode, done.stderr), (127, b"python3: there is no Python in this image\n"))


TESTS = [branch_with_everything, unpushed_commit, no_remote_and_no_repository, nested, odd_changes,
         deleted_and_untracked, any_changes, of_another_owner, texts, named_commits, at_the_clients_paths]


def main():
    if not os.access(HELPER, os.X_OK):
        skip_all("handrail-git is not built")
    if find_program("git") is None:
        skip_all("there is no git: apt-get install git")
    tap = Tap()
    for test in TESTS:
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
