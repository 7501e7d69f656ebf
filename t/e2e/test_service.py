#!/usr/bin/env python3
"""handraild at work: pools that grow, reloads, logs, and what it does to and hears from its
surroundings."""

import http.client
import json
import os
import pwd
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, HANDRAILD, PATIENCE, ROOT, Libexec, Server, beside, gate, marker, need,
    need_entrance, need_root, run_tests)
from lib.tap import Skip, equal  # noqa: E402


# ---- pools ----

def pool_grows_and_shrinks():
    with Server(settings={"worker_idle_timeout": 1}) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        first = s.in_background("%s; %s; echo 0" % (began, hold))
        wait()
        others = [s.in_background("echo %d" % i) for i in range(1, 9)]
        # 9 requests wait for one shell, each with a worker of its own
        s.until("9 workers are busy", lambda: s.pool("action")["busy"] == 9)
        workers = s.workers("action")
        equal(len(workers) >= 9, True, "workers")
        go()
        equal([b.content() for b in [first] + others], [str(i) for i in range(9)])
        s.until("surplus workers end", lambda: s.pool("action")["workers"] == 2)
        equal(s.run("echo on"), "on")


def a_surplus_worker_ends_in_time():
    """Not at the second expiry of the timer, which is older than the worker's rest."""
    seconds = 4
    with Server(settings={"worker_idle_timeout": seconds, "log_level": "debug"}) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        busy = [s.in_background("%s; %s" % (began, hold))]
        wait()
        busy += [s.in_background("true") for _ in range(3)]
        s.until("4 workers are busy", lambda: s.pool("action")["busy"] == 4)
        go()
        for b in busy:
            b.content()
        s.until("surplus workers end", lambda: s.pool("action")["workers"] == 2)
        rested = [int(ms) for ms in re.findall(r"worker-action-\d+ ends after (\d+) ms without a request", s.log())]
        equal([seconds * 1000 <= ms < seconds * 1750 for ms in rested], [True] * len(rested), rested)
        equal(len(rested) > 0, True, "they are logged")


def one_client_grows_no_pool():
    with Server() as s:
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        before = {pool: s.workers(pool) for pool in ("control", "action")}
        for _ in range(2000):
            connection.request("GET", "/alive")
            connection.getresponse().read()
        body = json.dumps({"action": {"action": "run", "args": {"command": "true"}}})
        for _ in range(500):
            connection.request("POST", "/execute_action", body,
                               {"Content-Type": "application/json"})
            connection.getresponse().read()
        connection.close()
        equal({pool: s.workers(pool) for pool in before}, before)


def too_many_actions():
    with Server(settings={"action_workers_max": 3}) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        first = s.in_background("%s; %s; echo 0" % (began, hold))
        wait()
        waiting = [s.in_background("echo %d" % i) for i in (1, 2)]
        s.until("3 workers are busy", lambda: s.pool("action")["busy"] == 3)
        a = s.action("echo too many")
        equal((a.status, a.headers.get("Retry-After"), a.headers["Content-Type"]),
              (503, "1", "application/json"))
        a.json()
        equal(s.get("/alive").status, 200, "meanwhile")
        go()
        equal([b.content() for b in [first] + waiting], ["0", "1", "2"])


def static_session():
    with Server() as s:
        s.run("X=default; cd /usr")
        equal(s.run("echo [$X]; pwd", is_static=True), "[]\n" + s.work_dir)
        equal(s.run("pwd", is_static=True, cwd="/tmp"), "/tmp")
        equal(s.run("echo $X; pwd"), "default\n/usr")
        for pid in [p for p in s.pids("handrail-session") if p not in s.keeper()]:
            equal(process.wait_gone(pid, PATIENCE), True, "static keeper")
        s.until("its directory is gone",
                lambda: os.listdir(os.path.join(s.run_dir, "shell")) == ["default"])


def max_requests():
    with Server(settings={"worker_max_requests": 3}) as s:
        for _ in range(20):
            equal(s.get("/alive").status, 200)
        equal("signal" in s.log(), False, "ends in order")


# ---- reload ----

def reload():
    with Server(settings={"log_level": "info"}) as s:
        s.run("X=kept")
        hold, go = gate(s)
        b = s.in_background("%s; echo result" % hold)
        s.until("the action runs", lambda: s.pool("action")["busy"] == 1)
        old = set(s.pids("handrail-worker"))
        s.write_settings({"log_level": "debug", "control_workers": 4})
        s.send(signal.SIGHUP)
        if not s.wait_log(" reloaded"):
            raise AssertionError(s.log())
        for pid in old - set(s.workers("action")):
            equal(process.wait_gone(pid, PATIENCE), True, "old worker")
        equal(s.get("/alive").status, 200)
        equal(len(s.workers("control")), 4)
        go()
        equal(b.content(), "result", "across the reload")
        equal(s.run("echo $X"), "kept")


def reload_refused():
    with Server(settings={}) as s:
        old = set(s.pids("handrail-worker"))
        for n, bad in enumerate(['{"prot": 1}', "{", '{"access_log": "/x y"}', '{"log_level": "loud"}',
                                 '{"session_api_key_file": "/nonexistent"}']):
            s.write_settings(bad)
            s.send(signal.SIGHUP)
            if not s.wait_log("reload refused", count=n + 1):
                raise AssertionError(bad + "\n" + s.log())
        equal(set(s.pids("handrail-worker")) >= old, True)  # a spare one may have come
        equal(s.get("/alive").status, 200)


def reload_keys():
    s = Server(ready=None)
    keys = os.path.join(s.top, "keys")
    s.write_settings({"session_api_key_file": keys})
    s.args += ["--config", s.settings_file(), "--listen", "127.0.0.1"]
    with s:
        with open(keys, "w") as f:
            f.write("old\n")
        s.start()
        equal(s.get("/ready", X_Session_API_Key="old").status, 200)
        with open(keys, "w") as f:
            f.write("new\nother\n")
        s.reload()
        equal([s.get("/ready", X_Session_API_Key=k).status for k in ("old", "new", "other")],
              [403, 200, 200])


def many_reloads():
    """No request fails while the server reloads again and again."""
    with Server() as s:
        bad = []

        def ask():
            a = s.get("/alive")
            if a.status != 200:
                bad.append(a)
        with beside(ask):
            for n in range(10):
                s.send(signal.SIGHUP)
                if not s.wait_log(" reloaded", count=n + 1):
                    raise AssertionError(s.log())
        equal(bad, [])


def fcgi_get(path):
    """A GET as nginx passes it."""
    def record(kind, data):
        return struct.pack(">BBHHBx", 1, kind, 1, len(data), 0) + data

    def pair(name, value):
        return struct.pack(">BB", len(name), len(value)) + name + value
    params = (pair(b"REQUEST_METHOD", b"GET") + pair(b"REQUEST_URI", path) + pair(b"QUERY_STRING", b"") +
              pair(b"REQUEST_SCHEME", b"http") + pair(b"REQUEST_ID", b"0" * 32))
    return (record(1, struct.pack(">HB5x", 1, 0)) + record(4, params) + record(4, b"") + record(5, b""))


def last_request_of_a_worker():
    """A worker that is to end serves the connection it was woken for: no other worker was."""
    with Server() as s, socket.socket(socket.AF_UNIX) as c:
        one, *others = s.workers("control")
        stopped = [s.pid, one] + others
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            s.until("they stand still", lambda: all(process.stat_fields(p)[0] == b"T" for p in stopped))
            c.connect(os.path.join(s.run_dir, "fcgi", "control.sock"))
            c.sendall(fcgi_get(b"/alive"))
            os.kill(one, signal.SIGTERM)
            os.kill(one, signal.SIGCONT)
            equal(process.wait_gone(one, PATIENCE), True, "its end")
            equal(select.select([c], [], [], 0)[0], [c], "an answer before it")
            equal(b'{"status":"ok"}' in c.recv(65536), True)
        finally:
            for pid in [s.pid] + others:
                os.kill(pid, signal.SIGCONT)
        equal(s.get("/alive").status, 200)


def reopen_logs():
    s = Server(ready=None)
    log, access = os.path.join(s.top, "log"), os.path.join(s.top, "access")
    s.write_settings({"log_file": log, "log_format": "json", "access_log": access})
    s.args += ["--config", s.settings_file()]
    with s:
        s.start(ready=False)
        s.until("it listens", lambda: not s.refused())
        equal(s.get("/alive").status, 200)
        os.rename(log, log + ".1")
        os.rename(access, access + ".1")
        s.send(signal.SIGUSR1)
        s.until("new files", lambda: os.path.exists(log) and os.path.exists(access))
        # nginx makes the file, and then tells its worker
        s.until("nothing goes into the old one", lambda: s.get("/alive?after").status == 200 and
                os.path.getsize(access) > 0)
        equal(s.stop(), -signal.SIGTERM)
        with open(log) as f:
            messages = [json.loads(line)["message"] for line in f]
        equal([m for m in messages if m.startswith("ending")] != [], True, "new log")
        with open(access) as f:
            equal(json.loads(f.read().splitlines()[-1])["path"], "/alive")


def no_log_of_others():
    """An access log that is not this account's to write: a reload keeps nginx from it, and handraild's own log is
    opened again all the same."""
    s = Server(ready=None)
    log, place, victim = (os.path.join(s.top, name) for name in ("log", "place", "victim"))
    os.mkdir(place)
    s.write_settings({"log_file": log, "access_log": os.path.join(place, "access")})
    s.args += ["--config", s.settings_file()]
    with s:
        s.start(ready=False)
        s.until("it is ready", lambda: os.path.exists(log) and "ready: listening" in open_text(log))
        os.rename(log, log + ".1")
        os.chmod(place, 0o1777)
        s.send(signal.SIGUSR1)
        s.until("a new file", lambda: os.path.exists(log))
        s.until("the reason", lambda: "access log: " in open_text(log))
        os.symlink(victim, os.path.join(place, "link"))
        os.mkfifo(os.path.join(s.top, "fifo"))
        for path, why in ((os.path.join(place, "link"), "others may write it"),
                          (os.path.join(s.top, "fifo"), "is a FIFO")):
            s.write_settings({"log_file": log, "access_log": path})
            s.send(signal.SIGHUP)
            s.until("it is refused", lambda: re.search(
                "reload refused, nothing has changed: access log: .*" + why, open_text(log)))
        equal(os.path.exists(victim), False, "nginx has not opened it")
        equal(s.get("/alive").status, 200)
        s.stop()


def open_text(path):
    with open(path) as f:
        return f.read()


# ---- surroundings ----

def log_is_clean():
    """What children say reaches the log as one line each, with name and level, and harmless."""
    with Libexec(handrail_session=r'''printf '<4>warn\033[31m me\n\377<3>x\n<3>an error' >&2
                 exec "%s/handrail-session" "$@"
                 ''' % BUILDDIR) as lib:
        with Server(libexec=lib) as s:
            if not s.wait_log(r"Z warning session\[\d+\] warn\\x1b\[31m me$", 1) or \
               not s.wait_log(r"Z info session\[\d+\] \\xff<3>x$", 1):
                raise AssertionError(s.log())
            s.stop()
            if not s.wait_log(r"Z error session\[\d+\] an error", 1):
                raise AssertionError(s.log())
            equal(any("\x1b" in line for line in s.lines if line), False)


def deaf_reader_of_the_log():
    """Nobody reads our stderr: the server goes on."""
    s = Server(ready=None, args=["--log-level", "debug"])
    with s:
        pipe_r, pipe_w = os.pipe()
        s.popen = subprocess.Popen([HANDRAILD] + s.args, env=s.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=pipe_w, start_new_session=True)
        os.close(pipe_w)
        s.reader = threading.Thread(target=lambda: None)
        s.reader.start()
        s.until("it listens", lambda: not s.refused())
        for _ in range(600):  # nginx says a line for each at this level
            equal(s.get("/alive").status, 200)
        equal(s.stop(), -signal.SIGTERM)
        os.close(pipe_r)


def service_manager():
    with tempfile.TemporaryDirectory() as top:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(os.path.join(top, "notify"))
        os.chmod(os.path.join(top, "notify"), 0o777)
        sock.settimeout(PATIENCE)
        with sock, Server(env={"NOTIFY_SOCKET": os.path.join(top, "notify")}) as s:
            equal(sock.recv(4096).startswith(b"READY=1\n"), True)
            equal(s.run("echo [$NOTIFY_SOCKET]"), "[]")
            s.send(signal.SIGHUP)
            equal(sock.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC="), True)
            equal(sock.recv(4096), b"READY=1\n")
            s.send(signal.SIGTERM)
            equal(sock.recv(4096).startswith(b"STOPPING=1\n"), True)
            equal(s.wait(), -signal.SIGTERM)


def terminal():
    """Ctrl-C reaches handraild alone: the request under way is answered all the same."""
    s = Server(ready=None)
    with s:
        pid, master = pty.fork()
        if pid == 0:
            os.execve(HANDRAILD, [HANDRAILD] + s.args, s.env)
        text = b""
        while b" ready: " not in text:
            equal(bool(select.select([master], [], [], PATIENCE)[0]), True, text)
            text += os.read(master, 65536)
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo result" % (began, hold))
        wait()
        os.write(master, b"\x03")
        while b"ending (Interrupt)" not in text:
            equal(bool(select.select([master], [], [], PATIENCE)[0]), True, text)
            text += os.read(master, 65536)
        go()
        equal(b.content(), "result")
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGINT)
        os.close(master)


def process_one():
    """In a PID name space of its own: ends on SIGTERM though the kernel protects it, and reaps orphans."""
    need_root()
    unshare = need("unshare")
    if subprocess.run([unshare, "--pid", "--fork", "--mount-proc", "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no PID name space can be made here")
    s = Server(ready=None, prefix=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"])
    with s:
        s.start()
        equal(s.run("cat /proc/1/comm"), "handraild")
        s.run("for i in 1 2 3 4 5; do (setsid sh -c 'exit 3' &); done")
        began, wait = marker(s)
        s.run("(setsid sh -c '%s' &)" % began)
        wait()
        # one that has just ended may be there for a moment, its parent's death being on its way
        s.until("no zombie is left", lambda: s.run("ps -eo stat= | grep -c Z; true").strip() == "0")
        first = process.children(s.pid)[0]
        os.kill(first, signal.SIGTERM)
        equal(s.wait(), 128 + signal.SIGTERM)


def idle():
    """Asleep: no wake-up of any of our processes while nothing is asked. A machine that runs short of memory wakes the
    supervisor, which has to note that; what wakes up by itself does so in each of three looks."""
    with Server() as s:
        s.run("true")
        # the first of each pool are ready before the others begin, and one that gets ready wakes the supervisor
        s.until("all workers are ready", lambda: all(
            s.pool(name)["workers"] >= n for name, n in (("control", 2), ("files", 2), ("action", 2), ("live", 1))))
        ours = [s.pid] + s.pids("handrail-") + s.pids("nginx") + process.children(s.pids("nginx")[0])
        fds = [os.pidfd_open(p) for p in ours]
        # what the last request left to be done is over when two looks agree
        before, now = None, [process.context_switches(p) for p in ours]
        while before != now:
            select.select(fds, [], [], 0.5)
            before, now = now, [process.context_switches(p) for p in ours]
        for look in range(3):
            equal(select.select(fds, [], [], 3)[0], [], "deaths")
            before, now = now, [process.context_switches(p) for p in ours]
            if before == now:
                break
        equal([(process.command_line(p)[:40], b - a) for p, a, b in zip(ours, before, now) if a != b], [])
        for fd in fds:
            os.close(fd)


def descriptors():
    """Each process has the descriptors that it should, and no other."""
    with Server() as s:
        s.run("true")
        allowed = {0, 1, 2, 255}
        got = s.run("ls /proc/$$/fd").split()
        extra = {int(n) for n in got} - allowed
        equal(len(extra) <= 1, True, "the shell has %r" % got)
        if not ROOT:
            return  # they hide theirs
        for pid in s.pids("nginx"):
            names = [os.readlink("/proc/%d/fd/%s" % (pid, n)) for n in os.listdir("/proc/%d/fd" % pid)]
            equal([n for n in names if "memfd" in n], [], "nginx")
        keeper = s.keeper()[0]
        own = ("/memfd:handrail-session ", "/memfd:handrail-output ")  # for its successor
        for fd in os.listdir("/proc/%d/fd" % keeper):
            try:
                name = os.readlink("/proc/%d/fd/%s" % (keeper, fd))
                equal("memfd" in name and not name.startswith(own), False, "keeper: " + name)
            except FileNotFoundError:
                pass  # closed since


def sandbox_user_cannot_reach_us():
    need_root()
    name = "nobody"
    with Server(name=name, env={"RUNTIME_USERNAME": name, "USER": "root"}) as s:
        equal(s.run("id -un"), name)
        script = os.path.join(s.top, "try.py")
        with open(script, "w") as f:
            f.write("import os, socket, sys\n"
                    "for p in sys.argv[1:]:\n"
                    "    c = socket.socket(socket.AF_UNIX)\n"
                    "    try:\n        c.connect(p); print('connected', p)\n"
                    "    except PermissionError: print('refused')\n"
                    "    except OSError as e: print(e, p)\n"
                    "    try: os.listdir(os.path.dirname(p)); print('listed', p)\n"
                    "    except PermissionError: pass\n")
        os.chmod(script, 0o644)
        paths = [os.path.join(s.run_dir, p) for p in
                 ("session.sock", "fcgi/control.sock", "fcgi/files.sock", "fcgi/action.sock")]
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        equal(s.run("%s %s %s" % (python, script, " ".join(paths))), "\n".join(["refused"] * 4))
        equal(s.run("cat %s/www/connection_token 2>/dev/null | wc -c" % s.run_dir), "0")
        for kind in ("handraild", "handrail-worker"):
            pid = s.pid if kind == "handraild" else s.pids(kind)[0]
            out = s.run("cat /proc/%d/environ /proc/%d/mem >/dev/null 2>&1; ls /proc/%d/fd 2>&1; kill -0 %d 2>&1"
                        % (pid, pid, pid, pid))
            equal(("denied" in out, "permitted" in out), (True, True), kind + ": " + out)
        equal(s.run("ls %s/shell/default 2>&1 >/dev/null | grep -c denied" % s.run_dir), "1")


def any_user_id():
    """A container may have any user ID, whatever accounts its image has: none of it, and none of the name."""
    if not ROOT:
        raise Skip("needs root: only it becomes another user")
    need_entrance()
    taken = {p.pw_uid for p in pwd.getpwall()}
    uid = next(n for n in range(10001, 60000) if n not in taken)
    for name in ("openhands", "nobody"):
        with Server(user=uid, name=name, env={"RUNTIME_USERNAME": name}) as s:
            equal(s.run("id -u"), str(uid))
            equal(s.run("echo x >f && cat f"), "x")
            equal(s.stop(), -signal.SIGTERM)


def not_root():
    """Somebody's own account, with TMPDIR as the only place."""
    if not ROOT:
        raise Skip("all of this already runs without root")
    need_entrance()
    s = Server(user="nobody", ready=None)
    at = s.args.index("--run-dir")
    del s.args[at:at + 2]
    s.env["TMPDIR"] = s.top
    with s:
        s.start()
        made = [n for n in os.listdir(s.top) if n.startswith("handrail-")]
        equal(len(made), 1)
        equal(os.stat(os.path.join(s.top, made[0])).st_mode & 0o777, 0o700)
        equal(s.run("id -un"), "nobody")
        equal(s.stop(), -signal.SIGTERM)
        equal([n for n in os.listdir(s.top) if n.startswith("handrail-")], [])


def another_nginx():
    """--no-nginx with the printed parts in an operator's own configuration."""
    nginx = need("nginx")
    with Server(args=["--no-nginx"]) as s:
        parts = {}
        for part in ("http", "server"):
            parts[part] = os.path.join(s.top, part + ".conf")
            with open(parts[part], "w") as f:
                subprocess.run([HANDRAILD, "--print-nginx", part] + s.args, env=s.env, stdout=f,
                               check=True, timeout=PATIENCE)
        conf = os.path.join(s.top, "nginx.conf")
        with open(conf, "w") as f:
            f.write("daemon off; pid %(t)s/pid; error_log stderr; %(u)s events { } http { access_log off;\n"
                    "client_body_temp_path %(t)s/b; fastcgi_temp_path %(t)s/f; proxy_temp_path %(t)s/p;\n"
                    "scgi_temp_path %(t)s/s; uwsgi_temp_path %(t)s/w; include %(h)s;\n"
                    "server { listen 127.0.0.1:%(p)d; server_tokens off; include %(s)s; } }\n" % {
                        "t": s.top, "u": "user www-data www-data;" if ROOT else "", "h": parts["http"],
                        "s": parts["server"], "p": s.port})
        r, w = os.pipe()
        front = subprocess.Popen([nginx, "-e", "stderr", "-p", s.top, "-c", conf], stderr=w,
                                 start_new_session=True)
        os.close(w)
        try:
            s.until("their nginx listens", lambda: not s.refused() or front.poll() is not None)
            equal(s.get("/alive").body, b'{"status":"ok"}')
            equal(s.run("echo through"), "through")
            equal(s.get("/vscode/connection_token").json(), {"token": None})
            equal(s.get("/ready").json()["components"]["nginx"]["state"], "not ours")
        finally:
            front.send_signal(signal.SIGQUIT)
            front.wait(PATIENCE)
            os.close(r)
        equal(s.stop(), -signal.SIGTERM)


def one_that_is_not_ready():
    """Nothing of it is left by these tests."""
    before = process.children(os.getpid())
    with tempfile.TemporaryDirectory() as top:
        tempfile.tempdir = top
        try:
            Server(prefix=["sh", "-c", "echo said >&2; exec sleep 1000 2>&-"])
        except AssertionError as why:
            equal(str(why), "not ready\nsaid")
        else:
            raise AssertionError("a server was ready that is none")
        finally:
            tempfile.tempdir = None
        equal((process.children(os.getpid()), os.listdir(top)), (before, []))


TESTS = [pool_grows_and_shrinks, a_surplus_worker_ends_in_time, one_client_grows_no_pool, too_many_actions,
         static_session, max_requests, reload, reload_refused, reload_keys, many_reloads, last_request_of_a_worker,
         reopen_logs, no_log_of_others, log_is_clean,
         deaf_reader_of_the_log, service_manager, terminal, process_one, idle, descriptors,
         sandbox_user_cannot_reach_us, any_user_id, not_root, another_nginx, one_that_is_not_ready]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
