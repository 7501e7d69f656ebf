#!/usr/bin/env python3
"""Ways out of a box, each a case; see README."""

import os
import pty
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib.box import PATH, main  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

# In the box: attack(NAME, FUNCTION) prints what came of an attack; a value is a success of the attacker.
PRELUDE = r"""
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def attack(name, function):
    try:
        got = function()
    except OSError as why:
        print(name, errno.errorcode.get(why.errno, why.errno))
    else:
        print(name, "SUCCESS", got)
def call(number, *args):
    ctypes.set_errno(0)
    r = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r
"""


# Sockets that need no connection, and families other than IPv4.
PACKETS = r"""
def send(family, to, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(5)
        s.connect(to)
        return s.send(b'x')
attack('six', lambda: send(socket.AF_INET6, ('2001:db8::1', 80)))
attack('link', lambda: send(socket.AF_INET6, ('fe80::1', 80, 0, 1)))
attack('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attack('raw six', lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
attack('ping', lambda: send(socket.AF_INET, ('192.0.2.1', 0), socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attack('packet', lambda: socket.socket(17, socket.SOCK_RAW, 3))
attack('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
attack('netfilter', lambda: socket.socket(16, socket.SOCK_RAW, 12))
attack('alg', lambda: socket.socket(38, socket.SOCK_SEQPACKET))
"""


def failed(got, count):
    """None of the attacks, which must be `count`, has succeeded."""
    equal([line for line in got if "SUCCESS" in line], [])
    equal(len(got), count, got)
    return got


def attacks(b, code, count, **more):
    """Runs code with attacks in a box."""
    return failed(b.lines("exec python3 -c \"$PROGRAM\"", env=[PATH, "PROGRAM=" + PRELUDE + code], **more), count)


def only_x86():
    if os.uname().machine != "x86_64":
        raise Skip("needs an x86_64 processor: the case has its numbers of system calls")


def files(b):
    victim = b.directory("victim")
    with open(os.path.join(victim, "secret"), "w") as f:
        f.write("of the host")
    shared = b.directory("shared")
    os.symlink(victim, os.path.join(shared, "link"))
    attacks(b, r"""
victim = %r
def read(path):
    with open(path) as f: return f.read()
for name, prefix in (('path', ''), ('up', '/work/../../../../..'), ('root', '/proc/1/root'),
                     ('self', '/proc/self/root/..'), ('cwd', '/proc/1/cwd/../../..'),
                     ('task', '/proc/thread-self/root'), ('fd', '/proc/self/fd/0/..')):
    attack(name, lambda: read(prefix + victim + '/secret'))
attack('link', lambda: read('/work/link/secret'))
def chroot():
    os.makedirs('/tmp/jail', exist_ok=True)
    top = os.open('/', os.O_RDONLY)
    os.chroot('/tmp/jail')
    os.fchdir(top)
    for _ in range(64): os.chdir('..')
    os.chroot('.')
    return read(victim + '/secret')
attack('chroot', chroot)
for pid in [p for p in os.listdir('/proc') if p.isdigit()][:8]:
    assert not os.path.exists('/proc/' + pid + '/root' + victim)
print('processes looked at')
""" % victim, 10, mounts=[{"source": shared, "target": "/work"}], directory="/work")
    for name in ("/etc/shadow", "/etc/gshadow", "/root/.ssh", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
        equal(b.lines("test -e %s && echo there; true" % name), [], name)


def kernel(b):
    attacks(b, r"""
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/vm/panic_on_oom',
             '/proc/sysrq-trigger', '/proc/sys/fs/binfmt_misc/register', '/sys/kernel/uevent_helper',
             '/sys/fs/cgroup/release_agent', '/sys/fs/cgroup/memory/release_agent', '/sys/kernel/mm/ksm/run',
             '/proc/irq/default_smp_affinity', '/sys/power/state'):
    attack(path, lambda: os.close(os.open(path, os.O_WRONLY)))
for path in ('/dev/mem', '/dev/kmem', '/dev/kmsg', '/dev/port', '/sys/kernel/security/lockdown',
             '/sys/kernel/debug/sched', '/sys/firmware/acpi'):
    attack(path, lambda: os.close(os.open(path, os.O_RDONLY)))
for path in ('/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/sched_debug'):
    attack(path, lambda: open(path).read(1) or os.close(-1))
""", 22)


def devices(b):
    shared = b.directory("shared")
    got = attacks(b, r"""
import stat
for place in ('/tmp', '/run', '/dev', '/dev/shm', '/root', '/work', '/usr/local', '/etc'):
    for kind, number in ((stat.S_IFCHR, os.makedev(1, 1)), (stat.S_IFBLK, os.makedev(7, 0))):
        def use():
            path = place + '/handrail-attack'
            os.mknod(path, kind | 0o600, number)
            try: return os.open(path, os.O_RDONLY)
            finally: os.unlink(path)
        attack(place, use)
for path in ('/dev/null', '/dev/tty'):
    attack('chmod ' + path, lambda: os.chmod(path, os.stat(path).st_mode & 0o777))
""", 18, mounts=[{"source": shared, "target": "/work"}])
    equal([line for line in got if line.split()[-1] not in ("EPERM", "EROFS", "EACCES", "EEXIST")], [])


def mounts(b):
    only_x86()
    with open("/proc/self/mountinfo") as f:
        before = f.read()
    code = r"""
for name, args in (('tmpfs', (165, b'none', b'/tmp', b'tmpfs', 0, None)),
                   ('bind', (165, b'/', b'/mnt', None, 4096, None)),
                   ('remount', (165, None, b'/dev/null', None, 32, None)),
                   ('shared', (165, None, b'/', None, 1 << 20, None)),
                   ('umount', (166, b'/proc/sys', 2)), ('pivot', (155, b'.', b'.')), ('fsopen', (430, b'tmpfs', 0)),
                   ('open_tree', (428, -100, b'/', 1)), ('setattr', (442, -100, b'/proc/sys', 0, None, 0))):
    attack(name, lambda: call(*args))
"""
    attacks(b, code, 9)
    attacks(b, "assert libc.unshare(0x10020000) == 0\n" + code, 9)  # namespaces of users and of mounts
    with open("/proc/self/mountinfo") as f:
        equal(f.read() == before or b.top not in f.read(), True)


def processes(b):
    only_x86()
    victim = subprocess.Popen(["sleep", "1000"], **b.change)
    try:
        attacks(b, r"""
pid = %d
attack('signal', lambda: os.kill(pid, 0))
attack('ptrace', lambda: call(101, 16, pid, 0, 0))
attack('pidfd', lambda: call(434, pid, 0))
vector = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
attack('memory', lambda: call(310, pid, vector, 1, vector, 1, 0))
attack('proc', lambda: open('/proc/%%d/mem' %% pid).close())
attack('priority', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attack('limits', lambda: call(302, pid, 7, None, None))
attack('kcmp', lambda: call(312, 1, pid, 0, 0, 0))
attack('setns', lambda: call(308, os.open('/proc/1/ns/mnt', os.O_RDONLY), 0))
""" % victim.pid, 9)
        equal(victim.poll(), None)
    finally:
        victim.kill()
        victim.wait()


def sockets(b):
    place = b.directory("sockets")
    with socket.socket() as four, socket.socket(socket.AF_UNIX) as path, socket.socket(socket.AF_UNIX) as abstract:
        four.bind(("127.0.0.1", 0))
        path.bind(os.path.join(place, "s"))
        abstract.bind("\0handrail-attack-%d" % os.getpid())
        for s in (four, path, abstract):
            s.listen()
        attacks(b, PACKETS + r"""
attack('loopback', lambda: send(socket.AF_INET, ('127.0.0.1', %d)))
attack('path', lambda: send(socket.AF_UNIX, %r))
attack('abstract', lambda: send(socket.AF_UNIX, %r))
attack('metadata', lambda: send(socket.AF_INET, ('169.254.169.254', 80)))
attack('datagram', lambda: send(socket.AF_INET, ('192.0.2.1', 53), socket.SOCK_DGRAM))
""" % (four.getsockname()[1], path.getsockname(), abstract.getsockname().decode()), 14)


def keys(b):
    only_x86()
    got = attacks(b, r"""
attack('add', lambda: call(248, b'user', b'handrail', b'x', 1, -2))
attack('request', lambda: call(249, b'user', b'handrail', None, 0))
attack('session', lambda: call(250, 0, -3, 0, 0, 0))
attack('user', lambda: call(250, 0, -4, 0, 0, 0))
""", 4)
    equal([line.split()[1] for line in got], ["EPERM"] * 4)


def calls(b):
    only_x86()
    attacks(b, r"""
for name, number in (('bpf', 321), ('perf', 298), ('io_uring', 425), ('userfaultfd', 323), ('handle', 304),
                     ('name', 303), ('setns', 308), ('kexec', 246), ('module', 175), ('reboot', 169), ('swapon', 167),
                     ('clock', 227), ('iopl', 172), ('acct', 163), ('quotactl', 179), ('fanotify', 300),
                     ('pidfd_getfd', 438), ('x32', 0x40000000 + 321), ('later', 467), ('last', 100000)):
    attack(name, lambda: call(number, 0, 0, 0, 0, 0, 0))
""", 20)


def terminal(b):
    outer, inner = pty.openpty()
    try:
        # standard error is the box's only way to the terminal: it has no other descriptor
        d = b.document("exec python3 -c \"$PROGRAM\" <&2", env=[PATH, "PROGRAM=" + PRELUDE + r"""
import fcntl, termios
for name, request in (('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541C), ('TIOCCONS', 0x541D)):
    attack(name, lambda: fcntl.ioctl(0, request, b'x'))
"""])
        p = b.start(d, stderr=inner)
        out = p.communicate(timeout=60)[0]
        equal([line.split() for line in out.splitlines()],
              [["TIOCSTI", "EPERM"], ["TIOCLINUX", "EPERM"], ["TIOCCONS", "EPERM"]], out)
    finally:
        os.close(outer)
        os.close(inner)


def rights(b):
    shared = b.directory("shared")
    got = b.lines("grep -E '^(NoNewPrivs|CapBnd|CapAmb):' /proc/self/status; "
                  "cp /usr/bin/id /work/id; chown 1:1 /work/id 2>/dev/null; chmod 6755 /work/id; id -u; /work/id -u",
                  mounts=[{"source": shared, "target": "/work"}])
    equal([g.split() for g in got], [["CapBnd:", "00000000800405fb"], ["CapAmb:", "0" * 16], ["NoNewPrivs:", "1"],
                                     got[3].split(), got[3].split()], got)
    equal(os.stat(b.storage).st_mode & 0o077, 0, "no other account reaches a set-uid file of the storage")


def resources(b):
    got = b.lines("for place in /run /dev; do dd if=/dev/zero of=$place/fill bs=1M count=80 2>&1 | "
                  "grep -o 'No space left'; rm -f $place/fill; done; python3 -c \"$PROGRAM\"",
                  env=[PATH, "PROGRAM=" + r"""
import os
n = 0
try:
    while n < 2000:
        os.close(os.open('/dev/%d' % n, os.O_CREAT)); n += 1
    print('no limit')
except OSError as why: print(why.strerror)
"""])
    equal(got, ["No space left", "No space left", "No space left on device"])
    bomb = r"""
import os, time
n = 0
try:
    while n < 200:
        if os.fork() == 0: time.sleep(1000)
        n += 1
except OSError as why: print(n < %d, why.strerror)
""" % (20 + b.processes)
    script = "python3 -c 'bytearray(%d)' 2>/dev/null && echo memory; python3 -c \"$PROGRAM\""
    d = b.document(script % (b.room + (200 << 20)), env=[PATH, "PROGRAM=" + bomb],
                   limits={"memory_bytes": b.room + (64 << 20), "processes": 20 + b.processes})
    status, out, err = b.run(d)
    if status == b.REFUSED:  # no limit that does not hold
        equal("cannot be enforced" in err, True, err)
    else:
        equal(out, "True Resource temporarily unavailable\n", err)


def ipc(b):
    """Shared memory and queues of the machine, by their keys and names."""
    only_x86()
    made = subprocess.check_output(["ipcmk", "-M", "64", "-p", "0666"], text=True, **b.change)
    number = int(made.split()[-1])
    name = "/dev/shm/handrail-attack-%d" % os.getpid()
    with open(name, "w") as f:
        f.write("of the host")
    try:
        got = attacks(b, r"""
attack('memory', lambda: call(30, %d, 0, 0))
attack('file', lambda: open(%r).read())
attack('queue', lambda: call(240, b'handrail-attack', os.O_RDONLY, 0, None))
with open('/proc/sysvipc/shm') as f: print(len(f.readlines()), 'line')
""" % (number, name), 4)
        equal(got[-1], "1 line")
    finally:
        subprocess.run(["ipcrm", "-m", str(number)], check=True, **b.change)
        os.unlink(name)


def namespaces(b):
    """What a user namespace in the box gives its root: neither the machine's name, network and devices, nor its ids."""
    only_x86()
    name = socket.gethostname()
    attacks(b, r"""
uid, gid = os.getuid(), os.getgid()
assert libc.unshare(0x10000000 | 0x40000000 | 0x04000000) == 0  # users, network, names
def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    try: os.write(fd, text)
    finally: os.close(fd)
put('/proc/self/setgroups', b'deny')
put('/proc/self/uid_map', b'0 %d 1' % uid)
attack('name', lambda: call(170, b'attacked', 8))
attack('packet', lambda: socket.socket(17, socket.SOCK_RAW, 3))
attack('netfilter', lambda: socket.socket(16, socket.SOCK_RAW, 12))
attack('ids', lambda: put('/proc/self/uid_map', b'0 0 4294967295'))
attack('limits', lambda: put('/proc/sys/user/max_user_namespaces', b'0'))
attack('forward', lambda: put('/proc/sys/net/ipv4/ip_forward', b'1'))
attack('device', lambda: os.mknod('/tmp/attack-null', 0o20666, os.makedev(1, 3)))
attack('setns', lambda: call(308, os.open('/proc/1/ns/net', os.O_RDONLY), 0))
attack('clock', lambda: call(164, None, None) or call(227, 0, None))
""", 9)
    got = attacks(b, r"""
assert libc.unshare(0x10000000 | 0x40000000) == 0  # users, network
for family in range(3, 64):
    if family not in (10, 16):
        attack('family', lambda: socket.socket(family, socket.SOCK_DGRAM))
        attack('pair', lambda: socket.socketpair(family, socket.SOCK_DGRAM))
attack('packets', lambda: socket.socket(socket.AF_INET, 10, 0x300))
for level, option in ((0, 64), (0, 65), (41, 64), (41, 65), (0, 96), (0, 97), (0, 128), (0, 129)):
    with socket.socket(socket.AF_INET6 if level else socket.AF_INET, socket.SOCK_DGRAM) as s:
        attack('firewall', lambda: s.setsockopt(level, option, bytes(4096)))
""", 127)
    equal([line for line in got if line.split()[1] != "EPERM"], [])
    equal(socket.gethostname(), name)


def settings(b):
    """Changes of the resolver, the names and the trust store are the box's own."""
    paths = [p for p in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", "/etc/passwd",
                         "/etc/ld.so.preload") if not os.path.islink(p)]
    before = [os.stat(p) if os.path.exists(p) else None for p in paths]
    b.lines("for f in %s; do { echo attacked >>$f; } 2>/dev/null; done; true" % " ".join(paths))
    after = [os.stat(p) if os.path.exists(p) else None for p in paths]
    equal([a and (a.st_ino, a.st_size, a.st_mtime_ns) for a in after],
          [a and (a.st_ino, a.st_size, a.st_mtime_ns) for a in before])


CASES = [files, kernel, devices, mounts, processes, sockets, keys, calls, terminal, rights, resources, ipc, namespaces,
         settings]

if __name__ == "__main__":
    sys.exit(main(CASES))
