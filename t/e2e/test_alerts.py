#!/usr/bin/env python3
"""Alerts: the log, /metrics, /ready and the operator's command are told when a resource runs short, and
when it is over."""

import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server, gate, marker, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
KEY = "a-key-that-nobody-sees"


def said(s, alert, state, count=1):
    """The alert as the log has it, as JSON."""
    line = s.wait_log(r'"alert":"%s","state":"%s"' % (alert, state), count=count)
    if line is None:
        raise AssertionError("no %s %s\n%s" % (alert, state, s.log()))
    return json.loads(line[line.index("{"):])


def shown(s, **headers):
    return [a["alert"] for a in s.get("/ready", **headers).json()["alerts"]]


def need_watched(s, what):
    """Skips where there is a control group, but not what tells of it."""
    line = s.wait_log(r"no alerts about: (.*, )?%s \(" % what, 0)
    if line is not None:
        raise Skip("needs control groups that tell (cgroup.event_control or memory.events, and inotify): "
                   + line[line.index("no alerts"):])


def said_over(s, alert):
    shown(s)
    return s.wait_log(r'"alert":"%s","state":"resolved"' % alert, 0) is not None


def counted(s, alert, **headers):
    """(whether it holds, how often it began) of /metrics."""
    text = s.get("/metrics", **headers).body.decode()
    return tuple(int(re.search(r'^handrail_%s\{alert="%s"\} (\d+)$' % (name, alert), text, re.M).group(1))
                 for name in ("alert", "alerts_total"))


def memory():
    """51 MB of 1 GB: begins when a command has more, is over when it has ended."""
    need_root()
    with Server(env={"RUNTIME_MAX_MEMORY_GB": "1"}, settings={
            "alert_memory": 5, "alert_clear_seconds": 1, "alert_memory_pressure": 0, "alert_disk": 0}) as s:
        if s.wait_log("no control group", 0):
            raise Skip("needs control groups that may be written: run as root outside of a container, or "
                       "with a writable /sys/fs/cgroup")
        need_watched(s, "memory")
        equal((shown(s), counted(s, "mem_high")), ([], (0, 0)))
        # what is only cached does not count, and is not what hides the rest
        # (what a file system in memory has cannot be evicted, and does)
        if subprocess.check_output(("stat", "-f", "-c", "%T", s.work_dir)).strip() != b"tmpfs":
            s.run("head -c 60000000 /dev/zero >cached; cat cached >/dev/null")
        equal(shown(s), [])
        began, wait = marker(s)
        door, open_it = gate(s)
        script = os.path.join(s.work_dir, "fill.py")
        with open(script, "w") as f:
            f.write("import os, sys\nkept = bytearray(100 << 20)\nfor i in range(0, len(kept), 4096):\n"
                    "    kept[i] = 1\nos.system(sys.argv[1])\n")
        action = s.in_background("%s %s '%s; %s'" % (PYTHON, script, began, door))
        wait()
        # of a level nobody tells
        equal(shown(s), ["mem_high"])
        a = said(s, "mem_high", "firing")
        equal((a["severity"], a["metric"], a["threshold"], 5 <= a["value"] < 97),
              ("warning", "mem_percent", 5, True), a)
        equal((shown(s), counted(s, "mem_high")), (["mem_high"], (1, 1)))
        open_it()
        action.content()
        s.until("it is seen", lambda: said_over(s, "mem_high"))
        a = said(s, "mem_high", "resolved")
        equal((a["value"] < 5, counted(s, "mem_high"), shown(s)), (True, (0, 1), []), a)


def disk_and_command():
    """Of the disk nobody tells: it is looked at when somebody asks."""
    s = Server(ready=None, env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"])
    with s:
        key = {"X_Session_API_Key": KEY}
        told, script = os.path.join(s.top, "told"), os.path.join(s.top, "command")
        with open(script, "w") as f:
            f.write("#!/bin/sh\ncat >>%s\nenv >>%s.env\necho the command has it\necho and this >&2\n"
                    % (told, told))
        os.chmod(script, 0o755)
        settings = {"alert_disk": 1, "alert_clear_seconds": 1, "alert_command": script,
                    "alert_memory_pressure": 0}
        s.write_settings(settings)
        s.args += ["--config", s.settings_file()]
        s.start()
        equal('"alert"' in s.log(), False, "nobody has asked")
        equal(shown(s, **key), ["disk_high"])
        a = said(s, "disk_high", "firing")
        equal((a["severity"], a["metric"], a["threshold"], 1 <= a["value"] <= 100),
              ("warning", "disk_used_percent", 1, True), a)
        equal(counted(s, "disk_high", **key), (1, 1))
        for line in ("the command has it", "and this"):
            if not s.wait_log(r"alert-command.*%s$" % line):
                raise AssertionError(s.log())
        with open(told) as f:
            lines = f.read().splitlines()
        equal([(b["alert"], b["state"]) for b in map(json.loads, lines)], [("disk_high", "firing")])
        settings["alert_disk"] = 0
        s.write_settings(settings)
        s.send(signal.SIGHUP)
        if not s.wait_log(" reloaded$"):
            raise AssertionError(s.log())
        s.until("it is over", lambda: shown(s, **key) == [])
        said(s, "disk_high", "resolved")
        if not s.wait_log("the command has it", count=2):
            raise AssertionError(s.log())
        with open(told) as f:
            equal([json.loads(line)["state"] for line in f], ["firing", "resolved"])
        with open(told + ".env") as f:
            equal(KEY in f.read(), False, "the key")
        equal(counted(s, "disk_high", **key), (0, 1))
        equal(KEY in s.log(), False)


def metrics_alone():
    """Nobody asks for /ready."""
    with Server(settings={"alert_disk": 1, "alert_memory_pressure": 0}) as s:
        equal('"alert"' in s.log(), False)
        equal(counted(s, "disk_high"), (1, 1))
        said(s, "disk_high", "firing")


def errors_and_history():
    """Of the last minutes' actions the half were errors; afterwards it can be seen what was."""
    s = Server(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"],
               settings={"alert_memory_pressure": 0, "alert_disk": 0, "alert_clear_seconds": 1})
    with s:
        key = {"X_Session_API_Key": KEY}

        def act(action, **args):
            a = s.request("POST", "/execute_action", json.dumps({"action": {"action": action, "args": args}}),
                          {"Content-Type": "application/json", "X-Session-API-Key": KEY})
            return a.json()["observation"]

        def history():
            return s.get("/handrail/v1/alerts", **key).json()
        for _ in range(4):
            equal(act("run", command="false"), "run")  # that is no error
        equal((shown(s, **key), history()), ([], {"alerts": [], "history": []}))
        for _ in range(4):
            equal(act("read", path=s.work_dir + "/none"), "error")
        equal(shown(s, **key), ["error_rate"])
        a = said(s, "error_rate", "firing")
        equal((a["severity"], a["metric"], a["value"], a["threshold"]),
              ("warning", "action_error_percent", 50, 50), a)
        act("run", command="true")
        s.until("it is over", lambda: shown(s, **key) == [])
        h = history()
        equal((h["alerts"], [(c["alert"], c["state"], c["value"]) for c in h["history"]]),
              ([], [("error_rate", "firing", 50), ("error_rate", "resolved", 44)]), h)
        equal((h["history"][0]["ts"], s.get("/handrail/v1/alerts").status), (a["since"], 403))


def command_that_hangs():
    s = Server(ready=None)
    with s:
        script = os.path.join(s.top, "command")
        with open(script, "w") as f:
            f.write("#!/bin/sh\necho here\nsleep 1000\n")
        os.chmod(script, 0o755)
        s.write_settings({"alert_disk": 1, "alert_command": script, "alert_memory_pressure": 0})
        s.args += ["--config", s.settings_file()]
        s.start()
        equal(shown(s), ["disk_high"])
        if not s.wait_log("here$") or not s.wait_log("alert_command took too long and was killed") or \
                not s.wait_log("alert_command failed: signal 9"):
            raise AssertionError(s.log())
        equal(s.run("echo on"), "on")


def ended_for_lack_of_memory():
    """The kernel's own choice, in a group of 1 GB."""
    need_root()
    with Server(env={"RUNTIME_MAX_MEMORY_GB": "1"}, settings={"alert_memory_pressure": 0}) as s:
        if s.wait_log("no control group", 0):
            raise Skip("needs control groups that may be written: run as root outside of a container, or "
                       "with a writable /sys/fs/cgroup")
        need_watched(s, "memory")
        equal(s.run("tail /dev/zero; echo $?").splitlines()[-1], "137")
        equal(shown(s), ["oom_kill"])  # of which version 1 does not tell
        a = said(s, "oom_kill", "firing")
        equal((a["severity"], a["metric"], a["threshold"]), ("critical", "oom_kills", 1), a)


def upgrade():
    """The next image would not know of a command that runs: it waits for that one."""
    s = Server(ready=None)
    with s:
        gate_path, script = os.path.join(s.top, "gate"), os.path.join(s.top, "command")
        os.mkfifo(gate_path)
        with open(script, "w") as f:
            f.write("#!/bin/sh\necho here\nread line <%s\necho done\n" % gate_path)
        os.chmod(script, 0o755)
        s.write_settings({"alert_disk": 1, "alert_command": script, "alert_memory_pressure": 0})
        s.args += ["--config", s.settings_file()]
        door = os.open(gate_path, os.O_RDWR)  # blocks nobody, and keeps what is written
        try:
            s.start()
            equal(shown(s), ["disk_high"])
            if not s.wait_log("alert-command.* here$"):
                raise AssertionError(s.log())
            s.send(signal.SIGUSR2)
            equal((shown(s), "continuing as" in s.log()), (["disk_high"], False))
            os.write(door, b"go\n")
            if not s.wait_log(" ready: ", count=2):
                raise AssertionError(s.log())
            lines = [line for line in s.log().splitlines()
                     if re.search("alert-command.* done$|continuing as", line)]
            equal((len(lines), lines[0].endswith("done")), (2, True), lines)
            # told anew by the next image, which nothing is in the way of
            equal(shown(s), ["disk_high"])
            os.write(door, b"go\n")
            if not s.wait_log("alert-command.* done$", count=2):
                raise AssertionError(s.log())
        finally:
            os.close(door)


def pressure():
    """More that want to run than there are processors."""
    with Server(settings={"alert_cpu_pressure": 1}) as s:
        if s.wait_log("no alerts about: .*CPU pressure", 0):
            raise Skip("needs a kernel with pressure stall information that may be watched: CONFIG_PSI, "
                       "not switched off (psi=1), and /proc/pressure/cpu writable")
        loops = 4 * os.cpu_count()
        s.run("for i in $(seq %d); do while :; do :; done & done" % loops)
        a = said(s, "cpu_pressure", "firing")
        equal((a["severity"], a["metric"], 50 < a["value"] <= 100, a["threshold"]),
              ("warning", "cpu_stall_percent", True, 1), a)
        s.run("kill $(jobs -p); wait")


def waited(resource):
    """Microseconds in which somebody waited for it, since the machine was started."""
    with open("/proc/pressure/" + resource) as f:
        return int(re.search(r"^some .* total=(\d+)$", f.read(), re.M).group(1))


def no_false_alarm():
    """In its first second the kernel tells of what was before. What is told has taken place since the
    start: so much of two seconds, at least."""
    least = {"memory": 5, "cpu": 95}
    for _ in range(2):
        try:
            before = {resource: waited(resource) for resource in least}
        except OSError as error:
            raise Skip("needs a kernel with pressure stall information (CONFIG_PSI, psi=1): %s" % error) from None
        with Server(settings={"alert_%s_pressure" % resource: n for resource, n in least.items()}) as s:
            if s.wait_log("no alerts about: .*pressure", 0):
                raise Skip("needs pressure files that may be watched: /proc/pressure writable")
            s.wait_log(r'"alert":"[a-z]*_pressure","state":"firing"', 3)
            now = {resource: waited(resource) for resource in least}
            for resource, name in (("memory", "mem_pressure"), ("cpu", "cpu_pressure")):
                if s.wait_log(r'"alert":"%s","state":"firing"' % name, 0) is None:
                    continue
                a, least_us = said(s, name, "firing"), least[resource] * 20000
                equal((now[resource] - before[resource] >= least_us, least[resource] <= a["value"] <= 100),
                      (True, True), (a, before, now))


def bad_settings():
    for settings, words in [({"alert_command": "mail"}, "alert_command: must be an absolute path"),
                            ({"alert_disk": 101}, "alert_disk: 101"),
                            ({"alert_clear_seconds": 0}, "alert_clear_seconds: 0")]:
        s = Server(settings=settings, ready=None)
        with s:
            s.start(ready=False)
            equal(s.wait(), 2, settings)
            if not re.search(words, s.log()):
                raise AssertionError(s.log())


TESTS = [memory, ended_for_lack_of_memory, disk_and_command, metrics_alone, errors_and_history,
         command_that_hangs, upgrade, pressure, no_false_alarm, bad_settings]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
