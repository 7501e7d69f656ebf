"""A headless Chromium that is told what to do over its debugging pipe: no port, no package."""

import base64
import json
import os
import select
import subprocess
import time

from .supervised import PATIENCE

# resolves when the text is on the page: told by the page itself
SEEN = """new Promise(resolve => {
    const look = () => document.body && document.body.innerText.includes(%s) && (resolve(true), true);
    if (!look()) {
        const o = new MutationObserver(() => look() && o.disconnect());
        o.observe(document.documentElement, {subtree: true, childList: true, characterData: true});
    }
})"""

FOUND = """new Promise(resolve => {
    const look = () => document.querySelector(%s) && (resolve(true), true);
    if (!look()) {
        const o = new MutationObserver(() => look() && o.disconnect());
        o.observe(document.documentElement, {subtree: true, childList: true, attributes: true});
    }
})"""


class Browser:
    def __init__(self, program, profile, size=(1200, 800)):
        to_read, self.to = os.pipe()
        self.come, come_write = os.pipe()

        def pipes():  # 3: its requests, 4: its answers; both may be in the way of the other
            a, b = os.dup(to_read), os.dup(come_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.popen = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir=" + profile,
             "--window-size=%d,%d" % size, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=pipes, close_fds=False, start_new_session=True)
        os.close(to_read)
        os.close(come_write)
        self.data, self.number, self.session = b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")

    def _message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.data:
            if not select.select([self.come], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the browser says nothing")
            chunk = os.read(self.come, 1 << 20)
            if not chunk:
                raise AssertionError("the browser ended")
            self.data += chunk
        text, self.data = self.data.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, seconds=4 * PATIENCE, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            m = self._message(seconds)
            if m.get("id") == self.number:
                if "error" in m:
                    raise AssertionError("%s: %s" % (method, m["error"]))
                return m["result"]

    def visit(self, url, seconds=4 * PATIENCE):
        self.ask("Page.navigate", url=url)
        while self._message(seconds).get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, text):
        return self.ask("Runtime.evaluate", expression=text, awaitPromise=True,
                        returnByValue=True)["result"].get("value")

    def wait_text(self, text):
        return self.evaluate(SEEN % json.dumps(text))

    def wait_selector(self, text):
        return self.evaluate(FOUND % json.dumps(text))

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        os.close(self.to)  # its end
        try:
            self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        os.close(self.come)
