#!/usr/bin/env python3
"""handrail-box: what a box isolates, keeps and refuses, and that nothing is left of one. As root each case is done
twice, by root and by another account."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.box import PATH, UID, groups, main  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

LATER = ("import ctypes, errno\n"  # a system call of a later kernel than the filter knows
         "libc = ctypes.CDLL(None, use_errno=True)\n"
         "print(errno.errorcode[ctypes.get_errno()] if libc.syscall(467, 0, 0, 0, 0, 0) < 0 else 'called')\n")


def two_groups():
    """Where control groups of version 2 are mounted; None: nowhere."""
    with open("/proc/self/mountinfo") as f:
        for line in f:
            if " - cgroup2 " in line:
                return line.split()[4]
    return None


def wait_empty(group):
    """Until no process is in a control group of version 2, or below it."""
    with open(os.path.join(group, "cgroup.events")) as f:
        watch = select.poll()
        watch.register(f, select.POLLPRI)
        while "populated 1" in f.read():
            equal(len(watch.poll(PATIENCE * 1000)), 1, "the group is empty in time")
            f.seek(0)


def files(b):
    """Of the host a box sees programs and public settings, and neither homes nor what only some may read."""
    outside = b.directory("outside")
    with open(os.path.join(outside, "secret"), "w") as f:
        f.write("of the host")
    got = b.lines("ls -A /root /home /srv /opt /tmp; cat /etc/shadow /etc/gshadow 2>&1; ls -d %s 2>&1; "
                  "find /etc -type f ! -perm -004; test -x /usr/bin/env && echo programs; ls /var/lib" % outside)
    equal([g for g in got if g and not g.endswith(":")],
          ["cat: /etc/shadow: No such file or directory", "cat: /etc/gshadow: No such file or directory",
           "ls: cannot access '%s': No such file or directory" % outside, "programs", "apt", "dpkg"])
    equal(b.lines("ls -A /run"), ["lock", "screen"])


def kept(b):
    """What a box changes is there at its next start, and nowhere else."""
    name = "/etc/handrail-%d" % os.getpid()
    b.lines("echo kept >/root/x; mkdir /new" + ("; echo kept >%s" % name if b.uid == 0 else ""))
    equal(b.lines("cat /root/x; ls -d /new"), ["kept", "/new"])
    equal((os.path.exists(name), os.path.exists("/new")), (False, False))
    if b.uid == 0:
        equal(b.lines("cat " + name), ["kept"])


def first_start(b):
    """Of the directories of /etc the storage of root's box has those alone in which something is hidden, and no copy
    of a file that only another account's box could not change. Each one is a write to the disk."""
    b.lines("true")
    etc = os.path.join(b.storage, "layers", "host/upper/etc" if b.uid == 0 else "etc/upper")
    equal([name for name in ("group", "subuid") if os.path.isfile(os.path.join(etc, name))],
          [name for name in ("group", "subuid") if b.uid != 0 and os.path.isfile("/etc/" + name)])
    equal([top for top, below, here in os.walk(etc) if not below and not here and b.uid == 0], [])


def own_files(b):
    """A box has its own version of some files of /etc, which keeps what the box has changed."""
    with open("/etc/hosts") as f:
        before = f.read()
    equal(b.lines("tail -n 1 /etc/hosts; cut -d: -f2 /etc/passwd | grep -c x; echo 127.0.0.1 other >>/etc/hosts; "
                  "rm /etc/subuid", name="named"), ["127.0.0.1\tnamed", "0"])
    equal(b.lines("tail -n 2 /etc/hosts; ls /etc/subuid 2>&1; true", name="named"),
          ["127.0.0.1\tnamed", "127.0.0.1 other", "ls: cannot access '/etc/subuid': No such file or directory"])
    with open("/etc/hosts") as f:
        equal(f.read(), before, "the host's")
    equal(os.path.exists(os.path.join(b.storage, "layers", "etc" if b.uid else "host", "new")), False)


def with_etc(b, etc, command):
    """Runs the command in a new box, of a host with this /etc, and returns what it prints."""
    if os.geteuid() != 0:
        raise Skip("needs root: the test changes /etc in a mount namespace")
    account = ["setpriv", "--reuid", str(b.uid), "--regid", str(b.uid), "--clear-groups"] if b.uid else []
    os.chmod(etc, 0o755)
    document = b.document(command, name="named", storage=b.directory("of-" + os.path.basename(etc)))
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc] + account +
                          [b.program], input=json.dumps(document), capture_output=True, text=True,
                          timeout=PATIENCE, cwd="/")
    equal(done.stderr, "")
    return done.stdout


def hosts(b):
    """The name of a box is there with any /etc/hosts of the host: without a last line feed, none, a link, a private
    one; and with that of another system."""
    named = "127.0.0.1\tnamed\n"
    for i, (text, mode, want) in enumerate((
            ("127.0.0.1 a", 0o644, "127.0.0.1 a\n" + named),
            (None, 0, "127.0.0.1\tlocalhost\n::1\tlocalhost\n" + named),
            ("/etc/other", None, "of another file\n"), ("private", 0o600, ""))):
        etc = b.directory("etc%d" % i)
        at = os.path.join(etc, "hosts")
        with open(os.path.join(etc, "other"), "w") as f:
            f.write("of another file\n")
        if mode is None:
            os.symlink(text, at)
        elif text is not None:
            with open(at, "w") as f:
                f.write(text)
            os.chmod(at, mode)
        equal(with_etc(b, etc, "cat /etc/hosts 2>/dev/null; true"), want, "%r %r" % (text, mode))


def sources(b):
    """The accounts of a box come from all sources of the host's but systemd, which does not run there."""
    etc = b.directory("etc-sources")
    with open(os.path.join(etc, "nsswitch.conf"), "w") as f:
        f.write("# systemd stays here\npasswd: files systemd\n"
                "group:files [SUCCESS=merge] systemd [ NOTFOUND=return ] sss\nshadow:  systemd\tfiles \n"
                "hosts: files systemd-resolve mysystemd [!UNAVAIL=return] dns\n\nnetgroup: systemd")
    equal(with_etc(b, etc, "cat /etc/nsswitch.conf"),
          "# systemd stays here\npasswd: files\ngroup:files [SUCCESS=merge] sss\nshadow:\tfiles \n"
          "hosts: files systemd-resolve mysystemd [!UNAVAIL=return] dns\n\nnetgroup:")


def added(b):
    """A box adds programs to /usr/local and /usr/bin; those of the host stay."""
    b.lines("for d in /usr/bin /usr/local/bin /usr/local/share; do cp /bin/true $d/e2e-box; done")
    equal(b.lines("e2e-box && /usr/bin/e2e-box && test -x /usr/bin/env && echo there"), ["there"])
    equal([d for d in ("/usr/bin", "/usr/local/bin", "/usr/local/share") if os.path.exists(d + "/e2e-box")], [])


def processes(b):
    """A box has processes, a host name and System V memory of its own, and cannot signal the host's."""
    got = b.lines("echo $$; hostname; ls -d /proc/[0-9]* | wc -l; ipcs -m | grep -c 0x; kill -0 %d 2>/dev/null; echo $?"
                  % os.getpid(), name="named")
    equal(got[:2] + got[3:], ["1", "named", "0", "1"])
    equal(int(got[2]) <= 4, True, got)


def boot_id(b):
    """Each start has an ID of its own, which nobody changes, and which is not the host's."""
    path = "/proc/sys/kernel/random/boot_id"
    with open(path) as f:
        seen = [f.read().strip()]
    for _ in range(2):
        got = b.lines("cd %s; cat boot_id boot_id; chmod 666 boot_id 2>/dev/null; echo x 2>/dev/null >boot_id || "
                      "echo no; ls /dev | grep boot; true" % os.path.dirname(path))
        equal((got[0] == got[1], len(got[0]), got[0] in seen, got[2:]), (True, 36, False, ["no"]), got)
        seen.append(got[0])


def network(b):
    """A box has a loopback interface and no other; neither the host's loopback nor its abstract sockets."""
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as abstract:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        name = "handrail-test-%d" % os.getpid()
        abstract.bind("\0" + name)
        abstract.listen()
        reach = ("import socket\n"
                 "for family, to in ((socket.AF_INET, ('127.0.0.1', %d)), (socket.AF_UNIX, '\\0%s'),\n"
                 "                   (socket.AF_INET, ('192.0.2.1', 80))):\n"
                 "    try:\n"
                 "        s = socket.socket(family); s.settimeout(5); s.connect(to); print('reached')\n"
                 "    except OSError as why: print(why.strerror)\n" % (listener.getsockname()[1], name))
        script = "python3 -c \"$PROGRAM\"; tail -n +3 /proc/net/dev | cut -d: -f1"
        got = b.lines(script, env=[PATH, "PROGRAM=" + reach])
        equal(got, ["Connection refused", "Connection refused", "Network is unreachable", "    lo"])
        got = b.lines(script, env=[PATH, "PROGRAM=" + reach], network="host")
        equal(got[0], "reached")
        equal(b.lines(script, env=[PATH, "PROGRAM=" + reach], network="egress"),
              ["Connection refused"] * 3 + ["    lo"])
        status, said, _ = b.run(b.document("true"), "--check")
        equal(status, 0)
        if "Landlock keeps" in said:
            equal(got[1], "Operation not permitted", "Landlock keeps abstract sockets away")


def every_address(b):
    """With "egress" a listener in the box takes connections and packets to every IPv4 address, and none over IPv6."""
    to = ("192.0.2.1", "198.18.0.1", "10.0.0.1", "169.254.169.254")
    program = ("import socket\n"
               "l = socket.socket(); l.bind(('0.0.0.0', 443)); l.listen()\n"
               "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('0.0.0.0', 53))\n"
               "for to in %r:\n"
               "    c = socket.create_connection((to, 443), 5); print(l.accept()[0].getsockname()[0])\n"
               "    v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.sendto(b'q', (to, 53)); print(u.recv(9))\n"
               "try: socket.create_connection(('2001:db8::1', 443), 5)\n"
               "except OSError as why: print(why.strerror)\n" % (to,))
    got = b.lines('python3 -c "$PROGRAM"', env=[PATH, "PROGRAM=" + program], network="egress")
    equal(got, [line for address in to for line in (address, "b'q'")] + ["Network is unreachable"])


def resolver(b):
    """With the host's network a box has the host's resolver, also where /etc/resolv.conf is a link into /run."""
    if b.uid != 0:
        raise Skip("needs root: the test changes /etc in a mount namespace")
    etc, run = b.directory("etc"), b.directory("run")
    with open(os.path.join(run, "resolv.conf"), "w") as f:
        f.write("nameserver 192.0.2.53\n")
    os.chmod(etc, 0o755)
    os.symlink(os.path.join(run, "resolv.conf"), os.path.join(etc, "resolv.conf"))
    for network, want in (("host", "nameserver 192.0.2.53\n"), ("none", "")):
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc && exec "$1"', etc, b.program],
                              input=json.dumps(b.document("cat /etc/resolv.conf 2>/dev/null", network=network)),
                              capture_output=True, text=True, timeout=PATIENCE)
        equal((done.stdout, done.stderr), (want, ""), network)


def container(b):
    """Where a container engine has mounted files of its own in /etc, root's box has the resolver, and a user's box
    names what is in its way."""
    if os.geteuid() != 0:
        raise Skip("needs root: the test mounts a file over one of /etc")
    path = os.path.join(b.top, "resolv.conf")
    with open(path, "w") as f:
        f.write("nameserver 192.0.2.53\n")
    os.chmod(path, 0o644)
    account = ["setpriv", "--reuid", str(b.uid), "--regid", str(b.uid), "--clear-groups"] if b.uid else []
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', path] +
                          account + [b.program], capture_output=True, text=True, timeout=PATIENCE, cwd="/",
                          input=json.dumps(b.document("cat /etc/resolv.conf", network="host")))
    if b.uid == 0:
        equal((done.stdout, done.stderr), ("nameserver 192.0.2.53\n", ""))
    else:
        equal((done.returncode, done.stdout), (125, ""))
        equal("/etc of this machine has file systems mounted below it" in done.stderr, True, done)


def nested_root(b):
    """Root of a user namespace makes a user's box: it has no rights outside."""
    done = subprocess.run(["unshare", "-Ur", b.program], capture_output=True, text=True, timeout=PATIENCE, cwd="/",
                          input=json.dumps(b.document("id -u; echo kept >/root/x; cat /root/x /proc/self/uid_map")),
                          **b.change)
    equal((done.stdout.split()[:2], done.stdout.split()[4:], done.stderr), (["0", "kept"], ["1"], ""), done)


def fence(b):
    """Rights that nobody in a box has."""
    calls = ("import ctypes, errno, os\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "def call(name, *args):\n"
             "    r = getattr(libc, name)(*args)\n"
             "    print(name, args[0], errno.errorcode.get(ctypes.get_errno()) if r < 0 else r)\n"
             "call('mount', b'none', b'/tmp', b'tmpfs', 0, None)\n"
             "call('umount2', b'/proc', 2)\n"
             # bpf, perf_event_open, io_uring_setup, keyctl, userfaultfd, open_by_handle_at
             "for n in (321, 298, 425, 250, 323, 304):\n"
             "    call('syscall', n, 0, 0, 0, 0, 0)\n"
             "call('ioctl', 0, 0x5412, b'x')\n"
             "call('mknod', b'/tmp/null', 0o20666, os.makedev(1, 3))\n"
             "call('chmod', b'/dev/null', 0o666)\n"
             "call('chown', b'/proc/keys', 0, 0)\n"
             "call('socket', 40, 1, 0)\n"
             "call('syscall', 41, 0x100000028, 1, 0)\n"  # the kernel takes 32 bits of the family
             "call('socket', 16, 3, 12)\n"
             "call('socket', 17, 3, 0)\n")
    if os.uname().machine == "x86_64":
        got = b.lines("python3 -c \"$PROGRAM\"", env=[PATH, "PROGRAM=" + calls])
        equal([line for line in got if line.split()[-1] not in ("EPERM", "EROFS")], [], got)
        equal(len(got), 16, got)
        got = b.lines("python3 -c \"$PROGRAM\"", env=[PATH, "PROGRAM=" + LATER])
        equal(got, ["ENOSYS"])
    got = b.lines("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; "
                  "echo x 2>/dev/null >/proc/sys/kernel/domainname || echo read-only; "
                  "echo x 2>/dev/null >/proc/sysrq-trigger || echo no; "
                  "cat /proc/kcore /proc/keys /dev/mem 2>/dev/null | head -c1 | wc -c; unshare -Ur true && echo nested")
    equal([g.replace("\t", " ") for g in got], ["NoNewPrivs: 1", "Seccomp: 2", "read-only", "no", "0", "nested"])
    # files that list the memory of the machine, for root
    got = b.lines("for f in /proc/kpage* /proc/pagetypeinfo /proc/slabinfo /proc/vmallocinfo; do "
                  "head -c1 $f 2>/dev/null | wc -c; done | sort -u")
    equal(got, ["0"])
    # the filter was made when handrail was built: at a start it would take a millisecond, and libcap 0.1
    loaded = subprocess.run(["ldd", b.program], capture_output=True, text=True, check=True).stdout
    equal([name in loaded for name in ("libc.so", "libseccomp", "libcap")], [True, False, False], loaded)


def launchers_file(b):
    """The program of the box is not the launcher's file, which the box could write to by its own name."""
    b.lines("mkfifo /tmp/document")
    p = b.start(b.document("", argv=["/proc/self/exe", "/tmp/document"]))  # waits for a writer
    with open(os.path.join(b.storage, "root/tmp/document"), "w"):
        inside = process.children(p.pid)  # and the guard
        equal([os.readlink("/proc/%d/exe" % pid) for pid in inside], ["/memfd:handrail-box (deleted)"] * 2)
    equal((p.communicate(timeout=PATIENCE)[1], p.returncode), (
        "handrail-box: the document is not JSON, at character 1: Expecting value\n", 2))


def signals(b):
    """A signal to the process group of the box's program ends the box, and nothing outside."""
    done = subprocess.run(["sh", "-c", '"$0" | cat; echo after', b.program], cwd="/",
                          input=json.dumps(b.document("kill -KILL 0; echo alive")), capture_output=True, text=True,
                          timeout=PATIENCE, start_new_session=True, **b.change)
    equal(done.stdout.splitlines(), ["alive", "after"], done)  # process 1 has no signals of its own box


class Terminal:
    """A shell with a terminal that runs handrail-box with each document, and reads a line after each."""

    def __init__(self, b, *documents):
        names = []
        for n, d in enumerate(documents):
            names.append(os.path.join(b.top, "document%d" % n))
            with open(names[-1], "w") as f:
                json.dump(d, f)
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if b.change:
                    os.setgroups([])
                    os.setresgid(b.uid, b.uid, b.uid)
                    os.setresuid(b.uid, b.uid, b.uid)
                os.chdir("/")
                os.execv("/bin/sh", ["sh", "-c", 'for d; do "$0" "$d"; echo "status $?"; read x; echo "read $x"; done',
                                     b.program] + names)
            finally:
                os._exit(127)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.fd, text)

    def expect(self, text):
        """Waits for a text; what comes before it is forgotten."""
        while text not in self.text:
            equal(bool(select.select([self.fd], [], [], PATIENCE)[0]), True, (text, self.text))
            self.text += os.read(self.fd, 4096)
        self.text = self.text[self.text.index(text) + len(text):]

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def terminal(b):
    """A box in the foreground has the terminal, with job control and its size; the shell has it back afterwards, also
    where no box was made."""
    shell = b.document("", argv=["/bin/bash", "--norc", "--noprofile", "-i"],
                       env=[PATH, "PS1=box-$((6 * 7))> ", "TERM=dumb"])
    t = Terminal(b, shell, b.document("", argv=["/bin/nothing"]),
                 b.document("trap 'echo caught' INT; echo runs; read x"))
    try:
        t.expect(b"box-42> ")
        t.size(41, 123)
        t.send(b"stty size\n")
        t.expect(b"41 123")
        t.send(b"sh -c 'echo $1; exec cat' sh runs\n")
        t.expect(b"\nruns")
        t.send(b"\x03")
        t.expect(b"box-42> ")
        t.send(b"sh -c 'echo $1; exec cat' sh runs\n")
        t.expect(b"\nruns")
        t.send(b"\x1a")
        t.expect(b"Stopped")
        t.expect(b"box-42> ")
        t.send(b"fg\n")
        t.expect(b"exec cat")  # its command
        t.send(b"line\n")
        t.expect(b"line\r\nline")  # by the terminal, and by cat
        t.send(b"\x03")
        t.expect(b"box-42> ")
        t.send(b"exit 7\n")
        t.expect(b"status 7")
        t.send(b"one\n")
        t.expect(b"read one")
        t.expect(b"execute /bin/nothing in the box")
        t.expect(b"status 125")
        t.send(b"two\n")
        t.expect(b"read two")
        t.expect(b"runs")
        t.send(b"\x03")
        t.expect(b"caught")
    finally:
        t.close()


def mounts(b):
    """Directories and files of the caller, read-write or read-only, at any depth and over what the box has."""
    shared, fixed = b.directory("shared"), b.directory("fixed")
    for d in (shared, fixed):
        with open(os.path.join(d, "file"), "w") as f:
            f.write("from the host\n")
        os.chown(os.path.join(d, "file"), b.uid, -1)
    m = [{"source": shared, "target": "/workspace"}, {"source": fixed, "target": "/a/b/c", "read_only": True},
         {"source": os.path.join(fixed, "file"), "target": "/etc/one/file", "read_only": True},
         {"source": fixed, "target": "/usr/local/two/three", "read_only": True}]
    for _ in range(2):
        got = b.lines("pwd; cat file /a/b/c/file /etc/one/file /usr/local/two/three/file; test -d /usr/local/lib; "
                      "echo $?; echo box >new; echo x 2>/dev/null >/a/b/c/new || echo refused",
                      mounts=m, directory="/workspace")
        equal(got, ["/workspace"] + ["from the host"] * 4 + ["0", "refused"])
    if b.uid != 0 and os.path.islink("/lib"):
        status, out, err = b.run(b.document("true", mounts=[{"source": fixed, "target": "/lib/two"}]))
        equal((status, out), (125, ""))
        equal("make /lib/two in the box: the directory belongs to the host's root" in err, True, err)
    with open(os.path.join(shared, "new")) as f:
        equal(f.read(), "box\n")


def planted(b):
    """Links that a box leaves in its root lead no mount of the next start to a file of the host."""
    victim, shared, root = b.directory("victim"), b.directory("shared"), b.directory("root")
    for up in ("", "/.."):  # "/.." would be the host's root, as long as that lies above the box's
        b.lines("rm -rf /workspace; ln -s %s%s /workspace" % (up, victim))
        for target in ("/workspace", "/workspace/x", "/workspace/x/y"):
            status, out, err = b.run(b.document("ls -la " + target, mounts=[{"source": shared, "target": target}]))
            equal((os.listdir(victim), status, "handrail-box:" in err), ([], 125, True), (out, err))
        for name in ("dev", "run", "proc"):
            os.symlink(up + victim, os.path.join(root, name))
            status, out, err = b.run(b.document("true", root=root))
            equal((os.listdir(victim), status, "handrail-box:" in err), ([], 125, True), (out, err))
            os.unlink(os.path.join(root, name))
    b.lines("rm -rf /mnt; ln -s %s /mnt" % victim)
    status, out, err = b.run(b.document("ls -la /mnt/x", mounts=[{"source": shared, "target": "/mnt/x"}]))
    equal((os.listdir(victim), status, "handrail-box:" in err), ([], 125, True), (out, err))


def in_chroot(without, root):
    """Lines of a shell, which bind the directories of / but one to their names below $1/ROOT, and run $2 there."""
    return ("for n in /*; do\n"
            "  if [ -L $n ]; then cp -P $n %s; elif [ -d $n ] && [ $n != %s ]; then\n"
            "    mkdir %s$n; mount --rbind $n %s$n; fi\ndone\nexec chroot %s $2" % (root, without, root, root, root))


def elsewhere(b, machine, lines, document):
    """Runs the lines in a namespace of mounts, whose directory MACHINE has a new file system, which is $PWD."""
    if os.geteuid() != 0:
        raise Skip("needs root: the test mounts a file system")
    return subprocess.run(["unshare", "-m", "sh", "-ec", "mount -t tmpfs machine $1; cd $1; " + lines, "sh", machine,
                           b.program], input=json.dumps(document), text=True, capture_output=True, timeout=PATIENCE,
                          check=False)


def linked_var(b):
    """Where the host's /var is a link, the box has the directories behind it, whatever an earlier start left."""
    machine = b.directory("machine")
    make = "mkdir -p data/var; mount --rbind /var data/var; ln -s /data/var var\n" + in_chroot("/var", ".")
    for _ in range(2):
        d = b.document("cat /var/lib/dpkg/status | wc -c; mkdir -p /data/var; rm -rf /data/var/lib; "
                       "ln -s /../etc /data/var/lib")
        p = elsewhere(b, machine, make, d)
        equal((p.returncode, p.stdout, p.stderr), (0, "%d\n" % os.stat("/var/lib/dpkg/status").st_size, ""))


def plain_chroot(b):
    """A chroot to a directory that is no mount has no boxes; the launcher and its check say why."""
    machine = b.directory("machine")
    for check in ("", " --check"):
        p = elsewhere(b, machine, "mkdir root\n" + in_chroot("-", "root") + check, b.document("true"))
        equal((p.returncode, "mount --rbind DIR DIR" in p.stderr), (125, True), p.stderr)


def foreign_root(b):
    """A system of one's own: its files and no others, and changes beside it."""
    root = b.directory("root")
    os.makedirs(os.path.join(root, "bin"))
    libs = subprocess.run(["ldd", "/bin/sh", "/bin/ls"], capture_output=True, text=True, check=True).stdout.split()
    for path in {w for w in libs if w.startswith("/") and not w.endswith(":")}:
        os.makedirs(os.path.join(root, os.path.dirname(path)[1:]), exist_ok=True)
        shutil.copy(path, os.path.join(root, path[1:]))
    for name in ("sh", "ls"):
        shutil.copy(os.path.realpath("/bin/" + name), os.path.join(root, "bin", name))
    os.chmod(root, 0o755)
    subprocess.run(["chown", "-R", "%d:%d" % (b.uid, b.uid), root], check=True)
    got = b.lines("ls / ; echo x >/bin/new; ls /bin", root=root)
    equal([n for n in got if n in ("usr", "etc", "home", "var")], [])
    equal(got[-3:], ["ls", "new", "sh"])
    equal(sorted(os.listdir(os.path.join(root, "bin"))), ["ls", "sh"])
    os.mkdir(os.path.join(root, "etc"), 0o755)
    os.chown(os.path.join(root, "etc"), b.uid, b.uid)
    for want in ("127.0.0.1\tnamed", "here"):
        equal(b.lines("while read -r x; do last=$x; done </etc/hosts; echo \"$last\"; echo here >/etc/hosts",
                      root=root, name="named"), [want])
    equal(os.listdir(os.path.join(root, "etc")), [])


def limits(b):
    """A limit holds, or the box is refused."""
    fork = ("import os, time\n"
            "n = 0\n"
            "try:\n"
            "    while n < 30:\n"
            "        if os.fork() == 0: time.sleep(1000)\n"
            "        n += 1\n"
            "except OSError as why: print(n, why.strerror)\n")
    d = b.document("python3 -c 'print(len(bytearray(200 << 20)))'; echo $?; python3 -c \"$PROGRAM\"",
                   env=[PATH, "PROGRAM=" + fork], limits={"memory_bytes": 64 << 20, "processes": 10})
    status, out, err = b.run(d)
    if b.uid != 0 or status == 125:
        equal((status, "cannot be enforced" in err), (125, True), err)
        if b.uid == 0:
            raise Skip("this machine has no control groups for memory and pids: %s" % err.strip())
        return
    equal(out.splitlines()[0] in ("137", "1"), True, out)  # killed, or a MemoryError
    equal(out.splitlines()[1], "8 Resource temporarily unavailable")  # beside two shells or programs
    equal(groups(d["name"]), [], "no group is left")


def errors(b):
    """What is wrong is named; nothing is left of a box that could not be made."""
    other = "/usr"
    if b.uid == 0:
        other = b.directory("other")
        os.chown(other, UID, -1)
    entered = b.directory("entered")
    os.chmod(entered, 0o711)
    link = os.path.join(b.top, "link")
    os.symlink(b.storage, link)
    broken = b.directory("broken")
    with open(os.path.join(broken, "layers"), "w"):
        pass
    for change, status, named in (
            ({"storage": other}, 125, "must belong to you"), ({"storage": entered}, 125, "no other account may enter"),
            ({"storage": link}, 125, "must be a directory"),
            ({"storage": broken}, 125, "in the storage: Not a directory"),
            ({"storage": "/nowhere/x"}, 125, "/nowhere/x"), ({"root": "/nowhere/y"}, 125, "/nowhere/y"),
            ({"mounts": [{"source": "/nowhere/z", "target": "/z"}]}, 125, "/nowhere/z"),
            ({"argv": ["/bin/nothing"]}, 125, "execute /bin/nothing"),
            ({"directory": "/nothing"}, 125, "enter /nothing"),
            ({"surprise": 1}, 2, "surprise"), ({"argv": []}, 2, "argv")):
        d = b.document("true", **change)
        got, out, err = b.run(d)
        equal((got, out, named in err, err.startswith("handrail-box: ") and err.count("\n") == 1),
              (status, "", True, True), (change, err))
        equal(groups(d["name"]), [], change)
    equal(b.run("no JSON")[0], 2)
    for args in (["--nothing"], ["--detach", "1"], ["a", "b"], ["--check", "--detach", "9"]):
        got, _, err = b.run("{}", *args)
        equal((got, err.startswith("usage: handrail-box")), (2, True), args)
    equal(b.run("{}", "--help")[:2][0], 0)


def checked(b):
    """--check explains a document and makes nothing."""
    status, out, err = b.run(b.document("true", network="host"), "--check")
    equal((status, err), (0, ""))
    equal(("uses the host's network" in out, "system calls fail" in out, os.listdir(b.storage)), (True, True, []))


def status_and_streams(b):
    """The program's status is the launcher's; it has its streams and no other descriptor."""
    status, out, err = b.run(b.document("echo out; echo err >&2; ls /proc/self/fd | wc -l; exit 7"))
    equal((status, out.split(), err), (7, ["out", "4"], "err\n"))  # and the directory that ls reads
    equal(b.run(b.document("sh -c 'kill -TERM $$'; exit $?"))[0], 128 + signal.SIGTERM)


def detached(b, answer=b"g"):
    """With --detach a box outlives the launcher, without its input, and does not exist for a caller who has died."""
    ours, theirs = socket.socketpair()
    d = b.document("test -c /dev/stdin && echo started; exec sleep 1000")
    p = b.start(d, "--detach", str(theirs.fileno()), pass_fds=[theirs.fileno()])
    theirs.close()
    told = json.loads(ours.makefile().readline())
    equal(sorted(told), ["groups", "lacks", "pid", "started"])
    equal(sorted(told["groups"]), sorted(groups(d["name"])))
    pid = told["pid"]
    if answer:
        ours.sendall(answer)
        equal(p.stdout.readline(), "started\n")
        equal((p.wait(timeout=PATIENCE), process.has_ended(pid)), (0, False))
        os.kill(pid, signal.SIGKILL)
    ours.close()
    equal(process.wait_gone(pid, PATIENCE), True)
    if not answer:
        equal((p.wait(timeout=PATIENCE), p.stderr.read()),
              (125, "handrail-box: the caller ended before the box was started\n"))
        equal(groups(d["name"]), [])
    for g in groups(d["name"]):
        os.rmdir(g)
    p.communicate()


def undocumented(b):
    """A launcher that gets no document prints nothing: its caller reports the reason."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        p = b.start("", "--detach", str(theirs.fileno()), pass_fds=[theirs.fileno()])
        equal((p.communicate(timeout=PATIENCE), p.returncode), (("", ""), 125))


def masks_without_sysfs(b):
    """A link in /sys, where that is a directory of the box, leads the masks to the box's files, not to the host's."""
    equal(b.lines("ls -d /etc/security; rm -rf /sys/kernel; ln -s /../etc /sys/kernel", network="host"),
          ["/etc/security"])
    equal(b.lines("ls /etc/security", network="host"), [])  # /sys/kernel/security is hidden


def ended_early(b):
    """A SIGTERM that comes before the program waits for it, since process 1 would lose it."""
    ours, theirs = socket.socketpair()
    d = b.document("")
    d["argv"] = ["/usr/bin/python3", "-c",
                 "import signal; print(int(signal.sigtimedwait([signal.SIGTERM], 0).si_signo))"]
    p = b.start(d, "--detach", str(theirs.fileno()), pass_fds=[theirs.fileno()])
    theirs.close()
    told = json.loads(ours.makefile().readline())
    os.kill(told["pid"], signal.SIGTERM)
    ours.sendall(b"g")
    equal(p.stdout.readline(), "%d\n" % signal.SIGTERM)
    equal((p.wait(timeout=PATIENCE), process.wait_gone(told["pid"], PATIENCE)), (0, True))
    ours.close()
    p.communicate()
    for g in groups(d["name"]):
        os.rmdir(g)


def delegated(b):
    """An ordinary user's box has control groups below the user's own, which freeze it; a limit that they do not have
    is refused."""
    top = two_groups()
    if os.geteuid() != 0:
        raise Skip("needs root: the test gives a control group to another account")
    if top is None:
        raise Skip("needs a kernel with control groups of version 2")
    own = os.path.join(top, "handrail-test-%d" % os.getpid())
    os.mkdir(own)
    try:
        for path in [own] + [os.path.join(own, "cgroup." + n) for n in ("procs", "subtree_control")]:
            os.chown(path, b.uid, -1)
        ours, theirs = socket.socketpair()

        def enter():
            with open(os.path.join(own, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))
            os.setresgid(b.uid, b.uid, b.uid)
            os.setresuid(b.uid, b.uid, b.uid)

        def start(document, *args, **popen):
            before, b.change = b.change, {"preexec_fn": enter}
            try:
                return b.start(document, *args, **popen)
            finally:
                b.change = before

        d = b.document(RUNS)
        p = start(d, "--detach", str(theirs.fileno()), pass_fds=[theirs.fileno()])
        theirs.close()
        told = json.loads(ours.makefile().readline())
        equal(told["groups"], [os.path.join(own, "handrail", d["name"])], told)
        ours.sendall(b"g")
        equal((p.stdout.readline(), p.wait(timeout=PATIENCE)), ("runs\n", 0))
        group = told["groups"][0]
        with open(os.path.join(group, "cgroup.freeze"), "w") as f:
            f.write("1")
        with open(os.path.join(group, "cgroup.procs")) as f:
            equal([int(n) for n in f], [told["pid"]])
        os.kill(told["pid"], signal.SIGKILL)
        equal(process.wait_gone(told["pid"], PATIENCE), True)
        ours.close()
        with open(os.path.join(own, "cgroup.controllers")) as f:
            lacks = "pids" not in f.read().split()
        p = start(b.document("echo limited", limits={"processes": 20}))
        out, err = p.communicate(timeout=PATIENCE)
        equal((p.returncode, out, "limit of pids cannot be enforced" in err),
              (125, "", True) if lacks else (0, "limited\n", False), err)
        wait_empty(own)
    finally:
        for path, _, _ in os.walk(own, topdown=False):
            os.rmdir(path)


def given_up(b):
    """The caller of --detach ends before it has answered: no box, no process, no group."""
    detached(b, answer=None)


def killed(b):
    """Whenever the launcher is killed, its box ends with it."""
    alive = []
    for i in range(40):
        d = b.document("exec sleep 1000")
        p = b.start(d)
        # at another step each time: the time that a start takes is divided
        try:
            p.wait(timeout=i * 0.001)
        except subprocess.TimeoutExpired:
            pass
        p.send_signal(signal.SIGSTOP)  # it has no more children from here on
        os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        inside = process.children(p.pid)
        p.kill()
        p.communicate()
        alive += [pid for pid in inside if not process.wait_gone(pid, PATIENCE)]
        equal(groups(d["name"]), [])
    equal(alive, [])
    equal(b.lines("echo next"), ["next"])


RUNS = "echo runs; exec sleep 1000"


def killed_untied(b):
    """A box whose process 1 has freed itself of the kernel's signal ends with a killed launcher, and with a killed
    guard."""
    free = ("import ctypes, os, signal\n"
            "if %d: os.setresuid(1, 1, 1)\n"
            "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"
            "print('runs', flush=True)\n"
            "signal.pause()\n" % (b.uid == 0))
    for victim in ("launcher", "guard"):
        d = b.document("exec python3 -c \"$PROGRAM\"", env=[PATH, "PROGRAM=" + free])
        p = b.start(d)
        equal(p.stdout.readline(), "runs\n")
        inside = process.children(p.pid)
        box = [pid for pid in inside if process.command_line(pid).startswith("python3")]
        guard = [pid for pid in inside if pid not in box]
        equal((len(box), len(guard)), (1, 1), inside)
        os.kill(p.pid if victim == "launcher" else guard[0], signal.SIGKILL)
        equal([pid for pid in inside if not process.wait_gone(pid, PATIENCE)], [], victim)
        p.communicate(timeout=PATIENCE)
        equal((groups(d["name"]), p.returncode), ([], -9 if victim == "launcher" else 137), victim)


def shared_storage(b):
    """One storage is for one box at a time; it is free when that box has ended, however it has."""
    p = b.start(b.document(RUNS))
    equal(p.stdout.readline(), "runs\n")
    status, out, err = b.run(b.document("echo second"))
    equal((status, out, err), (125, "", "handrail-box: another box uses the storage %s: end that box first, or give "
                                        "this one another directory\n" % b.storage))
    p.kill()
    p.communicate(timeout=PATIENCE)
    equal(b.lines("echo third"), ["third"])
    ours, theirs = socket.socketpair()
    d = b.document(RUNS)
    p = b.start(d, "--detach", str(theirs.fileno()), pass_fds=[theirs.fileno()])
    theirs.close()
    pid = json.loads(ours.makefile().readline())["pid"]
    ours.sendall(b"g")
    equal((p.stdout.readline(), p.wait(timeout=PATIENCE)), ("runs\n", 0))
    equal(b.run(b.document("echo fourth"))[0], 125)
    os.kill(pid, signal.SIGKILL)
    equal(b.lines("echo fifth"), ["fifth"])
    equal(p.communicate(timeout=PATIENCE), ("", ""))  # the guard has no stream of the launcher
    for g in groups(d["name"]):
        os.rmdir(g)
    ours.close()


CASES = [files, kept, first_start, own_files, hosts, sources, added, processes, boot_id, network, every_address,
         resolver, container, nested_root, fence, launchers_file, signals, terminal, mounts, planted,
         linked_var, plain_chroot, foreign_root, limits, errors, checked, status_and_streams, detached, undocumented,
         masks_without_sysfs, ended_early, delegated, given_up, killed, killed_untied, shared_storage]


sys.exit(main(CASES, once=((resolver, True), (linked_var, True), (plain_chroot, True), (masks_without_sysfs, False),
                           (delegated, False))))
