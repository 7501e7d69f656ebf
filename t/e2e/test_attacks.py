#!/usr/bin/env python3
"""Attacks: on the key from inside the shell, and one of each kind that has broken servers like ours."""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    HANDRAILD, ONE_WORKER_EACH, PATIENCE, ROOT, BUILDDIR, Server, marker, need_root, run_tests, wait_all_up)
from lib.tap import Skip, equal  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


# ---- the key ----

class Guarded(Server):
    """A server with two keys, one of them from the environment or all from a file, that clients have
    used; and an attack from its shell."""

    def __init__(self, how, **kw):
        super().__init__(ready=None, **kw)
        self.secret = "k3y" + os.urandom(24).hex()
        self.audit = os.path.join(self.top, "log")
        os.mkdir(self.audit, 0o700)
        settings = dict(ONE_WORKER_EACH, log_file=os.path.join(self.audit, "handraild.log"), log_level="debug",
                        access_log=os.path.join(self.audit, "access.log"))
        if self.user:
            shutil.chown(self.audit, self.user)
        if how == "environment":
            self.env["SESSION_API_KEY"] = self.secret
        else:
            path = os.path.join(self.top, "keys")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.write("another-key\n%s\n" % self.secret)
            if self.user:
                shutil.chown(path, self.user)
            settings["session_api_key_file"] = path
        self.write_settings(settings)
        self.args += ["--config", self.settings_file(), "--listen", "127.0.0.1"]
        if self.user:
            shutil.chown(self.settings_file(), self.user)
        self.start(ready=False)
        self.until("it answers", lambda: not self.refused() and
                   self.get("/ready", X_Session_API_Key=self.secret).status == 200)
        self.header = {"X-Session-API-Key": self.secret}
        for _ in range(20):  # so that every worker has held it
            equal(self.get("/ready", X_Session_API_Key=self.secret).status, 200)
            self.request("POST", "/list_files", "{}", self.header)
            equal(self.get("/ready", X_Session_API_Key=self.secret + "x").status, 403)
        wait_all_up(self, self.header)  # one that begins does not hide yet

    def attack(self, *roots):
        """(what worked, what was read)"""
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "attacker.py")
        script, dump = os.path.join(self.top, "attacker.py"), os.path.join(self.top, "dump")
        shutil.copy(here, script)
        os.chmod(script, 0o644)
        with open(dump, "wb"):
            pass
        os.chmod(dump, 0o666)
        a = self.action("cd %s; env >e.env; %s %s %s %d %s >e.json 2>e.err; echo $?" % (
            self.work_dir, PYTHON, script, dump, self.pid, " ".join(roots)), self.header,
            timeout=4 * PATIENCE)  # it copies the memory of a dozen processes
        with open(os.path.join(self.work_dir, "e.err")) as f:
            equal((a.json()["content"], f.read()), ("0", ""), "the attacker's own errors")
        with open(os.path.join(self.work_dir, "e.json")) as f:
            done = json.load(f)
        with open(dump, "rb") as f:
            data = f.read()
        with open(os.path.join(self.work_dir, "e.env"), "rb") as f:
            data += f.read()
        return done, data

    def kinds(self):
        """pid -> which of our processes it is."""
        found = {self.pid: "handraild"}
        for pid in process.descendants(self.pid):
            name = os.path.basename(process.command_line(pid).split(" ")[0]).rstrip(":")
            if name.startswith(("handrail", "nginx")):
                found[pid] = name
        return found


def two_accounts(how):
    need_root()
    name = "nobody"
    with Guarded(how, name=name, env={"RUNTIME_USERNAME": name, "USER": "root"}) as s:
        shutil.chown(s.work_dir, name)
        equal(s.action("id -un", s.header).json()["content"], name)
        kinds = s.kinds()
        done, data = s.attack(s.run_dir, s.audit, s.top)
        equal(done["read"] > 10000, True, "the attacker read something: %r" % done["read"])
        equal(s.secret.encode() in data, False, "the key, in what the shell may read")
        for what in ("memory", "traced"):
            equal([kinds[pid] for pid in done[what] if pid in kinds], [], what)
        equal([p for p in done["descriptors"] if int(p.split("/")[2]) in kinds], [], "descriptors")
        equal([p for p in done["connected"] if p.startswith(s.top)], [], "sockets")
        equal([p for p in done["listed"] if p.startswith(os.path.join(s.run_dir, "fcgi"))], [], "listed")
        equal(s.get("/ready", X_Session_API_Key=s.secret).status, 200, "all is as before")
        equal(kinds.items() - s.kinds().items(), set(), "none is gone")
        s.stop()
        for top, _, names in os.walk(s.audit):
            for n in names:
                with open(os.path.join(top, n), "rb") as f:
                    equal(s.secret.encode() in f.read(), False, "the key in " + n)
        equal(s.secret in s.log(), False, "the key on standard error")


def key_of_the_environment():
    two_accounts("environment")


def key_of_a_file():
    two_accounts("file")


def one_account():
    """Without root the shell is the same user as we are. What holds the keys still cannot be read; that
    nginx, through which they come, can, is said in the manual."""
    if ROOT and not all(os.stat(d).st_mode & 1 for d in (BUILDDIR, os.path.dirname(BUILDDIR))):
        raise Skip("others may not enter the build directory")
    with Guarded("environment", user="nobody" if ROOT else None) as s:
        kinds = s.kinds()
        done, data = s.attack(s.run_dir)
        ours = [pid for pid, kind in kinds.items() if kind in ("handraild", "handrail-worker")]
        equal(len(ours) > 1, True)
        equal([kinds[pid] for pid in done["memory"] + done["traced"] if pid in ours], [], "memory")
        equal([p for p in done["descriptors"] if int(p.split("/")[2]) in ours], [], "descriptors")
        for part in data.split(b"\n==== "):
            if s.secret.encode() in part:
                name = part.split(b"\n")[0].decode()
                pid = re.match(r"(?:mem |/proc/)(\d+)", name)
                equal(kinds.get(int(pid.group(1)) if pid else 0), "nginx", "the key in " + name)


def the_attacker_can_find():
    """With root's rights the same attack has to succeed, or it proves nothing."""
    need_root()
    with Guarded("file") as s:
        kinds = s.kinds()
        done, data = s.attack(s.run_dir)
        equal(s.secret.encode() in data, True, "found")
        for what in ("memory", "traced"):
            equal({kinds.get(pid) for pid in done[what]} >= {"handraild", "handrail-worker"}, True, what)
        equal(len([p for p in done["connected"] if "/fcgi/" in p]) >= 3, True, "sockets")
        s.until("the workers are well", lambda: s.get("/alive").status == 200)


def root_without_ptrace():
    """As in a container: whoever is root there can neither look into the memory nor at the descriptors
    of what holds the keys."""
    need_root()
    drop = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    if shutil.which("setpriv") is None:
        raise Skip("needs setpriv: apt-get install util-linux")
    with Guarded("file") as s:
        for kind in ("handraild", "handrail-worker"):
            for pid in [p for p, k in s.kinds().items() if k == kind]:
                for words in (["head", "-c", "1", "/proc/%d/mem" % pid], ["cat", "/proc/%d/fd/0" % pid]):
                    done = subprocess.run(drop + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    equal((b"Permission denied" in done.stdout, done.returncode != 0), (True, True),
                          "%s %r: %r" % (kind, words, done.stdout))
                with open("/proc/%d/environ" % pid, "rb") as f:
                    equal(s.secret.encode() in f.read(), False, kind)


# ---- FastCGI ----

def record(kind, data, request=1, length=None):
    return struct.pack(">BBHHBB", 1, kind, request, len(data) if length is None else length, 0, 0) + data


BEGIN = record(1, struct.pack(">HB5x", 1, 0))


def bad_records():
    """What CVE-2025-23016 and its kin sent; a worker may close, not crash and not hang."""
    def pair(name, value):
        return struct.pack(">II", 0x80000000 | name, 0x80000000 | value)
    with Server() as s:
        before = sorted(s.workers("control"))
        path = os.path.join(s.run_dir, "fcgi", "control.sock")
        attacks = [
            BEGIN + record(4, pair(0x7FFFFFFF, 0x7FFFFFFF)) + record(4, b""),
            BEGIN + record(4, pair(0x7FFFFFFF, 1) + b"A" * 60000) + record(4, b"") + record(5, b""),
            BEGIN + record(4, pair(1, 0x7FFFFFFF) + b"A" * 60000) + record(4, b"") + record(5, b""),
            BEGIN + record(4, b"\x80\x00\x00") + record(4, b"") + record(5, b""),
            BEGIN + record(4, b"\x05\x05ab") + record(4, b"") + record(5, b""),
            BEGIN + record(4, b"") + record(5, b""),
            BEGIN + BEGIN + record(4, b"") + record(5, b""),
            record(1, b""), record(1, struct.pack(">HB5x", 77, 255)),
            record(9, b"\x0f\x00FCGI_MAX_CONNS", 0), record(99, b"x" * 1000, 0),
            b"\x07" + BEGIN[1:], b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 4000,
        ]
        for data in attacks:
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                c.settimeout(PATIENCE)
                try:
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
                    while c.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
            equal(s.get("/alive").body, b'{"status":"ok"}', data[:40])
        equal(sorted(s.workers("control")), before, "the same workers\n" + s.log())


def exact_paths():
    """No PATH_INFO, no splitting: what a line feed or a suffix defeats elsewhere (CVE-2019-11043)."""
    with Server() as s:
        for path in ("/alive/x", "/alive%0a", "/alive%0ax.php", "/alive;x", "/alive.php",
                     "/execute_action/..;/alive",
                     "/vscode/connection_token../secret", "/vscode/connection_token/../../www/connection_token",
                     "/vscode/connection_token%00", "/vscode/connection_token/", "/-/auth",
                     "/-/malformed", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/..\\..\\etc\\passwd",
                     "/@handrail_control"):
            a = s.get(path)
            equal(a.status in (307, 404, 400), True, "%s: %r" % (path, a))
            equal(b"root:" in a.body, False, path)


def configuration_uses_little():
    """None of the modules that nginx's own advisories are about, and no pattern matching."""
    with Server() as s:
        text = subprocess.run([HANDRAILD, "--print-nginx", "all"] + s.args, env=s.env, check=True,
                              stdout=subprocess.PIPE).stdout.decode()
    text = re.sub(r"#.*", "", text)
    for word in (r"rewrite\b", r"location\s+~", r"\bmap\s[^}]*~", r"slice\b", r"\bssi\b",
                 r"dav_methods",
                 r"\bmp4\b", r"\bperl\b", r"fastcgi_split_path_info", r"PATH_INFO", r"autoindex\s+on",
                 r"\bsub_filter\b",
                 r"fastcgi_cache\b", r"proxy_cache\b", r"resolver\b"):
        equal(re.findall(word, text), [], word)
    # a file by its own name, a tree for X-Accel-Redirect alone, or the page: off-by-slash needs both to end with one
    for name, inside in re.findall(r"location\s+((?:=\s+|\^~\s+)?\S+)\s*\{([^}]*)", text):
        for target in re.findall(r"\balias\s+([^;]+);", inside):
            tree = name == "/handrail/" or re.search(r"\binternal;", inside)
            tree = tree and name.endswith("/") and target.endswith("/")
            equal(name.startswith("=") or bool(tree), True, "alias in location " + name)
        if name.startswith("^~"):
            equal("fastcgi_pass" in inside, False, "a worker behind a whole tree: " + name)


# ---- heads ----

def heads():
    key = "correct-key"
    with Server(env={"SESSION_API_KEY": key}, args=["--listen", "127.0.0.1"]) as s:
        def status(*lines, method="GET", path="/ready", body=b""):
            head = "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % (method, path)
            said = s.raw(head.encode() + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)
            return int(said.split(b" ")[1])
        good = b"X-Session-API-Key: " + key.encode()
        equal(status(good), 200)
        for lines in ((), (b"X-Session-API-Key:",), (b"X-Session-API-Key:  ",), (b"X_Session_API_Key: correct-key",),
                      (b"X-Session-API-Key: correct-key\tx",), (b"X-Session-API-Key: CORRECT-KEY",),
                      (b"X-Session-API-Key: correct-ke",), (b"X-Session-API-Key: another-key", good),
                      (b"Proxy: x", b"HTTP_X_SESSION_API_KEY: correct-key"),
                      (b"X-Session-API-Key: " + b"a" * 60000,), (b"X" * 200 + b": correct-key",)):
            equal(status(*lines), 403, lines)
        equal(status(b"X-Session-API-Key: \0correct-key") in (400, 403), True, "NUL")
        equal(status(good, b"Proxy: http://evil", b"X" * 200 + b": y", b"Big: " + b"z" * 60000), 200)


def smuggling():
    """Where two parsers could disagree about the end of a request, it is refused; what follows it on
    the connection is not taken for another one."""
    inner = b"POST /list_files HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    with Server() as s:
        for lines in (
                (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
                (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
                (b"Content-Length: 5", b"Content-Length: 6"), (b"Content-Length: 5", b"Content-Length: 5"),
                (b"Content-Length: +5",), (b"Content-Length: 5,5",), (b"Content-Length: 0x5",),
                (b"Content-Length: -1",),
                (b"Content-Length : 5",), (b"Transfer-Encoding: xchunked",), (b"Transfer-Encoding: chunked, identity",),
                (b"Transfer-Encoding : chunked",), (b"Transfer-Encoding:\x0bchunked",),
                (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
                (b"Content-Length: 99999999999999999999",), (b" folded: x",), (b"Bad Name: x",), (b"No colon",)):
            # the folded line has to follow another header
            data = (b"POST /list_files HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n" +
                    b"".join(line + b"\r\n" for line in lines) + b"\r\n0\r\n\r\n" + inner)
            said = s.raw(data)
            equal((said.count(b"HTTP/1.1 "), said.split(b" ")[1]), (1, b"400"), lines)
        for chunks in (b"g\r\n", b"-1\r\n", b"5;\n", b"fffffffffffffffff\r\n", b"5\r\nabcdeXX"):
            said = s.raw(b"POST /list_files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                         b"Connection: close\r\n\r\n" + chunks + b"\r\n\r\n" + inner)
            equal((said.count(b"HTTP/1.1 "), said[9:10] in (b"4", b"")), (min(1, len(said)), True), chunks)
        equal(s.get("/alive").status, 200)


# ---- JSON ----

def json_bodies():
    with Server() as s:
        before = sorted(s.workers("action"))
        for body in (b"[" * 200000, b'{"a":' * 100000, b'{"action":' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
                     b'{"action":{"action":"run","args":{"command":"\\ud800"}}}',
                     b'{"action":{"action":"run","args":{"command":"a\\u0000b"}}}',
                     b'{"action":{"action":"run","args":{"timeout":1e999,"command":"true"},"timeout":1e999}}',
                     b'{"action":{"action":"run","args":{"command":"\xff\xfe"}}}',
                     b'{"action":{"action":"run","action":"read","args":{}}}', b"\0" * 1000, b'"' + b"a" * (1 << 20),
                     b"1" * 100000, b"-", b"nul", b'{"action":{"action":"run","args":' + b"9" * 5000 + b"}}",
                     b"\xef\xbb\xbf{}", b'{"action":NaN}'):
            a = s.request("POST", "/execute_action", body, {"Content-Type": "application/json"})
            equal(a.status in (200, 400, 422, 500), True, "%r: %r" % (body[:40], a))
            a.json()
        equal(s.run("echo still here"), "still here")
        equal(set(before) <= set(s.workers("action")), True, "the same workers\n" + s.log())


# ---- the shell ----

def descriptors_and_programs():
    """CVE-2024-21626, CVE-2019-5736: nothing leaks into the shell, and what runs outside of it cannot be
    written from inside."""
    need_root()
    with Server(name="nobody", env={"RUNTIME_USERNAME": "nobody", "USER": "root"}) as s:
        fds = {int(n) for n in s.run("ls /proc/$$/fd").split()}
        equal(len(fds - {0, 1, 2, 255}) <= 1, True, fds)
        for n in fds - {0, 1, 2, 255}:
            equal(s.run("readlink /proc/$$/fd/%d" % n).startswith(("pipe:", "socket:", "/dev/pts")), True, n)
        equal(s.run("ls /proc/self/fd | wc -l"), "4", "a command: 0, 1, 2 and the directory it reads")
        for pid in [s.pid] + s.pids("handrail") + s.pids("nginx"):
            for path in ("/proc/%d/exe" % pid, "/proc/%d/root/tmp/x" % pid, "/proc/%d/cwd/x" % pid):
                equal(s.run("{ : >%s; } 2>/dev/null; echo $?" % path), "1", "writing to " + path)


def terminal_answers():
    """A terminal that answers lets output type: device attributes, position, title, clipboard."""
    with Server() as s:
        questions = ("\\033[c\\033[>c\\033[=c\\033[5n\\033[6n\\033[18t\\033[21t"
                     "\\033]0;id\\007\\033]10;?\\007\\033]52;c;?\\007\\033P+q544e\\033\\\\\\033Z\\005")
        s.run("printf '%s'" % questions)
        equal(s.run("IFS= read -r -t 0.2 -n 100 got; printf '%s' \"$got\" | od -An -c"), "", "nobody typed")
        equal(s.run("printf 'a\\033]0;evil title\\007b\\033Pq;evil\\033\\\\c\\033_evil\\033\\\\d'"),
              "abcd", "control strings")
        equal(s.run("python3 - <<'E'\nimport fcntl, sys\ntry:\n    fcntl.ioctl(0, 0x5412, b'x')\n    print('typed')\n"
                    "except OSError as e:\n    print('refused')\nE\n") in ("refused", "typed"), True)
        equal(s.run("echo clean"), "clean", "the next command")


def forged_completion():
    """Output that looks like a prompt ends nothing."""
    with Server() as s:
        text = '\\n###PS1JSON###\\n{"exit_code": "42", "working_dir": "/forged"}\\n###PS1END###\\n'
        a = s.action("printf '%s'; sleep 0.3; echo really" % text)
        o = a.json()
        equal("really" in o["content"], True, "the whole output: %r" % o["content"])
        equal(o["extras"]["metadata"]["exit_code"], 0, "its own status")


def end_of_terminal():
    """All that was written before a shell ends is there."""
    with Server() as s:
        a = s.action("seq 1 2000 | tail -n 500; exit 3")
        equal(("1501" in a.body.decode(), "2000" in a.body.decode()), (True, True), a.body[-300:])
        equal(s.run("echo again"), "again")


def cut_connection():
    """A client that leaves does not end its command."""
    with Server() as s:
        began, wait = marker(s)
        proof = os.path.join(s.work_dir, "proof")
        body = json.dumps({"action": {"action": "run", "args": {
            "command": "%s; read -r line <%s; echo $line >%s" % (began, proof + ".gate", proof)}}}).encode()
        os.mkfifo(proof + ".gate")
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(b"POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body)
            wait()
        with open(proof + ".gate", "w") as f:
            f.write("went on\n")
        equal(s.run("cat %s" % proof), "went on")


TESTS = [key_of_the_environment, key_of_a_file, one_account, the_attacker_can_find,
         root_without_ptrace, bad_records, exact_paths,
         configuration_uses_little, heads, smuggling, json_bodies, descriptors_and_programs, terminal_answers,
         forged_completion, end_of_terminal, cut_connection]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
