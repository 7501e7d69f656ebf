"""Runs a program and kills it at the Nth end of a system call:  killed_at.py N PROGRAM [ARGUMENT]...

With "-" before N its children are killed so, too, each at its own Nth call, until they execute a program; with "+" its
children alone. With "=" before N nothing is killed: call number N, such as 155, fails from the second time on.
Exits like the program, or kills itself by the same signal."""

import ctypes
import os
import signal
import sys

TRACEME, SYSCALL, DETACH, SETOPTIONS, MESSAGE = 0, 24, 17, 0x4200, 0x4201
FORKS = 1 << 1 | 1 << 2 | 1 << 3  # fork, vfork, clone
EXEC = 1 << 4
libc = ctypes.CDLL(None, use_errno=True)


def ptrace(what, pid, data=0):
    return libc.ptrace(ctypes.c_long(what), ctypes.c_long(pid), ctypes.c_long(0), ctypes.c_long(data))


def refuse(pid, number, seen):
    """Lets the call fail that a process of x86-64 begins, if it is that one and not the first of them."""
    info = ctypes.create_string_buffer(88)
    libc.ptrace(ctypes.c_long(0x420e), ctypes.c_long(pid), ctypes.c_long(88), info)
    if info.raw[0] == 1 and int.from_bytes(info.raw[24:32], "little") == number:
        seen.append(pid)
        if len(seen) > 1:
            libc.ptrace(ctypes.c_long(6), ctypes.c_long(pid), ctypes.c_long(15 * 8), ctypes.c_long(-1))


def run(count, follow, argv, spared=False, refused=False):
    first = os.fork()
    if first == 0:
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(argv[0], argv)
    os.closerange(3, 100)
    os.waitpid(first, 0)
    ptrace(SETOPTIONS, first, 1 | (FORKS | EXEC if follow else 0))  # 1: calls are told from signals
    stops, status, seen = {first: 0}, None, []
    ptrace(SYSCALL, first)
    while first in stops:  # the tracer's end lets the others go
        pid, what = os.waitpid(-1, 0x40000000)  # __WALL
        if not os.WIFSTOPPED(what):
            stops.pop(pid, None)
            status = what if pid == first else status
            continue
        sig, event = os.WSTOPSIG(what), what >> 16
        stops.setdefault(pid, 0)
        if sig == signal.SIGSTOP:
            sig = 0  # a child begins with it
        elif sig == signal.SIGTRAP | 0x80:
            stops[pid] += 1
            sig = 0
            if refused:
                refuse(pid, count, seen)
            elif stops[pid] == count and not (spared and pid == first):
                os.kill(pid, signal.SIGKILL)
                continue
        elif sig == signal.SIGTRAP:
            if 0 < event < 4:
                child = ctypes.c_ulong()
                ptrace(MESSAGE, pid, ctypes.addressof(child))
                stops.setdefault(child.value, 0)
            if event == 4 and pid != first:
                ptrace(DETACH, pid)
                del stops[pid]
                continue
            sig = 0
        ptrace(SYSCALL, pid, sig)
    for pid in stops:
        os.kill(pid, signal.SIGCONT)  # a new child stays stopped otherwise
    return status


if __name__ == "__main__":
    FOLLOW = sys.argv[1] in ("-", "+", "=")
    end = run(int(sys.argv[1 + FOLLOW]), FOLLOW, sys.argv[2 + FOLLOW:], sys.argv[1] == "+", sys.argv[1] == "=")
    if os.WIFSIGNALED(end):
        os.kill(os.getpid(), os.WTERMSIG(end))
    sys.exit(os.waitstatus_to_exitcode(end))
