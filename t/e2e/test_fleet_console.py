#!/usr/bin/env python3
"""The console of a fleet: who may what by a sign-in, and its pages in a real Chromium (doc/fleet.md, "Console").

By hand: screenshot, which makes doc/console.png."""

import http.client
import json
import os
import shutil
import signal
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet, free_port  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.supervised import run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from lib.webdriver import KEYS, Window  # noqa: E402
from lib.www import SCREEN, complaints, live, need_browser  # noqa: E402

EVIL = "<img src=x onerror=\"document.hit=1\"><svg onload=document.hit=1>"


class Console(Fleet):
    def __init__(self, *options):
        self.console = free_port()
        super().__init__("--console", "127.0.0.1:%d" % self.console, *options,
                         HANDRAIL_WWWDIR=os.path.join(SRC, "www"))

    def ask(self, method, path, body=None, headers=None):
        """By the console's server: status, answer, headers."""
        c = http.client.HTTPConnection("127.0.0.1", self.console, timeout=PATIENCE)
        try:
            c.request(method, path, None if body is None else json.dumps(body), headers or {})
            r = c.getresponse()
            text = r.read()
            try:
                return r.status, json.loads(text), r.headers
            except ValueError:
                return r.status, text, r.headers
        finally:
            c.close()

    def other(self, *options):
        """One that is not to start: its exit status and what it says."""
        self.options, was = options, self.options
        try:
            other = self.spawn()
            return other.wait(PATIENCE), other.stderr.read()
        finally:
            self.options = was
            other.stderr.close()

    def sign_in(self, key, **more):
        body = dict({"path": "/handrail/", "port": str(self.console)}, **more)
        status, answer, headers = self.ask("POST", "/handrail/v1/signin", body, {"X-API-Key": key})
        equal(status, 200, answer)
        return answer, headers["Set-Cookie"], {"Cookie": headers["Set-Cookie"].split(";")[0],
                                               "X-Handrail-Page": answer["token"]}


V1 = "/handrail/v1/"


def as_described(path, method, answer):
    """Each member that the document has, of its type, and no other."""
    with open(os.path.join(SRC, "doc", "fleet.openapi.json")) as doc:
        document = json.load(doc)

    def check(schema, value):
        if "$ref" in schema:
            return check(document["components"]["schemas"][schema["$ref"].split("/")[-1]], value)
        equal(isinstance(value, {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
                         [schema["type"]]), True, (path, value))
        equal(value in schema.get("enum", [value]), True, (path, value))
        if schema["type"] == "array":
            for item in value:
                check(schema["items"], item)
        if schema["type"] == "object":
            equal(sorted(value), sorted(schema.get("properties", ())), path)
            for name, member in value.items():
                check(schema["properties"][name], member)
    check(document["paths"][V1 + path][method]["responses"]["200"]["content"]["application/json"]["schema"], answer)


def who_may():
    """Neither half of a sign-in is anything alone, nor by the server where sandboxes are; rights and keys hold."""
    with Console() as f:
        other = f.make_key("tenant " + EVIL[:20])
        mine = f.up("mine", key=other)
        me, cookie, headers = f.sign_in(f.key)
        equal((me["rights"], me["scope"], me["name"]), ("act", "admin", "operator"))
        as_described("signin", "post", me)
        as_described("me", "get", f.ask("GET", V1 + "me", headers=headers)[1])
        for part in ("HttpOnly", "SameSite=Strict", "Path=/handrail/", "Max-Age=43200"):
            equal(part in cookie, True, cookie)
        equal(f.key in cookie + json.dumps(me), False)
        for broken in ({}, dict(headers, Cookie=""), dict(headers, **{"X-Handrail-Page": "0" * 64}),
                       {"X-API-Key": f.key}):
            for path in ("me", "sandboxes", "keys", "events", "api/list"):
                equal(f.ask("GET", V1 + path, headers=broken)[0], 403, path)
        # where sandboxes are, a sign-in is nothing; and no sandbox is where the console is
        equal(f.call("GET", V1 + "sandboxes", key="", **{k.replace("-", "_"): v for k, v in headers.items()})[0], 401)
        for more in ({}, {"X-Sandbox-ID": mine["runtime_id"]}):
            equal(f.ask("GET", "/%s/alive" % mine["runtime_id"], headers=dict(headers, **more))[0], 404)
        # a page of elsewhere, a wrong key, paths that reach a header
        equal(f.ask("POST", V1 + "drain", {}, dict(headers, Origin="http://127.0.0.1:%d" % f.port))[0], 403)
        wrong = {"X-API-Key": "hrk_" + "0" * 48}
        equal(f.ask("POST", V1 + "signin", {"path": "/handrail/", "port": ""}, wrong)[0], 403)
        for path in ("/", "/a\r\nX: y/handrail/", "/a;b/handrail/"):
            equal(f.ask("POST", V1 + "signin", {"path": path, "port": ""}, {"X-API-Key": f.key})[0], 400)
        # the operator acts on any sandbox, and is told no session key; a tenant on his own alone
        status, all_, _ = f.ask("GET", V1 + "sandboxes", headers=headers)
        equal((status, [s["session_id"] for s in all_["sandboxes"]], mine["session_api_key"] in json.dumps(all_)),
              (200, ["mine"], False))
        _, _, tenant = f.sign_in(other)
        equal(f.ask("GET", V1 + "sandboxes", headers=tenant)[0], 403)
        status, own, _ = f.ask("GET", V1 + "api/list", headers=tenant)
        equal((status, len(own["runtimes"]), mine["session_api_key"] in json.dumps(own)), (200, 1, False))
        equal("url" in own["runtimes"][0], False, "the console's own address leads to none")
        equal([f.ask("GET", V1 + "api/metrics", headers=h)[0] for h in (tenant, headers)], [403, 200])
        equal(f.ask("POST", V1 + "api/build", {}, tenant)[0], 501)
        its = {"runtime_id": mine["runtime_id"]}
        equal(f.ask("POST", V1 + "sandboxes/stop", its, tenant)[0], 403)
        _, _, looks = f.sign_in(other, look=True)
        equal(f.ask("POST", V1 + "api/stop", its, looks)[0], 403)
        equal(f.ask("POST", V1 + "sandboxes/stop", {"runtime_id": "none"}, headers)[0], 404)
        status, stopped, _ = f.ask("POST", V1 + "sandboxes/stop", its, headers)
        equal((status, stopped["session_id"]), (200, "mine"))
        # what it is told ends with the sign-in, and all of it with the key
        c = http.client.HTTPConnection("127.0.0.1", f.console, timeout=PATIENCE)
        c.request("GET", V1 + "events", headers=dict(headers, Accept="text/event-stream"))
        r = c.getresponse()
        equal(r.status, 200)
        status, answer, _ = f.ask("POST", V1 + "signout", {"path": "/handrail/", "port": ""}, headers)
        equal(status, 200)
        as_described("signout", "post", answer)
        r.read()
        c.close()
        equal(f.ask("GET", V1 + "me", headers=headers)[0], 403)
        keys = f.call("GET", V1 + "keys")[1]["keys"]
        f.call("POST", V1 + "keys/revoke", {"id": [k["id"] for k in keys if k["name"] != "operator"][0]})
        equal(f.ask("GET", V1 + "me", headers=tenant)[0], 403)


def pages():
    """Signs in, starts, looks at and stops a sandbox, live; names are text; by the keyboard; framed by nobody."""
    need_browser()
    with Console() as f, Window() as w:
        f.make_key(EVIL)
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", f.key + KEYS["ENTER"])
        w.until("the stream is there", "return document.querySelector('.page[data-stream=live]')")
        equal([w.js("return document.cookie"), f.key in w.js(
            "return JSON.stringify(localStorage) + location.href + document.documentElement.outerHTML")], ["", False])
        w.type("#session", "from-the-page" + KEYS["ENTER"])
        w.until("it runs", "return [...document.querySelectorAll('.fleet tbody tr')].some((r) => "
                           "r.textContent.includes('from-the-page') && r.querySelector('td.good'))")
        # its age goes on where nothing happens; what its kind cannot do is not offered
        age = w.js("return document.querySelector('.fleet td.number').textContent")
        w.until("it is older", "return document.querySelector('.fleet td.number').textContent !== arguments[0]", age)
        equal(w.js("return [...document.querySelectorAll('.fleet td.actions button')].map((b) => b.textContent)"),
              ["Stop"])
        equal(w.js("return document.querySelector('.fleet tbody tr').children[1].textContent"), "operator")
        w.js("document.querySelector('.fleet tbody .link').click()")  # rows are made anew meanwhile
        w.until("its events", "return document.querySelector('.details:not([hidden]) ul')?.textContent"
                              ".includes('running')")
        w.until("its log", "return document.querySelector('.details .output').textContent.includes('ready')")
        w.click(".details .bar button")
        equal(w.js("return document.querySelector('.details').hidden"), True)
        w.js("document.querySelector('.fleet td.actions button:last-child').focus()")
        w.press([KEYS["ENTER"]])
        w.until("asks first", "return document.querySelector('dialog[open]')?.innerText"
                              ".includes('Stop from-the-page?')")
        equal(w.js("return document.querySelector('dialog button[value=yes]').textContent"), "Stop")
        w.click("dialog button[value=yes]")
        w.until("it is gone", "return !document.querySelector('.fleet tbody tr')")
        w.click("#tab-sandboxes")
        w.press([KEYS["RIGHT"], KEYS["RIGHT"]])
        w.until("keys", "return document.querySelector('#view-keys').textContent.includes('<img src=x')")
        w.press([KEYS["RIGHT"]])
        w.until("events", "return document.querySelectorAll('.events li').length > 2")
        equal(w.js("return [document.hit || 0, document.querySelectorAll('img, svg, iframe').length]"), [0, 0])
        w.click("header button:last-child")
        w.until("asks again", "return document.querySelector('#key')")
        head = f.ask("GET", "/handrail/")[2]
        equal(["unsafe" in head["Content-Security-Policy"], head["X-Frame-Options"]], [False, "DENY"])
        equal(complaints(w), [])


def managed():
    """Keys are made, shown once and revoked, pools set and ended; who looks on is offered neither."""
    need_browser()
    with Console() as f, Window() as w:
        rows = "return [...document.querySelectorAll('#view-%s tbody tr')].map((r) => r.textContent)"

        def sign_in(look):
            w.open("http://127.0.0.1:%d/" % f.console)
            w.until("asks for the key", "return document.querySelector('#key')")
            if look:
                w.click("form input[type=checkbox]")
            w.type("#key", f.key + KEYS["ENTER"])
            w.until("the stream is there", "return document.querySelector('.page[data-stream=live]')")

        sign_in(False)
        w.click("#tab-keys")
        w.type("#key-sandboxes", "2")
        w.type("#key-days", "3")
        w.type("#key-name", EVIL[:20] + KEYS["ENTER"])
        w.until("it is shown", "return document.querySelector('.made code')")
        key = w.js("return document.querySelector('.made code').textContent")
        equal(f.call("GET", "/list", key=key), (200, {"runtimes": []}))
        made = [k for k in f.call("GET", V1 + "keys")[1]["keys"] if k["name"] != "operator"][0]
        equal((made["name"], made["scopes"], made["sandboxes"], made["factors"], made["expires"] > 0),
              (EVIL[:20], ["read", "use"], 2, 0, True))
        w.until("it is in the list", rows % "keys" + ".some((t) => t.includes('valid') && t.includes('<img'))")
        w.click(".made button")
        equal(key in w.js("return document.documentElement.outerHTML + JSON.stringify(localStorage)"), False)
        w.js("document.querySelector('[data-id=revoke%d]').click()" % made["id"])
        w.until("asks first", "return document.querySelector('dialog[open]')")
        equal(f.call("GET", "/list", key=key)[0], 200, "not before it was confirmed")
        w.click("dialog[open] button[value=yes]")
        w.until("it is revoked", rows % "keys" + ".some((t) => t.includes('revoked'))")
        equal(f.call("GET", "/list", key=key)[0], 401)
        w.click("#tab-pools")
        for name, size in (("one", "1"), ("one", "2")):
            w.type("#pool-name", name)
            w.type("#pool-size", size + KEYS["ENTER"])
            w.until("it is set", rows % "pools" + "[0]?.startsWith('%s%s')" % (name, size))
        w.type("#pool-image", "other:1")
        w.type("#pool-name", "two")
        w.type("#pool-size", "1" + KEYS["ENTER"])
        w.until("both are there", rows % "pools" + ".length === 2")
        pools = f.call("GET", V1 + "pools")[1]["pools"]
        equal(sorted((p["name"], p["size"], p["request"]) for p in pools),
              [("one", 2, {}), ("two", 1, {"image": "other:1"})])
        w.js("document.querySelector('[data-id=endtwo]').click()")
        w.until("asks first", "return document.querySelector('dialog[open]')")
        w.click("dialog[open] button[value=yes]")
        f.until(lambda: [p["size"] for p in f.call("GET", V1 + "pools")[1]["pools"] if p["name"] == "two"],
                lambda sizes: sizes in ([], [0]))
        w.click("header button:last-child")
        sign_in(True)
        for view in ("keys", "pools"):
            w.click("#tab-" + view)
            w.until("rows", rows % view + ".length > 0")
            equal(w.js("return [...document.querySelectorAll('#view-%s form, #view-%s td button')]"
                       ".filter((e) => e.checkVisibility()).length" % (view, view)), 0, "nothing is offered")
        equal(complaints(w), [])


def origins():
    """The list has marks of branches and of sandboxes from a snapshot, by names that are text."""
    need_browser()
    with Console() as f, Window() as w:
        parent, branch, copy = f.up("parent"), f.up("branch"), f.up("copy")
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"))
        for o, more in ((branch, {"fork": parent["runtime_id"]}), (copy, {"from": "1." + EVIL})):
            db.execute("UPDATE sandboxes SET request = ? WHERE id = ?",
                       (json.dumps(dict(more, session_id=o["session_id"]), separators=(",", ":")), o["runtime_id"]))
        db.commit()
        db.close()
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", f.key + KEYS["ENTER"])
        w.until("the marks are there",
                "return document.querySelectorAll('#view-sandboxes tbody tr .note').length === 2")
        equal(w.js("return [...document.querySelectorAll('#view-sandboxes tbody tr')]"
                   ".map((r) => r.cells[0].textContent).sort()"),
              sorted(["parent", "branchbranch of parent", "copyfrom the snapshot " + EVIL]))
        equal((w.js("return document.hit || 0"), complaints(w)), (0, []))


def capacity_and_alerts():
    """What there is, and what is wrong as it comes and goes; a key of a tenant is told neither."""
    need_browser()
    with Console("--max-sandboxes", "2") as f, Window() as w:
        tenant = f.make_key("tenant", sandboxes=1)
        f.up("first", resource_factor=3)
        second = f.up("second", key=tenant)
        equal(f.call("POST", "/start", {"session_id": "third"})[0], 503)
        equal([f.call("GET", V1 + path, key=tenant)[0] for path in ("capacity", "alerts")], [403, 403])
        told = f.call("GET", V1 + "alerts")[1]
        as_described("alerts", "get", told)
        as_described("capacity", "get", f.call("GET", V1 + "capacity")[1])
        equal([(a["alert"], "--max-sandboxes" in a["detail"]) for a in told["alerts"]], [("room", True)])
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", f.key + KEYS["ENTER"])
        w.until("the alert", "return document.querySelector('#tab-alerts')?.textContent === 'Alerts (1)'")
        w.click("#tab-capacity")
        said = "return [...document.querySelectorAll('#view-capacity .now')].map((e) => e.textContent)"
        w.until("plots", "return document.querySelectorAll('#view-capacity canvas').length === 3")
        equal(w.js(said), ["all 2, running 2, paused 0, at most 2", "all 4", "waiting 0, being made 0, wanted 0"])
        # no event is written for one that is refused: the stream itself tells that there is an alert
        w.until("all is told", "return document.querySelector('.page[data-stream=live]')")
        equal(f.call("POST", "/start", {"session_id": "more"}, key=tenant)[0], 429)
        w.until("another one", "return document.querySelector('#tab-alerts').textContent === 'Alerts (2)'")
        w.click("#tab-alerts")
        w.until("which", "return /key \\d+, tenant/.test(document.querySelector('#view-alerts .firing').textContent)")
        f.call("POST", "/stop", {"runtime_id": second["runtime_id"]}, key=tenant)
        w.until("both are over", "return document.querySelector('#tab-alerts').textContent === 'Alerts' && "
                                 "document.querySelectorAll('#view-alerts tbody td.good').length === 2")
        w.click("#tab-capacity")
        w.until("one less", said + "[0].startsWith('all 1, running 1,')")
        f.call("POST", V1 + "pools", {"pools": [{"name": "p", "size": 1, "request": {"image": "i:1"}}]})
        w.until("it is full", said + "[2] === 'waiting 1, being made 0, wanted 1'")
        equal(complaints(w), [])


def usage():
    """The use of each running sandbox is in the list, and a key is told only that of its own."""
    need_browser()
    with Console() as f, Window() as w:
        tenant = f.make_key("tenant")
        its, mine = f.up("its", key=tenant), f.up("mine")

        def ask(o, key):
            return f.call("GET", V1 + "usage?runtime_id=" + o["runtime_id"], key=key)

        status, first = ask(its, tenant)
        equal((status, sorted(first)), (200, ["cpu_seconds", "memory_bytes", "processes", "time"]))
        equal((first["memory_bytes"] > 1 << 20, first["processes"] > 3), (True, True), first)
        equal([ask(o, key)[0] for o, key in ((its, f.key), (mine, tenant), ({"runtime_id": "x"}, f.key), (its, "no"))],
              [200, 404, 404, 401])
        f.run(its, "(while :; do :; done) & echo $!")
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", tenant + KEYS["ENTER"])
        cells = "const c = [...document.querySelectorAll('.fleet tbody td.number')].map((e) => e.textContent); return "
        w.until("its memory", cells + "/^[0-9.]+ .?B$/.test(c[3])")
        w.until("its processor", cells + "/^[0-9.]+ %$/.test(c[2]) && parseFloat(c[2]) > 5")
        f.run(its, "kill %1")
        equal(complaints(w), [])


DOMAIN = "fleet.localhost"


def lets_in():
    """What opens the page of a sandbox is its owner's alone, for one sign-in to that one, and nothing besides."""
    with Console("--domain", DOMAIN) as f:
        other, reader = f.make_key("other"), f.make_key("reader", scope="read")
        mine, too, its = f.up("mine"), f.up("too"), f.up("its", key=other)
        me, _, headers = f.sign_in(f.key)
        equal(me["pages"], True)

        def ask_open(o, h):
            return f.ask("POST", V1 + "open", {"runtime_id": o["runtime_id"]}, h)[:2]

        def enter(ticket, o, path=V1 + "signin", method="POST", **more):
            body = None if method == "GET" else {"path": "/handrail/", "port": str(f.port)}
            return f.call(method, path, body, key="", X_Session_API_Key=ticket,
                          Host="%s.%s:%d" % (o["runtime_id"], DOMAIN, f.port), **more)[0]

        for o, h, want in ((its, headers, 404), ({"runtime_id": "none"}, headers, 404), (mine, {}, 403),
                           (mine, f.sign_in(f.key, look=True)[2], 403), (mine, f.sign_in(other)[2], 404),
                           (mine, f.sign_in(reader)[2], 403),
                           (mine, dict(headers, Origin="http://%s.%s:%d" % (mine["runtime_id"], DOMAIN, f.port)), 403)):
            equal(ask_open(o, h)[0], want, (o, h))
        status, page = ask_open(mine, headers)
        equal((status, page["url"]), (200, "http://%s.%s:%d/handrail/" % (mine["runtime_id"], DOMAIN, f.port)))
        as_described("open", "post", page)
        ticket = page["key"]
        equal(mine["session_api_key"] in json.dumps(page), False)
        equal([enter(ticket, mine, V1 + "session", "GET"), enter(ticket, mine, "/execute_action"),
               enter(ticket, mine, V1 + "signin?x=1"), enter(ticket, too), enter("0" * 64, mine)], 5 * [403])
        by_path = "/%s%ssignin" % (mine["runtime_id"], V1)
        equal(f.call("POST", by_path, {"path": "/handrail/", "port": ""}, key="", X_Session_API_Key=ticket)[0], 403)
        equal([enter(ticket, mine), enter(ticket, mine)], [200, 403], "once")
        # more than are kept push out the oldest
        first = ask_open(mine, headers)[1]["key"]
        last = [ask_open(mine, headers)[1]["key"] for _ in range(64)][-1]
        equal([enter(first, mine), enter(last, mine)], [403, 200])
        equal([t for t in (ticket, first, last) if t in f.said()], [], "none is in its log")
    with Console() as f:
        mine = f.up("mine")
        me, _, headers = f.sign_in(f.key)
        equal((me["pages"], f.ask("POST", V1 + "open", {"runtime_id": mine["runtime_id"]}, headers)[0]), (False, 409))


def page_of_a_sandbox():
    """From the console to a sandbox's own page, with its terminal, without a key typed; it stays after a reload."""
    need_browser()
    with Console("--domain", DOMAIN) as f, Window() as w:
        o = f.up("mine")
        f.up("its", key=f.make_key("other"))
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", f.key + KEYS["ENTER"])
        w.until("both are there", "return document.querySelectorAll('.fleet tbody tr').length === 2")
        equal(w.js("return [...document.querySelectorAll('[data-id^=page]')].map((b) => b.dataset.id)"),
              ["page" + o["runtime_id"]], "of its own alone")
        w.js("window.open = (...how) => { window.opened = how; }")
        # its processor and memory, on its page
        equal(w.js("return [...document.querySelectorAll('[data-id^=usage]')].map((b) => b.dataset.id)"),
              ["usage" + o["runtime_id"]], "where there is a page")
        w.js("document.querySelector('[data-id^=usage]').click()")
        usage = w.until("it is opened", "return window.opened")[0]
        with Window(w.driver) as plots:
            plots.open(usage)
            plots.until("its memory", "return /all processes [0-9.]+ MB/.test("
                        "document.querySelector('#view-metrics:not([hidden])')?.textContent)")
        w.js("window.opened = null; document.querySelector('[data-id^=page]').click()")
        url, name, how = w.until("it is opened", "return window.opened")
        equal((name, how), ("_blank", "noopener,noreferrer"))
        w.open(url)
        live(w)
        equal(w.js("return location.href"), url.split("#")[0], "nothing is kept of what let it in")
        f.run(o, "echo from-$((40+2))")
        w.until("what it prints", "return (() => { %s })().includes('from-42')" % SCREEN)
        w.open(url.split("#")[0])
        live(w)
        with Window(w.driver) as late:
            late.open(url)
            late.until("it lets in once", "return document.querySelector('#key') && "
                                          "document.querySelector('[role=alert]')")
        equal(complaints(w), [])


def upgraded():
    """Its socket is there before and after an upgrade, and while nginx is replaced; its sign-ins end."""
    with Console() as f:
        program = f.path("fleetd")
        shutil.copy(f.env["HANDRAIL_FLEETD"], program)
        f.kill()
        f.env["HANDRAIL_FLEETD"] = program
        f.start()
        _, _, headers = f.sign_in(f.key)
        told = f.listen()[1]
        f.process.send_signal(signal.SIGHUP)
        for _ in told:
            pass
        equal(f.ask("GET", V1 + "me", headers=headers)[0], 403)
        _, _, headers = f.sign_in(f.key)
        equal(f.ask("GET", V1 + "sandboxes", headers=headers)[0], 200)
        with open(os.path.join(f.dir, "run", "nginx.pid")) as pid:
            nginx = int(pid.read())
        os.kill(nginx, signal.SIGTERM)
        equal(process.wait_gone(nginx, PATIENCE), True)
        equal(f.ask("GET", V1 + "me", headers=headers)[0], 200, "whoever comes meanwhile waits")
        for words, said in ((("--console", "127.0.0.1:%d" % f.port), "must not be the address of --listen"),
                            (("--console", "127.0.0.1:1", "--engine", "kubernetes"), "engine local")):
            done = f.other(*words)
            equal((done[0], said in done[1]), (2, True), done)


def screenshot():
    """By hand: makes doc/console.png."""
    need_browser()
    with Console("--domain", DOMAIN) as f, Window(width=1120, height=820) as w:
        for name in ("build-the-docs", "issue-1204"):
            o = f.up(name)
            for shell in ("server", "tests", "watch", "deploy", "docs", "logs", "db"):
                equal(f.call("POST", "/%s/handrail/v1/create" % o["runtime_id"], {"name": shell}, key="",
                             X_Session_API_Key=o["session_api_key"])[0], 201)
        f.up("nightly", key=f.make_key("ci"), resource_factor=2)
        w.open("http://127.0.0.1:%d/" % f.console)
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", f.key + KEYS["ENTER"])
        w.until("all are there", "return document.querySelectorAll('.fleet tbody td.good').length === 3")
        w.until("the stream is there", "return document.querySelector('.page[data-stream=live]')")
        w.js("document.querySelector('[data-id^=page]').closest('tr').querySelector('.link').click()")
        w.until("its log", "return document.querySelector('.details .output')")
        w.until("the second reading", "return document.querySelector('.fleet tbody').textContent.includes('%')")
        w.js("document.activeElement.blur(); document.querySelector('#view-sandboxes').scrollTo(0, 0)")
        w.shot(os.path.join(SRC, "doc", "console.png"))


BY_HAND = [screenshot]
TESTS = [who_may, lets_in, upgraded, pages, page_of_a_sandbox, managed, origins, usage, capacity_and_alerts]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS + [t for t in BY_HAND if t.__name__ in sys.argv[1:]]))
