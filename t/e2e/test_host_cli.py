#!/usr/bin/env python3
"""Sandboxes of the kind "cli": commands and files of this machine in one directory, without a server."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, Host  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402
from test_clouds_e2b import interrupted  # noqa: E402


class CliHost(Host):
    """A home of one's own, and a sandbox that is up."""

    def __init__(self, **env):
        super().__init__(**dict({"RUNTIME": "cli"}, **env))
        self.ok("up", "-q")
        self.workspace = os.path.realpath(self.record()["backend"]["workspace"])

    def obs(self, *argv):
        return json.loads(self.ok(*argv))

    def mine(self, *names):
        return os.path.join(self.workspace, *names)


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def life():
    with CliHost() as h:
        equal(os.path.dirname(h.workspace), os.path.realpath(h.path("tmp")), "in the temporary directory")
        equal(os.path.basename(h.workspace).startswith("openhands_workspace_default_"), True, h.workspace)
        equal(h.ok("run", "pwd"), h.workspace + "\n", "where commands run")
        listed = json.loads(h.ok("ps", "--json"))
        equal([(s["sid"], s["runtime"], s["state"]) for s in listed], [("default", "cli", "running")])
        os.mkdir(h.path("tmp", "openhands_workspace_default_x_abcdef"))
        h.ok("up", "-q", "-n", "other")
        h.ok("down")
        equal(os.path.exists(h.workspace), False, "its workspace is gone")
        left = sorted(n[:25] for n in os.listdir(h.path("tmp")))
        equal(left, ["openhands_workspace_default"[:25], "openhands_workspace_other_"[:25]], "others are not")
        h.ok("down", "other")
        equal(os.listdir(h.path("state")), [], "nothing is recorded")


def commands():
    with CliHost(SECRET_OF_MINE="x", SESSION_API_KEY="hunter2") as h:
        for command, status in (("true", 0), ("exit 42", 42), ("nosuchcommand", 127), ("kill -9 $$", 137)):
            equal(h("run", command).returncode, status, command)
        equal(h.ok("run", "echo out; echo err >&2"), "out\nerr\n", "both streams, in order")
        h.ok("run", "cd /; export X=1")
        equal(h.ok("run", "pwd; echo [$X]"), h.workspace + "\n[]\n", "each is a shell of its own")
        equal(h.ok("run", "echo $SECRET_OF_MINE ${SESSION_API_KEY-no key}"), "x no key\n", "environment")
        equal(h.ok("run", "printf 'a\\377b'"), "a\ufffdb\n", "what is no text")
        obs = json.loads(h("run", "--json", "echo x; exit 3").stdout)
        equal((obs["observation"], obs["content"], obs["success"], obs["extras"]["command"]),
              ("run", "x\n", False, "echo x; exit 3"))
        meta = obs["extras"]["metadata"]
        equal((meta["exit_code"], meta["working_dir"], meta["suffix"]), (3, h.workspace, ""))
        done = h("run", "-i", "C-c")
        equal((done.returncode, "does not support interactive input" in done.stderr), (1, True), done.stderr)
        equal(h("run", "cat", stdin=subprocess.DEVNULL).returncode, 0, "standard input is the caller's")
        equal(h.ok("run", "cat", input="given\n"), "given\n", "standard input")


def long_output():
    with CliHost() as h:
        text = h.obs("run", "--json", "seq 1 10000000")["content"]
        equal((len(text), text[:4], text[-9:]), (30000 + len("\n[... Observation truncated due to length ...]\n"),
                                               "1\n2\n", "10000000\n"))
        equal("\n[... Observation truncated due to length ...]\n" in text, True, "mark")


def time_limits():
    long = "sleep %d.25" % (86400 + os.getpid())  # nobody else's

    def sleepers():
        return [p for p in process.all_pids() if process.command_line(p).strip() == long]

    with CliHost() as h:
        # time enough for the shell to come to its first command
        obs = json.loads(h("run", "--json", "-t", "4.5", "echo before; " + long).stdout)
        equal((obs["content"], obs["extras"]["metadata"]["exit_code"], obs["extras"]["metadata"]["suffix"]),
              ("before\n", -1, "[The command timed out after 4.5 seconds.]"))
        equal(h("run", "-t", "0.5", "trap '' TERM; " + long).returncode, 124, "one that does not listen")
        equal(sleepers(), [], "left")
        # its output is not waited for, and it is not killed, whether it is the sleeper yet or still the shell
        left = int(h.ok("run", long + " & echo $!"))
        equal(process.has_ended(left), False, "something in the background went on")
        os.kill(left, 9)


def interrupts():
    with CliHost() as h:
        interrupted(h)


def interrupted_at_its_start():
    """An interrupt counts from the command's first instruction on, however late handrail is to look at it."""
    if shutil.which("strace") is None:
        raise Skip("there is no strace: apt-get install strace")
    with CliHost() as h:
        fifo = h.path("tmp", "begun")
        os.mkfifo(fifo)
        p = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-e", "inject=pidfd_open:delay_enter=500000",
                              os.path.join(BUILD, "handrail"), "run", "echo $PPID >%s; sleep 1000" % fifo],
                             env=dict(h.env, ASAN_OPTIONS="detect_leaks=0"),  # which cannot work below strace
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(fifo) as f:
            os.kill(int(f.read()), signal.SIGINT)
        p.communicate(timeout=PATIENCE)
        equal(p.returncode, 130)


def variables():
    with CliHost(SANDBOX_ENV_fooBar="a b") as h:
        equal(h.ok("run", "echo $fooBar"), "a b\n", "names as they are")
        h.ok("up", "-q", "-n", "two", "-e", "x=it's")
        equal(h.ok("run", "-n", "two", "echo $x"), "it's\n", "a later process has it")
        equal(os.path.exists(h.path("home", ".bashrc")), False, "no shell's file is touched")
        h.fails(1, "Invalid environment variable name", "up", "-n", "three", "-s",
                "sandbox.runtime_startup_env_vars={'': 'y'}")
        equal(os.path.exists(h.path("state", "three.json")), False, "nothing is left of it")


def paths():
    with CliHost() as h:
        os.mkdir(h.workspace + "2")
        os.symlink("/etc", h.mine("out"))
        os.symlink(h.mine("a"), h.mine("in"))
        os.symlink("nowhere/../../x", h.mine("dangling"))
        h.ok("write", "/workspace/a/b", input="1")
        equal(h.ok("read", h.mine("a/b")), "1\n", "by its real name")
        equal(h.ok("read", "in/b"), "1\n", "over a link that stays inside")
        equal(h.ok("read", "a/../in/../a/b"), "1\n", "with dots")
        for path, text in (("/etc/passwd", "Invalid path: /etc/passwd. You can only work with files in " + h.workspace),
                           (h.workspace + "2/x", "Invalid path: "), ("../x", "Invalid path traversal: ../x."),
                           ("out/passwd", "Path resolves outside the workspace. Resolved: /etc/passwd"),
                           ("/workspace/../../etc/passwd", "Invalid path traversal")):
            h.fails(1, text, "read", path)
            h.fails(1, "Invalid path", "write", path, input="x")
        h.fails(1, "Invalid path traversal", "write", "dangling", input="x")
        h.fails(1, "Invalid path", "put", h.path("cwd"), "/tmp")
        h.fails(1, "Invalid path", "get", "/etc")
        equal(h.ok("run", "--cwd", "a", "pwd"), h.mine("a") + "\n", "a command's directory")
        h.fails(3, "there is no directory %s in the sandbox" % h.mine("b"), "run", "--cwd", "b", "true")


def files():
    with CliHost() as h:
        h.ok("write", "a.txt", input="one\r\ntwo\n")
        with open(h.mine("a.txt"), "rb") as f:
            equal(f.read(), b"one\r\ntwo\n", "written as it is")
        equal(h.obs("read", "--json", "a.txt")["content"], "one\ntwo\n", "read as text")
        h.fails(1, "File not found: no", "read", "no")
        h.fails(1, "Cannot read directory: .", "read", ".")
        with open(h.mine("bin"), "wb") as f:
            f.write(b"\0\1\2")
        h.fails(1, 'ERROR_BINARY_FILE: the file is not certain to be text; "handrail get" copies it', "read", "bin")
        h.fails(1, "ERROR_BINARY_FILE", "edit", "bin", "a", "b")
        with open(h.mine("bad"), "wb") as f:
            f.write(b"caf\351 is enough text to be taken for text\n")
        equal("caf" in h.obs("read", "--json", "bad")["content"], True, "other bytes")
        os.mkdir(h.mine("dir"))
        h.fails(1, "Error writing to file dir: ", "write", "dir", input="x")
        obs = h.obs("edit", "--json", "/workspace/a.txt", "two", "2")
        equal((obs["extras"]["path"], obs["extras"]["old_content"], obs["extras"]["new_content"]),
              ("/workspace/a.txt", "two", "2"))
        equal(obs["extras"]["_diff_cache"], None, "as a server has it")
        equal("\n-two\n+2" in obs["extras"]["diff"], True, obs["extras"]["diff"])
        h.fails(1, "did not appear verbatim", "edit", "/workspace/a.txt", "not there", "x")
        equal(sorted(h.ok("ls").split()), sorted(h.mine(n) for n in ("a.txt", "bin", "bad", "dir")), "listed")
        equal(h.ok("ls", "a.txt").strip(), h.mine("a.txt"), "a file")
        h.fails(3, "there is no file or directory missing in the sandbox", "ls", "missing")
        os.mkdir(h.mine("empty"))
        for path in ("empty", "/workspace/empty"):
            equal(h.ok("ls", path), "", "nothing in it")


def copies():
    with CliHost() as h:
        os.makedirs(h.path("cwd", "d/sub/empty"))
        with open(h.path("cwd", "d/sub/a"), "w") as f:
            f.write("a")
        os.chmod(h.path("cwd", "d/sub/a"), 0o750)
        os.utime(h.path("cwd", "d/sub/a"), (1e9, 1e9))
        h.ok("put", "d", ".")
        st = os.stat(h.mine("d/sub/a"))
        equal((st.st_mode & 0o777, st.st_mtime), (0o750, 1e9), "mode and time")
        equal(os.path.isdir(h.mine("d/sub/empty")), True, "empty directory")
        for to, where in (("new", "new/a"), ("b.txt", "b.txt"), ("x.d/", "x.d/a"), ("d", "d/a")):
            h.ok("put", "d/sub/a", to)
            equal(text_of(h.mine(where)), "a", to)
        h.ok("put", h.mine("b.txt"), "b.txt")
        equal(text_of(h.mine("b.txt")), "a", "onto itself")
        h.fails(3, "missing: No such file or directory", "put", "missing", ".")
        h.ok("get", "d", "back")
        equal(text_of(h.path("cwd", "back/sub/a")), "a", "out")
        equal(os.listdir(h.path("cwd", "back/sub/empty")), [], "empty directory, out")
        h.ok("get", "d", "back")
        equal(text_of(h.path("cwd", "back/d/sub/a")), "a", "into what is there")
        h.fails(3, "there is no file or directory missing in the sandbox", "get", "missing", "back")
        h.ok("write", "same/same", input="a")
        for path, where in (("same", "as/same"), ("same/same", "file"), ("/workspace/same/same", "again")):
            h.ok("get", path, where.split("/")[0])
            equal(text_of(h.path("cwd", where)), "a", "a directory with one file of its own name, and that file")
        os.makedirs(h.mine("twice/twice"))
        h.ok("get", "twice", "twice")
        equal(os.listdir(h.path("cwd", "twice")), ["twice"], "a directory with an empty one of its own name")
        os.symlink("b.txt", h.mine("link"))
        os.symlink("d", h.mine("away"))
        h.ok("get", "link", "linked")
        equal(text_of(h.path("cwd", "linked")), "a", "a link to a file is that file")
        h.ok("get", "away", "away")
        equal(text_of(h.path("cwd", "away/sub/a")), "a", "a link to a directory is that directory")
        os.mkdir(h.mine("dots"))
        os.rename(h.mine("new/a"), h.mine("dots/a..b"))
        h.ok("get", "dots", "dots")
        equal(os.listdir(h.path("cwd", "dots")), ["a..b"], "dots in a name")
        os.mkdir(h.mine("shut"))
        os.rename(h.mine("dots/a..b"), h.mine("shut/f"))
        os.chmod(h.mine("shut"), 0o100)
        h.ok("get", "shut/f", "f")
        equal(text_of(h.path("cwd", "f")), "a", "of a directory that may be entered and not listed")
        os.chmod(h.mine("shut"), 0o700)
        h.ok("get", "b.txt", "one")
        h.ok("get", "b.txt", "back")
        equal([text_of(h.path("cwd", name)) for name in ("one", "back/b.txt")], ["a", "a"], "one file")
        equal([n for n in os.listdir(h.path("cwd")) if n.startswith("one")], ["one"], "and nothing beside it")
        temporary = [n for n in os.listdir(h.workspace) if n.startswith(".handrail")]
        equal(temporary, [], "temporary files")


def copies_over_files():
    """The new file has the old one's place, names, owner and attributes, and its own mode and times."""
    with CliHost() as h:
        old, new = h.mine("old"), h.path("cwd", "new")
        with open(old, "w", encoding="utf-8") as f:
            f.write("old")
        os.symlink("old", h.mine("link"))
        try:
            os.setxattr(old, "user.kept", b"yes")
        except OSError as e:
            if e.errno != errno.ENOTSUP:
                raise
            raise Skip("%s has no attributes; set TMPDIR to a directory of ext4, xfs or btrfs" % old) from e
        if os.geteuid() == 0:
            os.chown(old, 1234, 4321)
        before = os.stat(old)
        with open(new, "w", encoding="utf-8") as f:
            f.write("new")
        os.chmod(new, 0o750)
        os.utime(new, (1000, 2000))
        h.ok("put", new, "fresh.txt")
        h.ok("put", new, h.mine("link"))
        now = os.stat(old)
        equal((text_of(old), os.readlink(h.mine("link"))), ("new", "old"), "through a link")
        equal((now.st_mode & 0o7777, now.st_mtime), (0o750, 2000), "mode and time")
        equal((now.st_uid, now.st_gid, os.getxattr(old, "user.kept")),
              (before.st_uid, before.st_gid, b"yes"), "owner and attribute")
        fresh = os.stat(h.mine("fresh.txt"))
        equal((fresh.st_mode & 0o7777, fresh.st_mtime), (0o750, 2000), "a new file")
        os.link(old, h.mine("hard"))
        with open(new, "w", encoding="utf-8") as f:
            f.write("newer")
        h.ok("put", new, h.mine("hard"))
        equal((text_of(old), os.stat(old).st_nlink), ("newer", 2), "another name")


def what_it_cannot():
    with CliHost() as h:
        done = h("one\n\ntwo\n")
        equal(done.stderr.startswith('handrail: there is no command "one\n    two\n    "; see'), True, done.stderr)
        h.fails(1, "Executing IPython cells is not implemented in CLIRuntime. ", "py", "1")
        h.fails(1, "cli runtime does not support stats", "top")
        h.fails(1, "cli runtime does not support pause", "pause")
        h.fails(1, "cli runtime does not support logs", "logs")
        os.rmdir(h.workspace)
        h.fails(5, "is gone", "run", "true")
        h.ok("down")
        equal(os.listdir(h.path("state")), [], "cleared away all the same")
    with Host(RUNTIME="cli", HANDRAIL_LIBEXECDIR="/nonexistent") as h:
        h.fails(1, "/nonexistent/handrail-cli.so", "up")


def program():
    """By the library: nothing is recorded, lines come as they are printed, close leaves the files."""
    with Host() as h:
        def ask(what):
            return subprocess.run([os.path.join(BUILD, "t/host/program"), "cli", what], env=h.env, cwd=h.path("cwd"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                  timeout=PATIENCE)

        def act(action):
            return ask(json.dumps(action))

        def workspaces():
            return sorted(n for n in os.listdir(h.path("tmp")) if n.startswith("openhands_workspace_program_"))

        done = act({"action": "run", "id": 4, "args": {"command": "echo one; printf two"}})
        equal((done.returncode, json.loads(done.stdout)["cause"]), (0, 4), done.stderr)
        equal(done.stderr.splitlines()[:4], ["subscribed", "STATUS$STARTING_RUNTIME", "STATUS$RUNTIME_STARTED",
                                             "output: one"], "what is told")
        equal("output: two" in done.stderr, True, "the last line has no end")
        for kind in ("browse", "browse_interactive"):
            equal(json.loads(act({"action": kind, "args": {"url": "x"}}).stdout)["content"],
                  "Browser functionality is not implemented in CLIRuntime")
        equal(json.loads(act({"action": "call_tool_mcp", "args": {"name": "x"}}).stdout)["content"],
              "No MCP servers configured")
        equal(len(workspaces()), 4, "kept")
        equal([n for n in os.listdir(h.path("tmp")) if n.startswith("handrail-undo")], [], "history")
        others = ["openhands_workspace_program_" + n for n in ("abcde-", "abcdefg", "x_abcdef")]
        for name in others:
            os.mkdir(h.path("tmp", name))
        done = ask("delete")
        equal((done.returncode, workspaces()), (0, others), done.stderr)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, commands, long_output, time_limits, interrupts, interrupted_at_its_start, variables, paths,
                 files, copies, copies_over_files, what_it_cannot, program):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
