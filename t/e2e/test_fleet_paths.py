#!/usr/bin/env python3
"""Sandboxes at a path of the fleet's are one origin to a browser: nothing of one runs there as a page, or reaches
another."""

import http.server
import json
import os
import sqlite3
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.fleet import Fleet  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from lib.webdriver import Window  # noqa: E402
from lib.www import need_browser  # noqa: E402

V1 = "/handrail/v1/"
POLICY = {"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff",
          "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
OF_THE_ORIGIN = ("Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "NEL", "Report-To",
                 "Service-Worker-Allowed")


class Evil(http.server.ThreadingHTTPServer):
    """What an image of B's own answers in place of its server: /page?..., any file; all else is told what came."""

    def __init__(self):
        self.pages, self.seen = {}, []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take_place_of(self, f, o):
        db = sqlite3.connect(os.path.join(f.dir, "fleet.db"))
        db.execute("UPDATE sandboxes SET at = ? WHERE id = ?", ("127.0.0.1:%d" % self.server_port, o["runtime_id"]))
        db.commit()
        db.close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        self.server.seen.append(self.path)
        kind, text = self.server.pages.get(path, ("application/json", json.dumps(dict(self.headers.items()))))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        for name in OF_THE_ORIGIN:
            self.send_header(name, "a=b; Path=/" if name == "Set-Cookie" else '"storage"')
        self.send_header("Content-Security-Policy", "default-src * 'unsafe-inline'")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *unused):
        pass


def no_page():
    """By a path there is none, however it is spelled; the API is there, and its clients see no difference."""
    with Fleet() as f:
        o = f.up("s")
        rid, key = o["runtime_id"], {"key": "", "X_Session_API_Key": o["session_api_key"]}
        for path in ("/handrail", "/handrail/", "/handrail/index.html", "//handrail/", "/%68andrail/", "/handrail%2f",
                     "/./handrail/", "/x/../handrail/", "/handrail//index.html", "/handrail/js/main.js"):
            equal(f.call("GET", "/%s%s" % (rid, path), **key)[0], 404, path)
        for path in (V1 + "signin", V1 + "/signin", V1 + "signout", V1 + "%73ignin"):
            equal(f.call("POST", "/" + rid + path, {"path": "/handrail/", "port": ""}, **key)[0], 403, path)
        equal(f.call("GET", "/%s%ssession" % (rid, V1), **key)[0], 200, "the API")
        equal(f.run(o, "echo by path"), "by path")
        equal({n: f.head[n] for n in POLICY}, POLICY)
        equal(f.call("GET", "/%s/alive" % rid, key="")[1]["status"], "ok")
        equal(f.call("GET", "/%s/none" % rid, key="")[0] >= 400, True)
        equal(f.head["Content-Security-Policy"], "sandbox", "errors, too")


def headers():
    with Fleet() as f:
        evil = Evil()
        o = f.up("b")
        evil.take_place_of(f, o)
        status, seen = f.call("GET", "/%s/x" % o["runtime_id"], key="", Cookie="a=b", X_Other="c")
        equal((status, seen.get("Cookie"), seen["X-Other"]), (200, None, "c"))
        equal({n: f.head[n] for n in OF_THE_ORIGIN}, {n: None for n in OF_THE_ORIGIN})
        equal("sandbox" in f.head.get_all("Content-Security-Policy"), True)
        evil.shutdown()
        evil.server_close()


PAGE = """<!doctype html><title>B</title><body><script>
document.title = 'it ran';
const key = localStorage['handrail-page /%(a)s/handrail/'];
fetch('/%(a)s/execute_action', {method: 'POST', headers: {'X-Session-API-Key': '%(key)s',
    'Content-Type': 'application/json', 'X-Handrail-Page': key},
    body: '{"action":{"action":"run","args":{"command":"touch pwned"}}}'}).then(() => { fetch('/%(b)s/done'); });
</script><img src="/%(b)s/loaded"></body>"""


def in_a_browser():
    """B's page is opened by a person who works in A's sandbox; it knows all that a sign-in of A's would give it."""
    need_browser()
    with Fleet() as f, Window() as w:
        a, b = f.up("a"), f.up("b", key=f.make_key("b"))
        evil = Evil()
        evil.take_place_of(f, b)
        page = PAGE % {"a": a["runtime_id"], "b": b["runtime_id"], "key": a["session_api_key"]}
        evil.pages["/page.html"] = ("text/html", page)
        evil.pages["/page.svg"] = ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"><title>B</title><script>'
                                   "fetch('/%s/done')</script></svg>" % b["runtime_id"])
        evil.pages["/frame.html"] = ("text/html", '<!doctype html><title>B</title><iframe src="/%s/page.html"></iframe>'
                                     % b["runtime_id"])
        for name in ("page.html", "page.svg", "frame.html"):
            w.open("http://127.0.0.1:%d/%s/%s" % (f.port, b["runtime_id"], name))
            equal("/" + name in evil.seen, True, "it was asked for")
            equal(w.js("return document.title") in ("B", ""), True, name + " did not run")
        f.until(lambda: "/page.html" in evil.seen[evil.seen.index("/frame.html"):], bool)
        equal([p for p in evil.seen if p == "/done"], [])
        equal(f.run(a, "ls -A"), "", "nothing came to A's workspace")
        w.open("http://127.0.0.1:%d/%s/handrail/" % (f.port, a["runtime_id"]))
        equal(w.js("return document.querySelector('#key')"), None, "and no page takes a sign-in")
        evil.shutdown()
        evil.server_close()


def main():
    tap = Tap()
    for test in (no_page, headers, in_a_browser):
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
