#!/usr/bin/env python3
"""The back-end remote against a service that stands in for one: what is asked of it, and what is made of its answers,
those included that are late, cut, wrong or of somebody else. One server is the service and its only sandbox."""

import base64
import email
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import SRC, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

KEY = "service-key-4711"
CUT = "cut"  # the answer ends in the middle of a number of bytes that was announced
LATER = {"detail": "Service Unavailable"}  # with Retry-After


class Service(Host):
    """Answers by `say`, METHOD PATH (without the query) to a list of (status, JSON), of which the last one stays; a
    function is called with the request's body. What is not there is answered as a service would."""

    def __init__(self, say=None, **env):
        super().__init__(**dict({"RUNTIME": "remote", "SANDBOX_API_KEY": KEY,
                                 "SANDBOX_RUNTIME_CONTAINER_IMAGE": "img:1"}, **env))
        self.seen, self.say, outer = [], dict(say or {}), self
        self.live = "none"  # what /sessions tells

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *unused):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                what = "%s %s" % (self.command, self.path.split("?")[0])
                outer.seen.append((what, dict(self.headers), body, self.path))
                status, answer = outer.answer(what, body)
                if answer == CUT:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"runtime_id": "')
                    self.close_connection = True
                    return
                text = json.dumps(answer).encode()
                self.send_response(status)
                if status == 429 or answer == LATER:
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = handle_any

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.at = "http://127.0.0.1:%d" % self.http.server_address[1]
        self.env["SANDBOX_REMOTE_RUNTIME_API_URL"] = self.at

    def runtime(self, **more):
        return dict({"runtime_id": "rid-1", "url": self.at + "/rid-1", "session_id": "default", "status": "running",
                     "pod_status": "ready", "session_api_key": "session-key-1", "work_hosts": {self.at + "/w1": 1}},
                    **more)

    def answer(self, what, body):
        rows = self.say.get(what)
        if rows:
            row = rows.pop(0) if len(rows) > 1 else rows[0]
            return row(body) if callable(row) else row
        if what == "POST /start":
            self.live = "running"
            return 200, self.runtime()
        if what.startswith("GET /sessions/"):
            return (404, {"detail": "none"}) if self.live == "none" else (200, self.runtime(status=self.live))
        if what == "GET /runtime/rid-1":
            return 200, self.runtime()
        if what in ("POST /stop", "POST /pause", "POST /resume"):
            self.live = {"/stop": "stopped", "/pause": "paused", "/resume": "running"}[what.split()[1]]
            return 200, self.runtime(status=self.live)
        if what == "POST /rid-1/execute_action":
            command = json.loads(body)["action"]["args"].get("command", "")
            return 200, {"observation": "run", "content": "did " + command, "extras": {"metadata": {"exit_code": 0}}}
        return 200, {"status": "ok", "token": "t k"}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.say.clear()
        try:
            super().__exit__()
        finally:
            self.http.shutdown()
            self.thread.join()
            self.http.server_close()

    def asked(self, *but):
        return [w for w, _, _, _ in self.seen if w not in but and "execute_action" not in w and "/alive" not in w
                and "/handrail/v1/" not in w]

    def last(self, what):
        return [(headers, body, path) for w, headers, body, path in self.seen if w == what][-1]


START = ["GET /sessions/default", "POST /start", "GET /runtime/rid-1"]


def life():
    """What a service is asked for, from the first call to the last, and with which headers."""
    with Service(SANDBOX_REMOTE_RUNTIME_CLASS="sysbox", SANDBOX_REMOTE_RUNTIME_RESOURCE_FACTOR="4", DEBUG="True",
                 SANDBOX_RUNTIME_STARTUP_ENV_VARS='{"A": "1"}') as h:
        equal(h.ok("up", "-q"), "default %s/rid-1\n" % h.at)
        equal(h.asked(), START, "the calls")
        body = json.loads(h.last("POST /start")[1])
        command = body.pop("command")
        equal(body, {"image": "img:1", "working_dir": "/openhands/code/", "environment": {"DEBUG": "true", "A": "1"},
                     "session_id": "default", "resource_factor": 4, "runtime_class": "sysbox-runc"})
        equal(command[9:13], ["openhands.runtime.action_execution_server", "60000", "--working-dir", "/workspace"])
        for what, headers, _, _ in h.seen:
            equal(headers.get("X-API-Key"), KEY, what)
            equal(headers.get("X-Session-API-Key"), "session-key-1" if "/rid-1/" in what else None, what)
        del h.seen[:]
        equal(h.ok("run", "echo"), "did echo\n")
        equal(h.asked(), [], "a command is no matter of the service")
        equal(h.ok("pause", "-q"), "")
        equal("paused" in h.ok("ps"), True, "it is paused")
        equal(h.ok("resume", "-q"), "")
        h.ok("down", "-q")
        equal(h.asked("GET /sessions/default"), ["POST /pause", "POST /resume", "GET /runtime/rid-1", "POST /stop"])
        for what in ("POST /pause", "POST /resume", "POST /stop"):
            equal(json.loads(h.last(what)[1]), {"runtime_id": "rid-1"}, what)
        equal(os.listdir(h.path("state")), [], "nothing is left")


def records_hold_no_service_key():
    with Service() as h:
        h.ok("up", "-q")
        with open(h.path("state", "default.json")) as f:
            equal(KEY in f.read(), False, "the key of the service")
        del h.env["SANDBOX_API_KEY"]
        h.fails(1, "API key is required to use the remote runtime", "run", "true")
        h.env["SANDBOX_API_KEY"] = KEY


def record_that_leads_nowhere():
    """Where a service cannot be asked to end a sandbox, down says what stays and how to drop it."""
    with Service() as h:
        equal("stays recorded" in h("down", "none").stderr, False, "no record")
        h.ok("up", "-q")
        record = h.path("state", "default.json")
        hint = ('handrail: the remote sandbox "default" was not ended and stays recorded; if it is gone, remove %s to '
                "drop its record\n" % record)
        for wrong, status, why in (({"SANDBOX_API_KEY": ""}, 1, "API key is required"),
                                   ({"SANDBOX_REMOTE_RUNTIME_API_URL": "http://127.0.0.1:1"}, 5, "Connection refused")):
            right = dict(h.env)
            h.env.update(wrong)
            for words in (("down",), ("down", "default"), ("down", "--all")):
                done = h(*words)
                equal((done.returncode, done.stderr.count(hint)), (status, 1), done.stderr)
                equal(why in done.stderr.split(hint)[0], True, done.stderr)
            h.env = right
        equal(os.path.exists(record), True, "it stays")
        h.ok("down", "-q")
        equal(os.listdir(h.path("state")), [], "nothing is left")


def one_that_is_there():
    """By the status of a session that the service has."""
    for live, calls in (("running", ["GET /runtime/rid-1"]),
            ("paused", ["POST /resume", "GET /runtime/rid-1", "GET /runtime/rid-1"]), ("stopped", START[1:]),
            ("strange", START[1:])):
        with Service() as h:
            h.live = live
            done = h("up")
            equal((done.returncode, h.asked("GET /sessions/default")), (0, calls), live)
            equal("Invalid response from runtime API" in done.stderr, live == "strange", live)


def not_resumed():
    """A new one is started, as by the original."""
    with Service({"POST /resume": [(500, {"detail": "no room"})]}) as h:
        h.live = "paused"
        h.ok("up", "-q")
        equal(h.asked()[-2:], START[1:], "started")


def patience():
    """What passes by itself, passes."""
    with Service() as h:
        h.say.update({
            "GET /sessions/default": [(503, {}), (500, {}), (200, CUT), (404, {})],
            "POST /start": [(429, {}), (429, {}), (200, h.runtime(status="starting", pod_status="pending"))],
            "GET /runtime/rid-1": [(200, h.runtime(pod_status="pending")), (502, {}), (200, h.runtime())],
            "GET /rid-1/alive": [(404, {}), (200, {})]})
        h.ok("up", "-q")
        equal([h.asked().count(c) for c in START], [4, 3, 4], "each as often as it failed, and once")


def lost_starts():
    """A start whose answer was lost, or that a gateway gave up, has made one: it is found, not made again."""
    for row in ((200, CUT), (504, {}), (409, {"detail": "exists"})):
        with Service({"GET /sessions/default": [(404, {}), (404, {})]}) as h:
            h.say["GET /sessions/default"] = [(404, {}), (200, h.runtime(status="starting"))]
            h.say["POST /start"] = [row]
            h.ok("up", "-q")
            equal(h.asked(), START[:2] + ["GET /sessions/default", "GET /runtime/rid-1"], repr(row))
    with Service({"POST /start": [(504, {"detail": "late"})]}) as h:
        h.fails(1, "status 504 Gateway Timeout: late", "up")
        equal(h.asked("GET /sessions/default"), ["POST /start"], "not made again, nothing to stop")


def refusals():
    """Answers that end it, each with its text; one that was made is stopped."""
    with Service() as h:
        for answer, text in (
                (h.runtime(runtime_id=7), "names no runtime_id"),
                (h.runtime(runtime_id=""), "names no runtime_id"),
                (h.runtime(url="file:///etc/passwd"), "its url is not an address"),
                (h.runtime(url="http://a b"), "its url is not an address"),
                (h.runtime(session_api_key="a\r\nX: y"), "not valid in a header"),
                ([1], "names no runtime_id")):
            h.say["POST /start"] = [(200, answer)]
            h.fails(1, text, "up")
            equal("POST /stop" in h.asked(), False, "nothing to stop")
        h.say["POST /start"] = [(403, {"detail": "quota %s\x1b[31m" % KEY})]
        done = h("up")
        equal((done.returncode, KEY in done.stderr, "\x1b" in done.stderr), (1, False, False), done.stderr)
        equal("status 403 Forbidden: quota ******" in done.stderr, True, done.stderr)
        del h.say["POST /start"]
        for pod, text in (("CrashLoopBackOff", "Runtime crashed and is being restarted"),
                          ("failed", "Runtime is unavailable (status: failed)"),
                          ("unknown", "Runtime is unavailable (status: unknown)")):
            h.say["GET /runtime/rid-1"] = [(200, h.runtime(pod_status=pod))]
            h.live = "none"
            h.fails(1, text, "up")
            equal(h.asked()[-1], "POST /stop", "stopped")
        h.say["GET /runtime/rid-1"] = [(200, h.runtime(runtime_id="rid-2"))]
        h.live = "none"
        h.fails(1, "it describes another runtime", "up")
        h.env["SANDBOX_REMOTE_RUNTIME_INIT_TIMEOUT"] = "1"
        h.say["GET /runtime/rid-1"] = [(200, h.runtime(pod_status="Pending"))]
        h.live = "none"
        h.fails(1, "Runtime (ID=rid-1) is not yet ready. Status: pending", "up")
    for name, value in (("API_KEY", ""), ("REMOTE_RUNTIME_CLASS", "kata"), ("REMOTE_RUNTIME_RESOURCE_FACTOR", "3")):
        with Service(**{"SANDBOX_" + name: value}) as h:
            equal((h("up").returncode, h.seen), (1, []), name)


def sandbox_that_fails():
    """What the server of a sandbox, or a gateway before it, says of a request."""
    run = "POST /rid-1/execute_action"
    for keep in ("false", "true"):
        with Service(SANDBOX_KEEP_RUNTIME_ALIVE=keep) as h:
            h.ok("up", "-q")
            for status, text in ((404, "Runtime is not responding. This may be temporary"),
                                 (502, "Runtime is temporarily unavailable."), (504, "Runtime is temporarily")):
                h.say[run] = [(status, {})]
                h.fails(5, text, "run", "true")
            h.say[run] = [(401, {"detail": "who?"})]
            h.fails(1, "who?", "run", "true")
            ok = {"observation": "run", "content": "again", "extras": {"metadata": {"exit_code": 0}}}
            h.say[run] = [(503, {}), (200, ok)]
            del h.seen[:]
            if keep == "false":
                h.fails(5, "Runtime is temporarily unavailable.", "run", "true")
                equal(h.asked(), [], "not resumed")
                h.say[run] = [(503, LATER), (503, LATER), (200, ok)]
                equal(h.ok("run", "true"), "again\n", "sent again as the server asks for")
                h.say[run] = [(503, LATER)]
                h.fails(5, "Runtime is temporarily unavailable.", "run", "true")
                continue
            equal(h.ok("run", "true"), "again\n")
            equal(h.asked(), ["POST /resume", "GET /runtime/rid-1"], "resumed")
            h.say[run] = [(503, {})]
            h.fails(5, "Runtime is paused and could not be resumed. Original error: Server error '503", "run", "true")
            equal(h.asked().count("POST /resume"), 2, "once for each request")
            # a wait that is refused in the same way does not begin another one
            h.say.update({"GET /rid-1/alive": [(503, {})]})
            h.env["SANDBOX_REMOTE_RUNTIME_INIT_TIMEOUT"] = "1"
            h.fails(5, "Resume error: Runtime /alive failed to respond with 200", "run", "true")
            equal(h.asked().count("POST /resume"), 3, "once")


def new_keys():
    """A service may give the sandbox another session key at a resume, which this and later processes use."""
    look, run = "GET /runtime/rid-1", "POST /rid-1/execute_action"
    with Service(SANDBOX_KEEP_RUNTIME_ALIVE="true") as h:
        def used():
            h.ok("run", "true")
            return h.last(run)[0]["X-Session-API-Key"]

        h.ok("up", "-q")
        h.ok("pause")
        h.say[look] = [(200, h.runtime(session_api_key="session-key-2"))]
        h.ok("resume", "-q")
        equal(used(), "session-key-2")
        ok = {"observation": "run", "content": "", "extras": {"metadata": {"exit_code": 0}}}
        h.say.update({look: [(200, h.runtime(session_api_key="session-key-3"))], run: [(503, {}), (200, ok)]})
        equal(used(), "session-key-3", "of the request that was sent again")
        equal(used(), "session-key-3", "of the next process")
        # another process has resumed it since
        h.say.update({look: [(200, h.runtime(session_api_key="session-key-4"))], run: [(401, {}), (200, ok)]})
        equal(used(), "session-key-4")
        h.say[run] = [(401, {}), (200, ok)]
        h.fails(1, "status 401", "run", "true")  # the same key
        # another process has replaced the sandbox while this one's request failed
        record = h.path("state", "default.json")

        def replaced(unused):
            with open(record) as f:
                o = json.load(f)
            o["backend"]["key"] = "of another"
            with open(record, "w") as f:
                json.dump(o, f)
            return 503, {}

        h.say.update({look: [(200, h.runtime(session_api_key="session-key-5"))], run: [replaced, (200, ok)]})
        h.ok("run", "true")
        with open(record) as f:
            equal(json.load(f)["backend"]["key"], "of another")
        h.say[run] = [(200, ok)]
        h.ok("pause")
        h.say[look] = [(200, h.runtime(session_api_key="a\r\nX: y"))]
        h.fails(1, "not valid in a header", "resume")


def addresses():
    with Service() as h:
        h.ok("up", "-q", "-p", "vscode")
        urls = json.loads(h.ok("url", "--json"))
        equal(urls["vscode"], None, "not of one that has been attached to without the plugin")
        equal(urls["web_hosts"], {h.at + "/w1": 1})
        equal(urls["server"], h.at + "/rid-1")


def image():
    """A folder goes to the service, as the original's clients send it."""
    with Service(SANDBOX_RUNTIME_CONTAINER_IMAGE="", SANDBOX_BASE_CONTAINER_IMAGE="debian:12") as h:
        del h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"]
        h.env["HANDRAIL_IMAGE_KIT"] = h.path("kit")
        subprocess.run([os.path.join(SRC, "runtime-image/mkkit"), SRC, h.path("kit")], check=True)
        built = []
        h.say.update({
            "GET /registry_prefix": [(200, {"registry_prefix": "reg.example/p/"})],
            "GET /image_exists": [lambda unused: (200, {"exists": bool(built)})],
            "POST /build": [lambda unused: (200, {"build_id": "b 1"})],
            "GET /build_status": [lambda unused: (built.append(1), (200, {"status": "SUCCESS", "image": "x"}))[1]]})
        h.ok("up", "-q")
        headers, body, _ = h.last("POST /build")
        form = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
        parts = {p.get_param("name", header="content-disposition"): p for p in form.get_payload()}
        target = parts["target_image"].get_payload()
        equal(target.startswith("reg.example/p/runtime:oh_v"), True, target)
        context = parts["context"]
        equal((context.get_filename(), context.get_content_type()), ("context.tar.gz", "application/x-tar"))
        packed = base64.b64decode(context.get_payload(), validate=True)
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
            equal("Dockerfile" in tar.getnames(), True, "a build folder")
        equal(h.last("GET /build_status")[2], "/build_status?build_id=b%201")
        equal(json.loads(h.last("POST /start")[1])["image"], target)
        h.ok("down", "-q")
        del built[:]
        h.say["GET /build_status"] = [(200, {"status": "FAILURE", "error": "disk full"})]
        h.fails(1, "disk full", "up")
        h.say["GET /registry_prefix"] = [(200, {})]
        h.fails(1, "builds no images", "up")


BUSY = (200, {"observation": "run", "content": "busy", "extras": {"metadata": {"exit_code": -1}}})
EXECUTE = "POST /rid-1/execute_action"


def only_what_was_made_is_ended():
    """What is set up after it was found, resumed or refused as there already, and fails, is left to whoever uses it."""
    more = {"SANDBOX_ENV_X": "1"}
    for live, calls in (("running", ["GET /runtime/rid-1"]),
                        ("paused", ["POST /resume", "GET /runtime/rid-1", "GET /runtime/rid-1"])):
        for answer in (BUSY, (500, {"detail": "no shell"})):
            with Service({EXECUTE: [answer]}, **more) as h:
                h.live = live
                equal((h("up").returncode > 0, h.asked("GET /sessions/default")), (True, calls), live)
                equal(os.path.exists(h.path("state", "default.json")), False, "no record")
    for answer in ((409, {"detail": "exists"}),):
        with Service({"POST /start": [answer], EXECUTE: [BUSY]}, **more) as h:
            h.say["GET /sessions/default"] = [(404, {}), (200, h.runtime())]
            equal((h("up").returncode > 0, "POST /stop" in h.asked()), (True, False), "another one was faster")
            h.say["GET /sessions/default"] = [(404, {}), (200, h.runtime())]
            h.say["GET /runtime/rid-1"] = [(200, h.runtime(pod_status="failed"))]
            equal((h("up").returncode > 0, "POST /stop" in h.asked()), (True, False), "also where it never answers")
    with Service({EXECUTE: [BUSY]}, **more) as h:
        equal((h("up").returncode > 0, h.asked()), (True, START + ["POST /stop"]), "one that was made is ended")
        equal(os.listdir(h.path("state")), [], "with its record")


def options_of_a_new_one():
    """An option that counts only where one is made is an error where one is found, by its record or its name."""
    given = ((("-e", "A=1"), "--env"), (("-p", "vscode"), "--plugin"), (("-i", "img:2"), "--image"),
             (("-s", "sandbox.volumes=/a:/b"), "--set sandbox.volumes"),
             (("-s", "sandbox.security.run_as_user=7"), "--set sandbox.security.run_as_user"))
    for recorded in (True, False):
        for options, name in given:
            with Service() as h:
                h.live = "running"
                if recorded:
                    h.ok("up", "-q")
                del h.seen[:]
                h.fails(1, "exists already, and %s counts only for a new one" % name, "up", *options)
                equal([w for w, _, _, _ in h.seen if "execute" in w or "/stop" in w], [], "nothing is done to it")
                h.ok("up", "-q")
    with Service() as h:
        h.live = "running"
        h.fails(1, "--env, --plugin count only", "up", "-e", "A=1", "-p", "vscode")
        h.live = "none"
        h.ok("up", "-e", "A=1", "-p", "vscode")


def records_are_not_replaced():
    """Another back-end's, or one that cannot be read."""
    with Service() as h:
        h.ok("up", "-q", "-n", "leak")
        before = h.record("leak")
        del h.seen[:]
        key = h.env.pop("SANDBOX_API_KEY")
        for kind in ("local", "cli"):
            h.fails(1, '"leak" is a sandbox of the back-end remote already', "up", "-r", kind, "-n", "leak")
        h.env["SANDBOX_API_KEY"] = key
        for words in (("down",), ("run", "true"), ("pause",)):
            h.fails(1, '"leak" is a sandbox of the back-end remote, not of local', "-r", "local", "-n", "leak", *words)
        equal((h.record("leak"), h.seen, sorted(os.listdir(h.path("state")))), (before, [], ["leak.json"]), "as it was")
        with open(h.path("state", "leak.json"), "w") as f:
            f.write("{")
        h.fails(1, "leak.json is damaged", "up", "-n", "leak")
        equal(h.seen, [], "nothing was asked for")
        os.unlink(h.path("state", "leak.json"))


def doctor():
    with Service() as h:
        equal([x["ok"] for x in json.loads(h.ok("doctor", "--json", "remote"))], [True, True], "all is well")
        h.say["GET /registry_prefix"] = [(401, {"detail": "no such key"})]
        done = h("doctor", "remote")
        equal((done.returncode, "no such key" in done.stdout), (1, True), done.stdout)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, records_hold_no_service_key, record_that_leads_nowhere, one_that_is_there, not_resumed, patience,
                 lost_starts, refusals, only_what_was_made_is_ended, options_of_a_new_one, records_are_not_replaced,
                 sandbox_that_fails, new_keys, addresses, image, doctor):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
