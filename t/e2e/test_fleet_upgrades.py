#!/usr/bin/env python3
"""handrail-fleetd as another image of its program goes on in its place, and as one refuses to."""

import http.client
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

UPGRADES = int(os.environ.get("E2E_FLEET_UPGRADES", "4"))


def upgrades():
    """The service goes on as another image of its program while it is asked: nothing fails, nothing is done twice."""
    with Fleet() as f:
        program = f.path("cwd", "handrail-fleetd")
        f.kill()
        shutil.copy(f.env["HANDRAIL_FLEETD"], program)
        f.env["HANDRAIL_FLEETD"] = program
        f.start()
        o = f.up("s")
        over, failed, made, waits = threading.Event(), [], [], {}

        def client(number):
            for n in range(1000):
                if over.is_set():
                    break
                session = "c%d-%d" % (number, n)
                for method, path, body in (("GET", "/list", None), ("GET", "/%s/alive" % o["runtime_id"], None),
                                           ("POST", "/handrail/v1/keys", {"name": session}),
                                           ("POST", "/start?wait=ready", {"session_id": session})):
                    if path.startswith("/start") and n % 4 != number:
                        continue
                    c = http.client.HTTPConnection("127.0.0.1", f.port, timeout=PATIENCE)
                    waits[number] = path.startswith("/start") and session
                    try:
                        c.request(method, path, json.dumps(body), {"X-API-Key": f.key})
                        r = c.getresponse()
                        answer = r.read()
                        if r.status != 200:
                            failed.append((method, path, r.status, answer))
                        elif path.startswith("/start"):
                            made.append(session)
                    except (OSError, http.client.HTTPException) as e:
                        failed.append((method, path, repr(e)))
                    finally:
                        waits[number] = False
                        c.close()

        threads = [threading.Thread(target=client, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()

        def image():
            return os.stat("/proc/%d/exe" % f.process.pid).st_ino

        try:
            for n in range(UPGRADES):
                # it ends with the first image, and the next one knows nothing of it
                told, before = f.listen()[1], image()
                shutil.copy(program, program + ".new")
                os.rename(program + ".new", program)
                f.process.send_signal(signal.SIGHUP)
                for _ in told:
                    pass
                f.until(image, lambda now: now != before)
                equal(f.call("GET", "/%s/alive" % o["runtime_id"], key="")[0], 200)
                # who waits is asked for once more, and not twice: two upgrades in one wait are too many
                for number, session in list(waits.items()):
                    if session:
                        f.until(lambda: waits[number], lambda now: now != session)
        finally:
            over.set()
            for t in threads:
                t.join()
        equal(failed, [])
        equal(sorted(s["session_id"] for s in f.sandboxes()), sorted(made + ["s"]))
        names = [k["name"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]]
        equal(len(names), len(set(names)), "no key was made twice")


def put(program, text):
    """Another program where one lies that may run."""
    with open(program + ".new", "w") as out:
        out.write(text)
    os.chmod(program + ".new", 0o755)
    os.rename(program + ".new", program)


def refused():
    """What does not start, does not know the store or does not answer changes nothing."""
    with Fleet() as f:
        program, real = f.path("cwd", "handrail-fleetd"), f.env["HANDRAIL_FLEETD"]
        f.kill()
        shutil.copy(real, program)
        f.env["HANDRAIL_FLEETD"] = program
        f.start()
        o = f.up("s")

        def refuse(why):
            before = f.said().count("upgrade refused")
            f.process.send_signal(signal.SIGHUP)
            f.until(f.said, lambda said: said.count("upgrade refused") > before)
            said = [line for line in f.log if "upgrade refused" in line][-1]
            equal(why in said, True, said)
            equal(f.call("GET", "/%s/alive" % o["runtime_id"], key="")[0], 200)

        put(program, "#!/bin/sh\necho no >&2; exit 3\n")
        refuse("no (exit 3)")
        put(program, "#!/bin/sh\nexec sleep 1000 2>&-\n")
        refuse("does not end within")
        equal([pid for pid in process.children(f.process.pid) if "sleep" in process.command_line(pid)], [])
        shutil.copy(real, program + ".new")
        os.rename(program + ".new", program)
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"), isolation_level=None)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute("PRAGMA user_version = 99")
        refuse("version 99")
        db.execute("PRAGMA user_version = %d" % version)
        db.close()
        told = f.listen()[1]
        f.process.send_signal(signal.SIGHUP)
        for _ in told:
            pass  # until it goes on as another image
        f.until(f.said, lambda said: said.count("ready: listening") == 2)


def earlier_store():
    """A store of the version before gets the columns that it lacks, all or none, and its sandboxes go on."""
    with Fleet() as f:
        o = f.up("s")
        f.kill()
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"), isolation_level=None)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        columns = db.execute("PRAGMA table_info(sandboxes)").fetchall()
        db.execute("DROP INDEX ending")
        db.execute("DROP INDEX live")
        for name in ("ends", "life", "end_pauses"):
            db.execute("ALTER TABLE sandboxes DROP COLUMN " + name)
        db.execute("CREATE INDEX ending ON sandboxes (active)")  # in the way of the step: nothing of it may stay
        db.execute("PRAGMA user_version = 3")
        before = db.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
        db.close()
        refused = f.spawn()
        said = refused.communicate(timeout=PATIENCE)[1]
        equal((refused.returncode, "index ending already exists" in said), (1, True), said)
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"), isolation_level=None)
        equal(db.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall(), before, "it is as it was")
        equal(db.execute("PRAGMA user_version").fetchone()[0], 3)
        db.execute("DROP INDEX ending")
        db.close()
        f.start()
        equal(f.run(o, "echo it runs"), "it runs")
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"), isolation_level=None)
        equal((db.execute("PRAGMA user_version").fetchone()[0], db.execute("PRAGMA table_info(sandboxes)").fetchall()),
              (version, columns))
        equal(db.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('ending', 'live')").fetchone()[0], 2)
        db.close()


def pools_reread():
    """What the store says of pools is read anew by the next image."""
    with Fleet() as f:
        f.ok("fleet", "pools", "-i", "some:1", "set", "p", "0")
        equal(f.sandboxes(), [])
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"), isolation_level=None)
        pools = json.loads(db.execute("SELECT value FROM notes WHERE name = 'pools'").fetchone()[0])
        equal([p["size"] for p in pools], [0])
        db.execute("UPDATE notes SET value = ? WHERE name = 'pools'", (json.dumps([dict(pools[0], size=1)]),))
        db.close()
        f.process.send_signal(signal.SIGHUP)
        f.until(f.sandboxes, lambda all: [s["state"] for s in all] == ["warm"])


def while_one_is_made():
    """What a helper was doing ends with the image that began it, and is begun anew by the next one."""
    server = os.path.join(os.environ.get("HANDRAIL_BUILDDIR") or os.getcwd(), "handraild")
    f = Fleet()
    gate, held = f.path("tmp", "gate"), f.path("tmp", "held")
    os.mkfifo(gate)
    put(f.path("cwd", "server"), "#!/bin/sh\nif mkdir '%s' 2>/dev/null; then read -r x <'%s'; fi\nexec '%s' \"$@\"\n"
        % (held, gate, server))
    f.env["HANDRAIL_SERVER"] = f.path("cwd", "server")
    with f:
        equal(f.call("POST", "/start", {"session_id": "s"})[0], 200)
        f.until(lambda: os.path.isdir(held), bool)  # its server waits at the gate, and its helper for it
        equal(len([pid for pid in process.children(f.process.pid) if "--call" in process.command_line(pid)]), 1)
        f.process.send_signal(signal.SIGHUP)
        f.until(f.said, lambda said: said.count("ready: listening") == 2)
        o = f.up("s")
        equal(f.run(o, "echo it runs"), "it runs")
        f.until(lambda: [pid for pid in process.children(f.process.pid)
                         if (process.stat_fields(pid) or [b""])[0] == b"Z"], lambda dead: dead == [])


def closed_terminal(words):
    """Starts it from a terminal that closes when it is ready: its process id."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.execve(words[0], words[1], words[2])
        finally:
            os._exit(127)
    said = b""
    while b"ready: listening" not in said:
        equal(select.select([master], [], [], PATIENCE)[0], [master], said)
        said += os.read(master, 65536)
        if words[3] and b"ready?" in said:
            os.write(master, words[3])
            words = words[:3] + (b"",)
    return pid, master


def hangups():
    """The end of the terminal that it was started from is the end of it, and no upgrade."""
    with Fleet() as f:
        f.kill()
        env = f.its_environment()
        # it leads the terminal's session
        pid, master = closed_terminal((f.words()[0], f.words(), env, b""))
        os.close(master)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        # a shell leads it, and tells its jobs
        line = " ".join("'%s'" % w for w in f.words()) + " &\n"
        pid, master = closed_terminal(("/bin/bash", ["bash", "--norc", "--noprofile", "-i"],
                                       dict(env, PS1="ready? ", HISTFILE=""), line.encode()))
        fleet = [p for p in process.children(pid) if f.dir in process.command_line(p)]
        equal(len(fleet), 1)
        os.close(master)
        os.waitpid(pid, 0)
        equal(process.wait_gone(fleet[0], PATIENCE), True)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in TESTS:
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


TESTS = [upgrades, refused, earlier_store, pools_reread, while_one_is_made, hangups]

if __name__ == "__main__":
    sys.exit(main())
