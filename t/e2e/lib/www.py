"""What the tests of the page of a sandbox share: a server with a key, and signing in, with a browser and without."""

import json

from .supervised import PATIENCE, Server, need_entrance
from .tap import Skip, equal
from .webdriver import missing

KEY = "the-key-of-the-page"
V1 = "/handrail/v1/"
# what is shown, spaces of the terminal's lines taken out
SCREEN = "return [...document.querySelectorAll('.xterm-rows > div')].map((d) => d.textContent).join('\\n')"
EVIL = "<img src=x onerror=\"document.hit=1\"><svg onload=document.hit=1><script>document.hit=1</script>"
# a picture of one point
DOT = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
# an archive with nothing in it
EMPTY_ZIP = "UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="


def need_browser():
    if missing():
        raise Skip(missing())


class Keyed(Server):
    """A server with a key, which all but the page's own requests send."""

    def __init__(self, **kw):
        kw["env"] = dict(kw.get("env") or {}, SESSION_API_KEY=KEY)
        kw["args"] = list(kw.get("args") or []) + ["--listen", "127.0.0.1"]
        super().__init__(**kw)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        return super().request(method, path, body, dict({"X-Session-API-Key": KEY}, **(headers or {})), timeout)

    def page(self):
        need_entrance()  # nginx's account reads the page's files
        return "http://127.0.0.1:%d/handrail/" % self.port


def sign_in(s, headers=None, **more):
    """Without a browser: the headers that its requests would have."""
    body = dict({"path": "/handrail/", "port": str(s.port)}, **more)
    a = s.request("POST", V1 + "signin", json.dumps(body), headers)
    equal(a.status, 200, a)
    cookie = a.headers["Set-Cookie"]
    return cookie, {"X-Session-API-Key": "", "Cookie": cookie.split(";")[0], "X-Handrail-Page": a.json()["token"]}


def enter(w, s, look=False):
    w.open(s.page())
    w.until("asks for the key", "return document.querySelector('#key')")
    w.type("#key", KEY)
    if look:
        w.click("#look")
    w.click("button[type=submit]")
    live(w)


def live(w):
    w.until("the stream is there", "return document.querySelector('.page[data-stream=live]')")


def screen_has(w, text):
    w.until("on the screen: " + text, SCREEN + ".includes(arguments[0])", text)


def complaints(w):
    """Of the browser's console: errors of scripts, what a policy refused."""
    return [e["message"] for e in w.log() if e["level"] == "SEVERE" and "Failed to load resource" not in e["message"]]
