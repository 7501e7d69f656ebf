#!/usr/bin/env python3
"""handraild with its real children: start, end, and every kind of death. After each test no process,
no socket and no file of the server may be left."""

import ctypes
import http.client
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    BUILDDIR, HANDRAILD, PATIENCE, ROOT, Libexec, Server, beside, gate, kill_wait,
    marker, run_tests)
from lib.tap import Skip, equal  # noqa: E402


# ---- start ----

def serves():
    with Server() as s:
        a = s.get("/alive")
        equal((a.status, a.body, a.headers["Content-Type"]),
              (200, b'{"status":"ok"}', "application/json"))
        a = s.get("/ready")
        equal(a.status, 200)
        ready = a.json()
        equal((ready["status"], ready["reason"]), ("ready", None))
        for part in ("session", "nginx", "pool_control", "pool_files", "pool_action"):
            equal(ready["components"][part]["state"], "ready", part)
        equal(s.run("echo hello; pwd"), "hello\n" + s.work_dir)
        equal(s.stop(), -signal.SIGTERM)
        equal(s.refused(), True, "port")


def port_opens_last():
    with Libexec(handrail_session='cat "$HOME/go"; exec "%s/handrail-session" "$@"\n' % BUILDDIR) as lib:
        s = Server(libexec=lib, ready=None)
        os.mkfifo(os.path.join(s.work_dir, "go"))
        with s:
            s.start(ready=False)
            with open(os.path.join(s.work_dir, "go"), "w"):  # the keeper has started, is not ready
                equal(s.refused(), True, "port before the shell is ready")
            if not s.wait_log(" ready: "):
                raise AssertionError(s.log())
            equal(s.get("/alive").status, 200)


def start_fails(status, pattern, **kw):
    s = Server(ready=None, **kw)
    with s:
        s.start(ready=False)
        equal(s.wait(), status, "status\n" + s.log())
        if not s.wait_log(pattern, 1):
            raise AssertionError("no %r in\n%s" % (pattern, s.log()))


def reason_beside_the_file(status, pattern, **kw):
    """With `log_file` the reason is both in the file and on standard error."""
    s = Server(ready=None, **kw)
    s.write_settings({"log_file": os.path.join(s.top, "log")})
    s.args += ["--config", s.settings_file()]
    with s:
        s.start(ready=False)
        equal(s.wait(), status, "status\n" + s.log())
        with open(os.path.join(s.top, "log")) as f:
            equal([bool(re.search(pattern, text)) for text in (f.read(), s.log())], [True, True], s.log())


def reason_at_the_end():
    """A log is often shown by its end: there the reason is, too, behind the ends of all processes."""
    with Libexec(handrail_session="echo no shell here >&2; exit 7\n") as lib:
        s = Server(ready=None, libexec=lib)
        with s:
            s.start(ready=False)
            equal(s.wait(), 3, s.log())
            last = [line for line in s.lines if line is not None][-1]
            equal("handraild exits without having started: the keeper of the shell ended: " in last, True, s.log())
            equal("exit 7" in last, True, last)


def refusals():
    busy = socket.socket()
    busy.bind(("127.0.0.1", 0))
    busy.listen()
    with busy:
        start_fails(1, "already in use", port=busy.getsockname()[1])
        reason_beside_the_file(1, "already in use", port=busy.getsockname()[1])
    start_fails(1, "Plugin nope not found", args=["--plugins", "jupyter", "nope"])
    start_fails(2, "error: unrecognized arguments: --nope", args=["--nope"])
    start_fails(2, "error: .*unknown key \"prot\"; did you mean \"port\"", settings={"prot": 1})
    start_fails(2, "no session key", args=["--listen", "0.0.0.0"])
    start_fails(3, "NO_CHANGE_TIMEOUT_SECONDS", env={"NO_CHANGE_TIMEOUT_SECONDS": "soon"})
    start_fails(3, "RUNTIME_MAX_MEMORY_GB", env={"RUNTIME_MAX_MEMORY_GB": "1.5"})
    start_fails(3, "browsergym_eval_env is set",
                args=["--browsergym-eval-env", "x", "--no-enable-browser"])
    start_fails(3, "no-such-nginx", settings={"nginx": "/nonexistent/no-such-nginx"})
    with Libexec(handrail_session='echo "failed no shell today" >&3; cat <&4\n') as lib:
        start_fails(3, "no shell today", libexec=lib)
    with Libexec(handrail_session="exit 7\n") as lib:
        start_fails(3, "exit 7", libexec=lib)
        reason_beside_the_file(3, "without having started: .*exit 7", libexec=lib)
    with Libexec(handrail_worker="echo broken >&2; exit 9\n",
                 handrail_session="cat <&0; sleep 600\n") as lib:
        start_fails(3, "workers end as soon as they start", libexec=lib)


def way_barred():
    """A run directory that an account cannot enter is refused before anything starts; the error names both."""
    if not ROOT:
        raise Skip("needs root: nginx has an account of its own only then")
    nobody = {"RUNTIME_USERNAME": "nobody", "USER": "root"}
    for name, env, role in ((None, {}, "nginx"), ("nobody", nobody, "the shell")):
        for inner in ("run", "a/b/run"):
            barred = tempfile.mkdtemp(prefix="e2e-sup-")  # mode 0700
            try:
                os.makedirs(os.path.join(barred, os.path.dirname(inner)), exist_ok=True)
                with Server(run_dir=os.path.join(barred, inner), ready=None, name=name, env=env,
                            args=["--listen", "127.0.0.1"]) as s:
                    s.start(ready=False)
                    equal(s.wait(), 3, s.log())
                    line = "%s: the account [a-z-]+ of %s cannot enter" % (barred, role)
                    equal(re.search(line, s.log()) is not None, True, s.log())
            finally:
                shutil.rmtree(barred)


def files_barred():
    """The log names the account and the directory that keeps it from the installed files."""
    if not ROOT:
        raise Skip("needs root: nginx has an account of its own only then")
    with Libexec() as lib:
        www = os.path.join(lib, "www")
        os.mkdir(www)
        os.chmod(lib, 0o700)
        env = {"RUNTIME_USERNAME": "nobody", "USER": "root", "HANDRAIL_WWWDIR": www}
        with Server(libexec=lib, name="nobody", env=env, args=["--listen", "127.0.0.1", "--plugins", "jupyter"]) as s:
            for missing, account, role, path in (("plugins", "nobody", "the shell", lib),
                                                 ("web page", "www-data", "nginx", www)):
                equal("no %s: %s, the account of %s, cannot enter %s, which leads to %s"
                      % (missing, account, role, lib, path) in s.log(), True, s.log())


def way_by_group():
    """An account that enters by its group or by a list of access rights is not refused, whatever the mode is."""
    if not ROOT:
        raise Skip("needs root: nginx has an account of its own only then")
    nginx = pwd.getpwnam("www-data")
    way = tempfile.mkdtemp(prefix="e2e-sup-")
    try:
        os.chown(way, 0, nginx.pw_gid)
        os.chmod(way, 0o750)
        with Server(run_dir=os.path.join(way, "run")) as s:
            equal(s.run("echo in"), "in")
    finally:
        os.rmdir(way)


def no_working_dir():
    s = Server(ready=None)
    with s:
        at = s.args.index("--working-dir")
        del s.args[at:at + 2]
        s.start(ready=False)
        equal(s.wait(), 3)


def one_server_a_directory():
    with Server() as s:
        second = Server(run_dir=s.run_dir, ready=None)
        second.start(ready=False)
        equal(second.wait(), 1)
        if not second.wait_log("in use by a running handraild \\(process %d\\)" % s.pid, 1):
            raise AssertionError(second.log())
        shutil.rmtree(second.top)
        equal(s.get("/alive").status, 200)


def help_and_version():
    for word, text in (("--help", b"--working-dir DIR"), ("-h", b"usage:"), ("--version", b"handraild")):
        r = subprocess.run([HANDRAILD, word], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        equal((r.returncode, text in r.stdout, r.stderr), (0, True, b""), word)


# ---- end ----

def request_under_way_is_answered():
    with Server() as s:
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo late" % (began, hold))
        wait()
        s.send(signal.SIGTERM)
        if not s.wait_log("ending"):
            raise AssertionError(s.log())
        # nginx has its copy of the socket until it sees the signal
        s.until("connections are refused", s.refused)
        go()
        equal(b.content(), "late")
        equal((s.wait(), "the time to stop is over" in s.log()), (-signal.SIGTERM, False), "there is no limit")


def second_signal_cuts():
    with Server() as s:
        began, wait = marker(s)
        b = s.in_background("%s; sleep 600" % began)
        wait()
        s.send(signal.SIGINT)
        s.wait_log("ending")
        s.send(signal.SIGINT)
        equal(s.wait(), -signal.SIGINT)
        b.join(PATIENCE)
        equal(b.is_alive(), False)


def stop_timeout_cuts():
    with Server(settings={"stop_timeout": 1}) as s:
        began, wait = marker(s)
        s.in_background("%s; sleep 600" % began)
        wait()
        equal(s.stop(), -signal.SIGTERM)
        if not s.wait_log("the time to stop is over", 1):
            raise AssertionError(s.log())


def stop_while_starting():
    with Libexec(handrail_session='echo >"$HOME/began"; exec sleep 600\n') as lib:
        s = Server(libexec=lib, ready=None)
        with s:
            os.mkfifo(os.path.join(s.work_dir, "began"))
            s.start(ready=False)
            with open(os.path.join(s.work_dir, "began")) as f:
                f.read()
            equal(s.stop(), -signal.SIGTERM)


def strays_are_ended():
    with Server() as s:
        began, wait = marker(s)
        # deaf to everything but SIGKILL, without terminal, no child of the shell any more
        s.run("(trap '' TERM HUP INT; setsid sh -c '%s; while :; do sleep 600; done' "
              "</dev/null >/dev/null 2>&1 &)" % began)
        wait()
        equal(s.stop(), -signal.SIGTERM)  # and the context manager looks for what is left


def quit_is_at_once():
    with Server() as s:
        began, wait = marker(s)
        s.in_background("%s; sleep 600" % began)
        wait()
        equal(s.stop(signal.SIGQUIT), -signal.SIGQUIT)


# ---- deaths ----

def idle_worker():
    with Server() as s:
        for pool in ("control", "files", "action"):
            for pid in s.workers(pool):
                kill_wait(pid)
        equal(s.get("/alive").status, 200)
        equal(s.run("echo on"), "on")


def busy_worker():
    """The request is asked again of another worker and joins the command: it runs once."""
    with Server(settings={"action_workers": 1}) as s:
        began, wait = marker(s)
        hold, go = gate(s)
        count = os.path.join(s.work_dir, "count")
        before = set(s.workers("action"))
        b = s.in_background("echo x >>%s; %s; %s; echo result" % (count, began, hold))
        wait()
        for pid in before:
            kill_wait(pid)
        if not s.wait_log("worker-action-.* ended after .*signal 9", count=len(before)):
            raise AssertionError(s.log())
        go()
        equal(b.content(), "result")
        with open(count) as f:
            equal(f.read(), "x\n", "times the command ran")




def need_comes_first():
    """A request that stays gives its pool a second worker, before those start that nothing needs yet. A machine under
    load may be late for that."""
    for _ in range(3):
        with Server() as s:
            began, wait = marker(s)
            hold, go = gate(s)
            b = s.in_background("%s; %s; echo result" % (began, hold))
            wait()
            s.until("a second worker", lambda: len(s._workers("action")) == 2)
            early = not s._workers("files")
            go()
            equal(b.content(), "result")
            equal(len(s.workers("files")) > 0, True, "the others follow")
        if early:
            return
    raise AssertionError("all others were started first")


def nginx_worker():
    with Server() as s:
        for pid in process.children(s.pids("nginx")[0]):
            kill_wait(pid)
        equal(s.run("echo on"), "on")


def nginx_master():
    with Server() as s:
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo result" % (began, hold))
        wait()
        master = s.pids("nginx")[0]
        kill_wait(master)
        equal(s.get("/alive").status, 200, "at once")
        if not s.wait_log("nginx ended"):
            raise AssertionError(s.log())
        go()
        equal(b.content(), "result", "what the orphan had in hand")
        equal(s.get("/alive").status, 200)


def nginx_master_and_stop():
    """The orphan's request is waited for at the end as any other."""
    with Server() as s:
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo result" % (began, hold))
        wait()
        kill_wait(s.pids("nginx")[0])
        s.wait_log("nginx ended")
        s.send(signal.SIGTERM)
        s.wait_log("ending")
        go()
        equal(b.content(), "result")
        equal(s.wait(), -signal.SIGTERM)


def keeper():
    with Server() as s:
        s.run("X=before")
        old = s.keeper()[0]
        kill_wait(old)
        equal(s.run("echo [$X]"), "[before]", "the same shell")
        equal(s.get("/ready").status, 200)
        equal(s.keeper() != [old], True)


def supervisor():
    """Shell, jobs and the request under way survive; the next server goes on with them."""
    with Server() as s:
        s.run("X=kept; cd /usr")
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo result" % (began, hold))
        wait()
        shell = s.keeper()[0]
        kill_wait(s.pid)
        s.wait()
        go()
        equal(b.content(), "result", "the request under way")
        s.start()
        if not s.wait_log("continuing with the shell .*process %d" % shell, 1):
            raise AssertionError(s.log())
        equal(s.run("echo $X; pwd"), "kept\n/usr")
        # the adopted one dies in its turn, and then both at once
        kill_wait(shell)
        equal(s.run("echo [$X]"), "[kept]")
        equal(len(s.keeper()), 1)
        shell = s.keeper()[0]
        kill_wait(s.pid)
        s.wait()
        kill_wait(shell)
        s.start()
        equal(s.run("echo [$X]"), "[]")


def supervisor_with_requests_in_the_queue():
    """What waits for a worker when the supervisor dies is answered by those that are left."""
    with Server() as s:
        def connections():
            with open("/proc/net/unix") as f:
                return sum(line.rstrip().endswith("/control.sock") and s.top in line and
                           not int(line.split()[3], 16) & 0x10000 for line in f)  # that one listens

        s.until("the server's own question is done with", lambda: connections() == 0)
        stopped, answers = s.workers("control"), []
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        asking = [threading.Thread(target=lambda: answers.append(s.get("/server_info").status))
                  for _ in range(8)]
        for one in asking:
            one.start()
        s.until("all of them wait", lambda: connections() >= len(asking))
        kill_wait(s.pid)
        s.wait()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for one in asking:
            one.join(PATIENCE)
        equal(answers, [200] * len(asking))
        s.start()  # which ends the keeper with the rest


def supervisor_and_stop():
    with Server() as s:
        s.run("X=kept")
        kill_wait(s.pid)
        s.wait()
        s.start()
        equal(s.stop(), -signal.SIGTERM)  # ends the adopted keeper too


def supervisor_with_other_settings():
    with Server() as s:
        s.run("X=kept")
        shell = s.keeper()[0]
        kill_wait(s.pid)
        s.wait()
        s.env["NO_CHANGE_TIMEOUT_SECONDS"] = "77"
        s.start()
        equal(process.wait_gone(shell, PATIENCE), True, "the old shell")
        equal(s.run("echo [$X]"), "[]")


def upgrade():
    """SIGUSR2: another image of the program, the same shell and process; no connection is refused,
    and a command under way is answered."""
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        key = {"X-Session-API-Key": "k"}
        equal(s.run("X=kept; cd /usr; umask; ulimit -n", headers=key).count("\n"), 1)
        before = s.run("umask; ulimit -n; cat /proc/$PPID/oom_score_adj", headers=key)
        began, wait = marker(s)
        hold, go = gate(s)
        b = s.in_background("%s; %s; echo result" % (began, hold), headers=key)
        wait()
        shell, workers = s.keeper(), s.pids("handrail-worker")
        for turn in range(1, 4):
            s.send(signal.SIGUSR2)
            if not s.wait_log(" ready: ", count=turn + 1):
                raise AssertionError(s.log())
            equal(s.refused(), False, "port")
        equal(s.get("/alive").status, 200)
        equal(s.action("true").status, 403, "the key")
        go()
        equal(b.content(), "result")
        equal(s.run("echo $X; pwd", headers=key), "kept\n/usr")
        equal(s.run("umask; ulimit -n; cat /proc/$PPID/oom_score_adj", headers=key), before)
        equal(s.keeper(), shell)
        s.until("the old workers end", lambda: not set(workers) & set(s.pids("handrail-worker")))
        # one that has answered its last request has yet to end
        s.until("one nginx is left",
                lambda: len([p for p in s.pids("nginx") if "master" in process.command_line(p)]) == 1)
        equal(s.stop(), -signal.SIGTERM)


def upgrade_refused():
    """A new image that cannot use the settings: all stays as it is."""
    with Server(settings={}) as s:
        s.write_settings({"nonsense": 1})
        workers = s.pids("handrail-worker")
        s.send(signal.SIGUSR2)
        if not s.wait_log("upgrade refused, nothing has changed: .*nonsense"):
            raise AssertionError(s.log())
        equal(s.run("echo on"), "on")
        equal(set(s.pids("handrail-worker")) >= set(workers), True)


def storm():
    """Whatever dies, in whatever order: each request gets its one answer."""
    with Server() as s:
        numbers, wrong = itertools.count(1), []

        def ask():
            n = next(numbers)
            a = s.in_background("echo $((%d * 7))" % n)
            a.join(PATIENCE)
            # a killed nginx worker cuts its connections: the client hears of it
            # and one whose two workers were killed in turn is told so
            if a.answer is not None and a.answer.status != 503 and (
                    a.answer.status != 200 or a.answer.json()["content"] != str(n * 7)):
                wrong.append(a.answer)
        with beside(ask):
            for turn in range(30):
                for pid in s.pids("handrail-worker")[turn % 3::3] + (s.pids("nginx") if turn % 5 == 4 else []):
                    kill_wait(pid)
                equal(s.get("/alive").status, 200)
        equal(wrong, [])
        equal(s.run("echo still here"), "still here")


# ---- damage ----

# what a command of the server's own account does to what the server keeps on the disk
DAMAGE = ("rm -rf {run}", "rm -rf {run}/*", "rm -rf {run} {work}", "rm -rf {run}/journal", "chmod 0 {run}/journal",
          "rm -rf {run}/journal; mkdir -m 700 {run}/journal", "rm -f {run}/fcgi/*",
          "rm -f {run}/session.sock",
          "rm -f {run}/fcgi/action.sock; echo x >{run}/fcgi/action.sock", "rm -rf {run}/shell", "chmod 0 {run}/fcgi",
          "rm -rf {run}/nginx/* {run}/fcgi",
          "mv {run}/fcgi {run}/nginx {run}/www {run}/plugin {top}/work")


def damaged():
    """What a command removes or damages is made again by itself: the same server answers, and ends when told."""
    for damage in DAMAGE:
        with Server() as s:
            command = damage.format(run=s.run_dir, work=s.work_dir, top=s.top)
            try:
                s.action(command)
            except (http.client.HTTPException, OSError):
                pass  # it cut the way of its own answer
            equal(s.wait_log(" was removed or damaged: starting again in place") is not None, True, command + s.log())
            equal(s.wait_log(" ready: ", count=2) is not None, True, command + s.log())
            equal(s.run("echo back"), "back", command)
            equal((s.get("/alive").status, s.get("/ready").status), (200, 200), command)
            equal(s.stop(), -signal.SIGTERM, command)


def dangling_state_dir():
    """Where a command makes the state directory a link to nothing, the journal goes to the run directory."""
    with tempfile.TemporaryDirectory(prefix="e2e-supervisor-") as top:
        state, other = os.path.join(top, "state"), os.path.join(top, "other")
        os.mkdir(state)
        with Server(args=["--state-dir", state], shown=[top]) as s:
            os.symlink("/nowhere", other)
            equal(ctypes.CDLL(None).renameat2(-100, other.encode(), -100, state.encode(), 2), 0, "exchange both")
            equal(s.wait_log("; the journal is in the run directory until the next start") is not None, True, s.log())
            equal(s.wait_log(" ready: ", count=2) is not None, True, s.log())
            for pid in s.pids("handrail-worker"):
                kill_wait(pid)
            equal(s.run("echo x >>count; echo back", headers={"Idempotency-Key": "one"}), "back")
            equal(s.run("echo x >>count; echo back", headers={"Idempotency-Key": "one"}), "back")
            equal(s.run("cat count"), "x")
            equal(s.stop(), -signal.SIGTERM)


def closed_state_dir():
    """Where a command closes the state directory, the journal goes to the run directory, unless it is required."""
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="e2e-supervisor-") as top:
        os.chmod(top, 0o755)
        state = os.path.join(top, "state")
        os.mkdir(state, 0)
        shutil.chown(state, user or os.geteuid())
        with Server(user=user, args=["--state-dir", state], shown=[top]) as s:
            equal("; the journal is in the run directory until the next start" in s.log(), True, s.log())
            equal(s.run("echo back", headers={"Idempotency-Key": "one"}), "back")
            equal(s.stop(), -signal.SIGTERM)
        with Server(user=user, args=["--state-dir", state], settings={"journal_required": True}, ready=False,
                    shown=[top]) as s:
            equal((s.wait() > 0, "Permission denied" in s.log()), (True, True), s.log())
        os.chmod(state, 0o700)


def nobody_takes_requests():
    """A request that waits for workers which end as soon as they start does not keep the server."""
    script = '[ ! -e "$HOME/bad" ] || exit 1; exec "%s/handrail-worker" "$@"\n' % BUILDDIR
    with Libexec(handrail_worker=script) as lib:
        with Server(libexec=lib, settings={"action_workers": 1}) as s:
            s.workers("action")  # all there
            with open(os.path.join(s.work_dir, "bad"), "w"):
                pass
            for pid in s.pids("handrail-worker"):
                if " --pool action " in process.command_line(pid):
                    os.kill(pid, signal.SIGKILL)
            waiting = s.in_background("true")
            equal(s.wait_log("pool action: workers end right after their start") is not None, True, s.log())
            equal(s.stop(), -signal.SIGTERM, s.log())
            equal("takes no requests" in s.log(), True, s.log())
            waiting.join()


TESTS = [damaged, dangling_state_dir, closed_state_dir, nobody_takes_requests, serves, port_opens_last, refusals,
         reason_at_the_end,
         way_barred, files_barred, way_by_group, no_working_dir, one_server_a_directory, help_and_version,
         request_under_way_is_answered, second_signal_cuts, stop_timeout_cuts, stop_while_starting, strays_are_ended,
         quit_is_at_once, idle_worker, busy_worker, need_comes_first, nginx_worker, nginx_master,
         nginx_master_and_stop, keeper, supervisor, supervisor_with_requests_in_the_queue, supervisor_and_stop,
         supervisor_with_other_settings,
         upgrade, upgrade_refused, storm]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
