"""Run by the shell of a sandbox whose server has the same account: kills a worker again and again and
opens what it can of the one that takes its place, in the moments in which it does not hide yet. Then it
waits for a line on the FIFO and reads the memories that it has open again. It does not know the key: who
runs it looks for the key in FILE.

    newborn.py FILE PID-OF-HANDRAILD POOL KILLS WANTED FIFO

Prints as JSON how many workers it killed, of how many new ones it opened the memory, and how many bytes
it read."""

import json
import os
import signal
import stat
import sys
import time

out = open(sys.argv[1], "wb")
server, pool, kills, wanted, fifo = int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
PER_AREA = 4 << 20
done = {"killed": 0, "met": 0, "read": 0, "read_again": 0}


def text(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def parent(pid):
    fields = text("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def workers():
    return [int(n) for n in os.listdir("/proc") if n.isdigit() and parent(int(n)) == server and
            b"--pool\0%s\0" % pool.encode() in text("/proc/%s/cmdline" % n)]


def children():
    """As the kernel lists them, which is faster than to look through all processes."""
    return {int(n) for n in text("/proc/%d/task/%d/children" % (server, server)).split()} or set(workers())


def keep(name, data):
    out.write(b"\n==== %s\n" % name.encode() + data)
    return len(data)


def read_memory(pid, mem, areas):
    n = 0
    for start, end in areas:
        try:
            n += keep("mem %d" % pid, os.pread(mem, min(end - start, PER_AREA), start))
        except (OSError, OverflowError):
            pass
    return n


def read_descriptors(pid):
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return
    for name in names:
        path = "/proc/%d/fd/%s" % (pid, name)
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                done["read"] += keep(path, text(path))
        except OSError:
            pass


def meet(pid):
    """The memory of a new worker, if it can be had; None."""
    try:
        mem = os.open("/proc/%d/mem" % pid, os.O_RDONLY)
    except OSError:
        return None
    if parent(pid) != server or b"handrail-worker" not in text("/proc/%d/cmdline" % pid):
        os.close(mem)
        return None
    done["read"] += keep("/proc/%d/environ" % pid, text("/proc/%d/environ" % pid))
    read_descriptors(pid)
    return mem


def areas_of(pid):
    return [tuple(int(x, 16) for x in line.split()[0].split("-"))
            for line in text("/proc/%d/maps" % pid).decode().splitlines() if line.split()[1].startswith("rw")]


met = []
while len(met) < wanted and done["killed"] < kills:
    old = workers()
    if not old:
        continue
    before = children()
    os.kill(old[0], signal.SIGKILL)
    done["killed"] += 1
    turn = time.monotonic() + 1
    while time.monotonic() < turn:
        for pid in children() - before:
            mem = meet(pid)
            if mem is not None:
                areas = areas_of(pid)
                done["read"] += read_memory(pid, mem, areas)
                met.append((pid, mem, areas))
                turn = 0
                break
done["met"] = len(met)
with open(fifo) as f:
    f.readline()
for pid, mem, areas in met:
    # what was mapped since begins near what we know of: the heap grows
    done["read_again"] += read_memory(pid, mem, [(start, end + (1 << 20)) for start, end in areas])
out.close()
print(json.dumps(done))
