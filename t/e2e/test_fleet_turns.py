#!/usr/bin/env python3
"""What one key of a fleet asks for takes nothing from the others: sign-ins, tickets, lists, streams, threads."""

import http.client
import json
import os
import select
import socket
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

V1 = "/handrail/v1/"
DOMAIN = "fleet.localhost"


class Console(Fleet):
    def __init__(self, *options):
        self.console = free_port()
        super().__init__("--console", "127.0.0.1:%d" % self.console, *options, HANDRAIL_WWWDIR=os.path.join(SRC, "www"))

    def ask(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.console, timeout=PATIENCE)
        try:
            c.request(method, path, None if body is None else json.dumps(body), headers or {})
            r = c.getresponse()
            return r.status, json.loads(r.read()), r.headers
        finally:
            c.close()

    def sign_in(self, key):
        status, answer, headers = self.ask("POST", V1 + "signin", {"path": "/handrail/", "port": ""},
                                           {"X-API-Key": key})
        equal(status, 200, repr(answer))
        return {"Cookie": headers["Set-Cookie"].split(";")[0], "X-Handrail-Page": answer["token"]}


def sign_ins():
    """A key's own push out its own: the first to end go first."""
    with Console() as f:
        reader = f.make_key("reader", scope="read")
        operator, first = f.sign_in(f.key), f.sign_in(reader)
        last = [f.sign_in(reader) for _ in range(70)][-1]
        equal([f.ask("GET", V1 + "me", headers=h)[0] for h in (operator, first, last)], [200, 403, 200])
        equal(f.ask("POST", V1 + "signout", {"path": "/handrail/", "port": ""}, last)[0], 200)
        equal([f.ask("GET", V1 + "me", headers=h)[0] for h in (operator, last)], [200, 403])


def tickets():
    with Console("--domain", DOMAIN) as f:
        other = f.make_key("other")
        mine, its = f.up("mine"), f.up("its", key=other)
        me, he = f.sign_in(f.key), f.sign_in(other)

        def ask_open(o, headers):
            status, answer, _ = f.ask("POST", V1 + "open", {"runtime_id": o["runtime_id"]}, headers)
            equal(status, 200, repr(answer))
            return answer["key"]

        def enter(ticket, o):
            return f.call("POST", V1 + "signin", {"path": "/handrail/", "port": str(f.port)}, key="",
                          X_Session_API_Key=ticket, Host="%s.%s:%d" % (o["runtime_id"], DOMAIN, f.port))[0]

        ticket = ask_open(mine, me)
        its_tickets = [ask_open(its, he) for _ in range(70)]
        equal([enter(its_tickets[0], its), enter(its_tickets[-1], its), enter(ticket, mine)], [403, 200, 200])


ROWS = 10000


def with_rows(f, key):
    """As many that ended, of a key: as a year of use leaves them."""
    db = sqlite3.connect(os.path.join(f.dir, "fleet.db"))
    db.executemany(
        "INSERT INTO sandboxes (id, key, session, state, request, factor, session_key, created, active) "
        "VALUES (?, ?, ?, 6, '{}', 1, 'k', ?, 1)",
        [("%032x" % n, key, "s%d" % n, n // 7) for n in range(ROWS)])
    db.commit()
    db.close()


def lists():
    f = Fleet("--keep-ended", "0")
    f.start()
    b = f.make_key("b")
    ids = {k["name"]: k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]}
    f.process.terminate()
    f.process.wait(PATIENCE)
    with_rows(f, ids["b"])
    with f:
        # pages, each after the last one of the page before it
        found, after, pages = [], "", 0
        while after is not None:
            status, page = f.call("GET", "/list?all=true" + ("&after=" + after if after else ""), key=b)
            equal((status, len(page["runtimes"])), (200, 1000))
            found += [r["runtime_id"] for r in page["runtimes"]]
            after, pages = page.get("next"), pages + 1
        equal((pages, found), (10, ["%032x" % n for n in range(ROWS)]))
        for query, ids, more in (("?all=true&limit=3", [0, 1, 2], True),
                                 ("?all=true&limit=3&after=%032x" % 9996, [9997, 9998, 9999], False),
                                 ("?all=true&limit=3&after=%032x" % 9998, [9999], False),
                                 ("?all=true&after=%032x" % 9999, [], False), ("?all=true&after=none", [], False),
                                 ("?all=true&limit=100&after=%032x" % 9899, range(9900, 10000), False),
                                 ("?all=true&limit=100&after=%032x" % 9898, range(9899, 9999), True),
                                 ("?all=true&status=running", [], False), ("", [], False),
                                 ("?all=true&limit=1&limit=2", [0, 1], True)):
            status, page = f.call("GET", "/list" + query, key=b)
            equal([r["runtime_id"] for r in page["runtimes"]], ["%032x" % n for n in ids], query)
            equal("next" in page, more, query)
        equal(len(f.call("GET", "/list?all=true&limit=1000000", key=b)[1]["runtimes"]), 1000)
        # many at once, of b: whoever else asks is answered among the first of them
        o = f.up("mine")
        asked = [socket.create_connection(("127.0.0.1", f.port), PATIENCE) for _ in range(ROWS // 50)]
        for s in asked:
            s.sendall(b"GET /list?all=true HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-API-Key: %s\r\n\r\n"
                      % b.encode())
        waited = [0]
        for _ in range(5):
            equal([r["runtime_id"] for r in f.call("GET", "/list")[1]["runtimes"]], [o["runtime_id"]])
            waited.append(len(select.select(asked, [], [], 0)[0]))
        print("# 5 lists of another key, after %r of %d" % (waited[1:], len(asked)))
        # each waits for a few of them at most, and not until all are answered
        equal([n for n, m in zip(waited[1:], waited) if n - m > len(asked) // 3], [])
        for s in asked:
            with s, s.makefile("rb") as answer:
                equal(answer.readline()[:12], b"HTTP/1.1 200")
                for _ in answer:
                    pass


def streams():
    """As many as there may be: a key that has fewer takes a place of one that has more."""
    with Fleet() as f:
        keys = [f.make_key("k%d" % n) for n in range(8)]
        open_ = [f.listen(key=k) for k in keys for _ in range(8)]
        equal([s for s, _, _ in open_], [200] * 64)
        equal(f.listen(key=keys[0])[0], 429, "a key has eight")
        status, events, mine = f.listen()
        equal(status, 200, "another key")
        f.up("s")
        equal(next(events)["what"] in ("starting", "running"), True)
        # the one whose place it is has ended, and no other
        waiting = [(c.sock, n) for n, (_, _, c) in enumerate(open_)]
        ended = f.until(lambda: [n for sock, n in waiting if is_over(sock)], lambda found: found != [])
        equal(len(ended), 1, "one gave way")
        for _, _, c in open_ + [(0, 0, mine)]:
            c.close()


def is_over(sock):
    """The last chunk of a stream has come (it is not read)."""
    sock.setblocking(False)
    try:
        seen = sock.recv(65536, 2)  # MSG_PEEK
        return seen.endswith(b"0\r\n\r\n") or seen == b""
    except BlockingIOError:
        return False


def main():
    tap = Tap()
    for test in (sign_ins, tickets, lists, streams):
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
