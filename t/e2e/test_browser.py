#!/usr/bin/env python3
"""The plugin browser with a real Chromium: recorded scenarios, kills, and pages that mean no good.

Of the scenarios a spread is played; HANDRAIL_BROWSER_SCENARIOS=all plays each but the slow ones,
=slow those that wait for 100 seconds and more, any other value those whose names it matches."""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process, supervised  # noqa: E402
from lib.browsersite import load_pages  # noqa: E402
from lib.browsing import (  # noqa: E402
    CORPUS, PATIENCE, Browsing, Site, Tokens, brief, differences, forget, missing, scenarios)
from lib.supervised import Background, kill_wait, need_entrance, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal, skip_all  # noqa: E402

OFF = "Browser functionality is not supported or disabled."
ANEW = "The browser had ended and was started again"
LOOK = "/handrail/v1/browser/"

# What the original could not do: a page with an attribute `bid` of its own ends its browser for good, a server
# that never answers stops it, and so may the picture of a tab in the background. Its answer then is this one, which
# is ours only where a program itself takes too long.
LATE = "Browser environment took too long to respond."
TAKES_LONG = "slow_step_120"
# An abbreviation stays in the text of all later pages of the original; not here.
OTHERWISE = {("browse_state", 2), ("browse_state", 4)}

SPREAD = """nav_goto nav_back_forward nav_errors browse_basic browse_args fill_basic
select_one click_kinds hover keys upload dnd scroll_page frames_same frames_cross shadow_open tabs popup
dialogs beforeunload pages_axtree nav_target_blank bid_page prog_bids prog_values prog_eval download""".split()


def chosen():
    wanted = os.environ.get("HANDRAIL_BROWSER_SCENARIOS", "")
    for scenario in scenarios():
        name, slow = scenario["name"], scenario.get("slow")
        if wanted == "all":
            fits = not slow
        elif wanted == "slow":
            fits = slow
        elif wanted:
            fits = re.search(wanted, name)
        else:
            fits = name in SPREAD
        if fits:
            yield scenario


def closed_port():
    """Where nobody listens: of five digits, as those of the recordings."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def one_empty_tab(s):
    s.act("new_tab()")
    while len(s.act("tab_focus(0)\ntab_close()")["extras"]["open_pages_urls"]) > 1:
        pass


def play(s, tokens, scenario):
    wrong = []
    for name, text in (scenario.get("files") or {}).items():
        with open(os.path.join(s.work_dir, name), "w") as f:
            f.write(text)
    for i, step in enumerate(scenario["steps"]):
        action = tokens.into(step["request"]["action"])
        a = s.ask(action["action"], **action["args"])
        got = tokens.back(brief(a.json()))
        if a.status != step["status"]:
            wrong.append("step %d: %r" % (i, a))
            continue
        if (scenario["name"], i) in OTHERWISE or (
                LATE in step["response"].get("content", "") and scenario["name"] != TAKES_LONG):
            # but the page is there, and the next step works
            equal((got["observation"], LATE in got["content"]), ("browse", False), scenario["name"])
            continue
        forget(step, got)
        wrong += ["step %d, %r: %s" % (i, action["args"], d) for d in differences(step["response"], got)]
    for name, size in (scenario.get("workspace_after") or {}).items():
        path = os.path.join(s.work_dir, name)
        if not os.path.exists(path) or os.path.getsize(path) != size:
            wrong.append("%s is not there, or has another size" % name)
    return wrong


class Stage:
    """One server for all scenarios that do not need a new one."""

    def __init__(self, site):
        self.site, self.server, self.used = site, None, False

    def take(self, tags):
        if self.server is not None and self.used and {"fresh", "download"} & set(tags or []):
            self.leave()
        if self.server is None:
            self.server = Browsing()
            self.server.__enter__()
            self.used = False
        if self.used:
            one_empty_tab(self.server)
        self.used = True
        return self.server

    def leave(self, *what):
        if self.server is not None:
            s, self.server = self.server, None
            s.__exit__(*(what or (None, None, None)))


def as_recorded():
    failed, played = [], 0
    with Site() as site:
        stage = Stage(site)
        try:
            for scenario in chosen():
                s = stage.take(scenario.get("tags"))
                wrong = play(s, Tokens(site.port, closed_port(), s.work_dir), scenario)
                played += 1
                if "download" in (scenario.get("tags") or []) or scenario.get("downloads_count"):
                    stage.leave()  # a later error would tell of them
                if wrong:
                    failed.append("%s: %s" % (scenario["name"], "\n".join(wrong[:6])))
        except BaseException:
            stage.leave(*sys.exc_info())
            raise
        stage.leave()
    if failed:
        raise AssertionError("%d of %d scenarios differ\n%s" % (len(failed), played, "\n".join(failed)))
    equal(played > 0, True, "scenarios were played")


# ---- without one ----

def no_chromium():
    with Browsing(program="/nonexistent/chromium") as s:
        a = s.ask("browse", url="http://127.0.0.1/")
        equal((a.status, a.json()["observation"], a.json()["content"]), (200, "error", OFF))
    # a bound that is less than a MiB is one all the same
    with Browsing(env={"HANDRAIL_BROWSER_MEMORY_MAX": "1000"}) as s:
        a = s.ask("browse", url="http://127.0.0.1/")
        equal((a.status, "Chromium does not start" in a.json()["content"]), (200, True), a.json())


def switched_off():
    with Browsing(args=["--no-enable-browser"]) as s:
        a = s.ask("browse_interactive", browser_actions="noop(0)")
        equal((a.status, a.json()["observation"], a.json()["content"]), (200, "error", OFF))
        equal(s.pids("handrail-browser"), [])


def evaluations():
    """One that nobody knows leaves no browser; of the others the browser is there, without goal and rewards."""
    with Browsing(args=["--browsergym-eval-env", "browsergym/nothing.1"]) as s:
        a = s.ask("browse_interactive", browser_actions="GET_EVAL_GOAL")
        equal((a.status, a.json()["observation"], a.json()["content"]), (200, "error", OFF))
        equal("Unsupported browsergym eval env: browsergym/nothing.1" in s.log(), True, s.log())
    with Browsing(args=["--browsergym-eval-env", "miniwob.choose-list"]) as s:
        equal(s.act("GET_EVAL_REWARDS")["extras"]["error"], False)
        equal(s.act("noop(0)")["extras"]["url"], "about:blank")


def starts_where_it_was_named():
    with Browsing(args=["--plugins", "browser"]) as s:
        s.until("the plugin is ready", lambda: s.get("/ready").json()["components"]["plugins"]["browser"]
                == {"state": "ready"})
        equal(s.act("noop(0)")["extras"]["error"], False)
        equal(os.path.exists(os.path.join(s.work_dir, ".downloads")), False, "before the first download")


# ---- what is left, and what is open ----

def all_of(pid):
    pids = [pid]
    for p in pids:
        pids += process.children(p)
    return pids


def listens(pid):
    """The numbers of sockets of TCP that this process holds and that listen."""
    with open("/proc/%d/net/tcp" % pid) as f:
        rows = [line.split() for line in f.readlines()[1:]]
    inodes = {row[9] for row in rows if row[3] == "0A"}
    found = []
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            to = os.readlink("/proc/%d/fd/%s" % (pid, fd))
            if to.startswith("socket:[") and to[8:-1] in inodes:
                found.append(to)
    except OSError:
        pass  # it has just ended
    return found


def nothing_is_open_or_left():
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("two.html"))
        pids = all_of(s.chromium())
        equal([p for p in pids if listens(p)], [], "no port")
        profile = s.profile()
        equal(os.path.isdir(profile), True)
        plugin = s.plugin()
        os.kill(plugin, signal.SIGTERM)
        s.until("the plugin ended", lambda: process.has_ended(plugin))
        s.until("Chromium ended", lambda: all(process.has_ended(p) for p in pids))
        equal(os.path.exists(profile), False, "the profile is removed")


# ---- as agents work: from the tree's text to an element, and back ----

FORM = """<!doctype html><title>Order</title><h1>Order</h1><form>
<input placeholder="Your name"><textarea placeholder="Your wish"></textarea>
<select><option value="">Choose</option><option value="s">Small</option><option value="l">Large</option></select>
<input type="file" accept=".txt"><button type="button">Send it</button></form><p id="said"></p>
<div style="height:3000px"></div><script>
document.querySelector("button").onclick = () => document.getElementById("said").textContent =
    "Sent: " + document.querySelector("input[type=file]").files[0].name;
</script>"""

KEYS = """<!doctype html><title>keys</title><input><script>
onkeydown = (e) => document.title += " " + [e.key, e.keyCode, e.location, e.repeat].join();
</script>"""


def page_of(text):
    return "data:text/html," + urllib.parse.quote(text)


def elements(content):
    """bid -> its line in the tree, with the lines behind it that have no bid."""
    found, bid = {}, None
    for line in content.partition("BEGIN accessibility tree")[2].partition("END accessibility tree")[0].splitlines():
        m = re.match(r"\s*\[([a-zA-Z0-9]+)\] (.*)", line)
        if m:
            bid = m.group(1)
            found[bid] = m.group(2)
        elif bid:
            found[bid] += " " + line.strip()
    return found


def good(s, program):
    a = s.act(program)
    equal((a["observation"], a["extras"]["last_browser_action_error"]), ("browse", ""), a["content"])
    equal(a["extras"]["last_browser_action"], program)
    return a


def a_form():
    with Browsing() as s:
        note = os.path.join(s.work_dir, "note.txt")
        with open(note, "w") as f:
            f.write("a note")
        found = elements(good(s, 'goto("%s")' % page_of(FORM))["content"])
        name, wish, size, file, button = (
            next(bid for bid, line in found.items() if text in line)
            for text in ("Your name", "Your wish", "combobox", "Choose File", "Send it"))
        found = elements(good(s, 'fill("%s", "Ada")\nfill("%s", "a box")' % (name, wish))["content"])
        equal(("'Ada'" in found[name], "'a box'" in found[wish]), (True, True), found)
        found = elements(good(s, 'select_option("%s", "l")' % size)["content"])
        equal("value='Large'" in found[size], True, found)
        found = elements(good(s, 'upload_file("%s", "%s")' % (file, note))["content"])
        equal("note.txt" in found[file], True, found)
        equal("Sent: note.txt" in good(s, 'click("%s")' % button)["content"], True)
        found = elements(good(s, 'press("%s", "End")\npress("%s", "Backspace")' % (name, name))["content"])
        equal("'Ad'" in found[name], True, found)
        a = good(s, 'scroll(0, 300)\nnoop(10)\nscroll(0, -100)\nhover("%s")\nfocus("%s")' % (button, wish))
        equal(a["extras"]["focused_element_bid"], wish)
        found = elements(good(s, 'clear("%s")' % name)["content"])
        equal(("Ad" in found[name], "Your name" in found[name]), (False, True), found)


def keys():
    """What a page is told of them: names, numbers, sides, repetition."""
    with Browsing() as s:
        good(s, 'goto("%s")' % page_of(KEYS))
        for combination, want in (
                ("Control+Shift+a", "Control,17,1,false Shift,16,1,false A,65,0,false"),
                ("ShiftRight+Digit1", "Shift,16,2,false !,49,0,false"),
                ("Alt+F4", "Alt,18,1,false F4,115,0,false"),
                ("AltRight+ControlRight", "Alt,18,2,false Control,17,2,false"),
                ("Meta+NumpadDivide", "Meta,91,1,false /,111,3,false"),
                ("x+x", "x,88,0,false x,88,0,true")):
            a = good(s, 'press("4", "%s")' % combination)
            equal("RootWebArea 'keys %s'" % want in a["content"], True, combination + a["content"])
            good(s, 'goto("about:blank")\ngoto("%s")' % page_of(KEYS))


def looked_at(s, name, data):
    """A file of the workspace in the page of the file viewer."""
    with open(os.path.join(s.work_dir, name), "wb") as f:
        f.write(data)
    with open(os.path.join(s.top, "viewer-url")) as f:
        url = "%s/view?path=%s/%s" % (f.read(), s.work_dir, name)
    a = good(s, 'goto("%s")' % url)
    equal("RootWebArea 'File Viewer - %s'" % name in a["content"], True, a["content"])
    path = a["extras"]["screenshot_path"]
    equal("[Screenshot saved to: %s/.browser_screenshots/screenshot_" % s.work_dir in a["content"], True, a["content"])
    with open(path, "rb") as f:
        equal(f.read(4), b"\x89PNG")
    return a["content"]


def viewed_picture():
    with Browsing() as s:
        text = looked_at(s, "red.png", load_pages(os.path.join(CORPUS, "pages.jsonl"))["red.png"])
        equal("image 'red.png'" in text, True, text)


def viewed_pdf():
    """Drawn, by what is on this machine."""
    if not os.path.exists("/usr/share/javascript/pdf/build/pdf.js"):
        raise Skip("there is no PDF.js: apt-get install libjs-pdf")
    with Browsing() as s:
        text = looked_at(s, "small.pdf", load_pages(os.path.join(CORPUS, "pages.jsonl"))["small.pdf"])
        equal(("Canvas" in text, "Error loading file" in text), (True, False), text)


def saved_pdf():
    """Where it is wanted a PDF is a download, as in the original's image."""
    with Site() as site, Browsing(env={"HANDRAIL_BROWSER_PDF": "download"}) as s:
        a = s.act('goto("%s")' % site.url("small.pdf"))
        path = os.path.join(s.work_dir, "file_1.pdf")
        equal((a["observation"], a["extras"]["file_path"]), ("download", path), a["content"])
        with open(path, "rb") as f:
            equal(f.read() == load_pages(os.path.join(CORPUS, "pages.jsonl"))["small.pdf"], True)
        goes_on(s, site)


# ---- kills ----

class Act(Background):
    def run(self):
        try:
            self.answer = self.server.act(*self.args)
        except Exception as error:
            self.error = error

    def result(self):
        self.join(PATIENCE)
        if self.answer is None:
            raise AssertionError("no answer: %r\n%s" % (self.error, self.server.log()))
        return self.answer


def come_back(s, urls):
    a = s.act("noop(0)")
    equal((a["extras"]["open_pages_urls"], a["extras"]["last_browser_action_error"]), (urls, ""))
    equal(ANEW in a["content"], True, "it is said")
    equal(ANEW in s.act("noop(0)")["content"], False, "once")


def chromium_killed_at_rest():
    with Site() as site, Browsing() as s:
        urls = [site.url("two.html"), site.url("three.html")]
        s.act('goto("%s")\nnew_tab()\ngoto("%s")' % tuple(urls))
        for i in range(2):
            kill_wait(s.chromium())
            come_back(s, urls)


def plugin_killed_at_rest():
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("two.html"))
        chromium = s.chromium()
        kill_wait(s.plugin())
        come_back(s, [site.url("two.html")])
        equal(process.has_ended(chromium), True, "the other one went with its plugin")


def a_name_that_is_not_utf8():
    """A download of that name is told of once, and what was open is not forgotten for it."""
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("two.html"))
        os.makedirs(os.path.join(s.work_dir, ".downloads"), exist_ok=True)
        with open(os.path.join(os.fsencode(s.work_dir), b".downloads", b"caf\xe9"), "wb") as f:
            f.write(b"%PDF")
        a = s.act('click("none")')  # after one that failed it is looked for
        equal((a["observation"], a["extras"].get("file_path")), ("download", os.path.join(s.work_dir, "file_1.pdf")))
        kill_wait(s.plugin())
        come_back(s, [site.url("two.html")])
        equal(s.act('click("none")')["observation"], "browse", "told of once")


def killed_at_work():
    """What was begun is not begun again."""
    for whom in ("chromium", "plugin"):
        with Site() as site, Browsing() as s:
            s.act('goto("%s")' % site.url("two.html"))
            before = site.counts.get("/echo", 0)
            at_work = Act(s, 'goto("%s")\nnoop(60000)' % site.url("echo"))
            s.until("it has begun", lambda: site.counts.get("/echo", 0) > before)
            kill_wait(getattr(s, whom)())
            a = at_work.result()
            equal((a["observation"], "ended" in a["content"]), ("browse" if whom == "chromium" else "error", True),
                  a["content"])
            equal(s.act("noop(0)")["extras"]["last_browser_action_error"], "")
            # what was open when it was written down last, after the action before
            equal(site.counts["/echo"], before + 1, whom)


# ---- looking on ----

class Looker(threading.Thread):
    """Reads the stream of what is to be seen. What was in between may be missed on a busy machine, what is last
    never: so a test waits for what is so in the end."""

    def __init__(self, s, key="k1"):
        super().__init__(daemon=True)
        self.seen, self.ended, self.news = {}, False, threading.Condition()
        self.c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        self.c.request("GET", LOOK, headers={"Accept": "text/event-stream", "X-Session-API-Key": key})
        self.r = self.c.getresponse()
        equal((self.r.status, self.r.getheader("Content-Type")), (200, "text/event-stream"))
        self.start()

    def run(self):
        try:
            for line in self.r:
                if line.startswith(b"data: "):
                    with self.news:
                        self.seen.update(json.loads(line[6:]))
                        self.news.notify()
        except (OSError, http.client.HTTPException, AttributeError):
            pass  # closed
        with self.news:
            self.ended = True
            self.news.notify()

    def until(self, what, fits):
        with self.news:
            if not self.news.wait_for(lambda: self.ended or (self.seen and fits(self.seen)), PATIENCE):
                raise AssertionError("never: %s\n%.2000r" % (what, self.seen))
            if self.ended:
                raise AssertionError("the stream ended before: %s" % what)

    def close(self):
        self.c.sock.shutdown(socket.SHUT_RDWR)
        self.c.close()


def is_jpeg(seen):
    p = seen.get("picture")
    return p is not None and base64.b64decode(p["base64"])[:3] == b"\xff\xd8\xff" and p["width"] > 0


def looking_on():
    key = {"X-Session-API-Key": "k1"}

    def look(**headers):
        return s.request("GET", LOOK, headers=headers)

    with Site() as site, Browsing(env={"SESSION_API_KEY": "k1"}, ready=None) as s:
        s.start(True)
        equal([look().status, look(**{"X-Session-API-Key": "k2"}).status], [403, 403])
        closed = look(**key).json()
        equal(closed, {"open": False, "busy": False, "url": None, "active": -1, "crashed": False, "tabs": [],
                       "picture": None})
        one, two = Looker(s), Looker(s)
        one.until("closed", lambda e: not e["open"])
        s.act('goto("%s")' % site.url("two.html"), headers=key)
        for looker in (one, two):
            looker.until("a page", lambda e: e["url"] == site.url("two.html") and is_jpeg(e) and not e["busy"])
        # another tab: its address, and its picture
        before = one.seen["picture"]
        s.act('new_tab()\ngoto("%s")' % site.url("three.html"), headers=key)
        urls = [site.url("two.html"), site.url("three.html")]
        one.until("another tab", lambda e: (e["tabs"], e["active"]) == (urls, 1) and is_jpeg(e)
                  and e["picture"] != before)
        now = look(**key).json()
        equal((now["url"], now["tabs"], is_jpeg(now)), (urls[1], urls, True))
        # the browser goes, and comes again
        kill_wait(s.chromium())
        one.until("Chromium has ended", lambda e: not e["open"])
        s.act("noop(0)", headers=key)
        one.until("it is there again", lambda e: e["open"] and e["tabs"] == urls and is_jpeg(e))
        # nobody looks: no picture is made
        one.close()
        two.close()
        s.until("the lookers' workers are free", lambda: s.request("GET", "/ready", headers=key).json()
                ["components"]["pool_live"]["busy"] == 0)
        third = Looker(s)
        third.until("a picture of a page that rests", is_jpeg)
        os.kill(s.plugin(), signal.SIGTERM)
        third.join(PATIENCE)
        equal(third.ended, True, "the stream ends with the plugin")


def last_picture():
    """Of pictures that come faster than they are taken some are lost, the last one is not."""
    key = {"X-Session-API-Key": "k1"}
    with Site() as site, Browsing(env={"SESSION_API_KEY": "k1"}, ready=None) as s:
        s.start(True)
        looker = Looker(s)
        s.act('goto("%s#0")' % site.url("colours.html"), headers=key)
        # one of the empty page, or of the window that grows, may come before
        looker.until("a page that rests", lambda e: is_jpeg(e) and not e["busy"])
        green = base64.b64decode(looker.seen["picture"]["base64"])
        for _ in range(3):
            s.act('goto("about:blank")\ngoto("%s#0.5")' % site.url("colours.html"), headers=key)
            looker.until("the last picture", lambda e: is_jpeg(e) and base64.b64decode(e["picture"]["base64"]) == green)
        looker.close()


def nobody_looks_without_a_key():
    with Browsing() as s:
        a = s.get(LOOK)
        equal((a.status, a.json()["detail"]),
              (403, "looking at the browser needs a session key, and none is set"))
        equal(s.pids("handrail-browser"), [], "nothing was started for it")
    with Browsing(args=["--no-enable-browser"], env={"SESSION_API_KEY": "k1"}, ready=None) as s:
        s.start(True)
        equal(s.get(LOOK, X_Session_API_Key="k1").status, 404)


# ---- pages that mean no good ----

def goes_on(s, site):
    b = s.act('goto("%s")' % site.url("two.html"))
    equal((b["extras"]["url"], b["extras"]["last_browser_action_error"]), (site.url("two.html"), ""))
    equal("Page two" in b["content"], True)


def endless_alerts():
    """Answered in time, and the next one works."""
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("alerts.html"))
        a = s.act('click("5")')
        equal((a["observation"], "Timeout 500ms exceeded" in a["content"]), ("browse", True), a["content"])
        goes_on(s, site)


def memory(pid, what):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what + ":")) >> 10


def large_page():
    """All of it, or what has become of it: never a part."""
    with Site() as site, Browsing() as s:
        url = site.url("large.html?n=1000")
        a = s.act('goto("%s")' % url)
        equal((a["extras"]["url"], a["extras"]["last_browser_action_error"]), (url, ""))
        equal((a["content"].count("button 'b'"), "heading 'Large'" in a["content"]), (1000, True))
        # 44 MB of tree: where the machine is too slow for it, the page gives way to an empty one
        a = s.act('goto("%s")' % site.url("large.html"))
        equal(a["observation"], "browse")
        if a["extras"]["url"] == site.url("large.html"):
            equal((a["content"].count("button 'b'"), a["extras"]["last_browser_action_error"]), (10000, ""))
        else:
            equal((a["extras"]["url"], a["extras"]["error"]), ("about:blank", True))
            equal("does not answer" in a["content"] and site.url("large.html") in a["content"], True, a["content"])
        goes_on(s, site)
        if not os.environ.get("ASAN_OPTIONS"):
            equal((memory(s.plugin(), "VmHWM") < 1024, memory(s.plugin(), "VmRSS") < 64), (True, True),
                  "MB of the plugin, at most and afterwards")


def much_memory():
    """A page that takes more than its share is refused it, and the browser goes on."""
    page = ("<title>-</title><button>b</button><script>const all = [];"
            "document.querySelector('button').onclick = () => { try { while (all.length < 96)"
            " all.push(new Uint8Array(32 << 20)); document.title = 'all of it'; }"
            " catch (e) { document.title = e.name; } };</script>")
    with Site() as site, Browsing(env={"HANDRAIL_BROWSER_MEMORY_MAX": "2000000000"}) as s:
        good(s, 'goto("%s")' % page_of(page))
        s.act('click("4")')
        a = s.act("noop(0)")
        equal("RootWebArea 'RangeError'" in a["content"] or "crashed" in a["content"], True, a["content"])
        goes_on(s, site)


def endless_script():
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("loop.html"))
        a = s.act('click("5")')
        equal("Timeout 500ms exceeded" in a["extras"]["last_browser_action_error"], True, a["content"])
        goes_on(s, site)


def storm_of_windows():
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("storm.html"))
        a = s.act('click("5")')
        equal(len(a["extras"]["open_pages_urls"]) <= 24, True)
        b = s.act('tab_focus(0)\ngoto("%s")' % site.url("two.html"))
        equal((b["extras"]["url"], b["extras"]["error"]), (site.url("two.html"), False))


def endless_downloads():
    """Each is broken off, which is said, and nothing of it stays."""
    with Site() as site, Browsing(env={"HANDRAIL_BROWSER_DOWNLOAD_MAX": "1000000"}) as s:
        s.act('goto("%s")' % site.url("downloads.html"))
        said = [s.act('click("5")')["content"]]
        for _ in range(8):
            equal(site.broken_off.acquire(timeout=PATIENCE), True, s.log())
        said.append(s.act("noop()")["content"])
        equal(["A download was broken off" in text for text in said].count(True) > 0, True, said)
        goes_on(s, site)
        equal(os.listdir(os.path.join(s.work_dir, ".downloads")), [])


def opened_before_a_key_is_up():
    """What a press opened is the page that was used last. One that the first of two keys closes is gone."""
    with Site() as site, Browsing() as s:
        url = site.url("opens.html")
        for program in ('click("5", modifiers=["Shift"])', 'press("5", "Enter")'):
            s.act('tab_focus(0)\ngoto("%s")' % url)
            a = s.act(program)
            equal((a["extras"]["url"], a["extras"]["last_browser_action_error"]), (url + "?again", ""), program)
        plugin = s.plugin()
        a = s.act('click("5", modifiers=["Alt", "Shift"])')
        equal((a["extras"]["open_pages_urls"], s.plugin()), ([url, url + "?again"], plugin), a["content"])


def crashed_page():
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("two.html"))
        a = s.act('goto("chrome://crash")')
        equal((a["extras"]["error"], "crashed" in a["content"]), (True, True), a["content"])
        goes_on(s, site)


def overwritten_functions():
    """What a page does to its own functions does not reach ours."""
    with Site() as site, Browsing() as s:
        a = s.act('goto("%s")' % site.url("overwritten.html"))
        equal("[5] button 'b'" in a["content"], True, a["content"])
        a = s.act('click("5")')
        equal(("RootWebArea 'pressed'" in a["content"], a["extras"]["error"]), (True, False), a["content"])


# with frames of other sites in processes of their own, and with all in one; not every Chromium has the same by itself
ISOLATION = ("--site-per-process", "--disable-site-isolation-trials")


def frames_in_frames():
    """Of three sites, the innermost one that of the page: it is clicked and typed into."""
    for flags in ISOLATION:
        with Site() as site, Browsing(flags=flags) as s:
            s.act('goto("%s")' % site.url("nested.html"))
            a = s.act('click("aa4")\nfill("aa5", "deep")')
            equal(a["extras"]["last_browser_action_error"], "", flags)
            equal(a["extras"]["focused_element_bid"], "aa5")
            s.until("it was pressed and typed into", lambda: site.counts.get("/pressed") == 1
                    and site.counts.get("/typed_deep") == 1)


def frame_of_another_site():
    """It is empty at first, and then of the other site."""
    for flags in ISOLATION:
        with Site() as site, Browsing(flags=flags) as s:
            a = good(s, 'goto("%s")' % site.url("iframe_cross.html"))
            if flags == ISOLATION[1]:
                equal("Inner button" in elements(a["content"]).get("a6", ""), True, a["content"])
            a = good(s, 'click("a6")\nfill("a7", "typed")')
            equal(a["extras"]["focused_element_bid"], "a7", flags)
            goes_on(s, site)


def frame_that_navigates():
    """What is in it has bids, whatever was in it before."""
    with Site() as site, Browsing() as s:
        a = good(s, 'goto("%s")' % site.url("iframe_same.html"))
        for name in ("to links", "two", "to links", "two"):
            link = [bid for bid, line in elements(a["content"]).items()
                    if bid[0] == "b" and line.startswith("link '%s'" % name)]
            equal(len(link), 1, a["content"])
            a = good(s, 'click("%s")' % link[0])
        a = good(s, 'click("a6")\nfill("a7", "typed")')
        found = elements(a["content"])
        equal(("clicked" in found["a6"], "typed" in found["a7"], a["extras"]["focused_element_bid"]),
              (True, True, "a7"), a["content"])
        equal("Error encountered" in a["content"], False, a["content"])


def frames_that_vanish():
    """While they are marked and looked for; the plugin does not end."""
    with Site() as site, Browsing() as s:
        s.act('goto("%s")' % site.url("vanish.html"))
        plugin = s.plugin()
        for program in ("noop(0)", 'click("a4")'):
            a = s.act(program)
            equal((a["observation"], a["extras"]["url"]), ("browse", site.url("vanish.html")), a["content"][:2000])
        equal(s.plugin(), plugin)
        goes_on(s, site)


def environment(pid):
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""  # it has just ended


def out_of_reach():
    """A page finds no way to the server without its key, nor to files, pages of the browser itself and the key; what
    it has downloaded gets no name of its choice."""
    key = "key-of-this-test"
    with Site() as site, Browsing(env={"SESSION_API_KEY": key}, ready=None) as s:
        s.start(True)
        secret = os.path.join(s.work_dir, "secret.txt")
        with open(secret, "w") as f:
            f.write("do not tell")
        url = site.url("reach.html?port=%d&file=%s" % (s.port, secret))
        a = s.act('goto("%s")\nnoop(1500)\ntab_focus(0)' % url, headers={"X-Session-API-Key": key})
        equal("do not tell" in a["content"], False, a["content"])
        equal("get:refused" in a["content"] and "file:refused" in a["content"], True, a["content"])
        kinds = {u.split(":")[0] for u in a["extras"]["open_pages_urls"]}
        equal(kinds - {"http", "about", "chrome-error"}, set(), a["extras"]["open_pages_urls"])
        all_that = [environment(pid) for pid in all_of(s.plugin())]
        equal((any(all_that), [e for e in all_that if key.encode() in e]), (True, []), "the key")
        found = [name for _, _, names in os.walk(s.top) for name in names]
        equal([name for name in found if "evil" in name] + [n for n in ("/tmp/evil.txt",) if os.path.exists(n)], [])
        names = os.listdir(os.path.join(s.work_dir, ".downloads"))
        equal([n for n in names if not re.fullmatch(r"[0-9a-f-]{36}(\.crdownload)?", n)], [], "names of our choice")
        equal(len(names) > 0, True, "it has downloaded")


def as_another_user():
    """Root's server, the shell's user: Chromium and its files are that user's, who may not raise a bound on memory that
    the server has."""
    need_root()
    need_entrance()
    with open(supervised.HANDRAILD, "rb") as f:
        bound = [] if b"__asan_init" in f.read() else ["prlimit", "--data=%d" % (3 << 30)]  # its shadow is data, too
    with Site() as site, Browsing(name="nobody", env={"RUNTIME_USERNAME": "nobody", "USER": "root"},
                                  prefix=bound, ready=None) as s:
        shutil.chown(s.work_dir, "nobody")
        s.start()
        a = s.act('goto("%s")' % site.url("two.html"))
        equal(a["extras"]["error"], False, a["content"])
        for pid in all_of(s.plugin()):
            equal(os.stat("/proc/%d" % pid).st_uid != 0, True, process.command_line(pid)[:100])


TESTS = [
    as_recorded, no_chromium, switched_off, evaluations, starts_where_it_was_named, nothing_is_open_or_left,
    a_form, keys, viewed_picture, viewed_pdf, saved_pdf,
    chromium_killed_at_rest, plugin_killed_at_rest, a_name_that_is_not_utf8, killed_at_work, looking_on, last_picture,
    nobody_looks_without_a_key,
    endless_alerts, endless_script, storm_of_windows, endless_downloads, opened_before_a_key_is_up,
    crashed_page, large_page, much_memory, overwritten_functions, frames_in_frames, frame_of_another_site,
    frame_that_navigates, frames_that_vanish, out_of_reach, as_another_user,
]

if __name__ == "__main__":
    if missing() is not None:
        skip_all(missing())
    run_tests(TESTS)
