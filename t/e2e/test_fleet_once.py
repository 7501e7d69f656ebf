#!/usr/bin/env python3
"""A command of the OpenHands client runs once, while handrail-fleetd is killed again and again. The client is
RemoteRuntime of 0.62 as it sends: no X-Request-ID, a connection that fails is tried again, three times where it was
cut and five where no answer came. E2E_ONCE_KILLS: how many kills, 30 otherwise."""

import os
import random
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet, listen  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.remoteruntime import Background, RemoteRuntime  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

KILLS = int(os.environ.get("E2E_ONCE_KILLS", "30"))
SEED = int(os.environ.get("E2E_SEED", "1"))


def nginx_of(f):
    return [pid for pid in process.all_pids() if f.dir + "/run/nginx.conf" in process.command_line(pid)]


def killed_while_it_runs():
    """The kill that was seen: a command is running, and its client sends it again by itself if it is cut."""
    with Fleet() as f:
        o = f.up("s")
        client, nginx = RemoteRuntime(f, o), nginx_of(f)
        top = f.path("cwd")
        os.mkfifo(top + "/began")
        os.mkfifo(top + "/gate")
        for n in range(3):
            running = Background(client.run, "echo %d >>%s/n; echo >%s/began; read -r x <%s/gate; echo $x" % (
                n, top, top, top))
            with open(top + "/began") as began:
                began.read()
            f.kill()
            f.start()
            equal(nginx_of(f), nginx, "nginx continues")
            with open(top + "/gate", "w") as gate:
                gate.write("answer %d\n" % n)
            equal(running.value(), "answer %d" % n)
        with open(top + "/n") as file:
            equal(file.read().split(), ["0", "1", "2"], "each was run once")
        equal(client.again, 0, "no connection was cut")
        status, events, c = listen(f.port, f.key)
        equal((status, next(events) is not None), (200, True), "the service answers by that nginx")
        c.close()


def asked_while_nobody_serves():
    """A request that comes while the service is dead waits for the next one, and is no error of the client's."""
    with Fleet() as f:
        o = f.up("s")
        client = RemoteRuntime(f, o)
        f.kill()
        asked = [Background(client.run, "echo %d >>n; cat n" % n) for n in range(2)]
        listed = Background(f.call, "GET", "/list")
        f.start()
        equal(listed.value()[0], 200, "a call")
        for a in asked:
            a.value()
        equal(sorted(client.run("cat n").split()), ["0", "1"])
        equal(client.again, 0)


def stopped_in_order():
    """What runs when the service is ended and started again is answered as well."""
    with Fleet() as f:
        o = f.up("s")
        client, top = RemoteRuntime(f, o), f.path("cwd")
        os.mkfifo(top + "/began")
        os.mkfifo(top + "/gate")
        running = Background(client.run, "echo a >>%s/n; echo >%s/began; read -r x <%s/gate; echo $x" % (
            top, top, top))
        with open(top + "/began") as began:
            began.read()
        f.process.send_signal(signal.SIGTERM)
        f.until(lambda: os.path.exists(os.path.join(f.dir, "run", "nginx.lock")), lambda there: not there)
        f.process.send_signal(signal.SIGTERM)  # it is to end now
        equal(f.process.wait(PATIENCE), 0)
        f.start()
        equal(f.call("GET", "/%s/alive" % o["runtime_id"])[0], 200, "the next one answers beside it")
        with open(top + "/gate", "w") as gate:
            gate.write("answer\n")
        equal((running.value(), client.again), ("answer", 0))


def many_kills():
    chance = random.Random(SEED)
    print("# %d kills, seed %d" % (KILLS, SEED))
    with Fleet() as f:
        clients = [RemoteRuntime(f, f.up("s%d" % n)) for n in range(3)]
        over, sent = threading.Event(), [0] * len(clients)

        def work(n):
            while not over.is_set():
                equal(clients[n].run("echo %d >>n; echo said %d" % (sent[n], sent[n])), "said %d" % sent[n])
                sent[n] += 1

        threads = [Background(work, n) for n in range(len(clients))]
        for _ in range(KILLS):
            over.wait(chance.random() / 10)  # anywhere in a request
            f.kill()
            f.start()
            process.reap({f.process.pid})
        over.set()
        for t in threads:
            t.value()
        for n, client in enumerate(clients):
            equal(client.run("cat n").split(), [str(i) for i in range(sent[n])], "each was run once")
        print("# %d commands, %d sent again" % (sum(sent), sum(c.again for c in clients)))
        equal(sum(sent) > KILLS // 2, True, "they worked meanwhile")
        equal(sum(c.again for c in clients), 0, "no connection was cut")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (killed_while_it_runs, asked_while_nobody_serves, stopped_in_order, many_kills):
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
