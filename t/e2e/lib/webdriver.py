"""A real Chromium, by the WebDriver protocol of Debian's chromium-driver: no other package."""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"ENTER": "\ue007", "TAB": "\ue004", "LEFT": "\ue012", "RIGHT": "\ue014", "HOME": "\ue011", "END": "\ue010",
        "UP": "\ue013", "DOWN": "\ue015"}


def missing():
    """What is not installed, or ""."""
    for program, package in (("chromedriver", "chromium-driver"), ("chromium", "chromium")):
        if shutil.which(program) is None:
            return "no %s: apt-get install %s" % (program, package)
    try:
        socket.getaddrinfo("localhost", None)  # where chromedriver looks for its Chromium
    except socket.gaierror:
        return "no address of localhost: echo 127.0.0.1 localhost >>/etc/hosts"
    return ""


class WebDriverError(Exception):
    pass


class Driver:
    """The process that all windows of a test share."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="e2e-www-")
        env = dict(os.environ, HOME=self.home, XDG_CONFIG_HOME=self.home, XDG_CACHE_HOME=self.home, TMPDIR=self.home)
        # it takes a free port of IPv6, and ends where that of IPv4 is somebody else's
        for _ in range(20):
            self.popen = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, env=env,
                                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
            said = b""
            for line in self.popen.stdout:
                said += line
                found = re.search(rb"started successfully on port (\d+)", line)
                if found:
                    self.port = int(found.group(1))
                    return
            self.popen.wait()
            self.popen.stdout.close()
            if b"port not available" not in said:
                break
        shutil.rmtree(self.home, ignore_errors=True)
        raise WebDriverError("chromedriver ended: %r" % said)

    def close(self):
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()
        self.popen.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=4 * PATIENCE)
        try:
            c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            r = c.getresponse()
            value = json.loads(r.read())["value"]
        finally:
            c.close()
        if r.status != 200:
            raise WebDriverError("%s: %s" % (value.get("error"), value.get("message", "")[:500]))
        return value


def sandbox_works():
    """Chromium ends at once where it has no sandbox. It has one for ordinary users who may make user namespaces, as one
    in a chroot may not, or by a program of the package chromium-sandbox."""
    return os.geteuid() != 0 and (os.path.exists("/usr/lib/chromium/chrome-sandbox") or subprocess.run(
        ["unshare", "--user", "true"], stderr=subprocess.DEVNULL).returncode == 0)


class Window:
    """A browser of its own, with a profile of its own."""

    def __init__(self, driver=None, width=1280, height=800, dark=False, insecure=False):
        self.driver, self.own = driver or Driver(), driver is None
        try:
            self.start(width, height, dark, insecure)
        except Exception:
            self.end()
            raise

    def start(self, width, height, dark, insecure):
        args = ["--headless=new", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-gpu", "--disable-dev-shm-usage", "--window-size=%d,%d" % (width, height), "--mute-audio",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost"]
        if not sandbox_works():
            args.append("--no-sandbox")  # these pages are of the tests
        options = {"args": args, "binary": shutil.which("chromium")}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options, "acceptInsecureCerts": insecure,
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                        "unhandledPromptBehavior": "ignore"}
        self.id = self.driver.ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]
        self.do("POST", "timeouts", {"script": 3000 * PATIENCE})
        if width < 500:  # a window cannot be so narrow, a page can
            self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=False)
        if dark:
            self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        try:
            self.driver.ask("DELETE", "/session/" + self.id)
        finally:
            self.end()

    def end(self):
        if self.own:
            self.driver.close()

    def do(self, method, path, body=None):
        return self.driver.ask(method, "/session/%s/%s" % (self.id, path), body)

    def cdp(self, command, **params):
        return self.do("POST", "goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, url):
        self.do("POST", "url", {"url": url})

    def js(self, script, *args):
        return self.do("POST", "execute/sync", {"script": script, "args": list(args)})

    def js_async(self, script, *args):
        return self.do("POST", "execute/async", {"script": script, "args": list(args)})

    def find(self, css):
        return self.do("POST", "element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.do("POST", "element/%s/click" % self.find(css), {})

    def type(self, css, text):
        self.do("POST", "element/%s/value" % self.find(css), {"text": text})

    def press(self, keys):
        """On what has the focus."""
        actions = [{"type": t, "value": k} for k in keys for t in ("keyDown", "keyUp")]
        self.do("POST", "actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, css):
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.textContent : null", css)

    def until(self, what, script, *args):
        """Waits, in the page, for a change of it after which the script returns something true; returns that."""
        found = self.js_async("""
            const done = arguments[arguments.length - 1], args = Array.from(arguments).slice(1, -2);
            const test = new Function(arguments[0]), end = performance.now() + arguments[arguments.length - 2];
            const look = () => {
                let v = null;
                try { v = test.apply(null, args); } catch (e) { v = null; }
                if (v || performance.now() > end) done(v); else requestAnimationFrame(look);
            };
            look();""", script, *args, 1000 * PATIENCE)
        if not found:
            raise AssertionError("%s: not within %g s; the page: %s" % (what, PATIENCE, self.js(
                "return document.body.innerText.slice(0, 2000)")))
        return found

    def log(self, kind="browser"):
        return self.do("POST", "se/log", {"type": kind})

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.do("GET", "screenshot")))

    def requests(self):
        """URLs asked for since the last call."""
        found = []
        for entry in self.log("performance"):
            m = json.loads(entry["message"])["message"]
            if m["method"] == "Network.requestWillBeSent":
                found.append(m["params"]["request"]["method"] + " " + m["params"]["request"]["url"])
        return found


def pause(seconds):
    """For what must NOT happen within a time."""
    time.sleep(seconds)
