#!/usr/bin/env python3
"""handraild listens on a Unix socket: clients use it as they use a port, it survives and is replaced as a port
is, and its file is there exactly as long as somebody listens. test_upgrades.py has upgrades under load."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import certs, process  # noqa: E402
from lib.supervised import (HANDRAILD, PATIENCE, ROOT, Server, gate, kill_together, marker, need,  # noqa: E402
                            need_root, run_tests)
from lib.tap import equal  # noqa: E402

SUFFIX = "~123456"  # of the name to which the socket is bound before it gets its own


def accounts():
    """This account, and as root another one, which has no rights of root's."""
    return (None, "nobody") if ROOT else (None,)


def identity(user):
    return {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def curl(s, path, *words, scheme="http", user=None):
    return subprocess.run([need("curl"), "-sS", "--max-time", str(PATIENCE), "--unix-socket", s.unix,
                           scheme + "://localhost" + path, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **identity(user)).stdout


def inode(s):
    return os.lstat(s.unix).st_ino


def masters(s):
    return [p for p in s.pids("nginx") if "master" in process.command_line(p)]


def like_a_port():
    for user in accounts():
        with Server(unix=True, user=user, settings={}) as s:
            s.write_settings({"access_log": os.path.join(s.top, "access.log")})
            s.reload()
            st = os.lstat(s.unix)
            equal((stat.S_ISSOCK(st.st_mode), oct(st.st_mode & 0o777)), (True, "0o600"))
            equal(os.listdir(os.path.dirname(s.unix)).count("server.sock"), 1)
            equal([n for n in os.listdir(s.top) if "~" in n], [])
            equal(s.refused(), True, "nothing listens on the port")
            equal("ready: listening on unix:" + s.unix in s.log(), True, s.log())
            equal(curl(s, "/alive"), '{"status":"ok"}')
            equal(s.run("echo here"), "here")
            equal(s.get("/ready").json()["status"], "ready")
            equal(s.get("/handrail/v1/output").status, 200)
            equal(s.get("/handrail/").status, 200)
            # the redirection names no port
            equal(s.get("/handrail").headers["Location"], "handrail/")
            # an agent needs no setting, as on loopback
            equal(s.request("POST", "/handrail/mcp", "{}", {"Content-Type": "application/json"}).status, 400)
            # names of pages that resolve to this machine
            equal(s.get("/alive", Host="localhost:3000").status, 200)
            equal(s.get("/alive", Host="rebound.example").status, 403)
            with open(os.path.join(s.top, "access.log")) as f:
                equal({json.loads(line)["remote"] for line in f}, {"unix:"})
            page = os.path.join(s.work_dir, "page.gif")
            s.run("printf GIF89a >%s" % page)
            with open(os.path.join(s.top, "viewer-url")) as f:
                viewer = f.read()
            with urllib.request.urlopen(viewer + "/view?path=" + page, timeout=PATIENCE) as view:
                equal(view.status, 200)
            s.stop()
            equal(os.listdir(s.top).count("server.sock"), 0, "the end removes the file")


def with_a_key():
    with Server(unix=True, env={"SESSION_API_KEY": "of this test"}) as s:
        equal(s.get("/ready").status, 403)
        equal(s.get("/ready", X_Session_API_Key="of this test").status, 200)
        equal(s.get("/alive", Host="any.example").status, 200)
        s.upgrade()
        equal(s.get("/ready", X_Session_API_Key="of this test").status, 200)


def clients_are_one_address():
    with Server(unix=True, settings={"address_requests_per_minute": 1, "address_burst": 1}) as s:
        equal([s.get("/alive").status for _ in range(4)].count(429) > 0, True)


def with_tls():
    with Server(unix=True, ready=None, settings={}) as s:
        authority = certs.Authority(s.top, "authority")
        certificate, key = authority.make("localhost", 1, names="DNS:localhost")
        s.write_settings({"tls_certificate": certificate, "tls_certificate_key": key})
        s.start()
        equal(curl(s, "/alive", "--cacert", authority.pem, scheme="https"), '{"status":"ok"}')


def the_group_of_a_directory():
    """A directory that gives its group to its files gives it the socket, too."""
    group = os.getegid()
    with Server(unix=True, ready=None) as s:
        if ROOT:
            group = pwd.getpwnam("nobody").pw_gid
            os.chown(s.top, 0, group)
        os.chmod(s.top, 0o2751)  # nginx passes through it
        s.start()
        st = os.lstat(s.unix)
        equal((oct(st.st_mode & 0o777), st.st_gid), ("0o660", group))
        equal(s.get("/alive").status, 200)
        if ROOT:
            equal(curl(s, "/alive", user="nobody"), '{"status":"ok"}')


def others_cannot_connect():
    need_root()
    with Server(unix=True) as s:
        equal("ermission denied" in curl(s, "/alive", user="nobody")
              or "ouldn't connect" in curl(s, "/alive", user="nobody"), True)
        equal(curl(s, "/alive"), '{"status":"ok"}')


def ends_of_all_kinds():
    """A killed handraild leaves a file that its successor replaces; a request that is under way is answered.
    A killed nginx is started again with the same socket."""
    for user in accounts():
        with Server(unix=True, user=user) as s:
            before = inode(s)
            kill_together(masters(s))
            s.until("nginx runs again", lambda: s.get("/ready").json()["components"]["nginx"]["state"] == "ready")
            equal((s.run("echo on"), inode(s)), ("on", before))
            began, wait = marker(s)
            hold, go = gate(s)
            b = s.in_background("X=kept; %s; %s; echo result" % (began, hold))
            wait()
            s.send(signal.SIGKILL)
            s.wait()
            go()
            equal(b.content(), "result")
            equal(os.path.lexists(s.unix), True)
            s.start()
            equal((s.run("echo $X"), inode(s) != before), ("kept", True))
            equal([n for n in os.listdir(s.top) if "~" in n], [])
            # all at once: nobody quits nginx then
            before = inode(s)
            kill_together(masters(s) + [s.pid])
            s.wait()
            s.start()
            equal((s.run("echo $X"), inode(s) != before), ("kept", True))


def successors_keep_their_socket():
    """An nginx whose handraild was killed removes what it listens on, perhaps late: never another one's."""
    with Server(unix=True) as s:
        for _ in range(5):
            s.kill_and_start()
            equal(s.get("/alive").status, 200)
        equal(masters(s) != [], True)
        s.until("the old ones are gone", lambda: len(masters(s)) == 1)
        equal(s.get("/alive").status, 200)


def stale_and_busy():
    with Server(unix=True, ready=None) as s:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
            other.bind(s.unix)
            other.listen()
            before = inode(s)
            s.start(ready=False)
            equal((s.wait(), "unix:%s is already in use" % s.unix in s.log()), (1, True), s.log())
            equal(inode(s), before)
        s.start()  # nobody listens there any more
        equal((s.get("/alive").status, inode(s) != before), (200, True))
        refused(s, "is already in use", s.unix, 1)
        equal(s.get("/alive").status, 200)
        # whoever has replaced the file keeps it
        os.unlink(s.unix)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
            other.bind(s.unix)
            other.listen()
            before = inode(s)
            equal(s.stop(), -signal.SIGTERM)
            equal(inode(s), before)


def refused(s, pattern, path, status):
    """By a second server."""
    args = s.args + ["--run-dir", s.run_dir + "-2", "--listen", "unix:" + path]
    done = subprocess.run([HANDRAILD] + args, env=s.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE, check=False)
    equal((done.returncode, pattern in done.stdout), (status, True), done.stdout)
    equal(os.path.lexists(s.run_dir + "-2"), False)


def paths():
    with Server(ready=None) as s:
        longest = os.path.join(s.top, "")
        longest += "x" * (107 - len(SUFFIX) - len(longest))
        refused(s, "absolute path", "server.sock", 2)
        refused(s, "absolute path", "", 2)
        refused(s, "absolute path", s.top + "/", 2)
        refused(s, "at most 100 bytes, not 101", longest + "x", 2)
        refused(s, "%s/none: No such file" % s.top, s.top + "/none/sock", 2)
        refused(s, "a character that nginx's configuration cannot", s.top + "/a b", 2)
        for mode in (0o777, 0o1777):
            os.mkdir(s.top + "/open")
            os.chmod(s.top + "/open", mode)
            refused(s, "others may write it", s.top + "/open/sock", 2)
            os.rmdir(s.top + "/open")
        if ROOT:
            os.mkdir(s.top + "/theirs")
            shutil.chown(s.top + "/theirs", "nobody")
            refused(s, "belongs to user", s.top + "/theirs/sock", 2)
        path = s.top + "/thing"
        for make, remove in ((lambda: open(path, "x").close(), os.unlink), (lambda: os.mkdir(path), os.rmdir),
                             (lambda: os.symlink("elsewhere", path), os.unlink)):
            make()
            before = os.lstat(path)
            refused(s, "is not a socket", path, 1)
            equal(os.path.samestat(os.lstat(path), before), True)
            remove(path)
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as other:
            other.bind(path)
            refused(s, "address unix:" + path, path, 1)
            equal(os.path.lexists(path), True)
        # the longest one works
        s.unix = longest
        s.args += ["--listen", "unix:" + longest]
        s.start()
        equal(s.get("/alive").status, 200)


def another_setting():
    """An upgrade in place moves the server to another socket, and makes one again that was removed."""
    with Server(settings={}, ready=None) as s:
        first, second = os.path.join(s.top, "first.sock"), os.path.join(s.top, "second.sock")
        for n, path in enumerate((first, second)):
            s.unix = path
            s.write_settings({"listen": "unix:" + path})
            if n == 0:
                s.start()
            else:
                s.upgrade()
            equal(s.get("/alive").status, 200)
        equal(os.path.lexists(first), False)
        os.unlink(second)
        s.send(signal.SIGUSR2)
        equal(s.wait_log(" ready: ", count=3) is not None, True, s.log())
        equal(s.get("/alive").status, 200)
        s.unix = None
        s.write_settings({})
        s.send(signal.SIGUSR2)
        equal(s.wait_log(" ready: ", count=4) is not None, True, s.log())
        equal((s.get("/alive").status, os.path.lexists(second)), (200, False))


def no_direct_socket():
    """Another file at the place of a plugin's socket stays, and a path that cannot be handed over has none."""
    for name, why in (("server.sock", "is no socket"), ("a=b.sock", 'has a "="')):
        with Server(settings={}, ready=None) as s:
            s.unix = os.path.join(s.top, name)
            s.write_settings({"listen": "unix:" + s.unix})
            if why == "is no socket":
                with open(s.unix + ".envd", "w") as f:
                    f.write("mine")
            s.start()
            s.upgrade()
            equal((s.get("/alive").status, why in s.log()), (200, True), s.log())
            if why == "is no socket":
                with open(s.unix + ".envd") as f:
                    equal(f.read(), "mine")
            else:
                equal(os.path.lexists(s.unix + ".envd"), False)


def checked_without_a_trace():
    with Server(unix=True, ready=None) as s:
        for _ in range(2):
            done = subprocess.run([HANDRAILD] + s.args + ["--check"], env=s.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            equal((done.returncode, os.path.lexists(s.unix)), (0, False), done.stdout)


if __name__ == "__main__":
    sys.exit(run_tests([like_a_port, with_a_key, clients_are_one_address, with_tls, the_group_of_a_directory,
                        others_cannot_connect, ends_of_all_kinds, successors_keep_their_socket, stale_and_busy,
                        paths, another_setting, no_direct_socket, checked_without_a_trace]))
