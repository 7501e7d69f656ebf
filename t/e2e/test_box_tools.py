#!/usr/bin/env python3
"""The tools that agents use every day, in a box: each does its work, or is refused with the words that the manual names
(doc/isolation.md, "Tools in a box"). As root there are four boxes: one whose commands are root's, one whose commands
are those of the account openhands, that of an ordinary user, and for some tools that of a user with subordinate ids."""

import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.box import need_launcher  # noqa: E402
from lib.hostbox import UID, Boxes, why_none  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

ROOT, OPENHANDS, USER, IDS = "root", "root, as openhands", "another account", "another account, with ids"
# Where programs of a box are. It has the host's in /usr.
PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"

# "serve COMMAND": serves the current directory at $URL, with TLS if there is a certificate, and runs the command.
# "terminal TEXT=KEYS... -- COMMAND": runs the command on a terminal, and types KEYS when TEXT is there.
HELPER = r'''
import http.server, os, pty, ssl, subprocess, sys, threading
def serve(command):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_): pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    scheme = "http"
    if os.path.exists("key"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("certificate", "key")
        server.socket, scheme = context.wrap_socket(server.socket, server_side=True), "https"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "%s://localhost:%d" % (scheme, server.server_address[1])
    return subprocess.run(["bash", "-c", command], env=dict(os.environ, URL=url)).returncode
def terminal(*words):
    at = words.index("--")
    pairs, argv = [w.split("=", 1) for w in words[:at]], words[at + 1:]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(argv[0], argv)
    shown = b""
    while True:
        try: data = os.read(fd, 4096)
        except OSError: break
        if not data: break
        shown += data
        if pairs and pairs[0][0].encode() in shown:
            os.write(fd, pairs.pop(0)[1].encode().decode("unicode_escape").encode())
            shown = b""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if pairs: print("never shown: %s; at the end: %r" % (pairs, shown[-300:]))
    return status if not pairs else 1
sys.exit(globals()[sys.argv[1]](*sys.argv[2:]))
'''

NO_RIGHTS = r"Operation not permitted|Permission denied|permission denied"
KERNEL = r'''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(0)
assert watch >= 0 and libc.inotify_add_watch(watch, b".", 0x100) >= 0
open("made", "w").close()
assert b"made" in os.read(watch, 4096)
import fcntl, multiprocessing, socket
from multiprocessing import shared_memory
lock = open("made", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
x = shared_memory.SharedMemory(create=True, size=4096)
x.close(); x.unlink()
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
s = socket.socket(socket.AF_UNIX); s.bind("socket"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("socket")
s = socket.socket(); s.bind(("127.0.0.1", 80)); s.close()
s = socket.socket(socket.AF_INET6); s.bind(("::1", 0))
'''
KERNEL_OF_PYTHON = r'''
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel()
said = []
reply = client.execute_interactive("print(6 * 7)", timeout=60,
                                   output_hook=lambda m: said.append(m["content"].get("text")))
manager.shutdown_kernel(now=True)
assert reply["content"]["status"] == "ok" and "42\n" in said, (reply, said)
'''
HOST_NAME = '''public class Name { public static void main(String[] a) throws Exception {
System.out.println(java.net.InetAddress.getLocalHost().getHostName()); } }'''
C = "printf 'int f(int x) { return x + 1; }\\nint main(void) { return f(1) - 2; }\\n' >x.c; "
PACKAGE = r'''mkdir -p p/DEBIAN p/usr/share/e2e-box
printf 'Package: e2e-box\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n' >p/DEBIAN/control
printf '#!/bin/sh\nset -e\nupdate-rc.d e2e-box defaults >/dev/null 2>&1 || true\necho "$1" >/var/lib/e2e-box\n' \
    >p/DEBIAN/postinst
chmod 755 p/DEBIAN/postinst
echo hi >p/usr/share/e2e-box/x
dpkg-deb -b p x.deb >/dev/null && dpkg -i x.deb && cat /usr/share/e2e-box/x && grep configure /var/lib/e2e-box
dpkg -P e2e-box && ! test -e /usr/share/e2e-box'''

# The rows: name, {program or path: package}, script, {box: what it says if it is refused there}.
TOOLS = [
    ("venv", {"python3": "python3-venv"}, "python3 -m venv v; v/bin/pip --version", {}),
    ("pip", {"pip3": "python3-pip", "/usr/lib/python3/dist-packages/wheel": "python3-wheel"},
     "mkdir m; echo 'from setuptools import setup; setup(name=\"e2ebox\", version=\"1\", scripts=[\"tool\"])' "
     ">m/setup.py; printf '#!/bin/sh\\necho hi\\n' >m/tool; pip3 -q install --no-index --no-build-isolation ./m; "
     "PATH=$PATH:~/.local/bin tool", {}),
    ("npm", {"npm": "npm", "node": "nodejs"},
     "mkdir a; echo '{\"name\":\"a\",\"version\":\"1.0.0\",\"bin\":\"x.js\"}' >a/package.json; "
     "printf '#!/usr/bin/env node\\nconsole.log(1)\\n' >a/x.js; npm init -y >/dev/null; npm install --no-audit ./a; "
     "npx --no-install a; npm install --no-audit -g --prefix ~/.npm ./a; ~/.npm/bin/a", {}),
    ("node", {"node": "nodejs"},
     "node -e 'new (require(\"worker_threads\").Worker)(\"\", {eval: true}); "
     "require(\"http\").createServer().listen(0, \"127.0.0.1\", function() { this.close(); })'", {}),
    ("git", {"git": "git"},
     "git init -q a; cd a; echo x >x; git add x; git commit -qm one; cd ..; git clone -q file://$PWD/a b; cd b; "
     "echo y >x; git commit -qam two; git push -q origin HEAD:other; git -C ../a log --all --oneline | grep -c .; "
     "cd ..; git clone -q --bare a c.git; git -C c.git update-server-info; "
     "python3 ~/helper serve 'git clone -q $URL/c.git d && cat d/x'", {}),
    ("gcc and make", {"gcc": "gcc", "make": "make"},
     C + "printf 'x: x.c\\n\\tgcc -g -o x x.c\\n' >Makefile; make -j2; ./x; gcc -fsanitize=address x.c; ./a.out", {}),
    ("cmake", {"cmake": "cmake", "gcc": "gcc"},
     C + "printf 'cmake_minimum_required(VERSION 3.5)\\nproject(x C)\\nadd_executable(x x.c)\\ninstall(TARGETS x)\\n' "
     ">CMakeLists.txt; cmake -B b . >/dev/null; cmake --build b; b/x; cmake --install b --prefix ~/.local", {}),
    ("make install", {"make": "make"},
     "printf 'install:\\n\\tinstall -D Makefile /usr/local/share/e2e-box/x\\n\\tinstall Makefile /usr/local/bin/e2e-box"
     "\\n' >Makefile; make install; cat /usr/local/share/e2e-box/x", {OPENHANDS: "Permission denied"}),
    ("curl, wget and http.server", {"curl": "curl", "wget": "wget"},
     "echo hi >x; python3 ~/helper serve 'curl -sSf $URL/x && wget -qO- $URL/x'", {}),
    ("TLS", {"curl": "curl", "openssl": "openssl"},
     "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out certificate -days 2 "
     "-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; "
     "python3 ~/helper serve 'curl -sSf --cacert certificate $URL/certificate'", {}),
    ("chromium with its sandbox", {"chromium": "chromium"},
     "chromium --headless --disable-gpu --no-first-run --user-data-dir=$PWD/p --dump-dom 'data:text/html,<p>hi' "
     "2>err | grep hi || { cat err; exit 1; }",
     dict.fromkeys((ROOT, USER), "Running as root without --no-sandbox is not supported")),
    ("chromium as root", {"chromium": "chromium"},
     "chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir=$PWD/p "
     "--dump-dom 'data:text/html,<p>hi' | grep hi", {}),
    ("ipykernel", {"/usr/lib/python3/dist-packages/ipykernel": "python3-ipykernel"},
     "cat >x.py <<'E'\n%sE\n/usr/bin/python3 x.py" % KERNEL_OF_PYTHON, {}),
    ("gdb", {"gdb": "gdb", "gcc": "gcc"},
     C + "gcc -g x.c -o x; gdb -batch -ex 'break f' -ex run -ex 'print x' ./x | grep '= 1'; "
     "sleep 60 & gdb -batch -p $! -ex bt | grep nanosleep; kill $!", {}),
    ("strace", {"strace": "strace"}, "strace -f -o o sh -c 'true; true'; grep execve o; strace -c true", {}),
    ("tmux", {"tmux": "tmux"}, "tmux new -d -s a 'sleep 60'; tmux ls; tmux kill-server", {}),
    ("screen", {"screen": "screen"}, "screen -D -m -S a touch made; [ -e made ]", {USER: ""}),
    ("docker", {"docker": "docker.io"}, "docker ps", dict.fromkeys(
        (ROOT, OPENHANDS, USER), "Cannot connect to the Docker daemon at|failed to connect to the docker API")),
    ("ssh", {"ssh": "openssh-client"},
     "ssh-keygen -q -t ed25519 -N '' -f k; eval $(ssh-agent); ssh-add k; ssh-agent -k; "
     "(ssh -o BatchMode=yes -p 9 127.0.0.1 true 2>&1 || true) | grep refused", {}),
    ("tar, gzip, xz and bzip2", {"xz": "xz-utils", "bzip2": "bzip2"},
     "seq 9 >x; for z in z J j; do tar c${z}f a x; tar xf a; done; gzip -k x; xz -k x; zcat x.gz; xzcat x.xz", {}),
    ("zip", {"zip": "zip", "unzip": "unzip"}, "echo x >x; zip -q x.zip x; rm x; unzip -q x.zip; cat x", {}),
    ("rsync", {"rsync": "rsync"}, "mkdir a; echo x >a/x; rsync -a a/ b; cat b/x", {}),
    ("sqlite3", {"sqlite3": "sqlite3"},
     "sqlite3 d 'pragma journal_mode=wal; create table t(a); insert into t values(7); select * from t' | grep 7", {}),
    ("perl and jq", {"perl": "perl", "jq": "jq"}, "perl -MSocket -e 'print 1'; echo '{\"a\": 1}' | jq .a", {}),
    ("go", {"go": "golang-go"}, "go version", {}),
    ("rust", {"rustc": "rustc"}, "echo 'fn main() {}' >x.rs; rustc x.rs; ./x", {}),
    ("java", {"java": "default-jdk-headless", "javac": "default-jdk-headless"},
     "cat >Name.java <<'E'\n%s\nE\n[ \"$(java Name.java)\" = \"$(hostname)\" ]" % HOST_NAME, {}),
    ("vim", {"vim.tiny": "vim-tiny"},
     "python3 ~/helper terminal 'f=ihello\\x1b:wq\\r' -- vim.tiny f; grep hello f", {}),
    ("nano", {"nano": "nano"},
     "python3 ~/helper terminal 'Exit=hello\\x18' 'Save modified=y' 'Name to Write=\\r' -- nano f; grep hello f", {}),
    ("less", {"less": "less"}, "seq 1000 >f; python3 ~/helper terminal '10=q' -- less f", {}),
    ("man", {"man": "man-db"}, "man -P cat man >/dev/null 2>err || { grep -q 'minimized\\|No manual entry' err; }", {}),
    ("ps and top", {"ps": "procps", "top": "procps"},
     "ps aux | grep -q '[b]ash'; top -bn1 | grep -q PID; pgrep bash; free; uptime; sleep 60 & "
     "until pkill -P $$ sleep; do sleep 0.1; done", {}),
    ("htop", {"htop": "htop"}, "python3 ~/helper terminal 'PID=q' -- htop", {}),
    ("sudo", {"sudo": "sudo"}, "sudo -n id -u",
     {OPENHANDS: "The \"no new privileges\" flag is set", USER: "sudo: "}),
    ("su", {"su": "util-linux"}, "su www-data -s /bin/sh -c 'id -un'",
     {OPENHANDS: "Authentication failure", USER: "cannot set groups: Operation not permitted"}),
    ("accounts", {"useradd": "passwd"},
     "useradd -m e2e-bob; su e2e-bob -s /bin/sh -c 'touch ~/x'; ls -l /home/e2e-bob/x",
     {OPENHANDS: "Permission denied", USER: "."}),
    ("the name of the machine", {"getent": "libc-bin"},
     "getent hosts $(hostname); hostname -f; echo '127.0.0.1 other' >>/etc/hosts; getent hosts other",
     {OPENHANDS: "/etc/hosts: Permission denied"}),
    ("crontab", {"crontab": "cron"}, "echo '* * * * * true' | crontab -; crontab -l",
     dict.fromkeys((OPENHANDS, USER), ".")),
    ("dpkg", {"dpkg": "dpkg"}, PACKAGE,
     {OPENHANDS: "requested operation requires superuser privilege",
      USER: "you do not have permission to lock the dpkg database"}),
    ("temporary files", {"python3": "python3"},
     "cp /bin/true /tmp/e2e-true; /tmp/e2e-true; rm /tmp/e2e-true; for d in /tmp /var/tmp /dev/shm /run/lock "
     "/var/lock; do echo x >$d/e2e-x; rm $d/e2e-x; done; test -d /var/run/lock; echo x >/dev/stdout; cat <(echo y); "
     "ls /dev/fd/", {}),
    ("mount", {"mount": "mount"}, "mkdir a b; mount --bind a b",
     dict.fromkeys((ROOT, OPENHANDS, USER), NO_RIGHTS + "|must be superuser")),
    ("namespaces", {"unshare": "util-linux"}, "[ $(unshare -r id -u) = 0 ]; unshare -rn true; unshare -rpf true", {}),
    ("mounts in a namespace", {"unshare": "util-linux"}, "mkdir a b; unshare -rm mount --bind a b",
     dict.fromkeys((ROOT, OPENHANDS, USER), NO_RIGHTS)),
    ("bubblewrap", {"bwrap": "bubblewrap"}, "bwrap --unshare-user --ro-bind / / true",
     dict.fromkeys((ROOT, OPENHANDS, USER), NO_RIGHTS)),
    ("ping", {"ping": "iputils-ping"}, "ping -c1 127.0.0.1",
     dict.fromkeys((ROOT, OPENHANDS, USER), "Operation not permitted")),
    ("ip and ss", {"ip": "iproute2", "ss": "iproute2"}, "ip addr | grep ' lo'; ip route; ss -tln", {}),
    ("locale and time", {"locale": "libc-bin"},
     "[ $LANG = C.UTF-8 ]; locale -a | grep -i c.utf; python3 -c 'print(\"\\u00e9\")'; TZ=UTC-9 date +%z | grep 0900; "
     "TZ=Asia/Tokyo date +%Z | grep JST; date -d yesterday", {}),
    ("permissions", {"python3": "python3"},
     "touch f; chmod 640 f; [ $(stat -c %a f) = 640 ]; mkdir d; chmod 1777 d; ln -s f l; ln f h; chown $(id -u) f; "
     "cp -a f g; install -m 600 f i; (umask 077; touch u; [ $(stat -c %a u) = 600 ])", {}),
    ("chown to another account", {"python3": "python3"}, "touch f; chown 1000:1000 f",
     {OPENHANDS: NO_RIGHTS, USER: "Invalid argument"}),
    ("setfacl", {"setfacl": "acl"}, "touch f; setfacl -m u:$(id -u):r f; getfacl f", {}),
    ("FIFOs", {"python3": "python3"}, "mkfifo p; echo hi >p & grep hi p", {}),
    ("inotify, sockets, locks and memory", {"python3": "python3"}, "cat >x.py <<'E'\n%sE\npython3 x.py" % KERNEL, {}),
    ("inotifywait", {"inotifywait": "inotify-tools"},
     "(inotifywait -e create . >o 2>err &) ; until grep -q established err; do touch other; done; touch new; "
     "until [ -s o ]; do :; done", {}),
    ("jobs", {"setsid": "util-linux"},
     "seq 8 | xargs -P4 -n1 echo | grep -c .; nohup true; setsid -w true; flock f echo ok; timeout 9 nice -n 5 true; "
     "sleep 60 & kill $!; wait $! || true; taskset -c 0 true || true", {}),
    ("ulimit", {"prlimit": "util-linux"}, "ulimit -n 256; ulimit -c 0; ulimit -v 9000000; ulimit -a; prlimit -n", {}),
    ("large files", {"fallocate": "util-linux"},
     "fallocate -l 300M f; mv f g; cp --reflink=auto --sparse=always g h; truncate -s 5G s; dd if=/dev/zero of=i bs=1M "
     "count=64 status=none; df .; du -s .", {}),
    ("systemctl", {"systemctl": "systemd"}, "systemctl status",
     dict.fromkeys((ROOT, OPENHANDS, USER), "has not been booted with systemd")),
    ("dmesg", {"dmesg": "util-linux"}, "dmesg", dict.fromkeys((ROOT, OPENHANDS, USER), "Operation not permitted")),
    ("lscpu", {"lscpu": "util-linux"}, "lscpu; nproc", {}),
]

# With the host's network: what needs other machines.
FAR = [
    ("apt-get", "deb.debian.org", 80, {"apt-get": "apt"},
     "export DEBIAN_FRONTEND=noninteractive; apt-get -q update; apt-get -qy install hello; hello | grep Hello",
     {USER: r"\(13: Permission denied\)"}),
    ("pip from its registry", "pypi.org", 443, {"pip3": "python3-pip"},
     "pip3 -q install six", {}),
    ("npm from its registry", "registry.npmjs.org", 443, {"npm": "npm"},
     "npm init -y >/dev/null; npm install --no-audit left-pad", {}),
]


# What a user's box does only with the user's subordinate ids.
WITH_IDS = ("screen", "sudo", "su", "accounts", "crontab", "chown to another account")


def missing(programs):
    for program, package in programs.items():
        if not os.path.exists(program) and not shutil.which(program, path=PLACES):
            raise Skip("there is no %s (package %s)" % (os.path.basename(program), package))


def tool(h, box, programs, script, refused):
    missing(programs)
    done = h("run", "cd $(mktemp -d) && (bash -e -o pipefail -c '%s') </dev/null" % script.replace("'", "'\\''"))
    text = done.stdout + done.stderr
    if box in refused:
        equal((done.returncode != 0, re.search(refused[box], text) is not None), (True, True), text)
    else:
        equal(done.returncode, 0, text)


def installed():
    """What is on the host of the package that a box installs."""
    return subprocess.run(["dpkg-query", "-W", "hello"], capture_output=True).stdout, os.path.exists("/usr/bin/hello")


def far(h, box, host, port, programs, script, refused):
    try:
        socket.create_connection((host, port), 10).close()
    except OSError:
        raise Skip("%s cannot be reached" % host)
    before = installed()
    tool(h, box, programs, script, refused)
    equal(installed(), before, "the host is as it was")


def open_box(h, box, *words):
    """Returns the type of the box: an ordinary user who runs the test may have subordinate ids."""
    if box == ROOT:
        h.env["RUN_AS_OPENHANDS"] = "false"
    if box == IDS:
        h.give_ids()
    h.ok("up", "-q", *words)
    h.file(HELPER, "cwd", "helper")
    h.ok("put", "helper", h.ok("run", "echo ~").strip() + "/helper")
    return IDS if box == USER and h.ok("run", "grep -c . /proc/self/uid_map") != "1\n" else box


def all_of(tap, box, function, rows, *words):
    uid = 0 if box in (ROOT, OPENHANDS) else os.geteuid() or UID
    rows = [r for r in rows if len(sys.argv) < 2 or r[0] in sys.argv[1:]]
    why = why_none(uid) if rows else None
    with Boxes(uid) as h:
        kind = box
        try:
            kind = open_box(h, box, *words) if rows and not why else box
        except Skip as missing_program:
            why = str(missing_program)
        for row in rows:
            name = "%s, %s" % (row[0], box)
            refused = row[-1]
            if kind == IDS:
                refused = {} if row[0] in WITH_IDS else {IDS: refused[USER]} if USER in refused else {}
            if why:
                tap.skip(name, why)
            else:
                tap.run(name, function, h, kind, *row[1:-1], refused)


def main():
    need_launcher()
    tap = Tap()
    for box in (ROOT, OPENHANDS, USER) if os.geteuid() == 0 else (USER,):
        all_of(tap, box, tool, TOOLS)
        if box != OPENHANDS:
            all_of(tap, box, far, FAR, "-s", "box.network=host")
    if os.geteuid() == 0:
        all_of(tap, IDS, tool, [r for r in TOOLS if r[0] in WITH_IDS])
    return tap.done()


sys.exit(main())
