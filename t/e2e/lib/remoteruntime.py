"""The client RemoteRuntime of OpenHands 0.62 as it sends: no X-Request-ID, and a command whose connection failed is
sent again by itself."""

import http.client
import json
import threading

from .host import PATIENCE
from .tap import equal


class RemoteRuntime:
    """Its way of sending."""

    def __init__(self, f, o):
        self.f, self.o, self.again = f, o, 0

    def once(self, command):
        c = http.client.HTTPConnection("127.0.0.1", self.f.port, timeout=PATIENCE)
        try:
            c.request("POST", "/%s/execute_action" % self.o["runtime_id"], json.dumps(
                {"action": {"action": "run", "args": {"command": command}}}), {
                    "X-API-Key": self.f.key, "X-Session-API-Key": self.o["session_api_key"],
                    "Content-Type": "application/json", "User-Agent": "python-httpx/0.28.1"})
            r = c.getresponse()
            return r.status, json.loads(r.read())
        finally:
            c.close()

    def run(self, command):
        """The output; as the client does, the command is sent again where the connection was cut."""
        for attempt in range(5):
            try:
                status, answer = self.once(command)
                equal(status, 200, repr(answer))
                return answer["content"]
            except (OSError, http.client.HTTPException) as error:
                self.again += 1
                last = error
                self.f.until_answered()
        raise AssertionError("no answer in five tries: %r" % (last,))


class Background(threading.Thread):
    def __init__(self, fn, *args):
        super().__init__(daemon=True)
        self.fn, self.args, self.result, self.error = fn, args, None, None
        self.start()

    def run(self):
        try:
            self.result = self.fn(*self.args)
        except Exception as error:  # told by value()
            self.error = error

    def value(self):
        self.join(2 * PATIENCE)
        equal((self.is_alive(), self.error), (False, None))
        return self.result
