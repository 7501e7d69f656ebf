"""A handrail-fleetd for clients of the E2B API, and their requests."""

import http.client
import json
import urllib.parse

from test_fleet_box import BoxFleet

from .host import PATIENCE
from .hostbox import groups
from .tap import equal

DOMAIN = "dom.example"


class Calls:
    """The requests, for a Fleet."""

    def use_e2b(self):
        self.e2b_key = "e2b_" + self.key[len("hrk_"):]
        self.secrets.append(self.e2b_key)

    def api(self, method, path, body=None, key=None, **headers):
        """The status and the answer, whose errors all have one form."""
        given = {"X-API-KEY": self.e2b_key if key is None else key}
        if body is not None:
            given["Content-Type"] = "application/json"
        given.update({k.replace("_", "-"): v for k, v in headers.items()})
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            c.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), given)
            r = c.getresponse()
            text = r.read()
            self.head = r.headers
        finally:
            c.close()
        answer = json.loads(text) if text else None
        if r.status >= 400:
            equal((r.headers["Content-Type"].split(";")[0], answer["code"], type(answer["message"])),
                  ("application/json", r.status, str), answer)
        return r.status, answer

    def create(self, path="/v2/sandboxes", **more):
        status, o = self.api("POST", path, dict({"templateID": "base"}, **more))
        equal(status, 201, o)
        self.secrets.append(o["envdAccessToken"])
        return o

    def edge(self, method, path, o=None, port=49983, body=None, host=None, **headers):
        """The status, the answer as text or JSON, by headers, or by `host`."""
        given = {k.replace("_", "-"): v for k, v in headers.items()}
        if o is not None and host is None:
            given.update({"E2b-Sandbox-Id": o["sandboxID"], "E2b-Sandbox-Port": str(port)})
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            if host is not None:
                given["Host"] = host
            c.request(method, path, body, given)
            r = c.getresponse()
            text = self.text = r.read()
            self.head = r.headers
        finally:
            c.close()
        try:
            return r.status, json.loads(text)
        except ValueError:
            return r.status, text.decode(errors="replace")

    def info(self, o):
        return self.api("GET", "/sandboxes/" + o["sandboxID"])

    def gone(self, o):
        return self.until(lambda: self.info(o)[0], lambda status: status == 404)


class E2b(Calls, BoxFleet):
    """A service of the account `uid`."""

    def __init__(self, uid, *options):
        super().__init__(uid, "--domain", DOMAIN, *options)
        self.use_e2b()

    def pauses(self, o):
        """Whether this account can pause boxes."""
        return bool(groups(self.box({"runtime_id": o["sandboxID"]})["name"]))


def metadata(**pairs):
    """As the SDKs send it: percent-encoded three times."""
    once = {urllib.parse.quote(k): urllib.parse.quote(v) for k, v in pairs.items()}
    return "metadata=" + urllib.parse.quote(urllib.parse.urlencode(once))

