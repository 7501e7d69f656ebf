#!/usr/bin/env python3
"""The handrail command with sandboxes of the back-end "box": what they see and keep, and that nothing is left of one.
As root each case is done twice, by root and by another account."""

import contextlib
import errno
import grp
import http.client
import json
import os
import pwd
import re
import select
import signal
import socket
import socketserver
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC  # noqa: E402
from lib.hostbox import UID, own_root_of, run  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

SENDTO = (44, 206)  # of x86_64 and aarch64
FORKS = ("import os, signal\n"
         "made = []\n"
         "try:\n"
         "    while len(made) < 100:\n"
         "        pid = os.fork()\n"
         "        if not pid: signal.pause()\n"
         "        made.append(pid)\n"
         "    print('made')\n"
         "except OSError as why: print(why.strerror, len(made) < 60)\n"
         "for pid in made: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)\n")


def life(h):
    """It starts, runs, lists, copies, logs and ends, and nothing is left of it."""
    line = h.ok("up", "-e", "PLAIN=1")
    box = h.box()
    url = "unix:%s/http.sock" % box["edge"]
    equal((line, stat.S_ISSOCK(os.stat(url[5:]).st_mode)), ("default %s\n" % url, True))
    flags = subprocess.run(["lsattr", "-d", os.path.dirname(box["dir"])], capture_output=True, text=True).stdout
    equal("e" not in flags.split(" ")[0] or "T" in flags.split(" ")[0], True, "ext4 spreads the boxes")
    equal(h.ok("run", "echo hi; cd /; pwd"), "hi\n/\n")
    equal(h.ok("run", "pwd; echo $$ $USER; test -w ~ && test -w /workspace && echo writable").splitlines()[0], "/")
    equal(h("run", "(exit 42)").returncode, 42)
    if h.uid == 0:
        equal(h.ok("run", "id -nG; stat -c '%U:%G %a' ~ ~/.profile ~/.bashrc; grep -c PLAIN ~/.bashrc").splitlines(),
              ["root sudo", "openhands:root 755", "openhands:root 644", "openhands:root 644", "1"])
        with os.scandir(os.path.join(box["dir"], "storage/layers/host/upper/etc")) as etc:
            # no locks and copies
            equal([e.name for e in etc if e.is_file() and e.name.startswith("passwd")], ["passwd"])
    h.file("of the host", "cwd", "file")
    h.ok("put", "file", "/workspace/there")
    h.ok("run", "cat /workspace/there >/workspace/back; echo more >>/workspace/back")
    h.ok("get", "/workspace/back", "back")
    with open(h.path("cwd", "back")) as f:
        equal(f.read(), "of the hostmore\n")
    listed = json.loads(h.ok("ps", "--json"))
    equal([(s["sid"], s["runtime"], s["state"], s["image"], s["url"]) for s in listed],
          [("default", "box", "running", None, url)])
    equal("ready: listening on unix:" in h.ok("logs"), True)
    h.fails(2, "--image: the back-end box runs on this machine and has no images", "up", "-i", "image")
    equal(stat.S_IMODE(os.stat(box["dir"]).st_mode), 0o700, "no other account enters it")
    equal(stat.S_IMODE(os.stat(box["edge"]).st_mode), 0o700, "nor reaches the server")
    h.ok("down")
    equal(h.left(box), [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp")), os.listdir(h.path("run"))), ([], [], []))
    h.fails(3, 'there is no sandbox "default"', "run", "true")


def isolated(h):
    """It sees no file, process, socket or variable of the host's that is not given to it."""
    h.file("[user]\n\tname = of the host\n", "home", ".gitconfig")
    before = os.stat(h.path("home", ".gitconfig")).st_mtime_ns
    h.env["A_SECRET"] = "of-the-host"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        h.ok("up", "-e", "GIVEN=yes")
        port = listener.getsockname()[1]
        script = ("ls %s %s 2>&1" % (h.path("home"), SRC + "/src"), "tail -n +3 /proc/net/dev | cut -d: -f1",
                  "ls -d /proc/%d 2>&1" % os.getpid(), "env | grep -c of-the-host", "echo $GIVEN",
                  "(echo >/dev/tcp/127.0.0.1/%d) 2>&1 | grep -o refused | sort -u" % port,
                  "git config --global user.name", "ls /srv /media")
        got = h.ok("run", "; ".join(script))
    equal([re.sub(r"'|ls: cannot access |: No such.*", "", line) for line in got.splitlines()],
          [h.path("home"), SRC + "/src", "    lo", "/proc/%d" % os.getpid(), "0", "yes", "refused", "openhands",
           "/media:", "", "/srv:"])
    key = h.box()["key"]
    equal(h.ok("run", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c %s; ls /proc/1/root 2>&1 | "
               "grep -o denied" % key), "0\ndenied\n", "the server's key")
    equal((os.listdir(h.path("home")), os.stat(h.path("home", ".gitconfig")).st_mtime_ns), ([".gitconfig"], before))
    with open("/proc/%d/cmdline" % h.box()["pid"]) as f:
        equal(key in f.read(), False, "nor is it a word of its command")


def network(h):
    """With the network of the host it reaches the host's loopback; other modes are refused."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        reach = "(echo >/dev/tcp/127.0.0.1/%d) && echo reached" % listener.getsockname()[1]
        for name, words in (("own", ("-s", "box.network=host")), ("common", ("-s", "sandbox.use_host_network=true")),
                            ("secure", ("-s", "sandbox.security.network_mode=host"))):
            h.ok("up", "-q", "-n", name, *words)
            equal(h.ok("run", "-n", name, reach), "reached\n", name)
    h.fails(1, 'the network of a box can be none, host or egress, not "bridge"', "up", "-q", "-s",
            "sandbox.security.network_mode=bridge")
    equal(sorted(os.listdir(h.path("state")))[0], "common.json", "nothing of the refused one")
    equal([n for n in os.listdir(h.path("state")) if n.startswith("default")], [])


def volumes(h):
    """Directories of the host are there as they were given, and a wrong one is an error."""
    one, two = h.directory("one"), h.directory("two")
    h.file("1", "one", "file")
    os.symlink(one, h.path("link"))
    h.ok("up", "-s", "sandbox.volumes=%s:/mnt/one:ro,%s:/workspace,%s:/mnt/link:ro" % (one, two, h.path("link")))
    equal(h.ok("run", "cat /mnt/one/file /mnt/link/file; touch /mnt/one/x 2>&1 | grep -o Read-only; echo 2 >new"),
          "11Read-only\n")
    with open(os.path.join(two, "new")) as f:
        equal(f.read(), "2\n", "of the workspace")
    h.ok("down")
    equal((os.listdir(one), os.listdir(two)), (["file"], ["new"]), "the end removes none of it")
    h.fails(3, "sandbox.volumes: /nonexistent: No such file", "up", "-q", "-s", "sandbox.volumes=/nonexistent:/mnt/x")
    for text, why in (("name:/mnt/x", '"name" is the name of a volume'), (one + ":/mnt/x:z", 'not "z"'),
                      (one + ":/proc/x", "nothing can be mounted at /proc/x"), (one + ":/mnt/../x", '"target"')):
        h.fails(1, why, "up", "-q", "-s", "sandbox.volumes=" + text)
        equal((os.listdir(h.path("state")), os.listdir(h.path("run"))), ([], []), text)


def workspace(h):
    """A directory as the workspace is made if it is missing, and stays."""
    h.ok("up", "-s", "core.workspace_base=" + h.path("cwd", "made"))
    h.ok("run", "echo kept >file")
    h.ok("down")
    with open(h.path("cwd", "made", "file")) as f:
        equal(f.read(), "kept\n")


def limits(h):
    """Limits are enforced by control groups of root, and refused where nothing enforces them."""
    words = ("-s", "sandbox.limits.pids=60", "-s", "sandbox.limits.ulimit_nofile=1024")
    if h.uid != 0:
        h.fails(1, "the limit of pids cannot be enforced: ", "up", "-q", *words)
        equal((os.listdir(h.path("state")), os.listdir(h.path("run"))), ([], []))
    else:
        h.ok("up", "-e", "FORKS=" + FORKS, *words)
        equal(h.ok("run", "python3 -c \"$FORKS\""), "Resource temporarily unavailable True\n")
        equal(h.ok("run", "ulimit -n"), "1024\n")
        h.ok("down")
    for setting, why in (("limits.profile=small", "Invalid value for sandbox.limits.profile: small"),
                         ("limits.mem_limit=much", "Invalid value for sandbox.limits.mem_limit: much"),
                         ("limits.memswap_limit=1G", "has no swap"), ("limits.pids=0", "sandbox.limits.pids: 0"),
                         ("limits.ulimit_nofile=8", "a box needs 512 or more"),
                         ("security.cap_add=['SYS_ADMIN']", "the back-end box does not support it")):
        h.fails(1, why, "up", "-q", "-s", "sandbox." + setting)


def paused(h):
    """Root's box is frozen and continues; it also ends, and is found again, while it is frozen."""
    h.ok("up")
    if h.uid != 0:
        h.fails(1, "run handrail as root, or in a group of version 2", "pause")
        equal(h.ok("run", "echo on"), "on\n")
        return
    box = h.box()

    def state():
        return [s["state"] for s in json.loads(h.ok("ps", "--json"))]
    h.ok("pause")
    equal(state(), ["paused"])
    for line in ("run true", "ls", "put /etc/hostname", "top", "url", "attach", "sh default true", "mcp",
                 "completion words ls ''"):
        h.fails(5, '"default" is paused; "handrail resume default" continues it', *line.split())
    equal("ready: listening" in h.ok("logs"), True, "what needs no answer of it works")
    h.ok("pause")
    h.ok("resume")
    equal(state(), ["running"])
    equal(h.ok("run", "echo on"), "on\n")
    h.ok("pause")
    equal(h.ok("up", "-q", "--run", "echo again"), "again\n", "up continues it")
    h.ok("pause")
    h.ok("down")
    equal(h.left(box), [])


def pool(h):
    """A waiting box becomes the next sandbox, with its own variables; the others end with the pool."""
    equal(h.ok("pool", "2"), "waiting: 2\n")
    h.ok("up", "-n", "taken", "-e", "MINE=it's")
    equal(h.ok("run", "-n", "taken", "echo $MINE; pwd; git config --global user.name"),
          "it's\n/workspace\nopenhands\n")
    box = h.box("taken")
    equal("/warm/" in box["dir"], True, "it was one of the pool")
    equal("ready: listening" in h.ok("logs", "-n", "taken"), True)
    h.ok("pool", "0")
    h.ok("down", "taken")
    equal(h.left(box), [])
    equal([n for _, _, names in os.walk(h.path("state")) for n in names if not n.startswith(".")], [])
    equal(os.listdir(h.path("run")), [])


def repository(h):
    """The changes in a repository of the box, by a program that the shell's account gets from the server's."""
    h.ok("up")
    h.ok("run", "git init -q . && echo x >file && git add file")
    equal(h.ok("repo", "changes"), "A file\n")
    equal(h.ok("run", "ls /tmp"), "")


def two(h):
    """Two boxes at once see nothing of each other."""
    h.ok("up", "-n", "a")
    h.ok("up", "-n", "b")
    equal(h.ok("run", "-n", "a", "echo a >/tmp/mark; echo a >~/mark; hostname | cut -c1"), "a\n")
    equal(h.ok("run", "-n", "b", "cat /tmp/mark ~/mark 2>&1 | grep -c 'No such'; hostname | cut -c1"), "2\nb\n")
    boxes = [h.box("a"), h.box("b")]
    h.ok("down", "a")
    equal(h.ok("run", "-n", "b", "echo on"), "on\n")
    h.ok("down", "b")
    equal(h.left(*boxes), [])


def once(h):
    """An action that was done is not done again when it is repeated after the end of its box."""
    def send():
        box = h.box()
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(os.path.join(box["edge"], "http.sock"))
        c = http.client.HTTPConnection("localhost")
        c.sock = s
        body = json.dumps({"action": {"action": "run", "args": {"command": "echo x >>~/count; cat ~/count"}}})
        c.request("POST", "/execute_action", body, {"Content-Type": "application/json", "Idempotency-Key": "one",
                                                    "X-Session-API-Key": box["key"]})
        answer = c.getresponse()
        with s:
            return json.loads(answer.read())["content"], "Idempotent-Replayed" in answer.headers
    h.ok("up")
    equal(send(), ("x", False))
    os.kill(h.box()["pid"], signal.SIGKILL)
    equal(process.wait_gone(h.box()["pid"], PATIENCE), True)
    h.ok("up")
    equal((send(), h.ok("run", "cat ~/count")), (("x", True), "x\n"))


def ended(h):
    """A box whose process was killed is reported, and starts again with its files; or it is removed."""
    h.ok("up")
    box = h.box()
    h.ok("run", "echo kept >~/kept; sleep 1000 &")
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    equal([s["state"] for s in json.loads(h.ok("ps", "--json"))], ["exited"])
    h.fails(5, 'the box of sandbox "default" has ended; "handrail up" starts it again', "run", "true")
    equal(h.ok("up", "-q", "--run", "cat ~/kept"), "kept\n")
    again = h.box()
    equal((again["dir"], again["edge"], again["name"]), (box["dir"], box["edge"], box["name"]))
    os.kill(again["pid"], signal.SIGKILL)
    h.ok("down")
    equal(h.left(box, again), [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("run"))), ([], []))


def interrupted(h):
    """Whenever "handrail up" is killed, the next one works, and after "down" nothing is left."""
    boxes = []
    for i in range(12):
        p = h.popen("up", "-q")
        # at another step each time: the time that a start takes is divided
        try:
            p.wait(timeout=i * 0.01)
        except subprocess.TimeoutExpired:
            pass
        p.kill()
        p.communicate()
        if os.path.exists(h.path("state", "default.json")):
            boxes.append(h.box())
        equal(h.ok("up", "-q", "--run", "echo on"), "on\n")
        boxes.append(h.box())
        h.ok("down")
        equal(h.left(*boxes), [], "killed after %d ms" % (10 * i))
        equal((os.listdir(h.path("state")), os.listdir(h.path("run"))), ([], []))
    here = [p for p in process.all_pids() if h.top in process.command_line(p)]
    equal(here, [])


def interrupted_down(h):
    """A "down" that removed some of the files only: the next start takes none of the rest for its own."""
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a file system")
    h.ok("up", "-q", "--run", "mkdir /workspace/busy; touch /workspace/a /workspace/z")
    box = h.box()
    workspace = os.path.join(box["dir"], "storage%s/root/workspace")
    subprocess.run(["mount", "-t", "tmpfs", "none", os.path.join(workspace % "", "busy")], check=True)
    try:
        done = h("down", "-q")
        equal((done.returncode, os.strerror(errno.EBUSY) in done.stderr), (1, True), done.stderr)
    finally:
        moved = os.path.exists(workspace % ".old")
        subprocess.run(["umount", os.path.join(workspace % (".old" if moved else ""), "busy")], check=True)
    equal(h.ok("up", "-q", "--run", "ls -A /workspace; cd && pwd"), "/home/openhands\n" if h.uid == 0 else "/root\n")
    equal(os.path.exists(workspace % ".old"), False)
    h.ok("down", "-q")
    equal(os.listdir(h.path("state")), [])


def unrecorded(h):
    """A start that was killed before its record had its name: the next command about that sandbox removes the rest."""
    os.mkdir(h.path("state"), 0o700)
    for name in (".default.lock", "default.json~"):
        h.file("", "state", name)
    os.chown(h.path("state"), h.uid, -1)
    h.fails(3, 'there is no sandbox "default"', "down")
    equal(os.listdir(h.path("state")), [])


def unreported(h):
    """Control groups of a launcher that was killed before it named them end with the sandbox, whose name they have."""
    h.ok("up", "-q")
    box = h.box()
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    os.unlink(os.path.join(box["dir"], "process"))
    with open(h.path("state", "default.json"), "r+") as f:
        record = json.load(f)
        record["backend"]["groups"] = []
        f.seek(0)
        f.truncate()
        json.dump(record, f)
    h.ok("down")
    equal(h.left(box), [])


def use_launcher(h, script):
    """Puts a script in the place of handrail-box. Returns the directory of the real one."""
    real, lib = h.env["HANDRAIL_LIBEXECDIR"], h.directory("lib")
    launcher = os.path.join(lib, "handrail-box")
    with open(launcher, "w") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(launcher, 0o755)
    h.env["HANDRAIL_LIBEXECDIR"] = lib
    return real


def lost(h):
    """A start ends if the process that the launcher names has ended before the caller looks at it."""
    use_launcher(h, "cat >/dev/null\necho '{\"pid\": 2147483647, \"started\": 1, \"groups\": []}' >&3\n"
                    "read word <&3 || echo 'handrail-box: the caller has left' >&2\nexit 1\n")
    h.fails(1, "the caller has left", "up", "-q")
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp"))), ([], []))


def failed(h):
    """The log of the last box stays until another one is ready, which replaces it."""
    h.ok("up")
    box = h.box()
    with open(os.path.join(box["dir"], "log"), "a") as f:
        f.write("the last line\n")
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    real = use_launcher(h, "cat >/dev/null\necho handrail-box: the last words >&2\nexit 125\n")
    h.fails(1, "the last words", "up", "-q")
    with open(os.path.join(box["dir"], "log")) as f:
        equal(f.read().endswith("the last line\n"), True)
    equal([n for n in os.listdir(box["dir"]) if "log" in n], ["log"])
    h.env["HANDRAIL_LIBEXECDIR"] = real
    h.ok("up")
    equal("the last line" in h.ok("logs"), False)


def wait_until_it_sends(pid):
    """Waits until the process has filled a socket, and sleeps in sendto(2)."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with open("/proc/%d/syscall" % pid) as f:
            if f.read().split()[0] == str(SENDTO[os.uname().machine == "aarch64"]):
                return
        equal(process.has_ended(pid), False)
    raise AssertionError("the process does not wait for its reader")


def in_parts(h):
    """A document is whole, also if a signal interrupts its writer."""
    fifo = h.path("go")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    h.file("", "document")
    use_launcher(h, "read word <%s\ncat >%s\necho 'handrail-box: the last words' >&2\nexit 1\n" %
                 (fifo, h.path("document")))
    large = ["V%d=%s" % (n, "x" * 100000) for n in range(4)]
    p = h.popen("up", "-q", *(word for v in large for word in ("-e", v)))
    with open(fifo, "w") as go:
        wait_until_it_sends(p.pid)
        p.send_signal(signal.SIGSTOP)
        os.waitpid(p.pid, os.WUNTRACED)
        p.send_signal(signal.SIGCONT)
        go.write("go\n")
    _, err = p.communicate(timeout=PATIENCE)
    equal((p.returncode, "the last words" in err), (1, True), err)
    with open(h.path("document")) as f:
        given = json.load(f)["env"]
    equal([v in given for v in large], [True] * len(large))


def unknown(h):
    """A box of which nobody can tell whether it runs is neither replaced nor removed."""
    h.ok("up")
    h.ok("run", "echo kept >~/kept")
    box = h.box()
    names = sorted(os.listdir(box["dir"]))
    file = os.path.join(box["dir"], "process")
    os.rename(file, file + ".kept")
    os.mkdir(file)
    for words in (("run", "true"), ("up", "-q"), ("down", "-q")):
        done = h(*words)
        equal((done.returncode != 0, file + ": Is a directory" in done.stderr), (True, True), done.stderr)
    equal(os.path.exists("/proc/%d" % box["pid"]), True)
    os.rmdir(file)
    os.rename(file + ".kept", file)
    equal((h.ok("run", "cat ~/kept"), sorted(os.listdir(box["dir"]))), ("kept\n", names))
    h.ok("down")
    equal(h.left(box), [])


def replaced(h):
    """The box's root puts a link in place of the server's socket: the caller does not follow it."""
    if h.uid == 0:
        h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up")
    secret = h.path("cwd", "sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(secret)
        os.chown(secret, h.uid, -1)
        listener.listen()
        h.ok("run", "ln -sf %s /run/handrail/edge/http.sock" % secret)
        done = h("run", "true")
        equal((done.returncode, "a program in the sandbox has replaced it" in done.stderr), (5, True), done.stderr)
        listener.setblocking(False)
        try:
            listener.accept()
            equal("accepted", "", "nobody connects")
        except BlockingIOError:
            pass
    box = h.box()
    h.ok("down")
    equal(h.left(box), [])


def numbered(h):
    """The account has the number that run_as_user gives; one that the box cannot give is refused."""
    def start(number):
        return h("up", "-s", "sandbox.security.run_as_user=%d" % number)

    taken = {e.pw_uid: e.pw_name for e in pwd.getpwall()}
    free = next(n for n in range(20000, 60000) if n not in taken)
    other = next(n for n, name in sorted(taken.items()) if n and name != "openhands")
    for number in (0, free):
        p = start(number)
        if h.uid and number:
            equal((p.returncode, "has the account 0 alone" in p.stderr), (1, True), p.stderr)
            continue
        equal(p.returncode, 0, p.stderr)
        equal(h.ok("run", "id -u; touch file; stat -c %u file"), "%d\n%d\n" % (number, number))
        h.ok("down")
    for number in (-1, 1 << 32, other):
        p = start(number)
        why = "Invalid value for sandbox.security.run_as_user" if number != other else \
            "has the account 0 alone" if h.uid else taken[other]
        equal((p.returncode, why in p.stderr, h.ok("ps", "-q")), (1, True, ""), p.stderr)


def grouped(h):
    """The account has the group that run_as_group gives, and so have its files; one that the box cannot give is
    refused."""
    def start(group, *more):
        return h("up", "-s", "sandbox.security.run_as_group=%d" % group, *more)

    look = "id -g; id -gn; touch file; stat -c %g . file ~; find ~ -maxdepth 1 ! -gid $(id -g)"
    taken = {e.gr_gid for e in grp.getgrall()}
    free = next(n for n in range(20000, 60000) if n not in taken)
    for group, words in ((0, []), (free, []), (free, ["-s", "sandbox.security.run_as_user=0"])):
        p = start(group, *words)
        if h.uid and group:
            equal((p.returncode, "has the group 0 alone" in p.stderr), (1, True), p.stderr)
            continue
        equal(p.returncode, 0, p.stderr)
        said = h.ok("run", look).split()
        name = "root" if group == 0 else "root-%d" % group if words else "openhands"
        equal(said, [str(group), name] + [str(group)] * 3)
        equal(h.ok("up", "-q", "--run", "id -g"), "%d\n" % group, "again")
        h.ok("down")
    for group in (-1, 1 << 32):
        p = start(group)
        why = "Invalid value for sandbox.security.run_as_group"
        equal((p.returncode, why in p.stderr, h.ok("ps", "-q")), (1, True, ""), p.stderr)


def own_root(h):
    """A directory with a system of its own is the root, and stays as it was."""
    root, program, words = own_root_of(h)
    before = sorted(os.listdir(root))
    h.ok("up", *words)
    equal(h.ok("run", "cut -d: -f1 /etc/passwd | head -1; ls -d /etc/debian_version 2>&1 | grep -o 'No such'; "
               "touch /tmp/x ~/x && echo writable"), "root\nNo such\nwritable\n")
    equal(json.loads(h.ok("snapshot", "default", "s", "--json"))["root"], root, "also without the setting")
    h.ok("snapshot", "rm", "s")
    h.ok("down")
    os.rmdir(h.path("state", "snapshots"))
    equal(sorted(os.listdir(root)), before)
    os.unlink(program)
    h.fails(3, "has none of handrail's programs", "up", "-q", *words)
    h.fails(3, "box.root: /nonexistent: No such file", "up", "-q", "-s", "box.root=/nonexistent")


def subordinate(h):
    """Files of the box's further accounts are removed, which the user alone could not do."""
    h.give_ids()
    h.ok("up")
    h.ok("run", "mkdir -p /var/deep/er && echo x >/var/deep/er/file && chown -R 1000:1000 /var/deep && chmod -R 700 "
         "/var/deep")
    box = h.box()
    deep = os.path.join(box["dir"], "storage", "root", "var", "deep")
    equal(os.stat(deep).st_uid, 1500000999, "a subordinate id")
    h.ok("down")
    equal(h.left(box), [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp"))), ([], []))


WRITABLE = ("import os, stat\n"
            "for top, dirs, files in os.walk('/proc'):\n"
            "    dirs[:] = [d for d in dirs if not d.isdigit() and d not in ('self', 'thread-self')]\n"
            "    for path in (os.path.join(top, name) for name in files):\n"
            "        mode = os.lstat(path).st_mode\n"
            "        if stat.S_ISREG(mode) and mode & 0o222 and os.access(path, os.W_OK): print(path)\n")


def kernel_files(h):
    """The box's root can write none of the kernel's files in /proc but those that only notify their writer."""
    if h.uid == 0:
        h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-e", "WRITABLE=" + WRITABLE)
    lines = h.ok("run", 'id -u; python3 -c "$WRITABLE"').splitlines()
    equal([line for line in lines if not line.startswith("/proc/pressure/")], ["0"])


def log_file(h):
    """Each box has a new file for its log, whatever a program of the last one has done to that, which is its output."""
    h.ok("up")
    box = h.box()
    file = os.path.join(box["dir"], "log")
    os.chmod(file, 0)
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    with os.fdopen(os.open(file, os.O_PATH)) as kept:  # its number is not used again
        equal(h.ok("up", "-q", "--run", "echo on"), "on\n")
        after = os.stat(file)
        equal((stat.S_IMODE(after.st_mode), after.st_ino != os.fstat(kept.fileno()).st_ino), (0o600, True))
    equal("ready: listening on unix:" in h.ok("logs"), True)


def deep(h):
    """A tree of any depth is removed."""
    h.ok("up")
    h.ok("run", "mkdir -p /workspace/$(printf 'd/%.0s' $(seq 600))")
    box = h.box()
    h.ok("down")
    equal(h.left(box), [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("tmp"))), ([], []))


def namespaced(h):
    """Root of a user namespace is the ordinary user who made it."""
    words = ["unshare", "-r", os.path.join(BUILD, "handrail")]

    def ok(*argv):
        done = subprocess.run(words + list(argv), env=h.env, cwd=h.path("cwd"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, **h.change)
        equal(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout
    if h.uid == 0:
        words[1:2] = ["-m"]
    equal(ok("up", "-q", "--run", "mkdir ~/shut && touch ~/shut/x && chmod 0 ~/shut; whoami"),
          "openhands\n" if h.uid == 0 else "root\n")
    box = h.box()
    ok("down", "-q")
    equal(h.left(box), [])


def lacks(h):
    """What cannot be enforced for a box is reported by up and by the doctor: no control group, no further account."""
    up, doctor_says = h("up").stderr, h("doctor").stdout
    lines = [line[len("handrail: "):] for line in up.splitlines() if "handrail url" not in line]
    equal([line for line in lines if line not in doctor_says], [], doctor_says)
    if h.uid == UID:  # an account without anything of its own
        equal([line[:30] for line in lines], ["A box cannot be limited or pau", "The box has one account, yours"])
    equal("Nothing limits the size of its files" in doctor_says, True)
    equal(h("up").stderr, 'handrail: "handrail url" makes an address for a browser\n', "once")


def doctor(h):
    """The doctor reports what a box needs and what the kernel enforces."""
    done = h("doctor")
    equal(done.returncode, 0, done.stdout)
    lines = [line.split(None, 2)[:2] for line in done.stdout.splitlines()]
    equal([w for w in (["ok", "handraild"], ["ok", "handrail-box"], ["ok", "box"]) if w not in lines], [])
    equal("capabilities" in done.stdout, True)
    equal(os.listdir(h.path("tmp")), [])
    h.env["HANDRAIL_LIBEXECDIR"] = h.path("tmp")
    h.fails(1, "a box needs handrail-box, and ", "up", "-q")
    equal(h("doctor").returncode, 1)


NOTE = "so the sandbox is a box"
REASON = "No Docker Engine can be reached at /var/run/docker.sock (%s), " + NOTE


def chosen(h):
    """Where no setting names a back-end it is docker if an Engine answers, else box; a sandbox keeps its own."""
    del h.env["RUNTIME"]
    asks = ["curl", "-s", "-f", "--unix-socket", "/var/run/docker.sock", "http://localhost/_ping"]
    if subprocess.run(asks, stdout=subprocess.DEVNULL, cwd="/", **h.change).returncode == 0:
        done = h("doctor")
        equal(("engine" in done.stdout, NOTE in done.stderr), (True, False), "an Engine answers")
        h.env["RUNTIME"] = "box"
        h.ok("up")
        del h.env["RUNTIME"]
    else:
        done = h("up", "-q")  # which does not hide it
        equal((done.returncode, any(REASON % os.strerror(e) in done.stderr for e in (
            errno.ENOENT, errno.ECONNREFUSED, errno.EACCES))), (0, True), done.stderr)
        equal("handrail-box" in h("doctor").stdout, True)
    equal(json.loads(h.ok("ps", "--json"))[0]["runtime"], "box")
    done = h("up")
    equal((done.returncode, NOTE in done.stderr), (0, False), "the sandbox has its back-end")
    h.ok("rm", "-q", "default")
    h.env["DOCKER_HOST"] = "unix://" + h.path("nobody")
    h.fails(1, "Nobody answers at " + h.path("nobody"), "up")


def chosen_by_its_socket(h):
    """An Engine that listens is chosen, whatever it answers; one that the account may not reach is not, and why is
    said."""
    h.instead, h.over = h.directory("engine"), os.path.realpath("/var/run")
    del h.env["RUNTIME"]
    at = h.path("engine", "docker.sock")
    with socketserver.UnixStreamServer(at, socketserver.BaseRequestHandler) as engine:
        thread = threading.Thread(target=engine.serve_forever)
        thread.start()
        try:
            for mode, kind, note in ((0o666, "engine", None), (0, "handrail-box", REASON % os.strerror(errno.EACCES))):
                os.chmod(at, mode)
                done = h("doctor")
                equal((kind in done.stdout, NOTE in done.stderr, (note or "") in done.stderr),
                      (True, note is not None, True), done)
        finally:
            engine.shutdown()
            thread.join()
    os.chmod(at, 0o666)
    equal(REASON % os.strerror(errno.ECONNREFUSED) in h("doctor").stderr, True)
    os.unlink(at)
    equal(REASON % os.strerror(errno.ENOENT) in h("doctor").stderr, True)


def edge(h):
    """No other account reaches what the box's root makes of the directory of the socket, which always goes."""
    if h.uid == 0:
        h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up")
    box = h.box()
    h.ok("run", "cd /run/handrail/edge && cp /bin/true own && chmod 4755 own . && mkdir -p shut/er && chmod 0 shut")
    equal(stat.S_IMODE(os.stat(os.path.join(box["edge"], "own")).st_mode), 0o4755)
    equal((os.path.dirname(box["edge"]), stat.S_IMODE(os.stat(box["dir"]).st_mode)), (box["dir"], 0o700))
    equal((os.listdir(h.path("run")), "own" in os.listdir(box["dir"])), ([], False))
    os.kill(box["pid"], signal.SIGKILL)
    equal(process.wait_gone(box["pid"], PATIENCE), True)
    equal(h.ok("up", "-q", "--run", "ls /run/handrail/edge; chmod 0 /run/handrail/edge").split(),
          ["http.sock", "http.sock.envd"])
    equal(h.ok("up", "-q", "--run", "echo on"), "on\n")
    again = h.box()
    h.ok("down")
    equal(h.left(box, again), [])
    equal((os.listdir(h.path("state")), os.listdir(h.path("run"))), ([], []))
    h.env["HANDRAIL_STATE_DIR"] = h.path("home", "longer-than-the-address-of-a-socket" * 4)
    equal(h.ok("up", "-q", "--run", "echo on"), "on\n")
    h.ok("down")


def wait_until_it_asks(pid):
    """Waits until the process has a connection."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for n in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if os.readlink("/proc/%d/fd/%s" % (pid, n)).startswith("socket:"):
                    return
        equal(process.has_ended(pid), False)
    raise AssertionError("the process asks nobody")


def stands_still(h):
    """A server that does not answer is an error of up and ps in bounded time, and the box is as before."""
    h.ok("up", "-q")
    box = h.box()
    servers = [p for p in process.descendants(box["pid"]) if process.command_line(p).startswith("nginx")]
    try:
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        ps = h.popen("ps", "--json")
        h.fails(5, 'sandbox "default" is there, but its server does not answer', "up")
        out, said = ps.communicate(timeout=PATIENCE)
        equal((ps.returncode, json.loads(out)[0]["state"]), (1, "unknown"), said)
        equal("did not answer in time" in said, True, said)
        up = h.popen("up")
        wait_until_it_asks(up.pid)
        up.send_signal(signal.SIGINT)
        said = up.communicate(timeout=PATIENCE)[1]
        equal((up.returncode, "does not answer" in said), (-signal.SIGINT, False), said)
        late = h.popen("up", "-q", "--run", "echo late")
        equal(select.select([late.stdout], [], [], 1)[0], [], "it waits for a server that answers late")
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    equal((late.communicate(timeout=PATIENCE)[0], late.returncode), ("late\n", 0))
    equal((h.ok("up", "-q", "--run", "echo on"), h.box()), ("on\n", box))


CASES = [chosen, life, stands_still, edge, isolated, network, volumes, workspace, limits, paused, pool, repository,
         two, once, ended, interrupted, interrupted_down, unrecorded, unreported, lost, failed, in_parts, unknown,
         replaced, numbered, grouped, own_root, subordinate, kernel_files, log_file, deep, namespaced, lacks, doctor,
         chosen_by_its_socket]


if __name__ == "__main__":
    sys.exit(run(CASES, not_for_root=(subordinate, chosen_by_its_socket)))
