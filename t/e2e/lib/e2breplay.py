"""Plays the recorded conversations of t/corpus/e2b against a service and compares the answers.

    e2breplay.py --api URL --edge URL --key KEY [--only REGEX] [FILE...]"""

import argparse
import base64
import http.client
import json
import os
import re
import struct
import sys
import threading
import time
import urllib.parse
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.e2bworld import sign  # noqa: E402

CORPUS = os.path.join(os.path.dirname(__file__), "../../corpus/e2b")
TOKEN = "ea_0123456789abcdef0123456789abcdef01234567"  # of the recordings
PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))
COMPARED = ("content-type", "content-range", "content-disposition", "content-encoding",
            "access-control-allow-origin", "allow")
# {{NAMES}} and how they are found in answers
FOUND = (("PID", rb'"start":\s*\{\s*"pid":\s*(\d+)'), ("WATCHER", rb'"watcherId":\s*"([^"]+)"'),
         ("CTX", rb'^\{"id":\s*"([0-9a-f-]{36})"'))


def scenarios(only="", files=()):
    for name in files or [os.path.join(CORPUS, n) for n in ("e2b_oracle_cmd.jsonl", "e2b_oracle.jsonl")]:
        with open(name, encoding="utf-8") as f:
            yield from (s for s in map(json.loads, f) if re.search(only, s["name"]))


def explained():
    """Differences that are meant: scenario -> why."""
    with open(os.path.join(CORPUS, "explained"), encoding="utf-8") as f:
        return dict(line.strip().split(": ", 1) for line in f if line.strip() and not line.startswith("#"))


def connect(url, timeout):
    u = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection
    return kind(u.netloc, timeout=timeout)


def frames(data):
    """[(flags, message)]: the whole frames of a stream."""
    found, at = [], 0
    while at + 5 <= len(data):
        flags, size = struct.unpack(">BI", data[at:at + 5])
        if at + 5 + size > len(data):
            break
        found.append((flags, data[at + 5:at + 5 + size]))
        at += 5 + size
    return found


def unpacked(data):
    try:
        return zlib.decompressobj(47).decompress(data)
    except zlib.error as e:
        return str(e)


class Service:
    """A sandbox made by the API. clean(setup) prepares a scenario; None: the sandbox's own processes do."""

    def __init__(self, api, edge, key, clean=None, template="base"):
        self.api, self.edge, self.key = api, edge, key
        made = self.control("POST", "/v2/sandboxes", {"templateID": template, "timeout": 3600})
        self.id, self.token = made["sandboxID"], made.get("envdAccessToken") or ""
        self.clean = clean or self.clean_inside

    def control(self, method, path, body=None):
        c = connect(self.api, PATIENCE)
        c.request(method, path, json.dumps(body) if body is not None else None,
                  {"X-API-KEY": self.key, "Content-Type": "application/json"})
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status >= 300:
            raise AssertionError("%s %s: %d %r" % (method, path, r.status, data))
        return json.loads(data) if data else None

    def process(self, method, message, stream=False):
        data = json.dumps(message).encode()
        c = connect(self.edge, PATIENCE)
        c.request("POST", "/process.Process/" + method, struct.pack(">BI", 0, len(data)) + data if stream else data,
                  {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token,
                   "Content-Type": "application/connect+json" if stream else "application/json",
                   "Authorization": "Basic " + base64.b64encode(b"root:").decode()})
        answer = c.getresponse().read()
        c.close()
        return answer

    def clean_inside(self, setup):
        for p in json.loads(self.process("List", {})).get("processes", []):
            self.process("SendSignal", {"process": {"pid": p["pid"]}, "signal": 9})
        script = ("pkill -9 -u user; cd /; rm -rf /home/user /srv/x; find /tmp -xdev -mindepth 1 -delete; "
                  "mkdir -p /home/user; chown user:user /home/user; chmod 755 /home/user; " + (setup or ":"))
        self.process("Start", {"process": {"cmd": "/bin/sh", "args": ["-c", script]}, "stdin": False}, True)

    def end(self):
        self.control("DELETE", "/sandboxes/" + self.id)


class Call:
    def __init__(self):
        self.status, self.headers, self.data, self.ended, self.error = None, {}, b"", False, None


class Scenario:
    """One run: play(), then differences()."""

    def __init__(self, service, recorded):
        self.service, self.recorded = service, recorded
        self.names, self.calls, self.changed = {}, [], threading.Condition()

    # ---- requests ----

    def filled(self, value):
        if isinstance(value, dict):
            return {k: self.filled(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.filled(v) for v in value]
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"\{\{PID\d+\}\}", value):
            return int(self.names.get(value, 0))
        for name, text in self.names.items():
            value = value.replace(name, text)
        return value.replace("{{ID}}", self.service.id)

    def body(self, b):
        if not b:
            return None
        if "frames" in b:
            if b.get("incomplete") or any("json" not in f for f in b["frames"]):
                return base64.b64decode(b["b64"])
            texts = [(f["flags"], json.dumps(self.filled(f["json"]), ensure_ascii=False).encode()) for f in b["frames"]]
            return b"".join(struct.pack(">BI", flags, len(t)) + t for flags, t in texts)
        if "json" in b:
            return json.dumps(self.filled(b["json"]), ensure_ascii=False).encode()
        if "text" in b:
            return self.filled(b["text"]).encode()
        if "multipart" in b:
            return self.form(b["boundary"].encode(), b["multipart"])
        return base64.b64decode(b["b64"])

    @staticmethod
    def form(boundary, parts):
        text = b""
        for p in parts:
            head = "\r\n".join(filter(None, p["headers"])).encode()
            data = p["text"].encode() if "text" in p else base64.b64decode(p["b64"])
            text += b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary, head, data)
        return text + b"--%s--\r\n" % boundary

    def query(self, request):
        """A signature that is right for the recorded token is made again for this one."""
        raw, q = request.get("raw_query", ""), dict(request.get("query", []))
        old, user, until = q.get("signature"), q.get("username", ""), q.get("signature_expiration")
        for path in (q.get("path", ""), "f.txt"):
            for operation in ("read", "write"):
                for end in {until, None}:
                    if old and old == sign(path, operation, user, TOKEN, end):
                        new = sign(path, operation, user, self.service.token, end)
                        return raw.replace(urllib.parse.quote(old, safe=""), urllib.parse.quote(new, safe=""))
        return raw

    def send(self, number):
        call, recorded = self.calls[number], self.recorded["calls"][number]
        request, response = recorded["request"], recorded["response"]
        try:
            body, query = self.body(request.get("body")), self.query(request)
            if body is None and request["method"] == "POST":
                body = b""
            c = connect(self.service.edge, PATIENCE)
            c.putrequest(request["method"], self.filled(request["path"]) + ("?" + query if query else ""),
                         skip_accept_encoding=True)
            for name, value in request["headers"].items():
                if name not in ("host", "content-length", "transfer-encoding"):
                    c.putheader(name, {TOKEN: self.service.token, "{{ID}}": self.service.id}.get(value, value))
            if body is not None:
                c.putheader("Content-Length", str(len(body)))
            c.endheaders(body)
            r = c.getresponse()
            call.status, call.headers = r.status, {n.lower(): v for n, v in r.getheaders()}
            lines = (response.get("body") or {}).get("text", "").count("\n")
            enough = len((response.get("body") or {}).get("frames", [])) if response.get("client_closed") else None
            while enough is None or len(frames(call.data)) < enough or call.data.count(b"\n") < lines:
                data = r.read1(65536)
                if not data:
                    break
                with self.changed:
                    call.data += data
                    self.learn(call.data)
                    self.changed.notify_all()
            c.close()
        except (OSError, http.client.HTTPException, ValueError) as e:
            call.error = repr(e)
        with self.changed:
            call.ended = True
            self.changed.notify_all()

    def learn(self, data):
        for name, pattern in FOUND:
            for m in re.finditer(pattern, data):
                text = m.group(1).decode()
                if text not in self.names.values():
                    count = 1 + sum(n.startswith("{{" + name) for n in self.names)
                    self.names["{{%s%d}}" % (name, count)] = text

    def ready(self, conditions):
        for number, call in enumerate(self.calls[:-1]):
            wanted = conditions.get(number, {})
            if not call.ended and not ("frames" in wanted and (
                    not wanted["frames"] or frames(call.data))):  # chunks may be cut otherwise
                return False
        return True

    def play(self):
        began, threads = time.monotonic(), []
        for number, recorded in enumerate(self.recorded["calls"]):
            self.calls.append(Call())
            conditions = {w["call"]: w for w in recorded.get("when", [])}
            with self.changed:
                self.changed.wait_for(lambda: self.ready(conditions), PATIENCE)
                # what happens meanwhile, or after a client has left, shows in no frame
                if any(not call.ended or c["response"].get("client_closed")
                       for call, c in zip(self.calls[:-1], self.recorded["calls"])):
                    at = began + min(recorded["ms"][0] / 1000, 8)
                    self.changed.wait_for(lambda: time.monotonic() >= at, max(at - time.monotonic(), 0))
            threads.append(threading.Thread(target=self.send, args=(number,), daemon=True))
            threads[-1].start()
        for t in threads:
            t.join(PATIENCE)

    # ---- comparison ----

    def named(self, value, key=None, names=None):
        """The value with the names in the place of what varies."""
        names = self.names if names is None else names
        if isinstance(value, dict):
            return {k: self.named(v, k, names) for k, v in value.items()}
        if isinstance(value, list):
            value = [self.named(v, key, names) for v in value]
            return sorted(value, key=str) if key == "processes" else value
        if key in ("modifiedTime", "timestamp"):
            return "{{TIME}}"
        if key == "pid":
            return {v: n for n, v in names.items()}.get(str(value), value)
        if isinstance(value, str):
            for name, text in names.items():
                if "PID" not in name or key in ("message", None):
                    value = re.sub(r"(?<![A-Za-z0-9])%s(?![A-Za-z0-9])" % re.escape(text), name, value)
            return value.replace(self.service.id, "{{ID}}")
        return value

    @staticmethod
    def stream(messages):
        """What of a stream has an order, its data joined, and the events of a watcher."""
        rest, data, events = [], {}, []
        for flags, message in messages:
            event = message.get("event", {}) if isinstance(message, dict) else {}
            if "data" in event:
                for name, text in event["data"].items():
                    data[name] = data.get(name, b"") + base64.b64decode(text)
            elif isinstance(message, dict) and "filesystem" in message:
                events.append((message["filesystem"].get("name"), message["filesystem"].get("type")))
            else:
                rest.append([flags, message])
        if "pty" in data:
            data["pty"] = b"..."  # prompts
        return rest, data, events

    @staticmethod
    def outputs(text):
        """The lines of an execution without what varies from one Python to another; adjacent texts are joined."""
        found = []
        for o in map(json.loads, text.splitlines()):
            o = {k: re.sub(r"\(\d+\.py", "({{CELL}}.py", v) if k == "value" else v for k, v in o.items()
                 if k not in ("execution_count", "traceback", "timestamp", "png")}
            if found and found[-1]["type"] == o["type"] in ("stdout", "stderr"):
                found[-1]["text"] += o["text"]
            elif o["type"] != "keepalive":
                found.append(o)
        return found

    def stream_differs(self, call, body, closed):
        got = frames(call.data)
        if any("json" not in f for f in body["frames"]):
            return "" if [f for f, _ in got][-1:] == [f["flags"] for f in body["frames"]][-1:] else "another last frame"
        try:
            mine = self.stream([(flags, self.named(json.loads(text))) for flags, text in got])
        except ValueError:
            return "no JSON in a frame: %r" % call.data[:200]
        theirs = self.stream([(f["flags"], self.named(f["json"], names={})) for f in body["frames"]])
        if closed:
            mine, theirs = mine[0][:1], theirs[0][:1]
        return "" if mine == theirs else "%.300s for %.300s" % (mine, theirs)

    def body_differs(self, call, response):
        body = response.get("body") or {}
        if "frames" in body:
            return self.stream_differs(call, body, response.get("client_closed"))
        if "json" in body:
            try:
                mine = self.named(json.loads(call.data))
            except ValueError:
                return "no JSON: %r" % call.data[:200]
            theirs = self.named(body["json"], names={})
            if "metrics" in self.recorded["variable"]:
                mine, theirs = sorted(mine), sorted(theirs)
            return "" if mine == theirs else "%.300s for %.300s" % (mine, theirs)
        if body.get("text", "").startswith('{"type"'):
            mine, theirs = self.outputs(call.data.decode("utf-8", "replace")), self.outputs(body["text"])
            if any(o.get("name") == "ContextRestarting" for o in theirs):
                # a kernel that ends itself has sent the number of the execution, or not
                mine, theirs = ([o for o in lines if o["type"] != "number_of_executions"] for lines in (mine, theirs))
            return "" if mine == theirs else "%.300s for %.300s" % (mine, theirs)
        if "text" in body:
            mine = self.named(call.data.decode("utf-8", "replace"))
            return "" if mine == body["text"] else "%.200r for %.200r" % (mine, body["text"])
        if "multipart" in body:
            end = call.headers.get("content-type", "").partition("boundary=")[2]
            recorded = self.body(dict(body, boundary=end)) or b""
            return "" if sorted(recorded.split(b"\r\n")) == sorted(call.data.split(b"\r\n")) else "%r" % call.data[:200]
        recorded = base64.b64decode(body.get("b64", ""))
        if response["headers"].get("content-encoding") == "gzip":
            return "" if unpacked(call.data) == unpacked(recorded) else "%.200r is other data" % call.data
        return "" if call.data == recorded else "%r for %r" % (call.data[:100], recorded[:100])

    def call_differs(self, call, response):
        if call.error and not response.get("client_closed"):
            yield call.error
        elif call.status != response.get("status"):
            yield "status %s for %s: %r" % (call.status, response.get("status"), call.data[:200])
        else:
            for name in COMPARED:
                mine, theirs = (h.get(name, "").split("; boundary")[0] for h in (call.headers, response["headers"]))
                if mine != theirs and not (name == "allow" and mine and theirs):  # the original names one method
                    yield "%s: %r for %r" % (name, mine, theirs)
            if not {"body", "pid_in_output", "race", "write_events"} & set(self.recorded["variable"]):
                yield self.body_differs(call, response)

    def differences(self):
        return ["call %d, %s: %s" % (number, recorded["request"]["path"], text)
                for number, (call, recorded) in enumerate(zip(self.calls, self.recorded["calls"]))
                for text in self.call_differs(call, recorded["response"]) if text]


def replay(service, recorded):
    """The differences of a scenario; one in which the original answers either way gets three tries."""
    found = []
    for _ in range(3 if {"race", "write_events"} & set(recorded["variable"]) else 1):
        service.clean(recorded.get("setup"))
        run = Scenario(service, recorded)
        run.play()
        found = run.differences()
        if not found:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--api", "--edge", "--key"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    service = Service(options.api, options.edge, options.key)
    same = count = 0
    for recorded in scenarios(options.only, options.files):
        found = replay(service, recorded)
        count += 1
        same += not found
        for text in found:
            print("%s: %s" % (recorded["name"], text))
    service.end()
    print("%d of %d the same" % (same, count))
    return same != count


if __name__ == "__main__":
    sys.exit(main())
