#!/usr/bin/env python3
"""The door for agents: /handrail/mcp and "handrail mcp" (doc/agents.md)."""

import http.client
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import BUILD, SRC, Host  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, marker, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

KEY = "a-key-that-nobody-guesses"
NEW, OLD = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
PATH = "/handrail/mcp"
KILLS = int(os.environ.get("DOOR_KILLS", "20"))  # by hand: 10000


def head(**more):
    h = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
         "MCP-Protocol-Version": OLD}
    h.update({k.replace("_", "-"): v for k, v in more.items()})
    return {k: v for k, v in h.items() if v is not None}


def post(s, body, **headers):
    return s.request("POST", PATH, body if isinstance(body, (str, bytes)) else json.dumps(body), head(**headers))


def message(method, params=None, id=1):
    m = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        m["params"] = params
    return m


def events(body):
    """The messages of an answer, whichever of the two forms it has."""
    if body.startswith(b"{"):
        return [json.loads(body)]
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


def call(s, name, headers=None, meta=None, **args):
    params = {"name": name, "arguments": args}
    if meta:
        params["_meta"] = meta
    a = post(s, message("tools/call", params), **(headers or {}))
    equal(a.status, 200, a)
    return events(a.body)[-1]["result"]


def text(result):
    return result["content"][0]["text"]


def structured(result):
    equal(result["isError"], False, result)
    return result["structuredContent"]


def handle_in(result):
    return re.search('handle "([^"]+)"', text(result)).group(1)


def modern(method, params=None, **headers):
    params = dict(params or {})
    params["_meta"] = {META + "protocolVersion": NEW, META + "clientCapabilities": {}}
    h = {"MCP_Protocol_Version": NEW, "Mcp_Method": method}
    if "name" in params:
        h["Mcp_Name"] = params["name"]
    h.update(headers)
    return message(method, params), h


def ask_modern(s, method, params=None, **headers):
    m, h = modern(method, params, **headers)
    return post(s, m, **h)


def documented(tools):
    """The table of tools: name and arguments, without those of plugins that are not there, and of the host."""
    with open(os.path.join(SRC, "doc/agents.md"), encoding="utf-8") as f:
        rows = re.findall(r"(?m)^\| `(\w+)` \|([^|]*)\|(.*)", f.read().split("\n## Tools\n")[1].split("\n## ")[0])
    return {name: sorted(re.split(", | or ", args.strip()) if args.strip() else []) for name, args, text in rows
            if name in tools or not re.search("where the plugin|with a box alone", text)}


def two_revisions():
    with Server() as s:
        a = post(s, message("initialize", {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {}})).json()
        equal((a["result"]["protocolVersion"], a["result"]["capabilities"]), (OLD, {"tools": {}}))
        a = post(s, message("initialize", {"protocolVersion": "1999-01-01"})).json()
        equal(a["result"]["protocolVersion"], OLD, "the client decides whether it can go on")
        equal(post(s, message("ping", id="x")).json(), {"jsonrpc": "2.0", "id": "x", "result": {}})
        equal(post(s, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status, 202)
        a = ask_modern(s, "server/discover").json()["result"]
        equal((a["supportedVersions"][0], a["resultType"]), (NEW, "complete"))
        for m in (message("tools/list"), modern("tools/list")):
            a = post(s, m) if isinstance(m, dict) else post(s, m[0], **m[1])
            tools = {t["name"]: sorted(t["inputSchema"]["properties"]) for t in a.json()["result"]["tools"]}
            equal(tools, documented(tools), "doc/agents.md, \"Tools\", has a row for each tool, with its arguments")
            for t in a.json()["result"]["tools"]:
                equal((t["inputSchema"]["type"], len(t["description"]) < 400), ("object", True), t["name"])
        equal(ask_modern(s, "tools/call", {"name": "run", "arguments": {"command": "echo hi"}}).json()["result"]
              ["structuredContent"]["output"], "hi")
        a = ask_modern(s, "nothing/here")
        equal((a.status, a.json()["error"]["code"]), (404, -32601))
        m, h = modern("tools/list")
        m["params"]["_meta"][META + "protocolVersion"] = h["MCP_Protocol_Version"] = "2099-01-01"
        a = post(s, m, **h)
        equal((a.status, a.json()["error"]["code"], NEW in a.json()["error"]["data"]["supported"]),
              (400, -32022, True))
        for wrong in ({"Mcp_Method": "tools/call"}, {"Mcp_Method": None}, {"MCP_Protocol_Version": OLD}):
            a = ask_modern(s, "tools/list", **wrong)
            equal((a.status, a.json()["error"]["code"]), (400, -32020), wrong)
        # of the older one, with a header of the newer one
        a = post(s, message("initialize", {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {}}),
                 Mcp_Method="initialize")
        equal((a.status, a.json()["result"]["protocolVersion"]), (200, OLD))
        a = post(s, message("tools/call", {"name": "run", "arguments": {"command": "echo hi"}}),
                 Mcp_Method="tools/call", Mcp_Name="run")
        equal(a.json()["result"]["structuredContent"]["output"], "hi")
        a = ask_modern(s, "tools/call", {"name": "run", "arguments": {"command": "echo no >no"}}, Mcp_Name="read")
        equal((a.status, a.json()["error"]["code"], os.path.exists(s.work_dir + "/no")), (400, -32020, False))
        s.stop()


def refused():
    with Server(env={"SESSION_API_KEY": KEY}, settings={"mcp": "true"}) as s:
        ping = json.dumps(message("ping"))
        for h in ({}, {"X_Session_API_Key": "x"}, {"Authorization": "Bearer x"}, {"Authorization": KEY},
                  {"Authorization": "Basic " + KEY}):
            equal(post(s, ping, **h).status, 403, h)
        for h in ({"X_Session_API_Key": KEY}, {"Authorization": "Bearer " + KEY}, {"Authorization": "bearer " + KEY}):
            equal(post(s, ping, **h).status, 200, h)
        bearer = {"Authorization": "Bearer " + KEY}
        equal(s.action("true", headers=bearer).status, 403, "only at the door")
        for origin, status in (("http://evil.example", 403), ("http://localhost.evil.example", 403), ("null", 403),
                               ("http://127.0.0.1@evil.example", 403), ("http://localhost:", 200),
                               ("http://localhost:6274", 200), ("http://127.0.0.1:1", 200)):
            equal(post(s, ping, Origin=origin, **bearer).status, status, origin)
        for method in ("GET", "DELETE", "PUT"):
            equal(s.request(method, PATH, headers=head(**bearer)).status, 405, method)
        equal(post(s, ping, Content_Type="text/plain", **bearer).status, 415)
        equal(post(s, ping, Accept="text/html", **bearer).status, 406)
        deep = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%s%s}}' % ("[" * 500, "]" * 500)
        equal(post(s, deep, **bearer).json()["error"]["code"], -32600)
        equal(post(s, b"x" * (17 << 20), **bearer).status, 413)
        for body, code in (("", -32700), ("{", -32700), ("[]", -32600), ("{}", -32600), ("1", -32600),
                           ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                           ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602)):
            equal(post(s, body, **bearer).json()["error"]["code"], code, body)
        a = post(s, message("tools/call", {"name": "none"}), **bearer)
        equal(a.json()["error"]["code"], -32602)
        equal(s.get("/.well-known/oauth-protected-resource").status, 404)
        equal(s.get("/.well-known/oauth-authorization-server/handrail/mcp").status, 404)
        # no tool says the key, and no log
        r = post(s, message("tools/call", {"name": "run", "arguments": {"command": "env; cat /proc/$$/environ"}}),
                 **bearer)
        g = post(s, message("tools/call", {"name": "grep", "arguments": {
            "path": s.top, "pattern": KEY, "literal": True, "hidden": True, "ignored": True}}), **bearer)
        equal((KEY.encode() in r.body, structured(g.json()["result"])["total"], KEY in s.log()), (False, 0, False))
        s.stop()


def only_where_it_is_wanted():
    """On a public address it is off, unless it was asked for."""
    for settings, listen, status in (({}, "0.0.0.0", 404), ({"mcp": "true"}, "0.0.0.0", 200),
                                     ({"mcp": "false"}, "127.0.0.1", 404), ({}, "127.0.0.1", 200)):
        with Server(env={"SESSION_API_KEY": KEY}, settings=dict(settings, listen=listen)) as s:
            equal(post(s, message("ping"), X_Session_API_Key=KEY).status, status, (settings, listen))
            s.stop()


def commands():
    with Server() as s:
        r = structured(call(s, "run", command="cd /usr\nA=1\necho $((A + 1)); false"))
        equal((r["output"], r["exit_code"], r["working_dir"], r["running"]), ("2", 1, "/usr", False))
        equal(structured(call(s, "run", command="echo $A; pwd"))["output"], "1\n/usr")
        r = structured(call(s, "run", command="echo $B; pwd", session="two", cwd="/", env={"B": "x y'z"}))
        equal(r["output"], "x y'z\n/")
        r = call(s, "run", comand="x")
        equal((r["isError"], "command (a string, required)" in text(r)), (True, True), r)
        equal(call(s, "run", command=" \n")["isError"], True)
        equal(call(s, "run", command="x", wait_s="1")["isError"], True)
        # one that goes on
        door, open_it = gate(s)
        began, wait = marker(s)
        command = "echo one; %s; %s; echo two" % (began, door)
        b = threading.Thread(target=wait)
        b.start()
        first = structured(call(s, "run", command=command, wait_s=0.2))
        b.join()
        seen, last = first["output"], first
        while not seen.endswith("\n"):  # it had not yet printed it all
            last = structured(call(s, "wait", handle=last["handle"], wait_s=0.2))
            seen += last["output"]
        equal((seen, last["running"], last["exit_code"]), ("one\n", True, None), last)
        again = call(s, "run", command=command, wait_s=0.2)
        equal((again["isError"], "second time" in text(again)), (True, True), again)
        other = call(s, "run", command="echo other", wait_s=0.2)
        equal((other["isError"], "another session" in text(other)), (True, True), other)
        equal(structured(call(s, "run", command="echo other", session="two"))["output"], "other")
        open_it()
        done = call(s, "wait", handle=last["handle"])
        equal((structured(done)["output"], structured(done)["exit_code"]), ("two\n", 0))
        equal(call(s, "wait", handle=last["handle"]), done, "asking again is the same")
        for bad in ("", "x", first["handle"] + "x", "1-1-1@default", "9" * 40, "-1-1-1@default", "1-1-1@../x"):
            equal(call(s, "wait", handle=bad)["isError"], True, bad)
        # what is typed
        ask = call(s, "run", command="read -p 'name? ' x; echo got $x", wait_s=0)
        equal(structured(ask)["running"], True)
        r = call(s, "input", handle=handle_in(ask), text="me\n")
        equal(r["isError"], False, r)
        equal("got me" in structured(call(s, "wait", handle=handle_in(ask)))["output"], True)
        r = call(s, "input", handle=handle_in(ask), text="rm -rf x\n")
        equal((r["isError"], "ended" in text(r)), (True, True), "never for another command")
        ask = call(s, "run", command="sleep 1000", wait_s=0)
        equal(call(s, "input", handle=handle_in(ask), keys=["nokey"])["isError"], True)
        # the same number of another server's shell
        other = re.sub("-1", "-2", handle_in(ask), count=1)
        for r in (call(s, "interrupt", handle=other), call(s, "input", handle=other, text="x")):
            equal((r["isError"], "no longer available" in text(r)), (True, True), r)
        equal(call(s, "interrupt", handle=handle_in(ask))["isError"], False)
        equal(structured(call(s, "wait", handle=handle_in(ask)))["exit_code"], 130)
        # much output: the head, the tail, and the way to all of it
        want = "".join("%d\n" % i for i in range(40000))
        r = call(s, "run", command="sleep 1.2; seq 0 39999")
        while structured(r)["running"]:  # time was over, or the worker was one too many
            r = call(s, "wait", handle=handle_in(r), after=0)
        equal(("left out here" in text(r), text(r).startswith("0\n"), "39999\n" in text(r)), (True, True, True),
              text(r)[:500] + text(r)[-500:])
        at, got = re.search(r"wait with after=(\d+)", text(r)).group(1), ""
        r = call(s, "run", command="seq 0 39999")
        h = structured(r)["handle"]
        while h:
            r = structured(call(s, "wait", handle=h))
            got, h = got + r["output"], r["handle"]
        equal((got == want, int(at) > 0), (True, True), "nothing is lost or doubled")
        s.stop()


def slow_start():
    """A command waits for a shell that is not ready, however short its caller waits for the end."""
    with Server() as s:
        with open(os.path.join(s.work_dir, ".bashrc"), "w") as f:
            f.write("sleep 0.7\n")
        equal(structured(call(s, "run", command="exit 0"))["exit_code"], 0)  # another shell takes its place
        r = call(s, "run", command="echo done", wait_s=0)
        if structured(r)["running"]:
            r = call(s, "wait", handle=handle_in(r))
        equal((structured(r)["exit_code"], structured(r)["output"].strip()), (0, "done"), r)
        s.stop()


def sessions():
    """Which there are, and room for another one: by `end`, or where a shell ended itself and is idle."""
    def listed(s):
        return [(x["name"], x["running"]) for x in structured(call(s, "sessions"))["sessions"]]
    with Server(settings={"named_sessions_max": 2}) as s:
        equal(listed(s), [("default", False)])
        for name in ("one", "two"):
            equal(structured(call(s, "run", command="cd /usr; pwd", session=name))["output"], "/usr")
        r = call(s, "run", command="echo three", session="three")
        equal((r["isError"], "Call sessions" in text(r)), (True, True), r)
        busy = structured(call(s, "run", command="sleep 1000", session="two", wait_s=0))
        equal(sorted(listed(s)), [("default", False), ("one", False), ("two", True)])
        equal(structured(call(s, "sessions"))["sessions"][1]["working_dir"], "/usr")
        equal(call(s, "end", session="none")["isError"], True)
        equal(call(s, "end", session="a b")["isError"], True)
        equal(call(s, "end", session="two")["isError"], False, "with what runs in it")
        equal("has ended" in text(call(s, "wait", handle=busy["handle"])), True)
        equal(structured(call(s, "run", command="echo three", session="three"))["output"], "three")
        # one that ended itself makes room, but not while it runs something
        call(s, "run", command="exit", session="one")
        door, open_it = gate(s)
        waits = call(s, "run", command=door, session="one", wait_s=0)
        equal(call(s, "run", command="echo four", session="four")["isError"], True)
        open_it()
        equal(structured(call(s, "wait", handle=handle_in(waits)))["exit_code"], 0)
        call(s, "run", command="exit 3", session="one")
        equal(structured(call(s, "run", command="echo four", session="four"))["output"], "four")
        equal(sorted(n for n, _ in listed(s)), ["default", "four", "three"])
        call(s, "run", command="exit", session="four")
        equal(s.request("POST", "/handrail/v1/create", '{"name": "five"}',
                        {"Content-Type": "application/json"}).status, 201)
        # the default one stays, with another shell
        shell = structured(call(s, "run", command="X=1; echo $$"))["output"]
        equal(call(s, "end", session="default")["isError"], False)
        equal(structured(call(s, "run", command="[ $$ != %s ] && echo [$X]" % shell))["output"].endswith("[]"), True)
        # repeated under the same name it is done once
        a = call(s, "end", headers={"X_Request_ID": "e"}, session="three")
        structured(call(s, "run", command="echo three", session="three"))
        equal((a["isError"], call(s, "end", headers={"X_Request_ID": "e"}, session="three")), (False, a))
        equal(("three", False) in listed(s), True)
        s.stop()


def progress():
    with Server() as s:
        door, open_it = gate(s)
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        m = message("tools/call", {"name": "run", "arguments": {"command": "sleep 1.1; echo now; %s; echo end" % door},
                                   "_meta": {"progressToken": "t"}})
        c.request("POST", PATH, json.dumps(m), head())
        r = c.getresponse()
        equal(r.getheader("Content-Type"), "text/event-stream")
        line = b""
        while not line.startswith(b"data: "):
            line = r.readline()
        note = json.loads(line[6:])
        equal((note["method"], note["params"]["progressToken"], note["params"]["message"]),
              ("notifications/progress", "t", "now\n"))
        open_it()
        equal(events(r.read())[-1]["result"]["structuredContent"]["output"], "now\nend")
        # who leaves ends the wait, not the command
        door, open_it = gate(s, "second")
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        m["params"]["arguments"] = {"command": "sleep 1.1; echo again; %s; echo over" % door, "wait_s": 300}
        c.request("POST", PATH, json.dumps(m), head())
        r = c.getresponse()
        while b"again" not in r.readline():
            pass
        c.close()
        r.close()
        s.until("the wait has ended", lambda: s.pool("action")["busy"] == 0)
        busy = call(s, "run", command="true", wait_s=0.1)
        equal(busy["isError"], True, busy)
        open_it()
        equal("over" in structured(call(s, "wait", handle=handle_in(busy)))["output"], True)
        s.stop()


def clients_that_do_not_read():
    """A long answer that its client does not read holds a worker for client_send_timeout seconds at most."""
    with Server(settings={"action_workers": 2, "action_workers_max": 2, "client_send_timeout": 1}) as s:
        with open(os.path.join(s.work_dir, "p.png"), "wb") as f:
            f.write(noise(1100))
        m = json.dumps(message("tools/call", {"name": "read", "arguments": {"path": "p.png"}}))
        equal(len(call(s, "read", path="p.png")["content"][1]["data"]) > 4000000, True)
        deaf = []
        try:
            for _ in range(2):
                c = socket.socket()
                deaf.append(c)
                c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                c.connect(("127.0.0.1", s.port))
                c.sendall(("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s" % (
                    PATH, len(m), "".join("%s: %s\r\n" % h for h in head().items()), m)).encode())
            s.until("both have the beginning of an answer", lambda: all(select.select([c], [], [], 0)[0] for c in deaf))
            s.until("none of them holds a worker", lambda: s.pool("action")["busy"] == 0)
            equal(structured(call(s, "run", command="echo on"))["output"], "on")
        finally:
            for c in deaf:
                c.close()
        s.stop()


def noise(size):
    """A picture that does not compress."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + os.urandom(3 * size) for _ in range(size))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def once():
    """The same key, or the same request under the same name, is one command."""
    with Server() as s:
        for i in range(3):
            r = structured(call(s, "run", command="echo x >>%s/n; wc -l <%s/n" % (s.work_dir, s.work_dir), key="k"))
            equal(r["output"], "1", i)
        equal(structured(call(s, "run", command="wc -l <%s/n" % s.work_dir, key="k"))["output"], "1", "another one")
        for i in range(3):
            r = call(s, "run", headers={"X_Request_ID": "abc"}, command="echo y >>%s/m; wc -l <%s/m" % (
                s.work_dir, s.work_dir))
            equal(structured(r)["output"], "1", i)
        # one that went on: the same key leads to it
        door, open_it = gate(s)
        a = structured(call(s, "run", command="echo z >>%s/o; %s; echo end" % (s.work_dir, door), key="w", wait_s=0))
        b = structured(call(s, "run", command="echo z >>%s/o; %s; echo end" % (s.work_dir, door), key="w", wait_s=0))
        equal((a["running"], b["running"], a["handle"] == b["handle"]), (True, True, True), (a, b))
        open_it()
        c = structured(call(s, "run", command="echo z >>%s/o; %s; echo end" % (s.work_dir, door), key="w"))
        equal((c["output"], c["exit_code"]), ("end", 0), c)
        with open(s.work_dir + "/o") as f:
            equal(f.read(), "z\n")
        # what was typed, also when its command is known no more, and what was not
        ask = call(s, "run", command="read -r x; echo $x", session="brief", wait_s=0)
        typed = dict(headers={"X_Request_ID": "typed"}, handle=handle_in(ask), text="one\n")
        a = call(s, "input", **typed)
        equal(structured(call(s, "wait", handle=handle_in(ask)))["exit_code"], 0)
        equal(s.request("POST", "/handrail/v1/kill?session=brief").status, 200)
        equal((a["isError"], call(s, "input", **typed) == a), (False, True), a)
        for _ in range(2):
            b = call(s, "input", **dict(typed, headers={"X_Request_ID": "other"}))
            equal((b["isError"], "not known whether" in text(b)), (True, False), b)
        s.stop()


def keep_asking(s, answers, n, stop, more):
    """A client whose streams are cut: it asks again under the same name."""
    for i in range(n):
        command = "echo %d >>%s/all; sleep 0.0%d; seq %d %d" % (i, s.work_dir, i % 5, i, i + 50)
        for attempt in range(200):
            try:
                r = call(s, "run", key="kill-%d" % i, command=command, **more)
            except (OSError, http.client.HTTPException, AssertionError, IndexError, KeyError):
                continue
            if not r["isError"]:
                answers.append(structured(r)["output"])
                break
    stop.set()


def killed(**more):
    """Workers are killed and connections cut; nothing is done twice, and no byte is lost."""
    with Server() as s:
        answers, stop = [], threading.Event()
        t = threading.Thread(target=keep_asking, args=(s, answers, KILLS, stop, more))
        t.start()
        while not stop.wait(0.05):
            for pid in s.workers("action")[:1]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        t.join()
        with open(s.work_dir + "/all") as f:
            equal(f.read().split(), [str(i) for i in range(KILLS)], "each once, in order")
        equal([a.strip() for a in answers],
              ["\n".join(str(k) for k in range(i, i + 51)) for i in range(KILLS)])
        s.stop()


def upgraded():
    """A handle is good after an upgrade in place, and the wait that it met ends early."""
    with Server() as s:
        door, open_it = gate(s)
        a = structured(call(s, "run", command="echo before; %s; echo after" % door, wait_s=0.3))
        before = a["output"]
        while before != "before\n":  # a loaded machine takes its time
            a = structured(call(s, "wait", handle=a["handle"], wait_s=0.3))
            before += a["output"]
        s.upgrade()
        b = structured(call(s, "wait", handle=a["handle"], wait_s=0.2))
        equal((b["output"], b["running"]), ("", True), b)
        open_it()
        # a worker of before may take this one still, and is told to end then
        output = ""
        while b["running"]:
            b = structured(call(s, "wait", handle=b["handle"]))
            output += b["output"]
        equal((output, b["exit_code"]), ("after\n", 0))
        s.stop()


def files():
    with Server() as s:
        call(s, "run", command="cd %s" % s.work_dir)
        equal(call(s, "write", path="sub/a.txt", content="one\ntwo\n")["isError"], False)
        equal("2\tTWO" in text(call(s, "edit", path="sub/a.txt", old="two", new="TWO")), True)
        equal("2\tTWO" in text(call(s, "read", path=s.work_dir + "/sub/a.txt", first=2, last=2)), True)
        equal(call(s, "undo", path="sub/a.txt")["isError"], False)
        with open(s.work_dir + "/sub/a.txt") as f:
            equal(f.read(), "one\ntwo\n")
        r = call(s, "edit", path="sub/a.txt", old="nothing", new="x")
        equal((r["isError"], "did not appear" in text(r)), (True, True), r)
        equal(call(s, "edit", path="sub/a.txt", new="x")["isError"], True)
        equal(s.port in [p["port"] for p in structured(call(s, "ports"))["ports"]], True)
        s.stop()


def searching():
    """A tree that somebody hostile made: it ends, and leads nowhere."""
    with Server() as s:
        top = s.work_dir
        secret = os.path.join(s.top, "outside.txt")
        with open(secret, "w") as f:
            f.write("needle outside\n")
        for name, body in (("a.c", "needle one\nx\nneedle two\n"), ("b/c.py", "a needle\n"), ("b/bin", "needle\0"),
                           (".gitignore", "*.o\n/build/\n!keep.o\n"), ("x.o", "needle"), ("keep.o", "needle\n"),
                           ("build/gen.c", "needle"), ("b/build/gen.c", "needle\n"), (".hid", "needle")):
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w") as f:
                f.write(body)
        os.symlink(secret, top + "/link.c")
        os.symlink("/", top + "/root")
        os.symlink(".", top + "/b/loop")
        os.mkfifo(top + "/fifo.c")
        fd, d = os.open(top, os.O_RDONLY), "deep"
        for i in range(300):
            os.mkdir(d, dir_fd=fd)
            fd, old = os.open(d, os.O_RDONLY, dir_fd=fd), fd
            os.close(old)
        os.close(fd)
        r = structured(call(s, "grep", pattern="needle", path=top))
        equal([(m["path"], m["line"]) for m in r["matches"]],
              [("a.c", 1), ("a.c", 3), ("b/build/gen.c", 1), ("b/c.py", 1), ("keep.o", 1)])
        equal((r["total"], r["files"], r["complete"]), (5, 4, False), "the deep one is told of")
        r = call(s, "grep", pattern="needle", path=top, limit=1)
        equal("[1 of 5 matches, in 4 files]" in text(r), True, r)
        r = structured(call(s, "grep", pattern="NEEDLE", ignore_case=True, glob="*.{py,zz}", path=top))
        equal([m["path"] for m in r["matches"]], ["b/c.py"])
        equal("a.c-2-x" in text(call(s, "grep", pattern="two", path=top, context=1)), True)
        r = call(s, "grep", pattern="(", path=top)
        equal((r["isError"], "expression is wrong" in text(r)), (True, True))
        with open(top + "/long.txt", "w") as f:
            f.write("a" * 100000 + "!\n")
        r = call(s, "grep", pattern="(a|a)+$", path=top, glob="long.txt")
        equal("too many steps" in text(r), True, r)
        equal(structured(call(s, "glob", pattern="**/*.c", path=top))["paths"], ["a.c", "b/build/gen.c", "link.c"])
        equal(structured(call(s, "glob", pattern="b/**", path=top))["paths"],
              ["b/bin", "b/build/gen.c", "b/c.py", "b/loop"])
        equal(structured(call(s, "list", path=top))["paths"],
              ["a.c", "b/", "deep/", "keep.o", "link.c", "long.txt", "root"])
        for path in ("/proc", "/sys", "/proc/self/root", "/nonexistent", "a\0b"):
            equal(call(s, "grep", pattern="x", path=path)["isError"], True, path)
            equal(call(s, "glob", pattern="*", path=path)["isError"], True, path)
        if os.geteuid() == 0:
            os.chmod(secret, 0o600)
        s.stop()


def shells_rights():
    """Where the server is root and the shell is not, the search has the shell's rights."""
    if os.geteuid() != 0:
        raise Skip("needs root: run it by sudo")
    env = {"SESSION_API_KEY": KEY, "RUNTIME_USERNAME": "nobody", "USER": "root"}
    with Server(name="nobody", env=env, settings={"mcp": "true"}) as s:
        with open(s.work_dir + "/mine", "w") as f:
            f.write("needle\n")
        os.chmod(s.work_dir + "/mine", 0o600)
        r = post(s, message("tools/call", {"name": "grep", "arguments": {"pattern": "needle", "path": s.work_dir}}),
                 X_Session_API_Key=KEY).json()["result"]["structuredContent"]
        equal((r["total"], r["complete"]), (0, False))
        s.stop()


def stdio():
    with Host() as h:
        m, _ = modern("tools/call", {"name": "run", "arguments": {"command": "echo $((40 + 2)); touch made"}})
        lines = [message("initialize", {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {}}, id=1),
                 {"jsonrpc": "2.0", "method": "notifications/initialized"}, message("tools/list", id="two"),
                 dict(m, id=3), message("tools/call", {"name": "none"}, id=4)]
        out = h.ok("mcp", "--up", "-n", "x", "-p", "none", input="".join(json.dumps(m) + "\n" for m in lines) + "{\n")
        answers = {a["id"]: a for a in map(json.loads, out.splitlines())}
        equal(sorted(map(str, answers)), ["1", "3", "4", "None", "two"])
        equal((answers[1]["result"]["protocolVersion"], answers[3]["result"]["structuredContent"]["output"],
               answers[4]["error"]["code"], answers[None]["error"]["code"]), (OLD, "42", -32602, -32700))
        # the sandbox is found again; a wait that is cancelled has no answer, and its command goes on
        p = h.popen("mcp", "-n", "x", "--end", stdin=subprocess.PIPE)

        def send(m):
            p.stdin.write(json.dumps(m) + "\n")
            p.stdin.flush()

        send(message("tools/call", {"name": "run", "arguments": {"command": "ls made; sleep 1000", "wait_s": 300},
                                    "_meta": {"progressToken": 5}}, id=9))
        send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
        send(message("ping", id=10))
        equal(json.loads(p.stdout.readline()), {"jsonrpc": "2.0", "id": 10, "result": {}})
        out, err = p.communicate(None, PATIENCE)
        equal((p.returncode, out, err), (0, "", ""))
        equal(h.ok("ps", "--json").strip() in ("", "[]"), True, "it was ended")
        for client in ("claude", "codex", "cursor", "goose", "vscode"):
            text = h.ok("mcp", "--print-config", client, "-n", "n1")
            program = os.path.realpath(os.path.join(BUILD, "handrail"))
            equal(('"%s"' % program in text, '"n1"' in text, "mcp" in text), (True, True, True), text)
            if client in ("claude", "cursor", "vscode"):
                json.loads(text)
        # every option that was given: what is pasted starts the same
        with open(h.path("cwd", "own.toml"), "w") as f:
            f.write("[core]\n")
        words = ["-s", "sandbox.timeout=7", "-e", "A=b c", "-e", "B=", "-p", "none", "-c", "own.toml", "-r", "local"]
        for before in (True, False):
            early = ["-r", "local", "-q"] if before else []
            text = h.ok(*early, "mcp", *words, "--end", "--print-config", "claude")
            args = json.loads(text)["mcpServers"]["sandbox"]["args"]
            equal(args[:4], ["mcp", "--up", "-n", "default"])
            for option in (["--runtime", "local"], ["--set", "sandbox.timeout=7"], ["--env", "A=b c"], ["--env", "B="],
                           ["--plugin", "none"], ["--config-file", h.path("cwd", "own.toml")], ["--end"]):
                equal(any(args[i:i + len(option)] == option for i in range(len(args))), True, (option, args))
            equal(("--quiet" in args, "--print-config" in args), (before, False), args)
            p = h.popen(*args, stdin=subprocess.DEVNULL)
            p.communicate(timeout=PATIENCE)
            equal(p.returncode, 0, "it can be started")
        h.fails(2, "--print-config must be", "mcp", "--print-config", "emacs")


if __name__ == "__main__":
    sys.exit(run_tests([two_revisions, refused, only_where_it_is_wanted, commands, slow_start, sessions, progress,
                        clients_that_do_not_read, once, killed, upgraded, files, searching, shells_rights, stdio]))
