#!/usr/bin/env python3
"""Forks of boxes: what a branch has of its parent, what is refused, and that nothing is left of killed and failed ones.
As root each case is done twice, by root and by another account."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import PATIENCE, Written  # noqa: E402
from lib.hostbox import below, copier, run  # noqa: E402
from lib.supervised import UnixConnection  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402


def end(h, *names):
    """Ends sandboxes, of which nothing is left."""
    boxes = [h.box(name) for name in names]
    h.ok("down", "-q", *names)
    equal(h.left(*boxes), [])
    equal([n for n in os.listdir(h.path("state")) if n not in ("secrets", "snapshots")], [])


def connected(path, seconds):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(seconds)
    s.connect(path)
    return s


def ask(h, name, method, path, body=None, key=None):
    """A request to the server of a sandbox; its answer."""
    box = h.box(name)
    connection = UnixConnection(lambda seconds: connected(box["edge"] + "/http.sock", seconds), PATIENCE)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           dict({"X-Session-API-Key": box["key"], "Content-Type": "application/json"}, **(
                               {"X-Request-ID": key} if key else {})))
        answer = connection.getresponse()
        text = answer.read()
        equal(answer.status in (200, 201), True, (path, answer.status, text))
        return json.loads(text)
    finally:
        connection.close()


def command(h, name, session, line):
    """The observation of a command in a session of a sandbox."""
    args = {"command": line, "blocking": True}
    return ask(h, name, "POST", "/handrail/v1/run?session=" + session,
               {"action": {"action": "run", "args": args, "timeout": PATIENCE}})


def inside(h, name, session, line):
    """Does the same for a command that does not fail; its output."""
    answer = command(h, name, session, line)
    equal(answer["extras"]["metadata"]["exit_code"], 0, answer)
    return answer["content"]


# Values and names that only bash's own quoting passes on.
STATE = r"""
hostile=$'a\x01\x7f\xff"$`\\\n\' $(touch /workspace/ran) \t '; export exported='x "y" $z'; number=5; declare -i number
declare -A map=([$'k\n]']=1 ['a "b"']='$x' [']']='[') ; list=(one 'two three' '*'); declare -n alias_of=number
declare -r fixed='can not change'; declare -u upper=abc; unset -v PYTHONUNBUFFERED; empty=; export -n number
say() { printf '%s|' "$hostile" "$@"; }; with-dash() { cat <<E
here $number
E
}; export -f say; shared() { ll; }; alias ll='echo aliased' quoted="it's"; set -o noclobber -o pipefail; set -u
shopt -s extglob nullglob
matches() { case $1 in +(a|b)) echo yes;; esac; }; shopt -u cmdhist; umask 0137; cd "/workspace/a b"
trap 'echo "trap $$"' USR1; set -- 'p q' '' "r'"
IFS=:; set -f
"""
SHOW = r"""
declare -p hostile exported number map list alias_of fixed upper empty IFS; declare -f say with-dash shared matches
declare -F say; alias
set +o; shopt; umask; pwd; trap; printf '<%s>' "$#" "$@"; printf %s "${PYTHONUNBUFFERED-unset}"; bash -c 'say q'
"""


def state(h):
    """A branch has the files and the whole state of the shells, and neither changes the other's."""
    h.ok("up", "-q", "one", "-e", "MINE=a b")
    h.ok("run", "-n", "one", "echo first >/workspace/f; mkdir '/workspace/a b'; echo gone >/dev/shm/f")
    ask(h, "one", "POST", "/handrail/v1/create", {"name": "build"})
    inside(h, "one", "build", "cd /usr; name=build; export name")
    h.ok("run", "-n", "one", STATE.strip())
    before = h.ok("run", "-n", "one", SHOW.strip())
    equal(h("run", "-n", "one", "(exit 7)").returncode, 7)
    answer = json.loads(h.ok("fork", "one", "two", "--json"))
    equal((answer["sandbox"], answer["branches"], sorted(answer["sessions"])), ("one", ["two"], ["build", "default"]))
    equal(h.ok("run", "-n", "one", "echo $?"), "7\n", "the parent's shell noticed nothing")
    after = h.ok("run", "-n", "two", SHOW.strip())
    equal(after, before)
    equal([line for line in h.ok("run", "-n", "two", "history").splitlines() if "__hr" in line or "noexec" in line], [])
    equal(inside(h, "two", "build", "pwd; echo $name; env | grep -c ^name=").split(), ["/usr", "build", "1"])
    equal(h.ok("run", "-n", "two", "set +fu; IFS=' '; cat /workspace/f; echo $MINE; "
               "test -e /workspace/ran || echo none; ls -A /dev/shm /var/tmp | grep -c '^f$\\|handrail'; "
               "true").split("\n")[:4], ["first", "a b", "none", "0"])
    h.ok("run", "-n", "two", "echo second >|/workspace/f; hostile=other")
    equal(h.ok("run", "-n", "one", "cat /workspace/f; declare -p exported; cd /; ls -A /var/tmp"),
          'first\ndeclare -x exported="x \\"y\\" \\$z"\n')
    h.ok("down", "-q", "one")
    equal(h.ok("run", "-n", "two", "cat /workspace/f"), "second\n", "a branch needs no parent")
    h.ok("fork", "-q", "two", "three")
    equal(h.ok("run", "-n", "three", "echo $hostile; cat /workspace/f"), "other\nsecond\n")
    end(h, "two", "three")


# Options that change how bash reads and runs what it is given.
SETS = ("set -e", "set -eu", "set -a", "set -o posix", "set -xv", "set +o history", "set -f",
        "set -T; trap 'echo d' DEBUG",
        "trap 'echo e' ERR; set -E", "shopt -s extdebug", "HISTCONTROL=; set +m", "umask 777", "umask 222",
        "shopt -s nocasematch; export lines=7 uid_=8 seconds=9",
        "eval() { :; }; command() { :; }; printf() { :; }; declare() { :; }; set() { :; }", "unset -v HOME PATH",
        "exec 2>/dev/null")


def options(h):
    """A shell with any options goes along, and the parent's does not notice."""
    h.ok("up", "-q", "one")
    for half in range(0, len(SETS), 6):
        lines = SETS[half:half + 6]
        for i, line in enumerate(lines):
            ask(h, "one", "POST", "/handrail/v1/create", {"name": "s%d" % i})
            command(h, "one", "s%d" % i, line)
        h.ok("fork", "-q", "one", "two")
        for i, line in enumerate(lines):
            see = r"\builtin shopt; \builtin alias; \builtin trap; \builtin declare -f; \builtin umask; " \
                  r"\builtin echo $- ${HOME-none} $SHELLOPTS; \builtin export -p; \builtin declare -p HISTCONTROL"
            own = re.compile(r".*(COLUMNS|LINES|VSCODE_PORT|OPENHANDS_SESSION_ID|PROMPT_COMMAND)=.*\n")
            before, after = (own.sub("", command(h, name, "s%d" % i, see)["content"]).splitlines()
                             for name in ("one", "two"))
            equal(([x for x in after if x not in before], len(after)),
                  ([x for x in before if x not in after], len(before)), line)
            ask(h, "one", "POST", "/handrail/v1/kill?session=s%d" % i)
        h.ok("down", "-q", "two")
    end(h, "one")


def repeated(h):
    """The parent's journal goes on; a branch has one of its own."""
    h.ok("up", "-q", "one")
    action = {"action": {"action": "run", "args": {"command": "echo x >>/workspace/f; wc -l </workspace/f"}}}
    first = ask(h, "one", "POST", "/execute_action", action, "the-key")["content"]
    h.ok("fork", "-q", "one", "two")
    equal([ask(h, name, "POST", "/execute_action", action, "the-key")["content"].strip() for name in ("one", "two")],
          [first.strip(), "2"])
    equal(h.ok("run", "-n", "one", "cat /workspace/f"), "x\n")
    end(h, "one", "two")


def refused(h):
    """What runs or writes is refused with its name, and --freeze copies all the same."""
    h.ok("up", "-q", "one")
    for name in ("a/b", "a b"):
        h.fails(2, "invalid sandbox name", "fork", "one", name)
    h.fails(1, "'.' and '-', at most 200, and first a letter", "fork", "one", "x" * 200, "--count=1")
    h.fails(1, 'there is a sandbox "one" already', "fork", "one", "one")
    h.fails(3, 'there is no sandbox "other"', "fork", "other", "two")
    for count in ("0", "-1", "x", "1001"):
        h.fails(2, "--count must be from 1 to 1000", "fork", "one", "two", "--count=" + count)
    h.ok("run", "-n", "one", "exec 7>~/mine")
    h.fails(1, "/mine open for writing", "fork", "one", "two")
    # in mounts of its own
    nested = h.ok("run", "-n", "one", "exec 7>&-; mkfifo ~/on; (unshare -rm --propagation unchanged bash -c 'exec "
                  "7>~/nested; echo on >~/on; exec sleep 999 2>&-' 2>~/on >&- &); cat ~/on").strip()
    if nested == "on":
        h.fails(1, "/nested open for writing", "fork", "one", "two")
    else:
        equal("Operation not permitted" in nested, True, nested)
    h.ok("run", "-n", "one", "pkill -f 'sleep 99[9]'; while pgrep -f 'sleep 99[9]'; do :; done; rm ~/on")
    h.ok("run", "-n", "one", "exec 7>/dev/shm/other 8<~/mine; (sleep 1000 7>&- &); until pgrep -x sleep; do :; done")
    answer = json.loads(h.ok("fork", "one", "two", "--json"))
    equal([x["names"] for x in answer["not_copied"] if "processes" in x["what"]], [["sleep"]])
    h.ok("run", "-n", "one", "echo half >~/mine; exec 7>>~/mine")
    h.ok("fork", "-q", "one", "three", "--freeze")
    equal(h.ok("run", "-n", "three", "cat ~/mine"), "half\n")
    h.ok("run", "-n", "one", "exec 7>&-; name=kept; mkfifo /workspace/pipe")
    busy = h.popen("run", "-n", "one", "read line </workspace/pipe; echo got $line $name; : done")
    ask(h, "one", "POST", "/handrail/v1/create", {"name": "next"})
    inside(h, "one", "next", "name=next")
    deadline = time.monotonic() + PATIENCE
    while not ask(h, "one", "GET", "/handrail/v1/session")["running"] and time.monotonic() < deadline:
        time.sleep(0.01)
    h.fails(1, 'a command runs in the session "default" of sandbox "one"', "fork", "one", "four")
    answer = json.loads(h.ok("fork", "one", "four", "--freeze", "--json"))
    equal((answer["sessions"], answer["not_copied"][0]["names"]), (["next"], ["default"]), answer)
    equal(h.ok("run", "-n", "four", "echo ${name-none}"), "none\n")
    equal(inside(h, "four", "next", "echo $name").strip(), "next")
    inside(h, "one", "next", "echo x >/workspace/pipe")
    equal(busy.communicate(timeout=PATIENCE)[0], "got x kept\n")
    h.ok("run", "-n", "one", "builtin() { :; }")
    h.fails(1, 'the state of the session "default" is incomplete', "fork", "one", "five")
    equal([n for n in os.listdir(h.path("state")) if n.startswith("five")], [])
    h.ok("run", "-n", "one", "unset -f builtin")
    if h("pause", "one").returncode == 0:
        h.fails(1, "is paused", "fork", "one", "five")
        h.ok("resume", "one")
    end(h, "one", "two", "three", "four")


def many(h):
    """Branches with a number, each with files of its own and with the parent's settings; all of them or none."""
    h.ok("secret", "set", "key", input="value-of-the-secret")
    rules = {"allowOut": ["a.example.com"], "credentials": {"TOKEN": {"secret": "key", "hosts": ["a.example.com"]}}}
    h.ok("up", "-q", "one", "--network", "egress", "-s", "sandbox.network=" + json.dumps(rules),
         "-s", "sandbox.limits.ulimit_nofile=777", "-e", "MINE=own")
    h.ok("net", "allow", "-n", "one", "b.example.com")
    h.ok("run", "-n", "one", "echo x >/workspace/f; name=1; echo $TOKEN >~/token")
    h.env["SANDBOX_ENV_OTHER"] = "of the caller now"
    names = ["b-%d" % i for i in range(1, 6)]
    equal(h.ok("fork", "-q", "one", "b", "--count", "5").split(), names)
    del h.env["SANDBOX_ENV_OTHER"]
    for name in names:
        equal(h.ok("run", "-n", name, "cat /workspace/f; echo $name $MINE ${OTHER-none}; ulimit -n; "
                   "echo %s >/workspace/f" % name).split(), ["x", "1", "own", "none", "777"])
        equal(h.ok("run", "-n", name, "test $TOKEN = $(cat ~/token) && cat ~/token"),
              h.ok("run", "-n", "one", "echo $TOKEN"))
        equal(json.loads(h.ok("net", "show", "-n", name, "--json"))["allowOut"], ["a.example.com", "b.example.com"])
    equal([h.ok("run", "-n", name, "cat /workspace/f") for name in names], [name + "\n" for name in names])
    h.ok("down", "-q", "b-3")
    h.fails(1, 'there is a sandbox "b-1" already', "fork", "one", "b", "--count", "2")
    h.fails(1, 'there is a sandbox "b-4" already', "fork", "one", "b-4")
    if h.uid == 0:  # the other account has no name, which a local sandbox needs
        h.ok("up", "-q", "-r", "local", "here")
        h.fails(1, "has the back-end local, which cannot fork", "fork", "here", "x")
        h.ok("down", "-q", "here")
    both = [h.popen("fork", "-q", "one", name) for name in ("b-3", "c")]
    equal([p.communicate(timeout=PATIENCE)[0] for p in both], ["b-3\n", "c\n"])
    end(h, "one", "c", *names)


def killed(h):
    """Whatever is killed during a fork, the parent runs on, and a branch that is listed as running is a whole one."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir -p ~/many; cd ~/many; for i in {1..1500}; do echo $i >$i; done; name=kept")
    for i in range(24):
        if i == 12:
            h.ok("run", "-n", "one", "sleep 1000 &")  # a process in ~/many: files are copied from here on
        command = h.popen("fork", "one", "k", "--count", "2")
        pid = copier(command)
        time.sleep(i // 3 * 0.04)  # the instant of the kill, not a wait for an event
        for victim in ([command.pid], [pid], [command.pid, pid])[i % 3]:
            try:
                os.kill(victim or command.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        command.communicate(timeout=PATIENCE)
        if i % 3 == 2:
            h("resume", "one")  # both were killed
        equal(h.ok("run", "-n", "one", "echo $name"), "kept\n", i)
        for name in "k-1", "k-2":
            if os.path.exists(h.path("state", name + ".json")):
                done = h("run", "-n", name, "echo $name; cat ~/many/* | wc -l")
                equal(done.stdout in ("kept\n1500\n", ""), True, (i, done))
                equal(done.returncode == 0 or "is not ready yet" in done.stderr, True, (i, done))
                h.ok("down", "-q", name)
        equal(sorted(n for n in os.listdir(h.path("state")) if not n.startswith(".") and n != "layers"),
              ["one.json", "one.own"], i)
    h.ok("fork", "-q", "one", "k")
    equal(h.ok("run", "-n", "k", "echo $name; cat ~/many/* | wc -l"), "kept\n1500\n")
    equal(("forks" in os.listdir(h.path("state", "one.own")), h.ok("run", "-n", "one", "ls -A /var/tmp")), (False, ""))
    end(h, "one", "k")


def crew(h):
    """If one of the processes that make branches is killed, there is no branch."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "name=kept")
    failures = 0
    for i in range(6):
        starts = Written(h.path("state")) if i % 2 else None
        command = h.popen("fork", "-q", "one", "k", "--count", "6")
        if starts:
            starts.wait("k-1.json")
        pid = below(command, "--count")  # one that copies or starts branches beside the command
        if pid:
            os.kill(pid, signal.SIGKILL)  # a zombie if it has done its part
        out, err = command.communicate(timeout=PATIENCE)
        if command.returncode == 0:
            h.ok("down", "-q", *out.split())
        else:
            equal((command.returncode, out), (1, ""), err)
            failures += "was killed" in err  # or it was about to become a launcher
        equal(sorted(n for n in os.listdir(h.path("state")) if not n.startswith(".") and n != "layers"),
              ["one.json", "one.own"], i)
        equal(h.ok("run", "-n", "one", "echo $name; ls -A /var/tmp"), "kept\n", i)
    equal(failures > 0, True)
    end(h, "one")


def full(h):
    """A full disk leaves no branch, and the parent runs on."""
    if os.geteuid() != 0:
        raise Skip("a small file system needs root")
    os.mkdir(h.path("state"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=14m,mode=0700,uid=%d,gid=%d" % (h.uid, h.uid), "small",
                    h.path("state")], check=True)
    h.env["RUN_AS_OPENHANDS"] = "false"
    try:
        h.ok("up", "-q", "one")
        h.ok("run", "-n", "one", "head -c 3500000 /dev/urandom >/usr/local/large; name=kept")  # /usr is copied
        h.fails(1, "No space left on device", "fork", "one", "b", "--count", "5")
        equal(sorted(n for n in os.listdir(h.path("state")) if not n.startswith(".") and n != "layers"),
              ["one.json", "one.own"])
        equal("forks" in os.listdir(h.path("state", "one.own")), False)
        equal(h.ok("run", "-n", "one", "echo $name; wc -c </usr/local/large; ls -A /var/tmp"), "kept\n3500000\n")
        h.ok("fork", "-q", "one", "two")
        h.ok("run", "-n", "one", "head -c 20000000 /dev/zero >/workspace/rest 2>/dev/null; true")
        equal(h("fork", "one", "three").returncode, 1, "the state of the shell cannot be written")
        h.ok("run", "-n", "one", "rm /workspace/rest")
        equal([n for n in os.listdir(h.path("state")) if n.startswith("three")], [])
        h.ok("down", "-q", "one", "two")
        equal(os.listdir(h.path("state")), [])
    finally:
        subprocess.run(["umount", "-l", h.path("state")], check=True)


def ids(h):
    """Files of a user's subordinate ids keep their owners, also in the workspace until a box starts there again."""
    h.give_ids()
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo x >~/f; chown 100:100 ~/f; chmod 0 ~/f; name=1; touch /workspace/g; "
         "chown 7:7 /workspace/g")
    h.ok("fork", "-q", "one", "two")
    equal(h.ok("run", "-n", "two", "stat -c '%u %g %a' ~/f; cat ~/f; echo $name; stat -c %u:%g /workspace/g"),
          "100 100 0\nx\n1\n7:7\n")
    h.ok("snapshot", "one", "s")
    h.ok("up", "-q", "three", "--from", "s")
    equal(h.ok("run", "-n", "three", "stat -c %u:%g /workspace/g"), "0:0\n")
    h.ok("snapshot", "rm", "s")
    end(h, "one", "two", "three")


CASES = [state, options, repeated, refused, many, killed, crew, full, ids]


if __name__ == "__main__":
    sys.exit(run(CASES, not_for_root=(ids,)))
