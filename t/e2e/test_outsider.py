#!/usr/bin/env python3
"""Another account of the machine looks at every file that the programs make: nothing that is secret can be read."""

import os
import re
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.fleet import Fleet  # noqa: E402
from lib.host import Host  # noqa: E402
from lib.outsider import readable  # noqa: E402
from lib.supervised import Server, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

STORE = ("fleet.db", "fleet.db-wal", "fleet.db-shm")
SOCKETS = "/run/handrail-fleet"  # root's


def leaks(tops, secrets):
    """Also sees that it would find one."""
    planted = os.path.join(tops[0], "planted")
    with open(planted, "w") as f:
        f.write(secrets[-1])
    found = [(path, some) for path, some in readable(tops, secrets) if some]
    equal(planted in [path for path, _ in found], True, "one that is planted")
    os.unlink(planted)
    return [(path, some) for path, some in found if path != planted]


def modes(f):
    return {n: oct(stat.S_IMODE(os.stat(os.path.join(f.dir, n)).st_mode)) for n in ("",) + STORE}


def told(f, *statements):
    """What the store holds; by a reader of its own, which takes no lock away from the service."""
    return subprocess.run([sys.executable, "-c", """
import sqlite3, sys
db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
for s in sys.argv[2:]:
    print("\\n".join(str(v) for row in db.execute(s) for v in row))
""", os.path.join(f.dir, "fleet.db")] + list(statements), check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.split()


def the_fleet():
    """Its store as an earlier start left it, readable for all, and a sandbox with secrets."""
    before = os.umask(0o022)
    try:
        f = Fleet()
        equal(modes_of_init(f), {"": "0o700", "fleet.db": "0o600"})
        os.chmod(f.dir, 0o711)
        os.chmod(os.path.join(f.dir, "fleet.db"), 0o644)
        for name in STORE[1:]:
            with open(os.path.join(f.dir, name), "wb"):
                pass
            os.chmod(os.path.join(f.dir, name), 0o644)
        with f:
            wanted = dict({n: "0o600" for n in STORE}, **{"": "0o700"})
            equal(modes(f), wanted, "after a start")
            o = f.up("s", environment={"TOKEN": "t0ken-of-a-start"})
            f.run(o, "echo s3cret-output; echo s3cret-file >s3cret")
            secrets = [f.key, o["session_api_key"], "t0ken-of-a-start", "s3cret-output", "s3cret-file"]
            secrets += told(f, "SELECT server_key FROM sandboxes", "SELECT session_key FROM sandboxes")
            tops = [f.top] + ([SOCKETS] if os.getuid() == 0 else [])
            equal(leaks(tops, secrets), [], "what another account finds")
            equal(f.run(o, "echo is still answered"), "is still answered")
            f.process.send_signal(signal.SIGHUP)
            f.until_answered()
            equal((modes(f), leaks(tops, secrets)), (wanted, []), "after an upgrade")
            f.kill()
            for name in STORE:
                os.chmod(os.path.join(f.dir, name), 0o666)
            f.start()
            equal((modes(f), leaks(tops, secrets)), (wanted, []), "after a kill")
    finally:
        os.umask(before)


def modes_of_init(f):
    return {n: oct(stat.S_IMODE(os.stat(os.path.join(f.dir, n)).st_mode)) for n in ("", "fleet.db")}


def a_socket_that_is_found():
    """nginx's workers reach the service, where they are another account's, too; a service that ends leaves nothing."""
    with Fleet() as f:
        where = os.path.realpath(os.path.join(f.dir, "run", "fleet.sock"))
        equal(where.startswith(SOCKETS if os.getuid() == 0 else f.dir), True, where)
        part = subprocess.run([f.env["HANDRAIL_FLEETD"], "--state-dir", f.dir, "--print-nginx", "http"], check=True,
                              stdout=subprocess.PIPE, env=f.its_environment(), universal_newlines=True).stdout
        equal("unix:%s " % where in part, True, part)
        f.up("s")
    equal(os.path.exists(os.path.dirname(where)), False, "its directory")


def a_second_service():
    """One that is refused takes nothing from the one that runs."""
    with Fleet() as f:
        p = f.spawn()
        equal("another process serves" in p.communicate()[1], True)
        f.up("s")


def the_server():
    before = os.umask(0o022)
    try:
        log = {}
        key = "k3y" + os.urandom(16).hex()
        s = Server(ready=None, env={"SESSION_API_KEY": key, "GITHUB_TOKEN": "t0ken-of-the-server"})
        with s:
            for name in ("log", "state"):
                log[name] = os.path.join(s.top, name)
                os.mkdir(log[name])
            s.write_settings({"log_file": os.path.join(log["log"], "handraild.log"), "log_level": "debug",
                              "access_log": os.path.join(log["log"], "access.log")})
            s.args += ["--config", s.settings_file(), "--listen", "127.0.0.1", "--state-dir", log["state"],
                       "--plugins", "jupyter"]
            s.start(ready=False)
            head = {"X-Session-API-Key": key}
            s.until("it answers", lambda: not s.refused() and s.get("/ready", X_Session_API_Key=key).status == 200)
            said = s.action("export API=s3cret-variable; echo s3cret-out\"put\"", head)
            equal(said.json()["content"], "s3cret-output")
            secrets = [key, "t0ken-of-the-server", "s3cret-variable", "s3cret-output", "s3cret-upload"]
            part = ("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
                    "s3cret-upload\r\n--b--\r\n")
            equal(s.request("POST", "/upload_file?destination=%s" % s.work_dir, part, dict(
                head, **{"Content-Type": "multipart/form-data; boundary=b"})).status, 200)
            os.chmod(os.path.join(s.work_dir, "f"), 0o600)  # its mode is the umask's, as any file's of the workspace
            equal(leaks([s.top], secrets), [], "what another account finds")
            s.send(signal.SIGKILL)
            s.wait()
            equal(leaks([s.top], secrets), [], "beside one that was killed")
            s.start(ready=False)
            s.until("it answers", lambda: not s.refused() and s.get("/ready", X_Session_API_Key=key).status == 200)
            equal(leaks([s.top], secrets), [], "and what came after it")
    finally:
        os.umask(before)


def handrail_up():
    """The records and directories of a sandbox of this machine."""
    before = os.umask(0o022)
    try:
        with Host(SANDBOX_ENV_TOKEN="t0ken-of-up") as h:
            h.ok("up", "-q")
            h.ok("run", "export API=s3cret-variable; echo s3cret-out\"put\"")
            with open(h.path("state", "default.json")) as record:
                keys = re.findall(r"[0-9A-Za-z_-]{24,}", record.read())
            equal(len(keys) > 0, True, "its key")
            equal(leaks([h.top], keys + ["t0ken-of-up", "s3cret-variable", "s3cret-output"]), [])
    finally:
        os.umask(before)


TESTS = [the_fleet, a_socket_that_is_found, a_second_service, the_server, handrail_up]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
