"""Processes of a test: started, waited for by event, and proved to be gone.

The test program is a subreaper: what a server leaves behind becomes its child and is found."""

import ctypes
import os
import select
import signal
import time

from .tap import Skip

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def stat_fields(pid):
    """The fields of /proc/PID/stat behind the name: state, parent, group, session... None: gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            text = f.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(b")") + 2:].split()


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid):
    found = []
    for other in all_pids():
        fields = stat_fields(other)
        if fields is not None and int(fields[1]) == pid:
            found.append(other)
    return found


def without_children(pids):
    """A child of one of them may have its command line, as that of the leak sanitizer has at its end: a program whose
    sanitizer loses that one waits for ever."""
    return [pid for pid in pids if int((stat_fields(pid) or (b"", 0))[1]) not in pids]


def descendants(pid):
    found, new = [], [pid]
    parents = {}
    for other in all_pids():
        fields = stat_fields(other)
        if fields is not None:
            parents.setdefault(int(fields[1]), []).append(other)
    while new:
        new = [child for parent in new for child in parents.get(parent, [])]
        found += new
    return found


KERNEL_THREAD = 0x00200000


EXITING = 0x00000004


def started_with(pid, name):
    """What /proc has of how a process was started: "cmdline" or "environ"; b"": it has ended, or is the
    kernel's.

    In the middle of execve() the kernel shows nothing for some time, milliseconds under a sanitizer whose
    memory it has to give back, the environment last, and tells nobody when that is over."""
    end = time.monotonic() + 10.0
    while True:
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                text = f.read()
        except OSError:
            return b""
        fields = None if text else stat_fields(pid)
        if (fields is None or fields[0] in b"ZX" or int(fields[6]) & (KERNEL_THREAD | EXITING) or
                time.monotonic() > end):
            return text
        os.sched_yield()


def command_line(pid):
    """Its words, with blanks between; "": it has ended, or is the kernel's."""
    return started_with(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()


def need_hidden():
    """For descriptors and maps of a process that is not dumpable, which /proc shows to root alone."""
    if os.geteuid() != 0:
        raise Skip("needs root: the server hides its descriptors and maps from its own account")


def environment(pid):
    """Its variables as it was started, NAME=VALUE."""
    return started_with(pid, "environ").split(b"\0")


def has_ended(pid):
    """Whether a process runs no more of its own code; the kernel may still be busy to end it."""
    fields = stat_fields(pid)
    return fields is None or fields[0] in b"ZX" or bool(int(fields[6]) & EXITING)


def wait_gone(pid, seconds):
    """Whether a process, of ours or not, ended in time. Sleeps on its pidfd."""
    try:
        fd = os.pidfd_open(pid)
    except (ProcessLookupError, FileNotFoundError):  # the second one while it is reaped (seen with Linux 6.18)
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def reap(ignore):
    """Our children that have ended, beyond `ignore`: what a server left becomes ours."""
    for pid in children(os.getpid()):
        if pid not in ignore and (stat_fields(pid) or [b""])[0] == b"Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def left_over(ignore, seconds):
    """Our children beyond `ignore`, after they had time to end: [(pid, command line)]. They are
    killed, so that the next test starts clean."""
    end = time.monotonic() + seconds
    left = []
    for pid in children(os.getpid()):
        if pid in ignore:
            continue
        text = command_line(pid)
        if not wait_gone(pid, max(0.0, end - time.monotonic())):
            left.append((pid, text))
            for member in [pid] + descendants(pid):
                try:
                    os.kill(member, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass
    return left


def context_switches(pid):
    """How often a process went to sleep by itself: what an idle one does not do."""
    total = 0
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, task)) as f:
                for line in f:
                    if line.startswith("voluntary_ctxt_switches:"):
                        total += int(line.split()[1])
    except FileNotFoundError:
        return None
    return total
