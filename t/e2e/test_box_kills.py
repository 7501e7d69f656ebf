#!/usr/bin/env python3
"""Whatever is killed while a command starts, uses, pauses, continues or ends a box, nothing is left over after the next
command: no process, mount, control group, directory or account. As root for root's box and another account's.

    test_box_kills.py [KILLS] [--seed N] [--box-of UID] [--of COMMAND] [--steps]

The seed is printed. --of kills at that command alone, once a box is there.

--steps, by hand: kills the command, the launcher, or the launcher with its children, each at the
first end of a system call, at the second, and so on."""

import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import box, killed_at, process  # noqa: E402
from lib.host import BUILD, PATIENCE  # noqa: E402
from lib.supervised import write_script  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from lib.hostbox import UID, Boxes  # noqa: E402

COMMANDS = {"up": ("up", "-q"), "run": ("run", "seq 1000 | tail -1; mkdir -p /workspace/d; echo x >/workspace/d/f"),
            "pause": ("pause",), "resume": ("resume",), "down": ("down", "-q"), "pool": ("pool", "1")}
LIMITS = ("-s", "sandbox.limits.pids=500", "-s", "sandbox.limits.mem_limit=1G")  # more control groups
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/subuid")


def outside():
    """Processes that the commands have left to us, and the sets of processes that are in boxes."""
    mine, found, boxes = os.readlink("/proc/self/ns/pid"), [], {}
    process.reap([])
    for pid in process.descendants(os.getpid()):
        try:
            space = os.readlink("/proc/%d/ns/pid" % pid)
        except OSError:
            continue  # it has ended
        if space != mine:
            boxes.setdefault(space, []).append(pid)
        elif not process.has_ended(pid):
            found.append(pid)
    return found, boxes


def settle(boxes):
    """Waits until processes of so many boxes are left, each with its guard."""
    while True:
        guards, inside = outside()
        if len(guards) <= boxes and len(inside) <= boxes:
            return guards, inside
        fds = []
        for pid in guards + [p for pids in inside.values() for p in pids]:
            try:
                fds.append(os.pidfd_open(pid))
            except ProcessLookupError:
                pass
        gone = select.select(fds, [], [], PATIENCE)[0] if fds else [None]
        for fd in fds:
            os.close(fd)
        if not gone:
            raise AssertionError("processes are left: %r" % [
                (pid, process.command_line(pid)) for pid in guards + [p for pids in inside.values() for p in pids]])


class Life:
    """One sandbox, whose commands are killed."""

    def __init__(self, h, rng, limits, of=None):
        self.h, self.rng, self.limits, self.of = h, rng, limits, of
        self.seconds = dict.fromkeys(COMMANDS, 0.2)  # that a command takes
        self.accounts = self.read_accounts()
        self.name = "kills-%d" % os.getpid()  # the names of its control groups begin so
        self.names = {self.name}  # also of boxes of the pool
        self.on_machine = []
        self.told = ""

    @staticmethod
    def read_accounts():
        texts = []
        for path in filter(lambda p: os.access(p, os.R_OK), ACCOUNTS):
            with open(path) as f:
                texts.append(f.read())
        return texts

    def command(self, name):
        words = COMMANDS[name]
        if name != "pool":
            words = words[:1] + ("-n", self.name) + words[1:] if name in ("up", "run") else words + (self.name,)
        return words + (LIMITS if name == "up" and self.limits and self.rng.random() < 0.3 else ())

    def kill(self):
        """Kills one or some of the processes at an instant of a command; returns the command."""
        there = os.path.exists(self.h.path("state", self.name + ".json"))
        name = self.of if self.of and there else self.rng.choice(list(COMMANDS) if there else ["up"] * 3 + ["pool"])
        words = self.command(name)
        delay = self.rng.random() * 1.2 * self.seconds[name]
        p = self.h.popen(*words)
        try:
            p.wait(delay)
            self.seconds[name] = max(0.02, 0.9 * self.seconds[name])
        except subprocess.TimeoutExpired:
            self.seconds[name] = min(2.0, 1.1 * self.seconds[name])
        victims = self.victims(p.pid)
        self.told = "%s, after %d ms: %s" % (" ".join(words), 1000 * delay, ", ".join(
            "%s (%d)" % (process.command_line(pid)[:60], pid) for pid in victims))
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            out, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("the command does not end; processes: %r" % [
                (pid, process.command_line(pid)[:100]) for pid in process.descendants(os.getpid())]) from None
        # the kernel ends them in its own time, and a box that is about to end is still there for the next command
        equal([pid for pid in victims if not process.wait_gone(pid, PATIENCE)], [])
        self.told += "\n" + out + err
        return name

    def victims(self, command):
        """The command itself, the launcher's processes, one of all, or one of all and the command."""
        pids = sorted(process.descendants(os.getpid()))
        how = self.rng.randrange(5)
        if how == 0 or not pids:
            return [command]
        if how == 1:
            return [pid for pid in pids if "handrail-box" in process.command_line(pid)] or [command]
        if how == 2:
            return pids
        return [self.rng.choice(pids)] + [command] * (how - 3)

    def check(self, box_there):
        """Nothing is there but one box, or nothing."""
        settle(1 if box_there else 0)
        equal(self.read_accounts() == self.accounts, True, "the accounts of the machine")
        with open("/proc/self/mountinfo") as f:
            equal([line for line in f if self.h.top in line], [], "mounts")
        files = []
        for top, names, there in os.walk(self.h.top):
            files += [os.path.relpath(os.path.join(top, n), self.h.top) for n in names + there]
            names[:] = [n for n in names if n != "storage"]
        files = [name for name in files if not name.startswith("lib-")]  # of at_each_call()
        self.names.update(name for name in map(os.path.basename, files) if name.startswith("warm-"))
        own = "state/%s.own" % self.name
        want = {"cache", "cwd", "home", "run", "state", "tmp", "state/warm", "state/warm/.lock"}
        if box_there:
            want.update(["state/%s.json" % self.name, own] + [own + n for n in (
                "/edge", "/edge/http.sock", "/edge/http.sock.envd", "/log", "/process", "/settings", "/storage")])
        equal((sorted(set(files) - want), box_there and sorted(want - set(files) - {"state/warm", "state/warm/.lock"})),
              ([], [] if box_there else False), "files")
        groups = set()
        for top, names, _ in os.walk("/sys/fs/cgroup"):
            if os.path.basename(top) == "handrail":
                groups.update(n for n in names if n.rsplit("-", 1)[0] in {os.path.splitext(n)[0] for n in self.names})
                names[:] = []
        equal(groups - ({self.h.box(self.name)["name"]} if box_there else set()), set(), "control groups")

    def live(self, kills):
        for _ in range(kills):
            try:
                if self.kill() == "pool" or self.rng.random() < 0.1:
                    self.h.ok("pool", "0")
                self.next(up=self.rng.random() < 0.6)
            except AssertionError as wrong:
                raise AssertionError("%s\nafter a kill at: %s" % (wrong, self.told)) from None
        self.h("down", "-q", self.name)
        self.check(False)


    def next(self, up):
        """The next command works, and nothing else is left."""
        if up:
            equal(self.h.ok("up", "-q", "-n", self.name, "--run", "echo on"), "on\n")
        else:
            done = self.h("down", "-q", self.name)
            equal(done.returncode in (0, 3), True, done.stderr)
        self.check(up)

    def at_each_call(self, what):
        """`what`: "up", "pause", "resume", "down" of the command, or "launcher" or "box" of its program in "up"."""
        lib = self.h.directory("lib-" + what)
        for name in os.listdir(BUILD):
            if name.startswith("handrail-") and os.access(os.path.join(BUILD, name), os.X_OK):
                shutil.copy(os.path.join(BUILD, name), lib)  # a box has no directory that a link would lead to
        n, command = 0, what if what in COMMANDS else "up"
        while True:
            n += 1
            trace = ["/usr/bin/python3", killed_at.__file__] + (["-"] if what == "box" else []) + [str(n)]
            program = os.path.join(lib, "handrail-box")
            if command != what:
                write_script(lib, "handrail-box", "exec %s %s/handrail-box \"$@\"\n" % (" ".join(trace), BUILD))
            if command == "up":
                self.h("down", "-q", self.name)
            else:
                self.h.ok("up", "-q", "-n", self.name)
            if command == "resume":
                self.h.ok("pause", self.name)
            env = dict(self.h.env, HANDRAIL_LIBEXECDIR=lib)
            words = (trace if command == what else []) + [os.path.join(BUILD, "handrail")] + list(self.command(command))
            done = subprocess.run(words, env=env, cwd=self.h.path("cwd"), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                                  **self.h.change)
            try:
                self.next(n % 2 == 0)
            except AssertionError as wrong:
                raise AssertionError("%s\nafter a kill of %s at call %d: %s" % (wrong, what, n, done.stdout)) from None
            if done.returncode == 0:
                self.next(False)
                return n


def kills(h, rng, options):
    Life(h, rng, h.uid == 0, options.of).live(options.kills)


def steps(h, rng, _):
    for what in os.environ.get("STEPS", "launcher box up down").split() + (["pause", "resume"] if h.uid == 0 else []):
        print("# %s: %d calls" % (what, Life(h, rng, limits=False).at_each_call(what)))
        sys.stdout.flush()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kills", type=int, nargs="?", default=20)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--box-of", type=int)
    p.add_argument("--of", choices=COMMANDS)
    p.add_argument("--steps", action="store_true")
    options = p.parse_args()
    if "ASAN_OPTIONS" in os.environ:
        # LeakSanitizer stops a process from another one, and without that the process stays stopped
        os.environ["ASAN_OPTIONS"] += ":detect_leaks=0"
    box.need_launcher()
    process.become_subreaper()
    tap = Tap()
    tap.diag("seed %d" % options.seed)
    for uid in (0, UID) if os.geteuid() == 0 else (os.geteuid(),):
        if options.box_of not in (None, uid):
            continue
        case = steps if options.steps else kills
        name = "%s, %s" % (case.__name__, "root" if uid == 0 else "another account")
        with box.Boxes(uid) as boxes:
            why = box.refused(boxes)
        if why:
            tap.skip(name, why)
            continue
        with Boxes(uid) as h:
            tap.run(name, case, h, random.Random(options.seed), options)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
