#!/usr/bin/env python3
"""The page of a sandbox in a real Chromium: what it shows, does, survives, and does not believe (doc/page.md).

By hand, since it takes a minute: much_output, 100 MB in front of the page, with the times of its frames."""

import base64
import http.client
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import PATIENCE, SRCDIR, Server, marker, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from lib.webdriver import KEYS, Window, missing, pause  # noqa: E402

KEY = "the-key-of-the-page"
V1 = "/handrail/v1/"
# what is shown, spaces of the terminal's lines taken out
SCREEN = "return [...document.querySelectorAll('.xterm-rows > div')].map((d) => d.textContent).join('\\n')"
EVIL = "<img src=x onerror=\"document.hit=1\"><svg onload=document.hit=1><script>document.hit=1</script>"


def need_browser():
    if missing():
        raise Skip(missing())


class Keyed(Server):
    """A server with a key, which all but the page's own requests send."""

    def __init__(self, **kw):
        kw["env"] = dict(kw.get("env") or {}, SESSION_API_KEY=KEY)
        super().__init__(**kw)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        return super().request(method, path, body, dict({"X-Session-API-Key": KEY}, **(headers or {})), timeout)

    def page(self):
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


# ---- without a browser ----

def who_may():
    with Keyed() as s:
        cookie, me = sign_in(s)
        equal(cookie.split("; ")[1:], ["Path=/handrail/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"], cookie)
        equal(KEY in cookie, False)
        secure, _ = sign_in(s, secure=True, path="/proxy/7/handrail/")
        equal(secure.split("; ")[1:], [
            "Path=/proxy/7/handrail/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"])
        equal(s.request("GET", V1 + "me", headers=me).json()["rights"], "act")
        # either half alone, none, a wrong one, another one's; and the key itself is needed for all else
        _, other = sign_in(s)
        half = [dict(me, **{"X-Handrail-Page": ""}), dict(me, Cookie=""), dict(me, **{"X-Handrail-Page": "0" * 64}),
                dict(me, **{"X-Handrail-Page": other["X-Handrail-Page"]}), {"X-Session-API-Key": ""},
                {"X-Session-API-Key": "wrong"}]
        for headers in half:
            for method, path in (("GET", "me"), ("GET", "events"), ("POST", "signin"), ("POST", "input"),
                                 ("POST", "run")):
                equal(s.request(method, V1 + path, "{}", headers).status, 403, (path, headers))
        for path in ("/ready", "/metrics", "/handrail/v1/../../ready", "//handrail/v1/me", "/handrail/v1/%6de"):
            equal(s.request("GET", path, headers=me).status, 403, path)
        equal(s.action("true", headers=me).status, 403)
        # what is put into the cookie is looked at
        for path in ("/x", "handrail/", "/a;b/handrail/", "/a\r\nX: y/handrail/", "/é/handrail/",
                     "/" + "a" * 600 + "/handrail/"):
            a = s.request("POST", V1 + "signin", json.dumps({"path": path, "port": ""}))
            equal((a.status, "Set-Cookie" in a.headers), (400, False), path)
        equal(s.request("POST", V1 + "signin", json.dumps({"path": "/handrail/", "port": "1; x"})).status, 400)
        # the end: everywhere, and for this one alone
        a = s.request("POST", V1 + "signout", json.dumps({"path": "/handrail/", "port": str(s.port)}), me)
        equal((a.status, "Max-Age=0" in a.headers["Set-Cookie"]), (200, True), a.headers)
        equal(s.request("GET", V1 + "me", headers=me).status, 403)
        equal(s.request("GET", V1 + "me", headers=other).status, 200)
        # 64 of them; the one that would have ended first is pushed out
        for _ in range(64):
            _, last = sign_in(s)
        equal([s.request("GET", V1 + "me", headers=h).status for h in (other, last)], [403, 200])


def stream_of(s, path, headers):
    """An answer without an end, its beginning read."""
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
    c.request("GET", V1 + path, headers=headers)
    r = c.getresponse()
    equal(r.status, 200, path)
    return c, r


def a_stream_ends_with_its_sign_in():
    """What is printed afterwards is told to nobody who has signed out; the key's own streams go on."""
    with Keyed() as s:
        _, me = sign_in(s)
        s.action("echo before")  # so that there is something to begin with
        mark = "said-after-the-end"
        events = {"Accept": "text/event-stream"}
        open_ = [stream_of(s, "events", me), stream_of(s, "output?follow=true", me),
                 stream_of(s, "output?encoding=text", dict(me, **events))]
        kept = stream_of(s, "output?follow=true&offset=0", {"X-Session-API-Key": KEY})
        for _, r in open_:
            equal(len(r.read1(65536)) > 0, True)
        a = s.request("POST", V1 + "signout", json.dumps({"path": "/handrail/", "port": ""}), me)
        equal(a.status, 200, a)
        s.action("echo " + mark)
        for (c, r), what in zip(open_, ("events", "bytes", "text")):
            data = b""
            while mark.encode() not in decoded(data):
                more = r.read1(65536)
                if not more:
                    break
                data += more
            equal((mark.encode() in decoded(data), r.isclosed()), (False, True), what)
            c.close()
        data = b""
        while mark.encode() not in data:
            data += kept[1].read1(65536)
        kept[0].close()


def decoded(data):
    """With what events have of it in base64."""
    return data + b"".join(base64.b64decode(x) for x in re.findall(rb'"base64":"([^"]*)"', data))


def what_was_before():
    """Of a long log a page is told the last 4 MB, and that there was more."""
    with Keyed(settings={"output_log_bytes": 16 << 20}) as s:
        s.action("head -c 6000000 /dev/zero | tr '\\0' x | fold -w 99")
        end = s.get(V1 + "session").json()["output"]["end"]
        c, r = stream_of(s, "events?offset=0", {"X-Session-API-Key": KEY})
        data, want = b"", b'"from":0,"to":%d}' % (end - (4 << 20))
        while b"event: output" not in data:
            data += r.read1(65536)
        equal(want in data, True, data[:200])
        c.close()


def moved_while_it_is_fetched():
    """nginx names a request's parameters anew where a worker has to send the file: who has signed in is among them. By
    the text, since the moment between the two cannot be met."""
    with open(os.path.join(SRCDIR, "conf", "handrail-locations.conf.in")) as f:
        direct = f.read().split("location @handrail_direct {")[1].split("\n}")[0]
    for name, value in (("HTTP_COOKIE", "$handrail_cookie"), ("HTTP_X_HANDRAIL_PAGE", "$http_x_handrail_page")):
        equal("fastcgi_param %s %s if_not_empty;" % (name, value) in direct, True, direct)


def looking_on():
    """The two rights: asked for at the sign-in, and ruled by the settings."""
    with Keyed(settings={"page_rights": "act"}) as s:
        _, me = sign_in(s, look=True)
        equal(s.request("GET", V1 + "me", headers=me).json()["rights"], "look")
        for path in ("session", "commands", "output", "ready", "metrics", "alerts", "sessions"):
            equal(s.request("GET", V1 + path, headers=me).status, 200, path)
        for path in ("input", "keys", "signal", "resize", "create", "run", "kill", "upload"):
            equal(s.request("POST", V1 + path, "{}", me).status, 403, path)
        _, act = sign_in(s)
        s.write_settings({"page_rights": "look"})
        s.args += ["--config", s.settings_file()]
        s.send(signal.SIGHUP)
        s.until("it is reloaded", lambda: s.request("POST", V1 + "input", "{}", act).status == 403)
        equal(s.request("GET", V1 + "session", headers=act).status, 200)
        s.write_settings({"page_rights": "none"})
        s.send(signal.SIGHUP)
        none = {"X-Session-API-Key": ""}
        s.until("there is no page", lambda: s.request("GET", "/handrail/", headers=none).status == 403)
        equal(s.request("GET", V1 + "session", headers=act).status, 403)


def files_of_the_page():
    """What is served to anybody, and how: nothing of it can be framed, sniffed or joined by another script."""
    with Keyed() as s:
        none = {"X-Session-API-Key": ""}
        a = s.request("GET", "/handrail", headers=none)
        equal((a.status, a.headers["Location"]), (301, "handrail/"))
        for path, kind in (("", "text/html; charset=utf-8"), ("page.css", "text/css; charset=utf-8"),
                           ("js/main.js", "text/javascript; charset=utf-8"),
                           ("vendor/xterm/xterm.mjs", "text/javascript; charset=utf-8")):
            a = s.request("GET", "/handrail/" + path, headers=none)
            equal((a.status, a.headers["Content-Type"], a.headers["X-Frame-Options"],
                   a.headers["X-Content-Type-Options"]),
                  (200, kind, "DENY", "nosniff"))
            policy = a.headers["Content-Security-Policy"]
            equal([x in policy for x in ("frame-ancestors 'none'", "default-src 'none'", "unsafe")],
                  [True, True, False], policy)
        for path in ("../etc/passwd", "%2e%2e/conf/local.mk", "js/", "nothing", "v1/me"):
            equal(s.request("GET", "/handrail/" + path, headers=none).status in (400, 403, 404), True, path)
        equal(s.request("POST", "/handrail/", "x", none).status >= 400, True)


def many_pages():
    """Fifty of them are held by one worker, which reads the shell's output once."""
    with Keyed() as s:
        pages = []
        for _ in range(50):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
            c.request("GET", V1 + "events?tail=0", headers={"X-Session-API-Key": KEY})
            pages.append((c, c.getresponse()))
        equal({r.status for _, r in pages}, {200})
        # one that is refused is told why, and does not make their worker one that rests
        a = s.get(V1 + "events?offset=x")
        equal((a.status, a.body), (400, b'{"detail":"offset is not a number"}'))
        equal(s.get(V1 + "ready").json()["components"]["pool_page"]["busy"], 1)
        s.action("printf 'seen-%d-end\\n' $((40 + 2)); seq 1 20000")
        want = s.get(V1 + "session").json()["output"]["end"]
        for _, r in pages:
            data = b""
            while b"id: %d\n" % want not in data[-70000:]:
                data += r.read1(65536)
        worker = s.pids("handrail-worker")
        worker = [p for p in worker if " --pool page " in process_line(p)]
        equal(len(worker), 1)
        keeper = set(socket_inodes(s.keeper()[0]))
        equal(len([i for i in socket_inodes(worker[0]) if peer_in(i, keeper)]), 1, "connections to the keeper")
        for c, r in pages:
            r.close()
            c.close()
        s.until("nobody looks on", lambda: s.get(V1 + "ready").json()["components"]["pool_page"]["busy"] == 0)


def process_line(pid):
    from lib import process
    return process.command_line(pid)


def socket_inodes(pid):
    out = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            to = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            continue
        if to.startswith("socket:["):
            out.append(int(to[8:-1]))
    return out


def peer_in(inode, others):
    """Whether a socket's peer is among those: by ss, as no file of /proc tells."""
    import subprocess
    if not hasattr(peer_in, "peers"):
        peer_in.peers = {}
        for line in subprocess.run(["ss", "-xpnH"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) >= 8 and words[5].isdigit() and words[7].isdigit():
                peer_in.peers[int(words[5])] = int(words[7])
    return peer_in.peers.get(inode) in others


# ---- with one ----

def shell_view():
    need_browser()
    with Keyed() as s, Window() as w:
        s.action("echo before; (exit 3)")
        w.open(s.page())
        w.until("asks for the key", "return document.querySelector('#key')")
        w.type("#key", "wrong")
        w.press([KEYS["ENTER"]])
        w.until("says so", "return document.querySelector('.note.bad').textContent.includes('not the key')")
        w.js("document.querySelector('#key').value = ''")
        enter(w, s)
        equal([w.js("return document.cookie"), w.js("return location.href"), KEY in w.js(
            "return JSON.stringify(localStorage) + document.documentElement.outerHTML")], ["", s.page(), False])
        screen_has(w, "before")
        w.until("its exit code", "return document.querySelector('.commands tbody tr.bad .exit').textContent === '3'")
        # a typed command, its output and its row
        w.click(".line input")
        w.type(".line input", "echo typed-$((40 + 2))" + KEYS["ENTER"])
        screen_has(w, "typed-42")
        w.until("a row of it", "return "
                "document.querySelector('.commands tbody tr.good .mono').textContent.includes('typed-$')")
        # one that runs: a line for it, then keys typed into the terminal, then the interrupt
        began, wait = marker(s)
        w.type(".line input", began + "; read -r x; echo got-$x; read -r y; echo got-$y; sleep 1000" + KEYS["ENTER"])
        wait()
        w.until("it runs", "return document.querySelector('.commands tr.running') && "
                           "!document.querySelector('.line button[type=button]').disabled")
        w.type(".line input", "one" + KEYS["ENTER"])
        screen_has(w, "got-one")
        w.click(".bar input")
        w.press("two" + KEYS["ENTER"])
        screen_has(w, "got-two")
        w.click(".line button[type=button]")
        w.until("it is interrupted", "return "
                "document.querySelector('.commands tbody tr.bad .exit').textContent === '130'")
        # idle: its one stream and nothing else
        w.requests()
        pause(3)
        equal(w.requests(), [])
        # by the keyboard alone; what a page loads
        loaded = w.js("return performance.getEntriesByType('resource').filter((e) => !e.name.includes('/v1/')).length")
        equal(loaded > 5, True)
        # a page that nobody sees has no stream
        w.js("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});"
             "document.dispatchEvent(new Event('visibilitychange'))")
        w.until("it has stopped", "return document.querySelector('.page[data-stream=paused]')")
        s.until("nobody looks on", lambda: s.get(V1 + "ready").json()["components"]["pool_page"]["busy"] == 0)
        s.action("echo while-hidden-$((1 + 1))")
        w.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        screen_has(w, "while-hidden-2")
        # the end of the sign-in
        w.click("header button")
        w.until("asks again", "return document.querySelector('#key')")
        w.open(s.page())
        w.until("asks still", "return document.querySelector('#key')")
        equal(complaints(w), [])


def the_whole_screen(w, mark):
    """All lines that the terminal has, up to the mark, in one text."""
    screen_has(w, mark)
    return w.js("""
        const b = window.handrailTerminal.buffer.active, lines = [];
        for (let i = 0; i < b.length; i++) {
            const l = b.getLine(i), t = l.translateToString(true);
            if (l.isWrapped && lines.length) lines[lines.length - 1] += t; else lines.push(t);
        }
        return lines.join('\\n');""")


def cut_and_healed():
    """A killed worker, a killed nginx, an upgrade: no line is missing, none is there twice."""
    need_browser()
    with Keyed() as s, Window() as w:
        enter(w, s)
        for n, cut in enumerate(("worker", "edge", "upgrade", "keeper")):
            began, wait = marker(s)
            b = s.in_background("%s; for i in $(seq 1 400); do echo line-%d-$i; sleep 0.004; done; "
                                "echo all-%d-$((1+1))" % (began, n, n), headers={"X-Session-API-Key": KEY})
            wait()
            screen_has(w, "line-%d-" % n)
            if cut == "worker":
                for pid in s.pids("handrail-worker"):
                    if " --pool page " in process_line(pid):
                        os.kill(pid, signal.SIGKILL)
            elif cut == "edge":
                from lib import process
                for pid in process.children(s.pids("nginx")[0]):
                    os.kill(pid, signal.SIGKILL)
            elif cut == "upgrade":
                s.upgrade()
            else:
                os.kill(s.keeper()[0], signal.SIGKILL)
            b.join(PATIENCE)
            text = the_whole_screen(w, "all-%d-2" % n)
            # a killed nginx cuts the action's own request as well, and the command goes on
            got = [int(line.rsplit("-", 1)[1]) for line in text.split("\n") if line.startswith("line-%d-" % n)]
            equal(got, list(range(1, 401)), cut)
            live(w)
        equal(complaints(w), [])


def nothing_is_believed():
    """Whatever the sandbox says is text: in output, titles, links, commands, directories, errors."""
    need_browser()
    with Keyed() as s, Window() as w:
        enter(w, s)
        s.action("printf '%%s\\n' '%s'" % EVIL)
        s.action("printf '\\033]0;%s\\007'" % EVIL)
        s.action("printf '\\033]8;;javascript:document.hit=1\\007click\\033]8;;\\007\\n'")
        s.action("mkdir -p './%s' && cd './%s'" % (EVIL.replace("/", "_"), EVIL.replace("/", "_")))
        s.action("printf '\\033[6n\\033[c\\033]11;?\\007\\033P$qm\\033\\\\\\n'; echo 'x%s'" % EVIL,
                 headers={"X-Request-ID": EVIL})
        s.action("\u202eevil\u2066 # " + EVIL)
        s.action("echo done-$((1 + 1))")
        screen_has(w, "done-2")
        w.until("the directory", "return document.querySelector('.dir').textContent.includes('<img')")
        w.until("the commands", "return "
                "[...document.querySelectorAll('.commands td')].some((d) => d.textContent.includes('<svg'))")
        w.until("a title", "return document.querySelector('.title').textContent.includes('<img')")
        equal(w.js("return [document.hit || 0, "
                   "document.querySelectorAll('img, svg, iframe, script:not([src])').length, "
                   "[...document.querySelectorAll('td')]"
                   ".some((d) => d.textContent.includes('\\u202e'))]"), [0, 0, False])
        # a program's questions are not answered, so that nobody types who only looks on
        equal(s.run("read -t 0.3 -r x; echo \"<$x>\"", headers={"X-Session-API-Key": KEY}), "<>")
        # a frame of another origin shows nothing: it asks for the page, and then for nothing of it
        w.requests()
        w.open("data:text/html,<iframe src='%s'></iframe>" % s.page())
        w.until("a frame", "return document.querySelector('iframe')")
        asked = w.requests()
        equal([any(r.endswith(end) for r in asked) for end in ("/handrail/", "main.js")], [True, False], asked)
        equal(complaints(w), [])


def other_views():
    """Plugins, plots and alerts: what they show, by the arrow keys, while nothing more is asked for."""
    need_browser()
    with Keyed() as s, Window() as w:
        for _ in range(4):  # so many errors that it is an alert
            s.request("POST", "/execute_action", json.dumps({"action": {"action": "read", "args": {"path": "/no"}}}))
        enter(w, s)
        w.until("an alert", "return document.querySelector('#tab-alerts').textContent === 'Alerts (1)'")
        w.requests()
        w.click("#tab-shell")
        w.press([KEYS["RIGHT"]])
        w.until("plugins", "return !document.querySelector('#view-plugins').hidden && "
                           "[...document.querySelectorAll('#view-plugins th')].some((e) => e.textContent === 'mcp')")
        w.press([KEYS["RIGHT"]])
        w.until("plots", "return document.querySelectorAll('#view-metrics canvas').length === 6 && "
                         "document.querySelector('#view-metrics .now').textContent.includes('errors 4')")
        w.press([KEYS["END"]])
        w.until("alerts", "return document.querySelector('#view-alerts .firing').textContent.includes('error_rate')")
        w.press([KEYS["HOME"]])
        w.until("the shell again", "return !document.querySelector('#view-shell').hidden")
        equal(w.requests(), [])
        equal(complaints(w), [])


def viewer_without_rights():
    need_browser()
    with Keyed() as s, Window() as w:
        enter(w, s, look=True)
        equal(w.js("return [...document.querySelectorAll('.line input, .line button, .bar input')]"
                   ".map((e) => e.disabled)"),
              [True, False, True, True, True], "all but the mode for screen readers")
        s.action("echo seen-$((1 + 1))")
        screen_has(w, "seen-2")
        # by hand in its console: the server refuses
        equal(w.js_async("""const done = arguments[0], token = Object.values(localStorage)[0];
            fetch('v1/run', {method: 'POST', headers: {'X-Handrail-Page': token}, body: '{}'})
                .then((r) => done(r.status))"""), 403)


def much_output():
    """100 MB in front of the page: the longest time between two frames, and what is seen at the end."""
    need_browser()
    with Keyed() as s, Window() as w:
        enter(w, s)
        w.js("""window.frames_ = []; let last = performance.now();
            const next = (t) => { window.frames_.push(t - last); last = t; requestAnimationFrame(next); };
            requestAnimationFrame(next);""")
        s.action("yes '%s' | head -c 100000000; echo; echo all-of-it-$((1 + 1))" % ("x" * 99), timeout=10 * PATIENCE)
        screen_has(w, "all-of-it-2")
        times = sorted(w.js("return window.frames_.slice(2)"))
        print("# %d frames, median %.0f ms, p99 %.0f ms, longest %.0f ms" % (
            len(times), times[len(times) // 2], times[int(len(times) * 0.99)], times[-1]))
        equal(times[int(len(times) * 0.99)] < 250, True, times[-20:])


BY_HAND = [much_output]
TESTS = [who_may, a_stream_ends_with_its_sign_in, what_was_before, moved_while_it_is_fetched, looking_on,
         files_of_the_page, many_pages, shell_view, cut_and_healed, nothing_is_believed, other_views,
         viewer_without_rights]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS + [t for t in BY_HAND if t.__name__ in sys.argv[1:]]))
