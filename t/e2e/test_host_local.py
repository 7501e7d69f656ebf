#!/usr/bin/env python3
"""The handrail command and libhandrail with sandboxes of the kinds "local" and loadable, from the build
tree: each test has its own state directory and home, and nothing is left behind."""

import contextlib
import http.server
import json
import os
import pty
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, Host, Written  # noqa: E402
from lib.supervised import SRCDIR, need_entrance  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

def life_of_a_sandbox():
    with Host() as h:
        sid, url = h.ok("up").split()
        equal(sid, "default", "name")
        equal(json.loads(h.ok("up", "--json"))["url"], url, "found again")
        equal(h.ok("run", "echo hi; cd /; pwd"), "hi\n/\n", "output")
        equal(h.ok("run", "pwd"), "/\n", "one shell for all processes")
        listed = json.loads(h.ok("ps", "--json"))
        equal([(s["sid"], s["runtime"], s["state"], s["url"]) for s in listed], [("default", "local", "running", url)])
        equal([(s["image"], s["age"] >= 0, 0 <= s["idle"] <= s["age"] + 1, s["cpu_percent"] >= 0, s["memory_bytes"] > 0)
               for s in listed], [(None, True, True, True, True)], "and what it uses")
        equal([row.split()[:4] for row in h.ok("ps").splitlines()],
              [["NAME", "RUNTIME", "STATE", "IMAGE"], ["default", "local", "running", "-"]], "for people")
        mode = os.stat(h.path("state", "default.json")).st_mode & 0o777
        equal(mode, 0o600, "the record holds the key")
        workspace = h.record()["backend"]["workspace"]
        equal(os.path.isdir(workspace), True, "workspace")
        for name in ("default", "default.json.other"):  # as left by a process that was killed while it wrote
            open(h.path("state", name + ".json~"), "w").close()
        h.ok("down")
        equal(os.listdir(h.path("state")), ["default.json.other.json~"], "another sandbox's stays")
        os.unlink(h.path("state", "default.json.other.json~"))
        equal(os.path.exists(workspace), False, "its workspace is gone")
        equal(os.listdir(h.path("state")), [], "nothing is recorded")
        equal(json.loads(h.ok("ps", "--json")), [], "none")
        h.fails(3, 'there is no sandbox "default"', "run", "true")
        h.fails(3, 'there is no sandbox "default"', "down")


def exit_statuses():
    with Host(XDG_RUNTIME_DIR="") as h:
        h.ok("up")
        for command, status in (("true", 0), ("false", 1), ("(exit 42)", 42), ("nosuchcommand", 127)):
            equal(h("run", command).returncode, status, command)
        done = h("run", "-t", "1", "sleep 60")
        equal((done.returncode, "still runs after 1.0 seconds" in done.stderr), (124, True), repr(done.stderr))
        equal(h("run", "--input", "C-c").returncode in (0, 130), True, "interrupt")
        equal(h.ok("run", "echo", "a  b", "$HOME", "it's"), "a  b $HOME it's\n", "words stay words")
        equal(h.ok("run", "echo a  b"), "a b\n", "one word is a line")
        h.ok("down")
        equal(os.listdir(h.path("tmp")), [], "nothing is left among temporary files")


def a_way_for_all_accounts():
    """The run directory is chosen where nginx's account can enter it: never below a directory of root's alone, nor
    where it cannot be made or its name is too long for sockets. The doctor tells where."""
    with Host() as h:
        def tried(prefix, base, what):
            for words in (("up",), ("doctor",)):
                done = subprocess.run(prefix + [os.path.join(BUILD, "handrail"), *words], env=h.env, cwd=h.path("cwd"),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      universal_newlines=True, timeout=PATIENCE)
                equal(done.returncode, 0, "%s\n%s%s" % (what, done.stdout, done.stderr))
            equal(re.findall(r"ok +run directory +in (.*)", done.stdout), [base], what)
            equal(os.path.dirname(h.record()["backend"]["run_dir"]), base, what)
            equal(h.ok("run", "echo in"), "in\n", what)
            h.ok("down")

        if os.geteuid() == 0:
            with open(os.path.join(BUILD, "Makefile")) as f:
                values = dict(re.findall(r"^(\w+) = (\S+)$", f.read(), re.M))
            state = values["runstatedir"]
            while "$" in state:
                state = re.sub(r"\$[({](\w+)[)}]", lambda m: values[m.group(1)], state)
            if os.path.realpath(state).startswith("/run"):
                raise Skip("this build has its run directories in /run: configure it with a --prefix")
            while not os.path.isdir(state):
                state = os.path.dirname(state)
            barred = 'mount -t tmpfs -o mode=700 none "$0" && exec "$@"'
            prefix = ["unshare", "-m", "sh", "-c", barred, state]
            if subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode:
                raise Skip("no name space of mounts and networks can be made here: run it where unshare may, as root")
            tried(prefix, "/run", "a prefix that root alone enters")
        else:
            os.chmod(h.path("run"), 0o500)
            tried([], h.path("tmp"), "a XDG_RUNTIME_DIR of another account")
            h.env["XDG_RUNTIME_DIR"] = h.path("r" * 80)
            os.mkdir(h.env["XDG_RUNTIME_DIR"])
            tried([], h.path("tmp"), "one that is too long for sockets")


def first_command():
    """up --run is up and then run: the command's output and status, and the sandbox stays."""
    with Host() as h:
        equal(h.ok("up", "--run", "echo hi; cd /"), "hi\n", "the output and nothing else")
        equal(h.ok("run", "pwd"), "/\n", "its shell")
        for command, status in (("(exit 42)", 42), ("nosuchcommand", 127)):
            equal(h("up", "--run", command).returncode, status, command)
        equal(h.ok("up", "--run", "echo a  b; pwd"), "a b\n/\n", "in one that is there")
        obs = json.loads(h.ok("up", "--json", "--run", "echo hi"))
        equal((obs["observation"], obs["content"], obs["extras"]["metadata"]["exit_code"]), ("run", "hi\n", 0), "said")
        done = h("up", "-t", "1", "--run", "sleep 60")
        equal((done.returncode, "still runs after 1.0 seconds" in done.stderr), (124, True), repr(done.stderr))
        h.ok("up", "-n", "other", "-r", "cli", "--run", "test -d .")
        equal(sorted(s["sid"] for s in json.loads(h.ok("ps", "--json"))), ["default", "other"], "both stay")


def no_first_command():
    """Where a sandbox cannot be made nothing is run, late as that may be known."""
    with Host() as h:
        made = h.path("cwd", "made")
        h.env["SANDBOX_ENV_BASHOPTS"] = "x"  # read-only in bash
        h.fails(1, "Failed to add env vars ['BASHOPTS'] to environment", "up", "-q", "--run", "touch " + made)
        equal((os.path.exists(made), os.listdir(h.path("state"))), (False, []), "nothing was run, nothing is left")
    with Host(HANDRAIL_SERVER="/nonexistent/handraild") as h:
        h.fails(1, "handraild is not properly installed", "up", "-q", "--run", "true")


def json_observation():
    with Host() as h:
        h.ok("up")
        obs = json.loads(h.ok("run", "--json", "echo hi"))
        equal((obs["observation"], obs["content"], obs["extras"]["metadata"]["exit_code"]), ("run", "hi\n", 0), "said")


def variables():
    """Any value arrives exactly, in the shell and in later ones."""
    values = {"A_QUOTE": 'abc"def', "A_BLANK": "a b", "A_DOLLAR": "x$HOME", "A_TICK": "a`echo hi`b", "A_E": "\u00e9",
              "A_LINE": "one\ntwo", "A_SINGLE": "it's", "A_BACK": "back\\slash", "A_EMPTY": ""}
    with Host(SANDBOX_ENV_foobar="BAZ", SANDBOX_RUNTIME_STARTUP_ENV_VARS="{'startup': 'yes'}") as h:
        h.ok("up", *[w for n, v in values.items() for w in ("-e", "%s=%s" % (n, v))])
        values.update(FOOBAR="BAZ", STARTUP="yes")
        for name, value in values.items():
            obs = json.loads(h.ok("run", "--json", 'printf "%%s|" "$%s"' % name))
            equal(obs["content"], value + "|", name)
        h("run", "kill -9 $$")
        equal(h.ok("run", 'printf "%s|" "$A_LINE" "$A_SINGLE" "$FOOBAR"'), "one\ntwo|it's|BAZ|\n", "a later shell")
        equal(h.ok("sh", "bash", "-ic", "cat ~/.bashrc 2>&1; true").count("A_QUOTE"), 0, "in no file")


def bad_variable_leaves_nothing():
    with Host() as h:
        for name, argv in (("a-b", ("-e", "a-b=c")), ("1", ("-e", "1=x")), ("é", ("-e", "é=x")),
                           ("2b", ("-s", "sandbox.runtime_startup_env_vars={'2b': 'x'}"))):
            h.fails(1, "Invalid environment variable name: " + name, "up", *argv)
            equal(os.path.exists(h.path("state")), False, "nothing was begun")
        h.env["SANDBOX_ENV_a-b"] = "c"
        h.fails(1, "Invalid environment variable name: a-b", "up")
        equal(os.path.exists(h.path("state")), False, "nothing was begun")
        equal([n for n in os.listdir(h.path("tmp")) if n.startswith("openhands_workspace")], [], "workspaces")


def git_identity():
    show = "git config --global user.name; git config --global user.email"
    with Host(GIT_USER_NAME="A B", GIT_USER_EMAIL="a+b@c.d") as h:
        h.ok("up")
        equal(h.ok("run", show), "A B\na+b@c.d\n", "set")
        h.ok("run", "git config -f other user.name 'A B' && git config -f other user.email a+b@c.d")
        equal(h.ok("run", "cat other"), h.ok("run", "cat ~/.gitconfig"), "as git writes it")
    with Host(GIT_USER_NAME="it's; \\ \"B\"", GIT_USER_EMAIL="# \u00e9") as h:
        h.ok("up")
        equal(h.ok("run", show), "it's; \\ \"B\"\n# \u00e9\n", "texts that git quotes")
    with Host() as h:
        with open(h.path("home", ".gitconfig"), "w") as f:
            f.write("[user]\n\tname = Mine\n\temail = m@e\n")
        h.ok("up")
        equal(h.ok("run", show), "Mine\nm@e\n", "one that is there stays")
    with Host() as h:
        os.makedirs(h.path("home", ".config", "git"))
        with open(h.path("home", ".config", "git", "config"), "w") as f:
            f.write("[user]\n\tname = Mine\n")
        h.ok("up")
        equal(h.ok("run", show), "Mine\nopenhands@all-hands.dev\n", "one that is elsewhere, too")
        equal(os.path.exists(h.path("home", ".gitconfig")), False, "it is not hidden")
    with Host() as h:
        os.makedirs(h.path("state", "default.own", ".gitconfig"))
        os.chmod(h.path("state"), 0o700)
        equal("Git config command failed: " in h("up").stderr, True, "one that cannot be written is told of")
    with Host(LOCAL_HOME="caller") as h:
        h.ok("up")
        equal((h("run", show).stdout, os.listdir(h.path("home"))), ("", []), "in the caller's nothing is set")


def tree(top):
    """Every name below a directory with its kind, mode, times and content."""
    found = {}
    for where, dirs, files in os.walk(top):
        for name in dirs + files + ["."]:
            path = os.path.join(where, name)
            st = os.lstat(path)
            text = None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    text = f.read()
            found[os.path.relpath(path, top)] = (stat.S_IFMT(st.st_mode), st.st_mode, st.st_mtime_ns, text)
    return found


KNOWN = {".bashrc": "export MINE=1\n", ".bash_history": "my line\n", ".profile": "\n", ".bash_logout": "\n",
         ".gitconfig": "[user]\n\tname = Mine\n", ".inputrc": "\n", ".python_history": "1\n", ".config/x": "x"}


def used(h, more=()):
    h.ok("up", "-q", "-e", "API_TOKEN=s3cret-value", *more)
    equal(h.ok("run", "echo $API_TOKEN $GITHUB_TOKEN $SOME"), "s3cret-value ghp_s3cret some\n", "variables")
    h.ok("run", "cd ~ && git config --global alias.x y; python3 -c 1; echo agents >> .note; history -a")
    h("py", "1 + 1")
    h.ok("write", "f", input="x")
    h("run", "exit")
    h.ok("run", "echo $API_TOKEN; history -a")


def the_callers_home():
    """Nothing that a sandbox does of itself is in its caller's home directory, and no line of handrail's in a
    history."""
    for how in ("own", "caller"):
        with Host(GITHUB_TOKEN="ghp_s3cret", SANDBOX_ENV_SOME="some", LOCAL_HOME=how) as h:
            for name, text in KNOWN.items():
                os.makedirs(os.path.dirname(h.path("home", name)), exist_ok=True)
                with open(h.path("home", name), "w") as f:
                    f.write(text)
            before = tree(h.path("home"))
            if how == "own":
                h.env.update(XDG_CONFIG_HOME=h.path("home", ".config"), XDG_DATA_HOME=h.path("home", ".data"),
                             XDG_CACHE_HOME=h.path("home", ".cache"), HISTFILE=h.path("home", ".bash_history"),
                             IPYTHONDIR=h.path("home", ".ipython"))
                used(h)
                equal(h.ok("run", "cd; pwd"), h.path("state", "default.own") + "\n", "its own")
                equal(h.ok("sh", "sh", "-c", "echo $HOME"), h.path("state", "default.own") + "\n", "of a terminal")
                equal(h("py", "import os; print(os.environ['HOME'])").stdout.split("\n")[0],
                      h.path("state", "default.own"), "of a notebook")
                equal(stat.S_IMODE(os.stat(h.path("state", "default.own")).st_mode), 0o700, "for nobody else")
            else:
                done = h("up", "-e", "API_TOKEN=s3cret-value")
                equal((done.returncode, "home directory is your own" in done.stderr), (0, True), done.stderr)
                equal(h.ok("run", "echo $MINE; cd; pwd; history -a"), "1\n%s\n" % h.path("home"), "the caller's")
                done = h("py", "import IPython; print(IPython.paths.get_ipython_dir())")
                equal("python3-ipykernel" in done.stderr or done.stdout,
                      "python3-ipykernel" in done.stderr or h.path("state", "default.own") + "/.ipython\n", done.stderr)
                h("run", "exit")
                h.ok("run", "true")
            history = b"".join(v[3] for n, v in tree(h.path("state", "default.own")).items() if n.endswith("history"))
            equal(b"history -a" in history, True, "a history of its own")
            for text in (b"git config --global user", b"alias git", b"s3cret", b"GITHUB_TOKEN=", b"__hr", b"printf"):
                equal(text in history, False, "%r in %r" % (text, history))
            for name, value in tree(h.path("state", "default.own")).items():
                equal(b"s3cret" in (value[3] or b""), False, name)
            h.ok("down", "-q")
            equal(tree(h.path("home")), before, "byte for byte")
            equal(os.listdir(h.path("state")), [], "nothing is left of it")
    with Host(LOCAL_HOME="mine") as h:
        h.fails(1, 'local.home must be own or caller, not "mine"', "up")


def port_that_is_given():
    with Host(LOCAL_PORT="70000") as h:
        h.fails(1, "local.port must be from 0 to 65535, not 70000", "up")
    with socket.socket() as s, Host() as h:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        done = h("up", "-q", "-s", "local.port=%d" % port)
        equal((done.returncode, "127.0.0.1:%d is already in use" % port in done.stderr), (5, True), done)
        s.close()
        equal(h.ok("up", "-q", "-s", "local.port=%d" % port), "default http://127.0.0.1:%d\n" % port, "the port given")
        h.fails(1, "--set local.port counts only for a new one", "up", "-s", "local.port=%d" % port)
    with Host(VSCODE_PORT="0", APP_PORT_1="any") as h:
        h.ok("up", "-q")
        equal([int(p) > 0 for p in h.ok("run", "echo $VSCODE_PORT $APP_PORT_1").split()], [True, True], "free ones")


def doctor_of_chromium():
    """The program that the browser would start: a fault if it is too old, prints nothing or cannot be executed."""
    usual = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
    with Host(HANDRAIL_BROWSER_CHROMIUM="") as h:
        def findings(*words):
            return [x for x in json.loads(h("doctor", "--json", *words, "local").stdout) if x["what"] == "chromium"]

        there = [p for p in usual if os.access(p, os.X_OK)]
        found = findings()
        equal([(there[0] if there else "not installed") in x["text"] for x in found], [True], str(found))
        equal(findings("-s", "core.enable_browser=false"), [], "no browser is wanted")
        path = h.env["HANDRAIL_BROWSER_CHROMIUM"] = h.path("chromium")
        for words, ok, text in (("Chromium 131.0.6778.264 built on Debian", True, "version 131"),
                                ("Google Chrome 130.0.6723.116", False, "has version 130; the browser needs 131"),
                                ("oops", False, "does not print its version: oops")):
            with open(path, "w") as f:
                f.write("#!/bin/sh\necho a warning >&2\necho '%s'\n" % words)
            os.chmod(path, 0o755)
            found = findings()
            equal([(x["ok"], path in x["text"], text in x["text"].replace("a warning\n", "")) for x in found],
                  [(ok, True, True)], str(found))
        os.remove(path)
        found = findings()
        equal([(x["ok"], path + " cannot be executed" in x["text"]) for x in found], [(False, True)], str(found))


def two_sandboxes():
    with Host() as h:
        h.ok("up", "-n", "a1")
        h.ok("up", "-n", "a1x")
        h.ok("run", "-n", "a1", "X=one")
        h.ok("run", "-n", "a1x", "X=two")
        equal(h.ok("run", "-n", "a1", "echo $X") + h.ok("run", "-n", "a1x", "echo $X"), "one\ntwo\n", "apart")
        h.ok("down", "a1")
        equal(h.ok("run", "-n", "a1x", "echo $X"), "two\n", "the longer name lives on")


def server_that_died():
    """Nor does anything of it live on: its keepers would, for another server in its place."""
    for end in ("down", "up"):
        with Host() as h:
            h.ok("up")
            h.ok("run", "sleep 600 &")
            backend = h.record()["backend"]
            pid, workspace, run_dir = (backend[name] for name in ("pid", "workspace", "run_dir"))
            below = process.descendants(pid)
            gone = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            select.select([gone], [], [], PATIENCE)
            os.close(gone)
            equal(json.loads(h.ok("ps", "--json"))[0]["state"], "exited", "state")
            h.fails(5, "has ended", "run", "true")
            h.ok(end)
            equal((os.path.exists(workspace), os.path.exists(run_dir)), (end == "up", False), "files of people stay")
            equal([process.command_line(p) for p in below if not process.wait_gone(p, PATIENCE)], [], "what is left")
            if end == "down":
                equal(os.listdir(h.path("state")), [], "cleared away")


def failed_start_keeps_the_log():
    """The log of the last server stays until another one is ready, which replaces it."""
    with Host() as h:
        h.ok("up")
        with open(h.path("state", "default.log"), "a") as f:
            f.write("the last line\n")
        pid = h.record()["backend"]["pid"]
        os.kill(pid, signal.SIGKILL)
        equal(process.wait_gone(pid, PATIENCE), True)
        server = h.env["HANDRAIL_SERVER"]
        with open(h.path("failing"), "w") as f:
            f.write("#!/bin/sh\necho the failing server\nexit 1\n")
        os.chmod(h.path("failing"), 0o755)
        h.env["HANDRAIL_SERVER"] = h.path("failing")
        h.fails(5, "the failing server", "up")
        with open(h.path("state", "default.log")) as f:
            equal(f.read().endswith("the last line\n"), True)
        equal([n for n in os.listdir(h.path("state")) if "log" in n], ["default.log"])
        h.env["HANDRAIL_SERVER"] = server
        h.ok("up")
        equal("the last line" in h.ok("logs"), False)
        h.ok("down")
        equal(os.listdir(h.path("state")), [])


def server_killed_before_it_is_ready():
    """Its shell is, and would outlive it: whoever started it ends that, and if he was killed, too, who comes later."""
    with Host() as h:
        for name in ("begun", "never"):
            os.mkfifo(h.path(name))
        scripts = (("nginx", ": <\"$4/hold\"; echo >%s; read x <%s" % (h.path("begun"), h.path("never"))),
                   ("server", 'exec %s "$@" --config %s' % (h.env["HANDRAIL_SERVER"], h.path("settings"))))
        for name, line in scripts:
            with open(h.path(name), "w") as f:
                f.write("#!/bin/sh\n%s\n" % line)
            os.chmod(h.path(name), 0o755)
        with open(h.path("settings"), "w") as f:
            json.dump({"nginx": h.path("nginx")}, f)
        h.env["HANDRAIL_SERVER"] = h.path("server")
        for end, runtime_dir in (("up", h.env["XDG_RUNTIME_DIR"]), ("down", "")):
            h.env["XDG_RUNTIME_DIR"] = runtime_dir  # without it one of an ordinary user is among temporary files
            up = h.popen("up")
            with open(h.path("begun")) as f:
                f.read()  # of nginx, which is held until the shell is ready
            backend = h.record()["backend"]
            below = process.descendants(backend["pid"])
            equal([p for p in below if "handrail-session" in process.command_line(p)] != [], True, "a keeper")
            if end == "down":
                up.kill()
                up.communicate()
            os.kill(backend["pid"], signal.SIGKILL)
            if end == "down":
                h.ok("down")
            else:
                equal("Server process died" in up.communicate()[1], True, "what became of it")
            equal([process.command_line(p) for p in below if not process.wait_gone(p, PATIENCE)], [], "what is left")
            equal([os.path.exists(backend["run_dir"])] + [os.listdir(h.path(d)) for d in ("state", "tmp", "run")],
                  [False, [], [], []], "after " + end)


def server_that_does_not_end():
    """It is killed after ten seconds, and nothing lives on: no keeper, no shell, no command."""
    with Host() as h:
        h.ok("up")
        h.ok("run", "sleep 600 &")
        pid = h.record()["backend"]["pid"]
        below = process.descendants(pid)
        equal([p for p in below if "handrail-session" in process.command_line(p).split(" ")[0]] != [], True, "a keeper")
        os.kill(pid, signal.SIGSTOP)
        h.ok("down")
        equal([process.command_line(p) for p in below if not process.wait_gone(p, PATIENCE)], [], "what is left")


def server_that_does_not_start():
    with Host(HANDRAIL_LIBEXECDIR="/nonexistent") as h:
        done = h("up")
        equal((done.returncode, "Server process died; its last output:" in done.stderr), (5, True), done.stderr)
    with Host(HANDRAIL_SERVER="/nonexistent/handraild") as h:
        h.fails(1, "handraild is not properly installed", "up", "-q")
        equal([n for n in os.listdir(h.path("tmp"))], [], "workspaces")


def start_that_is_killed():
    """A server that is not ready yet is found by whoever comes later."""
    with Host() as h:
        server = h.env["HANDRAIL_SERVER"]
        os.mkfifo(h.path("never"))
        with open(h.path("slow"), "w") as f:
            f.write("#!/bin/sh\nread x <%s\n" % h.path("never"))
        os.chmod(h.path("slow"), 0o755)
        os.mkdir(h.path("state"), 0o700)
        for end in ("down", "up"):
            h.env["HANDRAIL_SERVER"] = h.path("slow")
            written = Written(h.path("state"))
            p = h.popen("up")
            written.wait("default.json")
            pid = h.record()["backend"]["pid"]
            # until it has become another program it has the locks of who started it
            with open(h.path("never"), "w"):
                h.fails(1, "another process is starting or ending sandbox", "up")
                p.kill()
                p.communicate()
                equal(process.command_line(pid) != "", True, "it outlives who started it")
                h.fails(5, "its start was interrupted", "run", "true")
                equal(json.loads(h.ok("ps", "--json"))[0]["state"], "exited", "told of")
                h.env["HANDRAIL_SERVER"] = server
                h.ok(end)
                equal(process.wait_gone(pid, PATIENCE), True, "ended by " + end)
        equal(h.ok("run", "echo hi"), "hi\n", "another one")
        h.ok("down")
        equal(os.listdir(h.path("state")), [], "nothing is left")


def recorded_before_it_runs():
    """At no moment is there a server that no record leads to; a start that fails leaves none."""
    with Host() as h:
        for text, status in (("#!/bin/sh\ngrep -q '\"pid\":'$$, %s && >%s\nexit 1\n" %
                              (h.path("state", "default.json"), h.path("seen")), 5), ("#!/nonexistent\n", 1)):
            with open(h.path("server"), "w") as f:
                f.write(text)
            os.chmod(h.path("server"), 0o755)
            h.env["HANDRAIL_SERVER"] = h.path("server")
            done = h("up")
            equal(done.returncode, status, done.stderr)
            equal(os.listdir(h.path("state")), [], "nothing is left")
            equal(os.listdir(h.path("tmp")), [], "nor in a workspace")
        equal(os.path.exists(h.path("seen")), True, "it was recorded")


def own_workspace():
    with Host() as h:
        h.env["WORKSPACE_BASE"] = h.path("mine")
        h.ok("up")
        h.ok("run", "echo x > file")
        equal(h.ok("ls"), "file\n", "listed")
        h.ok("down")
        equal(os.listdir(h.path("mine")), ["file"], "it is the user's and stays")


def files():
    with Host() as h:
        h.ok("up")
        h.ok("write", "a.txt", input="one\ntwo\n")
        equal(h.ok("read", "a.txt").rstrip("\n"), "one\ntwo", "read")
        whole = h.record()["backend"]["workspace"] + "/a.txt"
        h.ok("edit", whole, "two", "2")
        h.fails(1, "No replacement was performed", "edit", whole, "not in it", "x")
        equal(h.ok("run", "cat a.txt"), "one\n2\n", "edited")
        for before, old, new, after in ((b"a\r\nb\r\nc", "b\nc", "B\nx\nC", b"a\r\nB\r\nx\r\nC"),
                                        ("\ufeffä\r\n".encode("utf-16-le"), "ä", "文",
                                         "\ufeff文\r\n".encode("utf-16-le"))):
            with open(whole, "wb") as f:
                f.write(before)
            os.chmod(whole, 0o751)
            equal(json.loads(h.ok("edit", "-j", whole, old, new))["observation"], "edit")
            with open(whole, "rb") as f:
                equal((f.read(), os.stat(whole).st_mode & 0o777), (after, 0o751), "line ends, charset and mode stay")
        with open(whole, "w") as f:
            f.write("aaa\n")
        h.fails(1, "Multiple occurrences", "edit", whole, "aa", "x")
        h.fails(1, "did not appear", "edit", whole, " aaa", "x")
        h.fails(3, "there is no file", "edit", "nothing", "a", "b")
        h.fails(3, "there is no file", "read", "nothing")
        with open(whole, "w") as f:
            f.write("".join("line %d\n" % n for n in range(20)))
        at_once = [h.popen("edit", whole, "line %d\n" % n, "changed %d\n" % n) for n in range(20)]
        equal([p.communicate()[1] for p in at_once], [""] * 20)
        with open(whole) as f:
            equal(f.read(), "".join("changed %d\n" % n for n in range(20)), "none of them is lost")
        with open(whole, "w") as f:
            f.write("one\n2\n")
        os.makedirs(h.path("cwd", "dir", "sub"))
        for name in ("dir/a", "dir/sub/\u00e9"):
            with open(h.path("cwd", name), "w") as f:
                f.write(name)
        workspace = h.record()["backend"]["workspace"]
        h.ok("put", "dir", workspace)
        equal(h.ok("run", "cat dir/sub/*"), "dir/sub/\u00e9\n", "a directory, copied in")
        h.ok("put", "dir/a", workspace + "/single/")
        equal(h.ok("run", "cat single/a"), "dir/a\n", "a file")
        h.ok("get", workspace + "/dir", "back")
        with open(h.path("cwd", "back/sub/\u00e9")) as f:
            equal(f.read(), "dir/sub/\u00e9", "copied out")
        h.fails(3, "missing: No such file or directory", "put", "missing", "/tmp")
        equal([n for n in os.listdir(h.path("tmp")) if n.startswith("handrail-")], [], "temporary files")


def repository():
    with Host() as h:
        h.env["WORKSPACE_BASE"] = repo = h.path("repo")
        os.makedirs(os.path.join(repo, ".openhands"))
        h.ok("up")
        h.ok("repo", "setup")
        equal(os.path.exists(os.path.join(repo, ".git")), False, "nothing to do, nothing done")
        h.ok("run", "git init -q .")
        with open(os.path.join(repo, ".git/hooks/pre-commit"), "w") as f:
            f.write("#!/bin/sh\necho before >> log\n")
        with open(os.path.join(repo, ".openhands/setup.sh"), "w") as f:
            f.write("export FROM_SETUP=yes\n")
        with open(os.path.join(repo, ".openhands/pre-commit.sh"), "w") as f:
            f.write("echo own >> log\n! grep -q bad file\n")
        done = h("repo", "setup")
        equal((done.returncode, "Git pre-commit hook installed successfully" in done.stderr), (0, True), done.stderr)
        equal(h.ok("run", "echo $FROM_SETUP"), "yes\n", "the script ran in the shell")
        h.ok("run", "echo good > file; git add file; git -c user.name=a -c user.email=b commit -qm x")
        equal(h.ok("run", "cat log"), "before\nown\n", "both hooks ran, in this order")
        equal(h("run", "echo bad > file; git -c user.name=a -c user.email=b commit -qam y").returncode, 1, "refused")
        h.ok("repo", "setup", "-q")
        with open(os.path.join(repo, ".git/hooks/pre-commit.local")) as f:
            equal(f.read(), "#!/bin/sh\necho before >> log\n", "ours was not taken for a foreign one")


def logs():
    with Host() as h:
        h.ok("up")
        equal("ready: listening on" in h.ok("logs"), True, "log")
        p = h.popen("logs", "--follow")
        first = p.stdout.readline()
        equal("handraild" in first, True, first)
        timer = threading.Timer(PATIENCE, p.kill)
        timer.start()
        h.ok("down")
        p.communicate()
        timer.cancel()
        equal(p.returncode, 0, "it ends with the sandbox")


class TokenServer(http.server.BaseHTTPRequestHandler):
    """In the place of a sandbox's server: an editor's token, after as many failures as `busy` has."""

    busy, seen = [], []
    page = None  # how it answers a question for the page, other than by 404

    def do_GET(self):
        body = json.dumps({"token": "t k"}).encode()
        self.seen.append((self.headers["X-Session-API-Key"], self.headers["X-Preview"]))
        if self.path == "/handrail/" and self.page:
            return self.page()
        status = self.busy.pop() if self.busy else 200
        self.send_response(status if self.path == "/vscode/connection_token" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


def log_stream():
    """A program is told of each line beside what it does, until it says enough or ends the sandbox."""
    with Host() as h:
        log = h.path("state", "streamer.log")
        done = subprocess.run([os.path.join(BUILD, "t/host/streamer"), "local", h.path("state"),
                               "echo MARK one >>{0}; echo MARK two >>{0}".format(log), "MARK", "2"],
                              env=h.env, cwd=h.path("cwd"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE, universal_newlines=True)
        equal((done.returncode, done.stdout),
              (0, "before: the sandbox is not connected\n2 lines, the first MARK one\n2 after it was stopped\nagain\n"),
              done.stderr)
        equal("Error streaming" in done.stderr, False, done.stderr)


def page():
    """The way in for people is printed where there is one: by "up" to standard error, by "url"."""
    need_entrance()  # nginx's account reads the page's files
    with Host(HANDRAIL_WWWDIR=os.path.join(SRCDIR, "www")) as h:
        done, url = h("up"), h.record()["url"]
        page_ = url + "/handrail/"
        equal((done.stdout, "handrail: its page in a browser: %s\n" % page_ in done.stderr),
              ("default %s\n" % url, True), done.stderr)
        equal(json.loads(h.ok("up", "--json")), {"sid": "default", "url": url, "page": page_})
        equal("page" in h("up", "-q").stderr, False)
        equal((h.ok("url").splitlines()[1], json.loads(h.ok("url", "--json"))["page"]), ("page   " + page_, page_))
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"})) as answer:
            equal((answer.url, answer.status), (page_, 200))


def addresses():
    with Host() as h:
        h.ok("up")
        record = h.record()
        ports = [record["backend"]["app_port_%d" % i] for i in (1, 2)]
        here = {"http://localhost:%d" % p: p for p in ports}
        equal(json.loads(h.ok("url", "--json")), {
            "server": record["url"], "page": None, "key": record["backend"]["key"], "vscode": None, "web_hosts": here})
        equal(h.ok("url"), "server %s\n" % record["url"] + "".join("%-6d %s\n" % (here[u], u) for u in here))
        with http.server.HTTPServer(("127.0.0.1", 0), TokenServer) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                record["backend"]["url"] = "http://127.0.0.1:%d" % server.server_address[1]
                with open(h.path("state", "default.json"), "w") as f:
                    json.dump(record, f)
                for env, form in (({}, None), ({"RUNTIME_URL": "http://localhost"}, None),
                                  ({"RUNTIME_URL": "https://a.example.com"}, "https://%s-a.example.com"),
                                  ({"RUNTIME_URL_PATTERN": "https://{runtime_id}.b:8443/", "RUNTIME_ID": "r1"},
                                   "https://%s-r1.b:8443"),
                                  ({"RUNTIME_URL": "https://c/r1", "RUNTIME_ID": "r1"}, "https://c/r1/%s"),
                                  ({"RUNTIME_URL": "https://c", "RUNTIME_URL_PATTERN": "https://d/{runtime_id}",
                                    "RUNTIME_ID": "r1"}, "https://%s-c"),
                                  ({"RUNTIME_URL_PATTERN": "https://d/{runtime_id}"}, None)):
                    names = [form % n for n in ("vscode", "work-1", "work-2")] if form else [
                        "http://localhost:%d" % p for p in [record["backend"]["vscode_port"]] + ports]
                    h.env.update(env)
                    got = json.loads(h.ok("url", "--json"))
                    for name in env:
                        del h.env[name]
                    equal(got["vscode"], names[0] + "/?tkn=t%20k&folder=" + record["backend"]["workspace"], env)
                    equal(got["web_hosts"], dict(zip(names[1:], ports)), env)
            finally:
                server.shutdown()
                thread.join()


def resources():
    with Host() as h:
        h.ok("up")
        top = json.loads(h.ok("top", "--json"))
        equal(sorted(top), ["idle_time", "resources", "uptime"], "server_info")


def named():
    """The server knows the sandbox's name, which its page shows."""
    with Host() as h:
        h.ok("up", "-n", "build-7")
        a = json.loads(h.ok("url", "--json", "-n", "build-7"))
        request = urllib.request.Request(a["server"] + "/handrail/v1/me", headers={"X-Session-API-Key": a["key"]})
        with urllib.request.urlopen(request, timeout=PATIENCE) as r:
            equal(json.load(r)["name"], "build-7")


def terminal():
    with Host() as h:
        h.ok("up")
        equal(h("sh", "sh", "-c", "pwd; exit 3").returncode, 3, "status")
        equal(h.ok("sh", "pwd").strip(), os.path.realpath(h.record()["backend"]["workspace"]), "in the workspace")
        master, slave = pty.openpty()
        p = h.popen("sh", "sh", "-c", "test -t 0 && test -t 2 && echo a terminal", stdin=slave)
        os.close(slave)
        p.communicate(timeout=PATIENCE)
        os.close(master)
        equal(p.returncode, 1, "stderr is a pipe here")


def wrong_usage():
    with Host() as h:
        for argv, text in (
                (("upp",), 'there is no command "upp"; did you mean "up"?'), (("zzzzzz",), 'see "handrail --help"'),
                (("run",), "usage: handrail run"), (("up", "some", "more"), '"more" is one argument too many'),
                (("run", "--timeot", "1", "x"), 'did you mean "--timeout"?'), (("run", "-Z", "x"), 'no option "-Z"'),
                (("run", "-t"), 'option "-t" needs a value'), (("run", "-t", "x", "y"), "a number of seconds"),
                (("up", "-e", "x"), "--env must be NAME=VALUE"), (("up", "--set", "x"), "--set must be KEY=VALUE"),
                (("up", "--set", "sandbox.nothing=1"), 'there is no setting "sandbox.nothing"'),
                (("up", "--set", "sandbox.timeot=1"), '"sandbox.timeot"; did you mean "sandbox.timeout"?'),
                (("up", "--set", "runtime=x"), '"runtime"; did you mean "core.runtime"?'),
                (("up", "--set", "=x"), '--set must be KEY=VALUE, not "=x"'),
                (("down", "--all", "x"), '--all ends every sandbox; leave out "x"'),
                (("image", "ls", "x"), 'image ls: "x" is one argument too many'),
                (("ps", "x"), "usage: handrail ps [OPTION]...\n"),
                (("up", "--set", "sandbox.timeout=x"), "sandbox.timeout must be an integer, not: x"),
                (("up", "--json=1"), "takes no value")):
            h.fails(2, text, *argv)
        h.fails(2, "invalid sandbox name", "up", "-n", "../x")
        h.fails(2, "Runtime nonexistent not supported", "up", "-r", "nonexistent")
        equal(os.path.exists(h.path("state")) and os.listdir(h.path("state")), False, "nothing was made")


def help_and_completion():
    with Host() as h:
        text = h.ok("--help")
        for name in ("up", "run", "ps", "resume, start", "down", "rm", "logs", "repo clone"):
            equal("\n  %s " % name in text, True, name)
            words = name.split(",")[0].split()
            equal(h.ok(*words + ["--help"]).startswith("usage: handrail %s " % " ".join(words)), True, name)
        group = h.ok("repo", "--help")
        equal((group.startswith("usage: handrail repo COMMAND"), "\n  repo diff " in group, "\n  up " in group),
              (True, True, False), group)
        equal(h.ok("help", "repo"), group)
        equal(h("repo").returncode, 2, "a group alone")
        equal(h.ok("help", "repo", "diff"), h.ok("repo", "diff", "--help"))
        h.fails(2, 'no command "dif"; did you mean "repo diff"?', "repo", "dif")
        h.fails(2, 'no command "preflight"; did you mean "image preflight"?', "preflight")
        script = h.ok("completion") + \
            "\nCOMP_WORDS=(handrail do); COMP_CWORD=1; _handrail; echo \"${COMPREPLY[@]}\"\n" \
            "COMP_WORDS=(handrail run --t); COMP_CWORD=2; _handrail; echo \"${COMPREPLY[@]}\"\n"
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, universal_newlines=True,
                              env=dict(h.env, PATH=BUILD + ":" + h.env["PATH"]))
        equal(done.stdout, "down doctor\n--timeout\n", "completed")
        equal(h.ok("version").split()[0], "handrail", "version")


def settings():
    with Host(SANDBOX_API_KEY="hunter2") as h:
        with open(h.path("cwd", "config.toml"), "w") as f:
            f.write("[core]\nruntme = 'x'\n[sandbox]\ntimeout = 7\n")
        done = h("config")
        equal('key "runtme" in [core] section; did you mean "runtime"?' in done.stderr, True, done.stderr)
        whole = json.loads(done.stdout)
        equal((whole["sandbox"]["timeout"], whole["sandbox"]["api_key"]), (7, "******"), "values")
        with open(h.path("cwd", "config.toml"), "a") as f:
            f.write("[mcp]\nsse_servers = [{url = 'http://a/sse', api_key = 'hunter3'}]\nstdio_servers = ["
                    "{name = 'n', command = 'c', args = ['x'], env = {TOKEN = 'hunter4'}}]\n")
        text = h.ok("config")
        equal(("hunter" in text, json.loads(text)["mcp"]["stdio_servers"]),
              (False, [{"name": "n", "command": "c", "args": ["x"], "env": {"TOKEN": "******"}}]), "MCP servers")
        equal(json.loads(h.ok("config", "-s", "sandbox.timeout=9"))["sandbox"]["timeout"], 9, "--set")


def mcp_servers():
    """Those of the settings are in the sandbox; one that does not start is told of."""
    with Host() as h:
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_server.py")
        with open(h.path("cwd", "config.toml"), "w") as f:
            f.write("[mcp]\nstdio_servers = [\n  {name = 'one', command = '%s', args = ['%s', 'one']},\n"
                    "  {name = 'broken', command = '/nonexistent/server'},\n]\n" % (sys.executable, server))
        done = h("up")
        equal((done.returncode, "Some MCP servers failed to be added: " in done.stderr), (0, True), done.stderr)
        equal("broken" in done.stderr, True, done.stderr)
        url, key = h.record()["url"], h.record()["backend"]["key"]
        say = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}})
        ask = urllib.request.Request(url + "/mcp/shttp", say.encode(), {
            "X-Session-API-Key": key, "Authorization": "Bearer " + key, "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream"})
        with urllib.request.urlopen(ask, timeout=PATIENCE) as answer:
            equal((answer.status, b"serverInfo" in answer.read()), (200, True), "it is offered")
    with Host() as h:
        equal(h("up").stderr.count("MCP"), 0, "none: nothing is said")


def decisions_without_a_server():
    """What the client side answers by itself, seen by a program that uses the library."""
    with Host() as h:
        del h.env["FILE_STORE_PATH"]  # it is in the home directory then
        def act(action):
            done = subprocess.run([os.path.join(BUILD, "t/host/program"), "local", json.dumps(action)], env=h.env,
                                  cwd=h.path("cwd"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True)
            equal(done.returncode, 0, done.stderr)
            equal("STATUS$READY" in done.stderr.split(), True, done.stderr)
            return json.loads(done.stdout)

        obs = act({"action": "think", "args": {"thought": "x"}})
        equal((obs["observation"], obs["content"]), ("think", "Your thought has been logged."))
        obs = act({"action": "nothing_such", "args": {}})
        equal((obs["observation"], obs["content"]), ("error", "Action nothing_such does not exist."))
        obs = act({"action": "run", "id": 5, "args": {"command": "x", "confirmation_state": "rejected"}})
        equal((obs["observation"], obs["cause"]), ("user_rejected", 5))
        obs = act({"action": "run", "args": {"command": "x", "confirmation_state": "awaiting_confirmation"}})
        equal((obs["observation"], obs["content"]), ("null", ""))
        obs = act({"action": "task_tracking", "args": {"command": "plan", "task_list": [
            {"title": "one", "status": "done", "notes": "n"}, {"title": "two"}]}})
        equal(obs["content"], "Task list has been updated with 2 items. Stored in session directory: "
              "sessions/program/TASKS.md")
        with open(h.path("home/.openhands/sessions/program/TASKS.md"), encoding="utf-8") as f:
            equal(f.read(), "# Task List\n\n1. \u2705 one\nn\n2. \u23f3 two\n\n", "the file")
        obs = act({"action": "run", "id": 9, "args": {"command": "echo real", "hidden": True}})
        equal((obs["content"], obs["cause"], obs["extras"]["hidden"]), ("real", 9, True))


def loadable_backend():
    with Host() as h:
        h.env["OH_RUNTIME_PLUGIN_PATH"] = "/nonexistent:" + os.path.join(BUILD, "t/host/.libs")
        program = os.path.join(BUILD, "t/host/program")
        action = json.dumps({"action": "run", "args": {"command": "x"}})
        done = subprocess.run([program, "example", action], env=h.env, cwd=h.path("cwd"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        equal(done.returncode, 0, done.stderr)
        equal(json.loads(done.stdout)["extras"]["metadata"]["exit_code"], 7, done.stdout)
        os.mkdir(h.path("broken"))
        with open(h.path("broken", "libhandrail-backend-broken.so"), "w") as f:
            f.write("no library")
        h.env["OH_RUNTIME_PLUGIN_PATH"] = h.path("broken")
        h.fails(1, "Failed to import third-party runtime", "up", "-r", "broken")
        other = os.path.join(BUILD, "handrail-archives.so")
        h.fails(1, other + ": it exports no hr_backend_entry", "up", "-r", other)


@contextlib.contextmanager
def page_server(answer):
    """A sandbox whose server answers a question for its page by that function."""
    with Host() as h, http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Pages", (TokenServer,), {
            "seen": [], "busy": [], "page": answer})) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            h.env.update(OH_RUNTIME_PLUGIN_PATH=os.path.join(BUILD, "t/host/.libs"), RUNTIME="example",
                         EXAMPLE_URL="http://127.0.0.1:%d" % server.server_address[1])
            yield h, server.RequestHandlerClass.seen
        finally:
            server.shutdown()
            thread.join()


def page_that_fails():
    """A server that is asked for its page once, and answers with an error: the other addresses are printed."""
    def broken(request):
        request.send_response(503)
        request.send_header("Content-Length", "0")
        request.end_headers()

    with page_server(broken) as (h, seen):
        for argv in (("up", "--json"), ("url", "--json")):
            seen[:] = []
            done = h(*argv)
            equal((done.returncode, json.loads(done.stdout)["page"]), (0, None), done.stderr)
            equal("it is unknown whether the server has a page: Server error '503" in done.stderr, True, done.stderr)
            equal(len(seen), 1 if argv[0] == "up" else 2, "the editor's token, and the page once")


def page_that_drips():
    """What comes byte by byte has an end: the line of "up" is there before, and it takes ten seconds."""
    printed, over = threading.Event(), threading.Event()

    def drips(request):
        equal(printed.wait(PATIENCE), True, "the line comes first")
        request.send_response(200)
        request.end_headers()
        with contextlib.suppress(OSError):  # nobody listens any more
            while not over.wait(0.5):
                request.wfile.write(b".")

    with page_server(drips) as (h, seen):
        child = h.popen("up")
        try:
            equal(child.stdout.readline(), "default %s\n" % h.env["EXAMPLE_URL"])
            printed.set()
            said = child.communicate(timeout=PATIENCE)[1]
        finally:
            over.set()
            child.kill()
            child.communicate()
        equal((child.returncode, "it is unknown whether the server has a page: " in said), (0, True), said)
        equal(len(seen), 1, "it is asked once")


def kind_of_ones_own():
    """All that is asked of a kind is asked of its table: the library knows no name of one."""
    with Host() as h, http.server.HTTPServer(("127.0.0.1", 0), TokenServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            h.env.update(OH_RUNTIME_PLUGIN_PATH=os.path.join(BUILD, "t/host/.libs"), RUNTIME="example",
                         EXAMPLE_URL="http://127.0.0.1:%d" % server.server_address[1], DEBUG_RUNTIME="1")
            up = h("up")
            equal(up.returncode, 0, up.stderr)
            # the thread that follows the log may be stopped before it says anything
            equal([line for line in up.stderr.splitlines() if "[inside" in line and
                   "[inside the example] a line" not in line], [], up.stderr)
            TokenServer.busy, TokenServer.seen[:] = [503], []
            equal(json.loads(h.ok("url", "--json")), {
                "server": h.env["EXAMPLE_URL"], "page": None, "key": "k",
                "web_hosts": {"https://app.example.test": 3000},
                "vscode": "https://vscode.example.test/ws?tkn=t%20k&folder=/there"})
            equal(TokenServer.seen, [("k", "p")] * 3, "the kind had it sent again, with its own headers")
            TokenServer.busy = [503, 503]
            h.fails(1, "503", "url")
            equal(h.ok("logs"), "a line\n")
            equal(json.loads(h.ok("repo", "changes", "--json")), [{"status": "M", "path": "a"}])
            equal(h.ok("doctor").split("\n")[-2], "ok   echo             it is heard")
            equal(h.ok("image", "build"), "example/image:1\n")
            events = subprocess.Popen([os.path.join(BUILD, "handrail"), "events", "--json"], env=h.env,
                                      cwd=h.path("cwd"), stdout=subprocess.PIPE, universal_newlines=True)
            try:
                told = [json.loads(events.stdout.readline()) for _ in range(2)]
                equal(sorted((e["sid"], e["event"], e["detail"]) for e in told),
                      [("", "watching", ""), ("default", "blinked", "twice")])
                equal(json.loads(events.stdout.readline())["detail"], "again", "after it was cut")
            finally:
                events.kill()
                events.wait()
                events.stdout.close()
        finally:
            server.shutdown()
            thread.join()


def settings_of_a_kind():
    """A kind's own settings: from the file, the environment and the command line, in this order."""
    with Host() as h:
        h.env.update(OH_RUNTIME_PLUGIN_PATH=os.path.join(BUILD, "t/host/.libs"))
        del h.env["RUNTIME"]
        h.ok("up", "-r", "example")

        def status(text, *argv, **env):
            with open(h.path("cwd", "config.toml"), "w") as f:
                f.write(text)
            h.env.update(env)
            done = h("run", *argv, "x")
            for name in env:
                del h.env[name]
            return done

        equal(status("").returncode, 7, "the default")
        said = status("[core]\nruntime = 'example'\n[example]\nstatus = 8\n")
        equal((said.returncode, said.stderr), (8, ""))
        said = status("[core]\n[example]\nstatus = 8\n", "-r", "example")
        equal((said.returncode, said.stderr), (8, ""), "the kind is named on the command line")
        said = status("[core]\n[example]\nstatus = 8\n[exampel]\n")
        equal((said.returncode, said.stderr), (8, "handrail: Unknown section [exampel] in config.toml\n"),
              "its own is used, so it is not called unknown, although only the record names the kind")
        equal(status("[core]\n[example]\nstatus = 8\n", EXAMPLE_STATUS="9").returncode, 9)
        argv = ("-r", "example", "--set", "example.status=10")
        equal(status("[core]\n[example]\nstatus = 8\n", *argv, EXAMPLE_STATUS="9").returncode, 10)
        for text, argv, what in (
                ("[core]\n[example]\nstatsu = 8\n", (), 'has no setting "statsu"; did you mean "status"?'),
                ("[core]\n[example]\nstatus = 'x'\n", (), '"status" in [example] is of the wrong type'),
                ("", ("-r", "example", "--set", "example.x=1"), 'the back-end example has no setting "x"'),
                ("", ("-r", "example", "--set", "example.status=x"), "example.status must be an integer, not: x"),
                ("", ("--set", "example.status=1"), 'there is no setting "example.status"')):
            said = status(text, *argv)
            equal((said.returncode in (1, 2), what in said.stderr), (True, True), said.stderr)
        said = h.ok("up", "-r", "example", "--help")
        equal("  example.status                 what commands end with\n" in said, True, said)
        equal("example." in h.ok("up", "--help"), False, "without a kind")


def limits_that_do_not_hold():
    """Nobody believes that a limit or a promise of security holds which the kind does not heed."""
    with Host() as h:
        for kind in ("cli", "local"):
            said = h("up", "-n", kind, "-r", kind, "-s", "sandbox.limits.mem_limit=1g", "-s",
                     "sandbox.limits.profile=none")
            equal((said.returncode, "sandbox.limits.mem_limit is set but has no effect" in said.stderr,
                   "limits.profile" in said.stderr), (0, True, False), said.stderr)
            h.fails(1, "sandbox.security.readonly_root_fs is set", "up", "-n", kind + "2", "-r", kind, "-s",
                    "sandbox.security.readonly_root_fs=true")
            equal(os.path.exists(h.path("state", kind + "2.json")), False, "nothing was made")
            equal("has no effect" in h("run", "-n", kind, "-s", "sandbox.limits.mem_limit=1g", "true").stderr,
                  False, "of one that is there")
            h.fails(1, "sandbox.security.network_mode is set", "up", "-n", kind + "3", "-r", kind, "-s",
                    "sandbox.security.network_mode=hostile")
            said = h("up", "-n", kind + "4", "-r", kind, "-s", "sandbox.security.network_mode=host")
            equal((said.returncode, "network_mode" in said.stderr), (0, False), said.stderr)
        with open(h.path("cwd", "config.toml"), "w") as f:
            f.write("[sandbox]\nenable_gpu = true\nclose_delay = 3600\n[core]\nmax_iterations = 5\n")
        said = h("up", "-n", "g", "-r", "local")
        equal((said.returncode, said.stderr.count("no effect"), "sandbox.enable_gpu is set but has no effect: the "
               'back-end local does not support it' in said.stderr), (0, 1, True), said.stderr)
        equal("no effect" in h("run", "-n", "g", "true").stderr, False, "once")
        os.unlink(h.path("cwd", "config.toml"))
        said = h("up", "-n", "m", "-r", "local", "-s", "sandbox.limits.max_memory_gb=1")
        equal((said.returncode, "no effect" in said.stderr), (0, False), said.stderr)


def copies_as_cp_has_them():
    """Relative paths are the shell's, a directory takes what is copied, what is not there becomes it."""
    with Host() as h:
        h.ok("up")
        os.makedirs(h.path("cwd", "d/sub"))
        for name, text in (("a.py", "one"), ("d/sub/b", "two"), ("empty", ""), ("x.zip", "no archive")):
            with open(h.path("cwd", name), "w") as f:
                f.write(text)

        def there(path):
            return h.ok("run", "cat " + path).rstrip("\n")

        def here(*names):
            with open(h.path("cwd", *names)) as f:
                return f.read()

        h.ok("run", "mkdir -p deep && cd deep")
        h.ok("put", "a.py")
        equal(there("a.py"), "one", "into the shell's directory")
        h.ok("put", "a.py", "x/b.py")
        equal(there("x/b.py"), "one", "under another name")
        h.ok("put", "d/sub/b", "x/b.py")
        equal(there("x/b.py"), "two", "over a file")
        h.ok("put", "a.py", "x")
        equal(there("x/a.py"), "one", "into a directory")
        h.ok("put", "d", "x")
        equal(there("x/d/sub/b"), "two", "a directory into one")
        h.ok("put", "d", "new")
        equal(there("new/sub/b"), "two", "a directory under another name")
        h.ok("put", "d", "made/")
        equal(there("made/d/sub/b"), "two", "into a directory that is made for it")
        os.makedirs(h.path("cwd", "hollow/in"))
        os.makedirs(h.path("cwd", "d/sub/none"))
        for what, to in (("d", "made"), ("hollow", "made"), ("hollow/in", "alone"), ("hollow/in", "made")):
            h.ok("put", what, to)
        equal(h.ok("run", "find made alone -type d -empty | LC_ALL=C sort").split(),
              ["alone", "made/d/sub/none", "made/hollow/in", "made/in"], "empty directories")
        h.ok("get", "made", "unmade")
        top = h.path("cwd", "unmade")
        equal(sorted(d[len(top):] for d, below, files in os.walk(top) if not below and not files),
              ["/d/sub/none", "/hollow/in", "/in"], "and back")
        h.ok("get", "made/in", "unmade/in")
        equal(os.listdir(h.path("cwd", "unmade/in")), ["in"], "into an empty one, one that is empty")
        h.ok("put", "x.zip")
        equal(there("x.zip"), "no archive", "what only looks like one is not unpacked")
        h.ok("put", "x.zip", "y.zip")
        equal(there("y.zip"), "no archive", "under another name")
        h.fails(1, "a.py is a file: a directory cannot take its place", "put", "d", "a.py")
        h.fails(1, "a.py is a file: a directory cannot take its place", "get", "made", "a.py")
        h.ok("put", "empty", "none")

        h.ok("get", "x/b.py", ".")
        equal(here("b.py"), "two", "a file")
        h.ok("get", "x/b.py", "c.py")
        equal(here("c.py"), "two", "under another name")
        h.ok("get", "none", "got")
        equal(here("got"), "", "an empty file")
        h.ok("get", "x")
        equal(here("x", "d", "sub", "b"), "two", "a directory, with its name")
        h.ok("get", "x", "y")
        equal(here("y", "d", "sub", "b"), "two", "under another name")
        os.mkdir(h.path("cwd", "into"))
        h.ok("get", "x/d", "into")
        equal(here("into", "d", "sub", "b"), "two", "into a directory")
        workspace = h.record()["backend"]["workspace"]
        h.fails(3, "there is no file or directory %s/deep/nothing in the sandbox" % os.path.realpath(workspace),
                "get", "nothing")
        h.fails(3, "create no/such/place", "get", "x/b.py", "no/such/place")
        equal([n for n in os.listdir(h.path("cwd")) if n.startswith("got.")], [], "temporary files")
        done = h("ls", "/root/" + 300 * "x")
        equal("developer.mozilla.org" in done.stderr, False, done.stderr)


def in_a_directory():
    """One that is not there, or that the user may not enter, is an error, and nothing is run."""
    with Host() as h:
        h.ok("up", "-q")
        workspace = h.ok("run", "mkdir -p sub; touch file; pwd").strip()
        equal(h.ok("run", "--cwd", "sub", "pwd"), workspace + "/sub\n", "from the shell's directory on")
        equal(h.ok("run", "--cwd", workspace, "pwd"), workspace + "\n")
        equal(h("run", "--cwd", "sub/", "exit 4").returncode, 4, "the command's status")
        equal(h.ok("run", "cd sub; pwd; cd .."), workspace + "/sub\n", "the shell's own directory is as it was")
        for status, where, text in ((3, "no where", "no directory %s/no where in the sandbox, so nothing was run"),
                                    (1, "file", "%s/file is not a directory that the sandbox's user can enter")):
            h.fails(status, text % workspace, "run", "--cwd", where, "touch %s/ran" % workspace)
        equal(os.path.exists(workspace + "/ran"), False, "nothing was run")


def listed():
    with Host() as h:
        h.ok("up", "-q")
        h.ok("run", "mkdir -p empty sub && touch sub/f && cd sub")
        equal([h.ok("ls", path) for path in ("../empty", "../sub", "../sub/f", "f", ".")],
              ["", "f\n", "../sub/f\n", "f\n", "f\n"], "from the shell's directory on, as of put and get")
        equal((h.ok("ls"), h.ok("ls", "--json", "f")), ("f\n", '["f"]\n'))
        for path in ("nothing", "sub/f", "/no/where"):
            h.fails(3, "there is no file or directory /", "ls", path)
        h.ok("run", "mkdir ../any && cd ../any && ln -s nowhere dead && ln -s . here && touch a $'l\\xff\\n' && "
                    "mkdir $'d\\xfe'")
        equal(h.ok("ls"), "d\\xfe/\na\ndead\nhere\nl\\xff\\x0a\n", "names of any bytes, and links")
        equal(json.loads(h.ok("ls", "--json")), ["d\\xfe/", "a", "dead", "here", "l\\xff\\x0a"])
        h.ok("run", "for n in {1..20005}; do : >$n$'\\xff'; done")
        equal(len(set(h.ok("ls").splitlines())), 20010, "several pages")
        equal(h.ok("ls", "d\udcfe"), "", "a directory whose name is not UTF-8")
        h.ok("run", ": >$'d\\xfe/in'")
        equal(h.ok("ls", "d\udcfe"), "in\n")
        if os.geteuid() != 0:
            h.ok("run", "mkdir ../shut && chmod 0 ../shut")
            h.fails(1, "Permission denied", "ls", "../shut")
        h.ok("run", "mkdir ../gone && cd ../gone && rmdir ../gone")
        h.fails(3, "there is no file or directory /", "ls")


def reasons_of_a_clone():
    """What git said, or why git was not asked."""
    with Host() as h:
        h.ok("up", "-q")
        h.fails(1, "fatal: ", "repo", "clone", "http://127.0.0.1:1/x.git")
        h("run", "-t", "0.3", "read x")
        h.fails(1, "git clone failed: the shell is busy with another command, so it was not run", "repo", "clone",
                "http://127.0.0.1:1/x.git")


def mistakes_in_the_file():
    """An unknown key stops nobody; a file of which nothing would hold does."""
    with Host() as h:
        for text, status, said in (
                ("[core]\n[sandbox]\ntimout = 3\n", 0, 'Unknown config key "timout" in [sandbox] section; did you mean '
                                                        '"timeout"?'),
                ("[core]\n[sandbox.limits]\nmem_limt = '1g'\n", 0, 'did you mean "mem_limit"?'),
                ("[core]\n[sandbox]\ntimeout = 'x'\n", 1, 'Error in [sandbox] section in config.toml: "timeout" is of'),
                ("[core]\n[sandbox\n", 1, "Cannot parse config.toml: "),
                ("[core]\na = \n", 1, "Cannot parse config.toml: ")):
            for command in (("ps",), ("up", "-q")):
                with open(h.path("cwd", "config.toml"), "w") as f:
                    f.write(text)
                done = h(*command)
                os.unlink(f.name)
                equal((done.returncode, said in done.stderr or (command[-1] == "-q" and status == 0)), (status, True),
                      (text, command, done.stderr))


def proxies():
    """The proxy of the environment reaches no server of this machine, so requests to one do not use it."""
    nowhere = "http://127.0.0.1:1"
    with Host(http_proxy=nowhere, https_proxy=nowhere, all_proxy=nowhere, no_proxy="example.org") as h:
        h.ok("up", "-q")
        equal(h.ok("run", "echo direct"), "direct\n")


def cells():
    """A cell that raised an exception is no success; one that prints the like is."""
    with Host() as h:
        h.ok("up", "-q")
        done = h("py", "1")
        if "python3-ipykernel" in done.stderr:
            raise Skip("there is no kernel: apt-get install python3-ipykernel")
        for status, code in ((0, "print('fine')"), (1, "1/0"), (1, "print(1); raise KeyError('x')"), (1, "def f(:"),
                             (1, "print('x', end=''); 1/0"), (1, "import os; os._exit(3)"),
                             (1, "%nope"), (1, "import sys; sys.exit(3)"), (0, "sys.exit(0)"), (0, "sys.exit()"),
                             (1, "eval('1+')"), (1, "class Own(BaseException): pass\nraise Own"),
                             (0, "import traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()"),
                             (0, "print('a SyntaxError: x')"), (0, "2")):
            equal(h("py", code).returncode, status, code)
        equal("ZeroDivisionError" in h("py", "1/0").stdout, True, "what was printed stays output")
        equal([h.ok("py", code) for code in ("print(1)", "x = 1", "print('[Jupyter')")],
              ["1\n", "[Code executed successfully with no output]\n", "[Jupyter\n"], "not where it ran")
        equal(h("py", "--json", "1/0").returncode, 1, "in JSON as well")
        for again in ("the time is over", "also where the kernel's loss is told first"):
            equal(h("py", "-t", "1", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                                     "while True: time.sleep(1)").returncode, 4, again)


def plugins_at_first_touch():
    """A sandbox is given those that agents have; no kernel runs until one is used."""
    with Host() as h:
        h.ok("up")
        h.ok("up", "-n", "bare", "-p", "none")

        def plugins(name):
            return process.command_line(h.record(name)["backend"]["pid"]).rpartition("--plugins")[2].split()[:2]

        equal(plugins("default"), ["agent_skills", "jupyter"])
        equal("--plugins" in process.command_line(h.record("bare")["backend"]["pid"]), False, "none")
        h.fails(1, "started without the plugin jupyter", "py", "-n", "bare", "1+2")


def many_are_watched():
    """However many there are, the end of each is told; one whose end cannot be told is named."""
    for files, n, what in ((None, 300, "exited"), (64, 300, "unwatched")):
        with Host() as h:
            p = subprocess.Popen(["sleep", "1000"])
            with open("/proc/%d/stat" % p.pid) as f:
                started = int(f.read().rsplit(")", 1)[1].split()[19])
            os.mkdir(h.path("state"), 0o700)
            for i in range(n):
                with open(h.path("state", "s%d.json" % i), "w") as f:
                    json.dump({"sid": "s%d" % i, "runtime": "cli", "created": 1,
                               "backend": {"pid": p.pid, "started": started}}, f)
            more = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))} if files else {}
            events = h.popen("events", "--json", **more)
            late = threading.Timer(PATIENCE, events.kill)
            late.start()
            told, name = {"exited": set(), "unwatched": set()}, ""
            while name != "watching":
                line = json.loads(events.stdout.readline())
                name = line["event"]
                told.get(name, set()).add(line["sid"])
            p.kill()
            p.wait()
            while len(told["exited"]) + len(told["unwatched"]) < n:
                line = json.loads(events.stdout.readline())
                told.get(line["event"], set()).add(line["sid"])
            equal((len(told["exited"] | told["unwatched"]), len(told[what]) > n // 2), (n, True), what)
            late.cancel()
            events.terminate()
            events.communicate()
            for i in range(n):
                os.unlink(h.path("state", "s%d.json" % i))


def forged_readiness():
    """Anybody may send to the socket of readiness; only the server's word counts."""
    with Host() as h:
        fifo = h.path("started")
        os.mkfifo(fifo)
        with open(h.path("server"), "w") as f:
            f.write("#!/bin/bash\nwhile (($# > 0)); do [[ $1 == --run-dir ]] && dir=$2; shift; done\n"
                    "echo \"$NOTIFY_SOCKET\" >%s\nexec sleep 1000\n" % fifo)
        os.chmod(h.path("server"), 0o755)
        h.env["HANDRAIL_SERVER"] = h.path("server")
        p = h.popen("up")
        with open(fifo) as f:
            name = f.read().strip()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"READY=1", "\0" + name[1:])
        # what was sent before the server's end is read before it
        os.kill(h.record()["backend"]["pid"], signal.SIGKILL)
        out, err = p.communicate(timeout=PATIENCE)
        equal((p.returncode > 0, "Server process died" in err, out), (True, True, ""), err)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life_of_a_sandbox, exit_statuses, a_way_for_all_accounts, first_command, no_first_command,
                 json_observation, variables, bad_variable_leaves_nothing, git_identity, the_callers_home,
                 port_that_is_given, many_are_watched, forged_readiness, doctor_of_chromium, two_sandboxes,
                 server_that_died, server_that_does_not_start, failed_start_keeps_the_log,
                 server_killed_before_it_is_ready,
                 server_that_does_not_end, start_that_is_killed, recorded_before_it_runs, own_workspace, files,
                 repository, logs, log_stream, page, page_that_fails, page_that_drips, addresses, resources, named,
                 terminal, wrong_usage, help_and_completion, settings, mcp_servers, decisions_without_a_server,
                 loadable_backend, kind_of_ones_own,
                 settings_of_a_kind, limits_that_do_not_hold, copies_as_cp_has_them, in_a_directory, listed,
                 reasons_of_a_clone, mistakes_in_the_file, proxies, cells,
                 plugins_at_first_touch):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
