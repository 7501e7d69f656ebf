"""A server with the plugin browser, a site for it, and the comparison of its answers with recorded
ones."""

import base64
import difflib
import http.server
import json
import os
import re
import shutil
import struct
import tempfile
import threading

from . import process
from .browsersite import Handler, load_pages
from .supervised import BUILDDIR, SRCDIR, Server
from .tap import equal

CORPUS = os.path.join(SRCDIR, "t", "corpus", "browser")
HOSTILE = os.path.join(SRCDIR, "t", "e2e", "pages", "hostile")
CHROMIUM = os.environ.get("HANDRAIL_TEST_CHROMIUM", "/usr/bin/chromium")
FONTS = "/usr/share/fonts/truetype/dejavu"
JSON = {"Content-Type": "application/json"}
TIME = re.compile(r"screenshot_\d{8}_\d{6}_\d{6}\.png")
PATIENCE = 150  # an action may take 120 s


def missing():
    """Why there can be no browser here; None."""
    if not os.path.exists(os.path.join(BUILDDIR, "handrail-browser")):
        return "handrail was built without the plugin browser: apt-get install libpng-dev libxml2-dev"
    if not os.path.exists(CHROMIUM):
        return "there is no Chromium: apt-get install chromium"
    if not os.path.exists(os.path.join(FONTS, "DejaVuSerif.ttf")):
        return "the fonts of the recordings are missing: apt-get install fonts-dejavu-core"
    return None


class Site:
    """On a free port; counts the requests for each path."""

    def __init__(self):
        site = self
        self.counts = {}

        class Counting(Handler):
            pages, directories = load_pages(os.path.join(CORPUS, "pages.jsonl")), (HOSTILE,)
            ended, broken_off = threading.Event(), threading.Semaphore(0)

            def do_GET(self):
                path = self.path.split("?")[0]
                site.counts[path] = site.counts.get(path, 0) + 1
                super().do_GET()

        self.ended, self.broken_off = Counting.ended, Counting.broken_off
        http.server.ThreadingHTTPServer.daemon_threads = True
        http.server.ThreadingHTTPServer.request_queue_size = 64
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
        self.server.handle_error = lambda *who: None  # a page that leaves breaks off what it asked for
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return "http://127.0.0.1:%d/%s" % (self.port, path)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


class Browsing(Server):
    """With the fonts of the recordings and no others: places and broken lines depend on them."""

    def __init__(self, args=(), env=None, program=None, flags="", **kw):
        self.place = tempfile.mkdtemp(prefix="e2e-fonts-")
        os.chmod(self.place, 0o755)
        fonts = os.path.join(self.place, "fonts")
        os.mkdir(fonts)
        for face in ("Sans", "Sans-Bold", "SansMono", "SansMono-Bold", "Serif", "Serif-Bold"):
            os.symlink("%s/DejaVu%s.ttf" % (FONTS, face), "%s/DejaVu%s.ttf" % (fonts, face))
        with open(os.path.join(self.place, "fonts.conf"), "w") as f:
            f.write('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
                    "<dir>%s</dir><cachedir prefix=\"xdg\">fonts</cachedir>"
                    '<include ignore_missing="yes">/etc/fonts/conf.d</include></fontconfig>' % fonts)
        script = os.path.join(self.place, "chromium")
        with open(script, "w") as f:
            f.write('#!/bin/sh\nexport FONTCONFIG_FILE="%s/fonts.conf"\nexec %s "$@" %s\n'
                    % (self.place, CHROMIUM, flags))
        os.chmod(script, 0o755)
        super().__init__(args=args, env=dict(env or {}, HANDRAIL_BROWSER_CHROMIUM=program or script), **kw)

    def ask(self, action, headers=None, **args):
        body = json.dumps({"action": {"action": action, "args": args}})
        return self.request("POST", "/execute_action", body, dict(JSON, **(headers or {})), PATIENCE)

    def act(self, program, **kw):
        a = self.ask("browse_interactive", browser_actions=program, **kw)
        if a.status != 200:
            raise AssertionError("%s: %r\n%s" % (program, a, self.log()))
        return a.json()

    def plugin(self):
        (pid,) = self.pids("handrail-browser")
        return pid

    def chromium(self):
        # beside it are those that report crashes, in sessions of others that ended
        (pid,) = [p for p in process.children(self.plugin()) if os.getsid(p) == p]
        return pid

    def profile(self):
        return os.path.join(self.run_dir, "plugin", "browser", "profile")

    def __exit__(self, *what):
        try:
            super().__exit__(*what)
        finally:
            shutil.rmtree(self.place, ignore_errors=True)


# ---- comparison, as the README of the recordings says ----

def picture(url):
    """Of a picture no more than kind and size."""
    if not url or not isinstance(url, str):
        return url
    head, _, data = url.partition(",")
    raw = base64.b64decode(data)
    equal(raw[:8], b"\x89PNG\r\n\x1a\n", "a picture")
    width, height = struct.unpack(">II", raw[16:24])
    return {"mime": head[5:].split(";")[0], "width": width, "height": height}


class Tokens:
    """An address is known by the colon before its port: five digits alone are also in times, places and pictures."""

    def __init__(self, port, closed, work_dir):
        self.pairs = [(":{{PORT}}", ":%d" % port), (":{{CLOSED}}", ":%d" % closed), ("/workspace", work_dir)]

    def into(self, value):
        text = json.dumps(value)
        for token, real in self.pairs:
            text = text.replace(token, real)
        return json.loads(text)

    def back(self, value):
        text = TIME.sub("screenshot_{{TS}}.png", json.dumps(value))
        for token, real in self.pairs:
            text = re.sub(re.escape(real) + r"(?![0-9])", token, text)
        return json.loads(text)


def brief(answer):
    extras = answer.get("extras")
    if isinstance(extras, dict) and "screenshot" in extras:
        extras["screenshot"] = picture(extras["screenshot"])
        extras["set_of_marks"] = picture(extras["set_of_marks"])
        if extras["axtree_object"]:
            extras["axtree_object"] = {"$count": len(extras["axtree_object"].get("nodes", []))}
    return answer


def lines_of(content):
    """Of an error only the first line: the rest of the driver's log depends on time."""
    lines, kept, i = content.split("\n"), [], 0
    while i < len(lines):
        kept.append(lines[i])
        if lines[i].startswith("The following error occurred") and i + 1 < len(lines):
            kept.append(lines[i + 1])
            while i < len(lines) and not lines[i].startswith("================ END error"):
                i += 1
            continue
        i += 1
    return kept


def words_of(text):
    return re.findall(r"[^\s*_#`>|\-\[\]()]+", text)


def differing_places(want, got):
    if set(want) != set(got):
        yield "elements: missing %s, more %s" % (sorted(set(want) - set(got)), sorted(set(got) - set(want)))
        return
    for bid in want:
        for name, x in want[bid].items():
            y = got[bid].get(name)
            if name == "bbox" and x and y and all(abs(p - q) <= 1 for p, q in zip(x, y)):
                continue
            if name == "visibility" and x is not None and y is not None and abs(x - y) <= 0.05:
                continue
            if x != y:
                yield "%s of %s: %r, not %r" % (name, bid, y, x)


def differing_content(want, got):
    page, tree = "============== BEGIN webpage content", "============== BEGIN acc"
    a, b = want["content"], got["content"]
    if want["extras"].get("trigger_by_action") == "browse":
        (a, _, text), (b, _, got_text) = a.partition(page), b.partition(page)
        if words_of(text) != words_of(got_text):
            yield "page text: %r, not %r" % (got_text, text)
    elif want["extras"].get("url", "").startswith("chrome-error:"):
        a, b = a.split(tree)[0], b.split(tree)[0]  # Chromium's own words
    a, b = lines_of(a), lines_of(b)
    if a != b:
        yield "content:\n" + "\n".join(difflib.unified_diff(a, b, "recorded", "answered", lineterm="", n=1))


def differences(want, got):
    if list(want) != list(got) or list(want.get("extras", {})) != list(got.get("extras", {})):
        yield "keys: %r" % (got,)
        return
    for name in want:
        if name not in ("content", "extras") and want[name] != got[name]:
            yield "%s: %r, not %r" % (name, got[name], want[name])
    for name, x in want.get("extras", {}).items():
        y = got["extras"][name]
        if name == "extra_element_properties":
            yield from differing_places(x, y)
        elif name == "last_browser_action_error":
            if x.split("\n")[0] != y.split("\n")[0]:
                yield "%s: %r, not %r" % (name, y, x)
        elif x != y:
            yield "%s: %r, not %r" % (name, y, x)
    if "content" in want:
        yield from differing_content(want, got)


def forget(step, got):
    """What differs between recordings is not compared."""
    for pointer in step.get("unstable") or {}:
        parts = [p.replace("~1", "/").replace("~0", "~") for p in pointer.strip("/").split("/")]
        if parts[0] == "response":
            del parts[0]
        a, b = step["response"], got
        try:
            for p in parts[:-1]:
                a, b = (x[int(p)] if isinstance(x, list) else x[p] for x in (a, b))
            p = int(parts[-1]) if isinstance(a, list) else parts[-1]
            a[p] = b[p]
        except (KeyError, IndexError):
            pass


def scenarios():
    with open(os.path.join(CORPUS, "browse.jsonl")) as f:
        return [json.loads(line) for line in f]
