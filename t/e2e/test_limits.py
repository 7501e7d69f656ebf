#!/usr/bin/env python3
"""Limits of what the shell starts, and that the observation says when one was reached."""

import glob
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import BUILDDIR, ROOT, Server, marker, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402


PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def sandbox(env=None, **kw):
    """The shell is nobody's: what root's own start-up files leave behind when they are cut short by a
    limit would outlive the test."""
    if not ROOT:
        return Server(env=env, **kw)
    return Server(name="nobody", env=dict(env or {}, RUNTIME_USERNAME="nobody", USER="root"), **kw)


def groups(s):
    return (glob.glob("/sys/fs/cgroup/**/handrail-%d" % s.port, recursive=True))


def run(s, command):
    """(exit code, suffix, content)"""
    o = s.action(command).json()
    return o["extras"]["metadata"]["exit_code"], o["extras"]["metadata"]["suffix"], o["content"]


def need_groups(s, n):
    need_root()
    if s.wait_log("no control group", 0):
        raise Skip("needs control groups that may be written: run as root outside of a container, or "
                   "with a writable /sys/fs/cgroup")
    equal(len(groups(s)) >= n, True, groups(s))


def memory():
    with sandbox({"RUNTIME_MAX_MEMORY_GB": "1"}) as s:
        need_groups(s, 1)
        s.run("kept=yes")
        code, suffix, _ = run(s, "tail /dev/zero")
        equal((code, suffix), (137, "\n[The command completed with exit code 137.]\n[Out of memory: the "
                                    "system ended a process of the sandbox (limit 1024 MB).]"))
        equal(run(s, "echo $kept"), (0, "\n[The command completed with exit code 0.]", "yes"))
        code, suffix, _ = run(s, "tail /dev/zero | cat")
        equal((code, "Out of memory" in suffix), (0, True), "a part of a pipe: " + suffix)
        # to each its own: not to the first command of another shell, and not to the next one as its own
        o = s.action("true", is_static=True).json()
        equal(o["extras"]["metadata"]["suffix"], "\n[The command completed with exit code 0.]")
        killed, wait = marker(s)
        s.run("(sleep 0.1; tail /dev/zero; %s) >/dev/null 2>&1 & disown" % killed)
        wait()
        equal(run(s, "true")[:2], (0, "\n[The command completed with exit code 0.]\n[Out of memory: before this "
                                   "command began, the system ended a process of the sandbox.]"))
        equal(run(s, "true")[:2], (0, "\n[The command completed with exit code 0.]"))
        # the shell itself
        s.run("cd /tmp")
        code, suffix, _ = run(s, "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done")
        equal("Out of memory" in suffix, True, suffix)
        equal(run(s, "pwd")[2], "/tmp")
        equal(s.get("/ready").status, 200)
        made = groups(s)
        s.stop()
        equal([g for g in made if os.path.exists(g)], [], "groups are removed")


def processes():
    with sandbox(settings={"max_processes": 40}) as s:
        need_groups(s, 1)
        script = os.path.join(s.top, "fork.py")
        with open(script, "w") as f:
            f.write("import os, signal\npids = []\ntry:\n    while True:\n        pid = os.fork()\n"
                    "        if pid == 0:\n            signal.pause()\n        pids.append(pid)\n"
                    "except OSError:\n    for pid in pids:\n        os.kill(pid, 9)\n        os.waitpid(pid, 0)\n"
                    "print(len(pids) < 40)\nraise SystemExit(1)\n")
        os.chmod(script, 0o644)
        code, suffix, _ = run(s, "%s %s" % (PYTHON, script))
        equal((code, suffix), (1, "\n[The command completed with exit code 1.]\n[Too many processes: the "
                                  "sandbox may have no more than 40.]"))
        s.get("/ready")  # of this, control groups of version 1 do not tell
        equal(s.wait_log(r'"alert":"pids_max","state":"firing"') is not None, True, s.log())
        equal(s.get("/alive").status, 200)
        equal(run(s, "echo on; false")[1], "\n[The command completed with exit code 1.]", "said once")


def processor_time():
    with sandbox(settings={"cpu_quota": 50000, "cpu_period": 20000}) as s:
        need_groups(s, 1)
        group = groups(s)[0]
        one = os.path.exists(group + "/cpu.cfs_quota_us")
        for name, want in ((("cpu.cfs_quota_us", "50000"), ("cpu.cfs_period_us", "20000")) if one
                           else (("cpu.max", "50000 20000"),)):
            with open(os.path.join(group, name)) as f:
                equal(f.read().strip(), want, name)
        equal("/handrail-%d" % s.port in s.run("cat /proc/self/cgroup"), True)
        s.stop()
        equal(os.path.exists(group), False, "groups are removed")


def files_and_privileges():
    with sandbox(settings={"max_open_files": 123, "no_new_privileges": True}) as s:
        equal(s.run("ulimit -n; ulimit -Hn; grep NoNewPrivs /proc/self/status").split(),
              ["123", "123", "NoNewPrivs:", "1"])
    with sandbox() as s:
        equal(s.run("grep NoNewPrivs /proc/self/status").split(), ["NoNewPrivs:", "0"])


ROOM = 16 * os.sysconf("SC_PAGE_SIZE")  # of the small disk, which counts in pages
TOO_MUCH = max(1000000, 2 * ROOM)


def disk_of_files(s, small):
    """A file that has no room is the old one, or none, and nothing else is left; then all is as before."""
    def write(content):
        body = {"action": {"action": "write", "args": {"path": small + "/f", "content": content}}}
        return s.request("POST", "/execute_action", json.dumps(body), {"Content-Type": "application/json"}).status

    def upload(name, content):
        body = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode() +
                b'"\r\n\r\n' + content + b"\r\n--b--\r\n")
        return s.request("POST", "/upload_file?destination=" + small, body,
                         {"Content-Type": "multipart/form-data; boundary=b"}).status

    equal((write("old"), upload("g", b"old")), (200, 200))
    for _ in range(2):
        equal((write("x" * TOO_MUCH), upload("g", b"x" * TOO_MUCH), upload("h", b"x" * TOO_MUCH)),
              (500, 500, 500))
        equal(sorted(os.listdir(small)), ["f", "g"])
        for name in "fg":
            with open(os.path.join(small, name)) as f:
                equal(f.read().rstrip("\n"), "old", name)
    equal((write("new"), upload("h", b"new"), s.run("cat f h")), (200, 200, "new\nnew"))


def disk():
    need_root()
    s = sandbox(ready=None)
    small = os.path.join(s.top, "small")
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d,mode=1777" % ROOM, "none", small],
                      stderr=subprocess.DEVNULL).returncode != 0:
        shutil.rmtree(s.top)
        raise Skip("needs to mount a tmpfs: run with CAP_SYS_ADMIN")
    with s:
        try:
            s.start()
            s.run("cd " + small)
            code, suffix, _ = run(s, "head -c %d /dev/zero >f" % TOO_MUCH)
            equal((code, suffix), (1, "\n[The command completed with exit code 1.]\n[No space is left on "
                                      "the disk of %s.]" % small))
            s.run("rm f")
            equal(run(s, "false")[1], "\n[The command completed with exit code 1.]")
            disk_of_files(s, small)
            s.run("cd /")
        finally:  # or its directory cannot be removed
            subprocess.run(["umount", "-l", small], check=False)


def one_by_one():
    """Without a right to control groups each process is limited for itself."""
    if not ROOT or not all(os.stat(d).st_mode & 1 for d in (BUILDDIR, os.path.dirname(BUILDDIR))):
        raise Skip("needs root, and a build directory that others may enter")
    with Server(user="nobody", env={"RUNTIME_MAX_MEMORY_GB": "1"}, settings={"max_processes": 5000}) as s:
        if not s.wait_log("no control group for the shell's limits", 1):
            raise AssertionError(s.log())
        # the shell's limits are told before the server is ready
        said = [line for line in s.log().splitlines() if "no alerts about: " in line]
        equal((len(said), "memory (no control group), processes (no control group)" in said[0]), (1, True), said)
        equal(s.run("ulimit -v; ulimit -u"), "%d\n5000" % (1 << 20))
        equal(s.run("tail /dev/zero 2>&1 | grep -c 'memory exhausted\\|Cannot allocate'"), "1")


def order_of_death():
    """Where memory ends for all: commands, then the keeper, then those that serve, last the supervisor."""
    need_root()
    with sandbox() as s:
        def score(pid):
            with open("/proc/%d/oom_score_adj" % pid) as f:
                return int(f.read())
        command = int(s.run("cat /proc/self/oom_score_adj"))
        keeper, worker = score(s.keeper()[0]), score(s.workers("action")[0])
        nginx, own = score(s.pids("nginx")[0]), score(s.pid)
        # only CAP_SYS_RESOURCE may go below what was given
        equal(command > keeper > worker >= nginx >= own, True, (command, keeper, worker, nginx, own))


TESTS = [memory, processes, processor_time, files_and_privileges, disk, one_by_one, order_of_death]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
