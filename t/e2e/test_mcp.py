#!/usr/bin/env python3
"""The MCP proxy: servers over stdin and stdout behind /mcp/sse and /mcp/shttp."""

import http.client
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import BUILDDIR, PATIENCE, SRCDIR, Server, kill_wait, run_tests  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

SERVER = os.path.join(SRCDIR, "t", "e2e", "mcp_server.py")
JSON = {"Content-Type": "application/json"}
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
OK = {"detail": "MCP server updated successfully", "router_error_log": ""}
TOOLS = ["echo", "fail", "error", "die", "hang", "progress", "changed", "env"]


class Mcp(Server):
    def config(self, name, *ways, **more):
        return dict({"name": name, "command": sys.executable, "args": [SERVER, name, *ways],
                     "env": {"CANCELLED": os.path.join(self.work_dir, "cancelled")}}, **more)

    def update(self, *servers, headers=None):
        return self.request("POST", "/update_mcp_server", json.dumps(servers),
                            dict(JSON, **(headers or {})))

    def proxy(self):
        return [p for p in process.children(self.pid)
                if process.command_line(p).endswith("handrail-mcp")]

    def servers(self):
        return [p for parent in self.proxy() for p in process.children(parent)]


class Stream:
    """Events of an answer, as they come."""

    def __init__(self, s, method, path, body=None, headers=None):
        self.c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        self.c.request(method, path, body, headers or {})
        self.r = self.c.getresponse()
        self.status, self.headers = self.r.status, self.r.headers

    def event(self):
        """(event, data); comments are (None, text)."""
        lines = []
        while True:
            line = self.r.readline()
            if not line:
                raise EOFError
            line = line.decode().rstrip("\r\n")
            if line:
                lines.append(line)
            elif lines:
                break
        if lines[0].startswith(":"):
            return None, lines[0]
        fields = dict(line.split(": ", 1) for line in lines)
        return fields["event"], fields["data"]

    def message(self):
        while True:
            event, data = self.event()
            if event == "message":
                return json.loads(data)

    def close(self):
        self.r.close()
        self.c.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()


class Session(Stream):
    """A client over SSE."""

    def __init__(self, s, headers=None, begin=True):
        super().__init__(s, "GET", "/mcp/sse", headers=headers)
        equal(self.status, 200)
        self.s, self.more, self.number = s, headers or {}, 0
        event, self.path = self.event()
        equal((event, re.fullmatch(r"/mcp/messages/\?session_id=[0-9a-f]{32}", self.path)
               is not None), ("endpoint", True), self.path)
        if begin:
            self.answer = self.ask("initialize", protocolVersion="2025-03-26", capabilities={},
                                   clientInfo={"name": "t", "version": "1"})
            self.tell("notifications/initialized")

    def post(self, message):
        body = message if isinstance(message, str) else json.dumps(message)
        return self.s.request("POST", self.path, body, dict(JSON, **self.more))

    def tell(self, method, **params):
        a = self.post({"jsonrpc": "2.0", "method": method, "params": params})
        equal((a.status, a.body), (202, b"Accepted"))

    def send(self, method, **params):
        self.number += 1
        a = self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        equal((a.status, a.body), (202, b"Accepted"))
        return self.number

    def ask(self, method, **params):
        number = self.send(method, **params)
        m = self.message()
        equal(m.get("id"), number)
        return m

    def tool(self, name, **args):
        return self.ask("tools/call", name=name, arguments=args)["result"]

    def tools(self):
        return [t["name"] for t in self.ask("tools/list")["result"]["tools"]]


def text(what, **more):
    return dict({"content": [{"type": "text", "text": what}]}, **more)


def nothing_before_the_first_server():
    with Mcp() as s:
        equal(s.update().json(), OK)
        for path in ("/mcp/sse", "/mcp/messages/?session_id=x", "/mcp/shttp"):
            a = s.request("GET", path)
            equal((a.status, a.json()), (404, {"detail": "Not Found"}), path)


def one_server():
    with Mcp() as s:
        equal(s.update(s.config("one", "noisy", "two-pages")).json(), OK)
        with Session(s) as c:
            equal(c.headers["Content-Type"], "text/event-stream; charset=utf-8")
            equal(c.headers["Cache-Control"], "no-store")
            r = c.answer["result"]
            equal((r["protocolVersion"], r["capabilities"]), ("2025-03-26", {
                "experimental": {}, "prompts": {"listChanged": True},
                "resources": {"subscribe": False, "listChanged": True},
                "tools": {"listChanged": True}}))
            equal(c.tools(), TOOLS, "both pages")
            equal(c.tool("echo", say="hi"), text("one: hi", structuredContent={"say": "hi"}))
            equal(c.tool("fail"), text("it failed", isError=True))
            equal(c.tool("error"), text("not like that", isError=True))
            equal(c.tool("nope"), text("Unknown tool: nope", isError=True))
            equal(c.ask("ping")["result"], {})
            equal(c.ask("prompts/list")["result"], {"prompts": []})
            equal(c.ask("resources/list")["result"],
                  {"resources": [{"uri": "mem://a/b", "name": "b"}]})
            for method in ("logging/setLevel", "no/such"):
                equal(c.ask(method)["error"], {"code": -32601, "message": "Method not found"})


def a_list_without_end():
    with Mcp() as s:
        equal(s.update(s.config("one", "endless")).json(), OK)
        with Session(s) as c:
            equal(c.ask("tools/list")["error"]["message"], "the list has no end")
            equal(c.tool("echo", say="hi")["content"][0]["text"], "one: hi")


def several_servers():
    with Mcp() as s:
        equal(s.update(s.config("a"), s.config("a_b"), s.config("c")).json(), OK)
        with Session(s) as c:
            equal(c.tools(), [n + "_" + t for n in ("a", "a_b", "c") for t in TOOLS])
            for name in ("a", "a_b", "c"):
                equal(c.tool(name + "_echo", say="x")["content"][0]["text"], name + ": x")
            equal(c.tool("echo"), text("Unknown tool: echo", isError=True))
            equal([r["uri"] for r in c.ask("resources/list")["result"]["resources"]],
                  ["mem://%s/a/b" % n for n in ("a", "a_b", "c")])
            equal(c.ask("resources/read", uri="mem://c/a/b")["result"]["contents"],
                  [{"uri": "mem://a/b", "text": "c"}])


def before_it_is_initialized():
    with Mcp() as s:
        s.update(s.config("one"))
        with Session(s, begin=False) as c:
            equal(c.ask("tools/list")["error"],
                  {"code": -32602, "message": "Invalid request parameters", "data": ""})
            equal(c.ask("ping")["result"], {})
            for wanted, got in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-06-18")):
                equal(c.ask("initialize", protocolVersion=wanted)["result"]["protocolVersion"], got)


def posts_that_are_refused():
    with Mcp() as s:
        s.update(s.config("one"))
        with Session(s) as c:
            for path, status, body in (
                    ("/mcp/messages/", 400, b"session_id is required"),
                    ("/mcp/messages/?session_id=abc", 400, b"Invalid session ID"),
                    ("/mcp/messages/?session_id=" + "0" * 32, 404, b"Could not find session")):
                a = s.request("POST", path, "{}", JSON)
                equal((a.status, a.body), (status, body), path)
            for body in ("", "{", "[]", "{}", '{"jsonrpc": "1.0", "method": "ping", "id": 1}',
                         '{"jsonrpc": "2.0", "method": "tools/call", "id": 1, "params": ""}'):
                a = c.post(body)
                equal((a.status, a.body), (400, b"Could not parse message"), body)
            equal(s.request("POST", "/mcp/sse", "", JSON).status, 405)
            equal(c.ask("ping")["result"], {}, "none of them does harm")


def keys():
    with Mcp(env={"SESSION_API_KEY": "key-of-the-session"}, args=["--listen", "127.0.0.1"]) as s:
        key = {"X-Session-API-Key": "key-of-the-session"}
        both = dict(key, Authorization="Bearer key-of-the-session")
        equal(s.update(s.config("one"), headers=key).json(), OK)
        equal(s.request("GET", "/mcp/sse").status, 403)
        a = s.request("GET", "/mcp/sse", headers=dict(key, Authorization="Bearer k2"))
        equal((a.status, a.json()["error"]), (401, "invalid_token"))
        with Session(s, headers=both) as c:
            env = json.loads(c.tool("env")["content"][0]["text"])
            equal([v for v in env.values() if "key-of-the-session" in v], [])
            equal(sorted(set(env) - {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}),
                  ["CANCELLED"])


def a_server_that_dies():
    with Mcp() as s:
        s.update(s.config("one"), s.config("two"))
        with Session(s) as c:
            r = c.tool("one_die")
            equal((r["isError"], r["content"][0]["text"]),
                  (True, "MCP server one is not available: it ended (signal 9 (Killed))"))
            equal(c.tool("two_echo", say=1)["content"][0]["text"], "two: 1")
            equal(c.tool("one_echo", say=2)["content"][0]["text"], "one: 2", "a new one")


def servers_that_do_not_start():
    with Mcp() as s:
        def told():
            a = s.update(s.config("good"), s.config("gone", command="/no/such/program"),
                         s.config("dead", "die-at-start"), s.config("no", "refuse")).json()
            equal(a["detail"], OK["detail"])
            log = a["router_error_log"]
            equal(("gone: /no/such/program" in log, "no:" in log, "good" in log), (True, False, False), log)
            return "dead: it ended (exit 3)" in log
        # an answer waits for two seconds at most, which may be too few for a Python to start and end
        s.until("each failure is told of", told)
        with Session(s) as c:
            equal(c.tools(), ["good_" + t for t in TOOLS], "the others are left out")
            equal("it ended (exit 3)" in c.tool("dead_echo")["content"][0]["text"], True)
            equal("it refuses to start: not today" in c.tool("no_echo")["content"][0]["text"], True)


def a_program_that_is_no_server():
    """It runs, and says nothing that was asked: the update succeeds, its use does not."""
    with Mcp() as s:
        equal(s.update({"name": "cat", "command": "/bin/cat", "args": [], "env": {}}).json(), OK)
        with Session(s) as c:
            equal("cat is not available" in c.ask("tools/list")["error"]["message"], True)


def one_that_hangs_is_cancelled():
    with Mcp() as s:
        s.update(s.config("one"))
        mark, cancelled = (os.path.join(s.work_dir, n) for n in ("mark", "cancelled"))
        with Session(s) as c:
            number = c.send("tools/call", name="hang", arguments={"mark": mark})
            s.until("it hangs", lambda: os.path.exists(mark))
            c.tell("notifications/cancelled", requestId=number)
            s.until("the server is told", lambda: os.path.exists(cancelled))
            equal(c.tool("echo", say="on")["content"][0]["text"], "one: on")
            os.unlink(cancelled)
            c.send("tools/call", name="hang", arguments={"mark": mark})
            s.until("it hangs", lambda: len(open(mark).readlines()) == 2)
        s.until("a closed stream cancels", lambda: os.path.exists(cancelled))


def a_silent_one_holds_up_no_update():
    with Mcp() as s:
        began = time.monotonic()
        equal(s.update(s.config("quiet", "silent"), s.config("one")).json(), OK)
        equal(time.monotonic() - began < 10, True)
        with Session(s) as c:
            equal(c.tool("one_echo", say=1)["content"][0]["text"], "one: 1")


def one_that_reads_nothing():
    """A server that never reads its input gets a bounded number of requests, and holds up no other."""
    with Mcp() as s:
        equal(s.update({"name": "deaf", "command": "sleep", "args": ["1000"], "env": {}}, s.config("one")).json(), OK)
        with Session(s) as c, Session(s) as other:
            # it is sent no request before it has answered the first one: these wait in the plugin
            for _ in range(70):
                c.send("tools/call", name="deaf_x", arguments={"x": "x" * 1000000})
            m = c.message()
            equal("has not read or answered too many earlier requests" in m["result"]["content"][0]["text"], True, m)
            equal(other.tool("one_echo", say=1)["content"][0]["text"], "one: 1")
            bounded(*s.proxy())


def a_client_that_reads_nothing():
    """Its stream ends when too much waits for it; the others have their answers."""
    with Mcp() as s:
        s.update(s.config("one"))
        with Session(s) as deaf, Session(s) as other:
            def gone():
                return deaf.post({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
                    "name": "echo", "arguments": {"say": "x" * 1000000}}}).status == 404
            s.until("its session has ended", gone)
            equal(other.tool("echo", say=1)["content"][0]["text"], "one: 1")
            bounded(*s.proxy())


def bounded(pid):
    """The process has less than 200 MB; a sanitizer keeps far more, also of what is freed."""
    with open("/proc/%d/status" % pid) as f:
        size = int(dict(line.split(":", 1) for line in f)["VmRSS"].split()[0]) / 1000
    equal(size < 200 or "ASAN_OPTIONS" in os.environ, True, size)


def progress_and_changes():
    with Mcp() as s:
        s.update(s.config("one"))
        with Session(s) as c, Session(s) as other:
            for token in ("mine", 7):
                c.send("tools/call", name="progress", arguments={},
                       _meta={"progressToken": token})
                for i in (1, 2):
                    m = c.message()
                    equal((m["method"], m["params"]), ("notifications/progress", {
                        "progressToken": token, "progress": i, "total": 2}))
                equal(c.message()["result"], text("done"))
            c.send("tools/call", name="changed", arguments={})
            equal(c.message(), {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            equal(c.message()["result"], text("told"))
            equal(other.message()["method"], "notifications/tools/list_changed")


def updates_replace():
    with Mcp() as s:
        s.update(s.config("one"), s.config("two"))
        with Session(s) as c:
            kept = set(s.servers())
            equal(len(kept), 2)
            s.update(s.config("one"), s.config("three"))
            equal(c.message()["method"], "notifications/tools/list_changed")
            equal(c.tools(), [n + "_" + t for n in ("one", "three") for t in TOOLS])
            equal(len(kept & set(s.servers())), 1, "the same process")
            s.update(s.config("one"), s.config("one", "two-pages"))
            equal(c.message()["method"], "notifications/tools/list_changed")
            equal(c.tools(), TOOLS, "one of a name")
            equal(kept & set(s.servers()), set(), "another one")
            s.update()
            equal(c.message()["method"], "notifications/tools/list_changed")
            equal(c.tools(), [])
            equal(s.servers(), [])


def saved(s):
    try:
        with open(os.path.join(s.work_dir, "cancelled")) as f:
            return f.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def time_to_save():
    """A server that is removed ends as MCP has it: without stdin, then by SIGTERM, then by SIGKILL; nothing waits."""
    with Mcp() as s:
        s.update(s.config("kept"), s.config("eof", "saves"), s.config("term", "terms"), s.config("no", "stays"))
        with Session(s) as c:
            equal(len(c.tools()), 4 * len(TOOLS))
            old = s.servers()
            equal(s.update(s.config("kept")).json(), OK)
            equal(c.message()["method"], "notifications/tools/list_changed")
            equal(c.tool("echo", say=1)["content"][0]["text"], "kept: 1")
            s.until("the others end", lambda: len([p for p in old if not process.has_ended(p)]) == 1)
        equal(sorted(saved(s)), ["saved by eof", "saved by term"])
    with Mcp() as s:
        s.update(s.config("eof", "saves"), s.config("term", "terms"), s.config("no", "stays"))
        with Session(s) as c:
            c.tools()
        left = s.servers()
        s.stop()
        equal([process.wait_gone(p, PATIENCE) for p in left], [True] * 3, "each of them ended")
        equal(sorted(saved(s)), ["saved by eof", "saved by term"], "also with the sandbox")
    with Mcp() as s:
        s.update(s.config("a", "saves"))
        with Session(s) as c:
            c.tools()
            old = s.servers()
            s.update(s.config("a", "saves", "begins"))
            equal(c.message()["method"], "notifications/tools/list_changed")
            equal(c.tools(), TOOLS, "it is waited for")
            new = s.servers()
            equal((len(new), set(old) & set(new)), (1, set()))
            equal(saved(s), ["saved by a", "begun by a"])
    with Mcp() as s:
        s.update(s.config("a", "stays"))
        with Session(s) as c:
            c.tools()
            old = s.servers()
            s.update(s.config("a", "stays", "begins"))
            new = set(s.servers()) - set(old)
            equal(bool(new) and not process.has_ended(old[0]), False, "one that takes long has no other beside it")


def one_that_closes_its_output():
    """Whether it ends as well is waited for, but holds nobody up."""
    with Mcp() as s:
        s.update(s.config("one"), s.config("two"))
        with Session(s) as c:
            c.tools()
            began = time.monotonic()
            c.send("tools/call", name="two_close", arguments={})
            s.until("its output is closed", lambda: not any(
                os.readlink("/proc/%d/fd/1" % p).startswith("pipe:") for p in s.servers()
                if process.command_line(p).endswith("two") and os.path.exists("/proc/%d/fd/1" % p)))
            number = c.send("tools/call", name="one_echo", arguments={"say": 1})
            said = [c.message()]
            # after a second, as on a busy machine, the other one is given up
            equal(said[0]["id"] == number or time.monotonic() - began >= 1, True, said)
            said.append(c.message())
            said.sort(key=lambda m: m["id"])
            equal("it closed its output" in json.dumps(said[0]), True)
            equal(said[1]["result"]["content"][0]["text"], "one: 1")


SHUT = r"""read -r line
id=${line##*'"id":'}
id=${id%%[!0-9]*}
exec 0<&-
echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'
sleep 0.3
echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-03-26","capabilities":{}}}'
exec sleep 1000"""


def one_that_closes_its_input():
    """Even if it answers and stays: what is asked of it fails."""
    with Mcp() as s:
        s.update({"name": "shut", "command": "/bin/sh", "args": ["-c", SHUT], "env": {}})
        with Session(s) as c:
            r = c.tool("shut_echo", say=1)
            equal((r["isError"], "MCP server shut is not available" in r["content"][0]["text"]), (True, True), r)


def text_that_is_no_utf8():
    """It takes no answer along."""
    with Mcp() as s:
        s.update(s.config("one"))
        with Session(s) as c:
            equal(c.tool("latin1")["content"][0]["text"], "caf\ufffd")


def many_arguments():
    with Mcp() as s:
        s.update(s.config("one", *["word"] * 1000))
        with Session(s) as c:
            equal(c.tool("args")["content"][0]["text"], "1002")


def another_version():
    with Mcp() as s:
        s.update(s.config("good"), s.config("past", "old"))
        with Session(s) as c:
            equal(c.tools(), ["good_" + t for t in TOOLS], "it is left out")
            equal("it speaks version \"1999-01-01\"" in c.tool("past_echo")["content"][0]["text"], True)


def forms_of_an_entry():
    with Mcp() as s:
        entry = {"name": " one ", "command": " %s " % sys.executable, "other": 1,
                 "args": "%s 'o n\"e' " % SERVER, "env": "A=1, B_=x=y,,C="}
        equal(s.update(entry).json(), OK)
        with Session(s) as c:
            equal(c.tool("echo", say="x")["content"][0]["text"], "o n\"e: x")
            env = json.loads(c.tool("env")["content"][0]["text"])
            equal([env[k] for k in ("A", "B_", "C")], ["1", "x=y", ""])
        for bad in (dict(entry, args="'open"), dict(entry, env="nothing"), dict(entry, env="1A=x"),
                    dict(entry, name="a b"), dict(entry, command=""), 5):
            a = s.update(bad)
            equal((a.status, a.json()), (500, {
                "detail": "An unexpected error occurred. Please try again later."}), repr(bad))
        a = s.request("POST", "/update_mcp_server", "{}", JSON)
        equal((a.status, a.json()["detail"]),
              (400, "Request must be a list of MCP tools to sync"))


def streamable():
    with Mcp() as s:
        s.update(s.config("one"))

        def post(message, session=None, **headers):
            more = dict(BOTH, **headers)
            if session:
                more["Mcp-Session-Id"] = session
            return Stream(s, "POST", "/mcp/shttp", json.dumps(message), more)
        first = {"jsonrpc": "2.0", "id": "x", "method": "initialize",
                 "params": {"protocolVersion": "2025-06-18"}}
        equal(post(first, Accept="application/json").status, 406)
        equal(post({"jsonrpc": "2.0"}).status, 400)
        with post(first) as a:
            equal((a.status, a.message()["id"]), (200, "x"))
            session = a.headers["mcp-session-id"]
        equal(post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status, 400)
        equal(post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, "0" * 32).status, 404)
        equal(post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session).status, 202)
        with post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "progress", "_meta": {"progressToken": 1}}}, session) as a:
            equal([a.message().get("method") for _ in range(2)], ["notifications/progress"] * 2)
            equal(a.message()["result"], text("done"))
            try:
                a.event()
                raise AssertionError("the answer has no end")
            except EOFError:
                pass
        headers = dict(BOTH, **{"Mcp-Session-Id": session})
        with Stream(s, "GET", "/mcp/shttp", headers=headers) as a:
            equal(a.status, 200)
            equal(Stream(s, "GET", "/mcp/shttp", headers=headers).status, 409)
            with post({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                       "params": {"name": "changed"}}, session) as b:
                equal(b.message()["result"], text("told"))
            equal(a.message()["method"], "notifications/tools/list_changed")

        def another():
            with Stream(s, "GET", "/mcp/shttp", headers=headers) as a:
                return a.status == 200
        s.until("the end of the first stream is seen", another)
        mark, cancelled = (os.path.join(s.work_dir, n) for n in ("mark", "cancelled"))
        gone = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        gone.request("POST", "/mcp/shttp", json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "hang", "arguments": {"mark": mark}}}), headers)
        s.until("it hangs", lambda: os.path.exists(mark))
        gone.close()
        s.until("a client that leaves cancels", lambda: os.path.exists(cancelled))
        equal(s.request("DELETE", "/mcp/shttp", headers=headers).status, 200)
        equal(s.request("DELETE", "/mcp/shttp", headers=headers).status, 404)


def streams_hold_no_worker():
    with Mcp(settings={"action_workers_max": 2, "control_workers_max": 2}) as s:
        s.update(s.config("one"))
        clients = [Session(s) for _ in range(20)]
        equal(s.run("echo on"), "on")
        equal([c.tool("echo", say=i)["content"][0]["text"] for i, c in enumerate(clients)],
              ["one: %d" % i for i in range(20)])
        equal(len(s.servers()), 1)
        s.stop()
        for c in clients:
            c.close()


def pings():
    with Mcp(env={"HANDRAIL_MCP_PING_SECONDS": "1"}) as s:
        s.update(s.config("one"))
        with Session(s) as c:
            for _ in range(2):
                event = "any"
                while event is not None:
                    event, ping = c.event()
                equal(re.fullmatch(r": ping - \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00", ping) is not None,
                      True, ping)


def never_ready():
    manifest = os.path.join(SRCDIR, "conf", "plugins", "mcp", "plugin.json")
    with Mcp(ready=None) as s:
        top = os.path.join(s.top, "plugins", "mcp")
        os.makedirs(top)
        with open(manifest) as f:
            text = json.load(f)
        with open(os.path.join(top, "plugin.json"), "w") as f:
            json.dump(dict(text, ready_timeout=1, exec=["sleep", "1000"]), f)
        s.env["HANDRAIL_PLUGIN_PATH"] = os.path.dirname(top)
        s.start()
        why = "it was not ready after 1 s"
        a = s.update(s.config("one"))
        equal((a.status, why in a.json()["detail"]), (500, True), a)
        equal(s.get("/mcp/sse").status, 503)
        equal(s.pids("sleep"), [])
        equal(s.run("echo on"), "on")


def a_killed_proxy_harms_nothing():
    with Mcp() as s:
        s.update(s.config("one"))
        s.run("X=kept")
        (pid,), servers = s.proxy(), s.servers()
        kill_wait(pid)
        for server in servers:
            equal(process.wait_gone(server, PATIENCE), True)
        equal(s.run("echo $X"), "kept")
        # clients sent the list once and do not know of the death
        with Session(s) as c:
            equal(c.tool("echo", say=1)["content"][0]["text"], "one: 1")
        equal(s.update(s.config("one")).json(), OK)
        with Session(s) as c:
            equal(c.tool("echo", say=2)["content"][0]["text"], "one: 2")


def the_list_outlives_the_supervisor():
    for happen in (Server.kill_and_start, Server.upgrade):
        with Mcp() as s:
            equal(s.update(s.config("a"), s.config("b")).json(), OK)
            old = s.proxy() + s.servers()
            path = os.path.join(s.run_dir, "plugin", "mcp", "servers.json")
            equal(os.stat(path).st_mode & 0o777, 0o600)
            happen(s)
            equal([process.wait_gone(p, PATIENCE) for p in old], [True] * 3, "each of them ended")
            with Session(s) as c:
                equal(sorted(c.tools()), sorted("%s_%s" % (n, t) for n in "ab" for t in TOOLS))
                equal(c.tool("a_echo", say=1)["content"][0]["text"], "a: 1")
            equal(s.update().json(), OK)
            s.kill_and_start()
            with Session(s) as c:
                equal(c.tools(), [], "an empty list is one, too")


if __name__ == "__main__":
    if not os.access(os.path.join(BUILDDIR, "handrail-mcp"), os.X_OK):
        skip_all("handrail-mcp is not built")
    sys.exit(run_tests([
        nothing_before_the_first_server, one_server, a_list_without_end, several_servers, before_it_is_initialized,
        posts_that_are_refused, keys, a_server_that_dies, servers_that_do_not_start,
        a_program_that_is_no_server, one_that_hangs_is_cancelled, a_silent_one_holds_up_no_update,
        one_that_reads_nothing, a_client_that_reads_nothing, progress_and_changes,
        updates_replace, time_to_save, one_that_closes_its_output, one_that_closes_its_input,
        text_that_is_no_utf8,
        many_arguments, another_version,
        forms_of_an_entry, streamable, streams_hold_no_worker, pings, never_ready,
        a_killed_proxy_harms_nothing, the_list_outlives_the_supervisor]))
