#!/usr/bin/env python3
"""What another account of this machine does to who runs handrail here: it finds ports, plants links below /tmp, and
knows every name that is always the same. The account is a number that nothing else has."""

import glob
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import BUILD, Host  # noqa: E402
from lib.supervised import PATIENCE, Server, free_port, need, need_entrance, need_root, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

OTHER = 70000 + os.getpid()


def attack(port, mine, targets):
    """With the viewer's port and the files that it is after: what the other account sees of them."""
    seen, answers = [], []

    def ask(path):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        c.request("GET", path)
        r = c.getresponse()
        body = r.read().decode("latin-1")
        answers.append(r.status)
        if "base64" in body:
            seen.append([path, body])
        return body
    for name in ["/tmp/oh-server-url"] + glob.glob("/tmp/*/viewer-url") + glob.glob("/run/*/viewer-url"):
        try:
            with open(name) as f:
                text = f.read()
        except OSError:
            continue
        if ":%d" % port in text:
            seen.append([name, text])
    for n, target in enumerate(targets):
        for suffix in ("png", "jpg", "gif", "pdf"):
            link = "%s/%d.%s" % (mine, n, suffix)
            os.symlink(target, link)
            for path in (link, target):
                for base in ("", "/", "/view/..", "/00000000-0000-4000-8000-000000000000"):
                    ask(base + "/view?path=" + path)
    return {"uid": os.geteuid(), "seen": seen, "there": ask("/"), "answers": sorted(set(answers))}


def as_other(function, *args):
    """Its value. Nothing is executed or loaded: the account may not be let in to where Python is."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            text = json.dumps(function(*args))
            with open(w, "w") as f:
                f.write(text)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(w)
    with open(r) as f:
        text = f.read()
    equal(os.waitpid(pid, 0)[1], 0, "the other account's process")
    return json.loads(text)


class Attacker:
    """The other account, with a directory of its own that is not a sticky one."""

    def __enter__(self):
        need_root()
        self.top = tempfile.mkdtemp(prefix="e2e-other-")
        os.chmod(self.top, 0o755)
        os.chown(self.top, OTHER, OTHER)
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.top)

    def run(self, *argv):
        return subprocess.run(argv, user=OTHER, group=OTHER, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, universal_newlines=True, check=True, timeout=PATIENCE * 4).stdout

    def view(self, port, *targets):
        said = as_other(attack, port, self.top, targets)
        equal((said["uid"], said["there"]), (OTHER, '{"status":"File viewer server is running"}'))
        equal((said["seen"], said["answers"]), ([], [200, 403, 404]), "200 is of / alone")


def listeners(pid):
    """The ports on 127.0.0.1 of a process and of those that it started."""
    inodes = set()
    for p in [pid] + [int(p) for p in process.children(pid)]:
        for fd in os.listdir("/proc/%d/fd" % p):
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (p, fd))))
            except FileNotFoundError:
                continue
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    return {int(r[1].partition(":")[2], 16) for r in rows
            if r[1].startswith("0100007F:") and r[3] == "0A" and r[9] in inodes}


def is_viewer(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        c.request("GET", "/")
        return c.getresponse().read() == b'{"status":"File viewer server is running"}'
    finally:
        c.close()


def viewer_of(pid):
    (port,) = [p for p in listeners(pid) if is_viewer(p)]
    return port


def a_viewer_of_local():
    """The record has the session key; the link that leads to it is the other account's."""
    need_entrance()
    with Attacker() as a, Host() as h:
        h.ok("up", "-q")
        record = h.path("state", "default.json")
        for name in ("id.png", "id_rsa"):
            with open(os.open(h.path("home", name), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n")
        pid = h.record()["backend"]["pid"]
        port = viewer_of(pid)
        a.view(port, record, "/etc/shadow", h.path("home", "id.png"), h.path("home", "id_rsa"))
        # the owner, who reads its address, sees the picture and not the record
        url = h.ok("run", "cat %s/viewer-url" % run_dir(pid)).strip()
        equal(re.fullmatch(r"http://localhost:%d/[0-9a-f-]{36}" % port, url) is not None, True, url)
        equal("base64,iVBORw0KGgo=" in shown(url, h.path("home", "id.png")), True)
        equal("base64" in shown(url, record), False)


def run_dir(pid):
    return process.command_line(pid).partition("--run-dir ")[2].split(" ")[0]


def shown(url, path):
    host, _, base = url.partition("://")[2].partition("/")
    c = http.client.HTTPConnection("127.0.0.1", int(host.rpartition(":")[2]), timeout=PATIENCE)
    try:
        c.request("GET", "/%s/view?path=%s" % (base, path))
        return c.getresponse().read().decode()
    finally:
        c.close()


def a_viewer_of_the_fleet():
    need_entrance()
    with Attacker() as a, Fleet() as f:
        f.up("one")
        found = [p for p in process.all_pids() if process.command_line(p).startswith(f.env["HANDRAIL_SERVER"] + " ")
                 and f.top in process.command_line(p)]
        # a child has its parent's words until it executes its program
        (pid,) = [p for p in found if int((process.stat_fields(p) or [b"", b"0"])[1]) not in found]
        a.view(viewer_of(pid), f.path("fleet", "fleet.db"), "/etc/shadow",
               *[os.path.join(f.path("fleet", "sandboxes"), n) for n in os.listdir(f.path("fleet", "sandboxes"))])


# ---- links below a sticky directory ----

# In a mount namespace of its own, whose /tmp is empty: the other account turns the name over and over while root
# asks for ports.
PORTS = r"""
import os, subprocess, sys
other, handrail, tries = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
name, victim = "/tmp/openhands_port_locks", "/tmp/victim"
os.mkdir(victim, 0o755)
os.mkdir("/tmp/own", 0o755)
os.chown("/tmp/own", other, other)
r, w = os.pipe()
flip = os.fork()
if flip == 0:
    os.setgroups([])
    os.setgid(other)
    os.setuid(other)
    os.close(r)
    while True:
        for target in ("/tmp/nowhere", victim):
            try:
                os.symlink(target, "/tmp/own/link")
                os.rename("/tmp/own/link", name)
            except OSError:
                pass
            os.close(w) if w >= 0 else None
            w = -1
os.close(w)
os.read(r, 1)
said = ""
for _ in range(tries):
    said = subprocess.run([handrail, "doctor", "local"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True).stdout
os.kill(flip, 9)
os.waitpid(flip, 0)
st = os.stat(victim)
print("victim %o %d %s" % (st.st_mode & 0o7777, st.st_uid, os.listdir(victim)))
print("doctor", [line for line in said.split("\n") if "port" in line])
if os.path.islink(name):
    os.unlink(name)
os.umask(0o077)
for _ in range(2):
    subprocess.run([handrail, "doctor", "local"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("made %o" % (os.lstat(name).st_mode & 0o7777))
os.rmdir(name)
os.mkdir(name, 0o700)
os.chown(name, other, other)
subprocess.run([handrail, "doctor", "local"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("other's %o %d" % (os.lstat(name).st_mode & 0o7777, os.lstat(name).st_uid))
"""


def port_locks():
    need_root()
    need("unshare")
    with Host() as h:
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"', "sh",
                               sys.executable, "-c", PORTS, str(OTHER), os.path.join(BUILD, "handrail"), "60"],
                              env=dict(h.env, HOME="/", TMPDIR="/tmp", HANDRAIL_STATE_DIR="/tmp/state"),
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True,
                              timeout=PATIENCE * 8)
        lines = done.stdout.split("\n")
        equal((done.returncode, lines[0]), (0, "victim 755 0 []"), done.stdout)
        equal(lines[2:4], ["made 1777", "other's 700 %d" % OTHER], done.stdout)


def names_below_tmp():
    """A state directory, a workspace, a log, a run directory or a working directory in whose place, or on whose way,
    there is a link of the other account: refused by its name, and nothing is made or changed where it leads."""
    with Attacker() as a, Host(WORKSPACE_BASE="") as h:
        del h.env["WORKSPACE_BASE"]
        sticky, victim = h.path("sticky"), h.path("victim")
        os.mkdir(sticky)
        os.chmod(sticky, 0o1777)
        os.mkdir(victim, 0o700)
        for name in ("state", "work", "log", "run", "way", "gone"):
            target = {"log": victim + "/passwd", "gone": victim + "/new"}.get(name, victim)
            a.run("ln", "-s", target, "%s/%s" % (sticky, name))
        refused = "is a link of user %d" % OTHER
        for env in ({"HANDRAIL_STATE_DIR": sticky + "/state"}, {"HANDRAIL_STATE_DIR": sticky + "/way/state"},
                    {"HANDRAIL_STATE_DIR": sticky + "/gone"}, {"WORKSPACE_BASE": sticky + "/work"},
                    {"WORKSPACE_BASE": sticky + "/way/work"}):
            before = dict(h.env)
            h.env.update(env)
            done = h("up", "-q")
            equal((done.returncode != 0, refused in done.stderr), (True, True), "%r %s" % (env, done.stderr))
            h.env = before
        equal((os.stat(victim).st_mode & 0o7777, os.listdir(victim)), (0o700, []))
        equal(h.ok("ps").count("\n"), 1, "and nothing was started")
        server(h, "--run-dir", sticky + "/way/run", said=refused)
        server(h, "--run-dir", sticky + "/run", said="Not a directory|" + refused)
        server(h, "--config", settings(h, log_file=sticky + "/log"), said=refused)
        server(h, "--config", settings(h, log_file=sticky + "/way/log"), said=refused)
        for log in (sticky + "/log", sticky + "/way/log", sticky + "/new"):
            server(h, "--config", settings(h, access_log=log), said="access log: .*(%s|others may write it)" % refused)
        with Server(work_dir=h.path("own")) as s:
            equal(s.run("echo up"), "up")
        equal((os.stat(victim).st_mode & 0o7777, os.listdir(victim)), (0o700, []))
        # the original goes on where its working directory cannot be had, and so do we
        working(h, sticky + "/work", refused)
        working(h, sticky + "/way/deep", refused)
        equal((os.stat(victim).st_mode & 0o7777, os.listdir(victim)), (0o700, []))


def settings(h, **values):
    path = h.path("settings.json")
    with open(path, "w") as f:
        json.dump(values, f)
    return path


def server_words(work):
    return [os.path.join(BUILD, "handraild"), str(free_port()), "--working-dir", work, "--username", "root",
            "--user-id", "0"]


def server(h, *words, said):
    done = subprocess.run(server_words(h.path("cwd")) + list(words), env=dict(h.env, SU_TO_USER="false"), cwd="/",
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True, timeout=PATIENCE)
    equal((done.returncode != 0, re.search(said, done.stderr) is not None), (True, True), done.stderr)


def working(h, work, said):
    s = Server(ready=None, run_dir=h.path("w-run"))
    s.args[2] = work
    equal(s.args[1], "--working-dir")
    with s:
        s.start(ready=False)
        equal(s.wait_log(said) is not None, True, s.log())
        s.popen.send_signal(signal.SIGTERM)
        s.wait()
        shutil.rmtree(s.run_dir, ignore_errors=True)


TESTS = [a_viewer_of_local, a_viewer_of_the_fleet, port_locks, names_below_tmp]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
