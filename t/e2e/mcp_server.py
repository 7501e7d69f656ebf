#!/usr/bin/env python3
"""An MCP server for tests, over stdin and stdout: does what it is told, also what no server should.
Its arguments are NAME and any of: two-pages, endless, no-prompts, refuse, silent, die-at-start, noisy, saves (some
time after its input has ended), terms (it goes by SIGTERM alone, and saves then), stays (neither ends it), begins (it
saves that), old (its version is nobody's). What it saves is in the file CANCELLED."""

import json
import os
import signal
import sys
import threading

NAME, WAYS = sys.argv[1], sys.argv[2:]
TOOLS = ["echo", "fail", "error", "die", "hang", "progress", "changed", "env"]


def say(**message):
    sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
    sys.stdout.flush()


def text(what, **more):
    return dict({"content": [{"type": "text", "text": what}]}, **more)


def call(ident, params):
    tool, args = params["name"], params.get("arguments", {})
    if tool == "echo":
        return say(id=ident, result=text("%s: %s" % (NAME, args.get("say")), structuredContent=args))
    if tool == "fail":
        return say(id=ident, result=text("it failed", isError=True))
    if tool == "error":
        return say(id=ident, error={"code": -32602, "message": "not like that"})
    if tool == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if tool == "progress":
        token = params["_meta"]["progressToken"]
        for i in (1, 2):
            say(method="notifications/progress",
                params={"progressToken": token, "progress": i, "total": 2})
        return say(id=ident, result=text("done"))
    if tool == "changed":
        say(method="notifications/tools/list_changed")
        return say(id=ident, result=text("told"))
    if tool == "env":
        return say(id=ident, result=text(json.dumps(dict(os.environ))))
    if tool == "close":
        os.close(1)
        while True:
            signal.pause()
    if tool == "latin1":
        sys.stdout.flush()
        os.write(1, b'{"jsonrpc": "2.0", "id": %d, "result": {"content": ['
                    b'{"type": "text", "text": "caf\xe9"}]}}\n' % ident)
        return None
    if tool == "args":
        return say(id=ident, result=text(str(len(sys.argv))))
    if tool == "hang":
        with open(args["mark"], "a") as f:
            f.write("hanging\n")
        return None
    return say(id=ident, result=text("Unknown tool: " + tool, isError=True))


def listed(key, items, params):
    if "endless" in WAYS:
        return {key: items, "nextCursor": "again"}
    if "two-pages" not in WAYS:
        return {key: items}
    half = len(items) // 2
    if (params or {}).get("cursor") == "second":
        return {key: items[half:]}
    return {key: items[:half], "nextCursor": "second"}


def put(what):
    with open(os.environ["CANCELLED"], "a") as f:
        f.write("%s by %s\n" % (what, NAME))


def save(*unused):
    # also what a server says last is no reason for it to die
    say(method="notifications/message", params={"level": "info", "data": "the end"})
    put("saved")
    os._exit(0)


def main():
    if "terms" in WAYS:
        signal.signal(signal.SIGTERM, save)
    if "stays" in WAYS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "die-at-start" in WAYS:
        sys.exit(3)
    if "begins" in WAYS:
        put("begun")
    if "noisy" in WAYS:
        print("a line that is no message", flush=True)
    for line in sys.stdin:
        m = json.loads(line)
        ident, method, params = m.get("id"), m.get("method"), m.get("params")
        if "silent" in WAYS:
            continue
        if method == "initialize":
            if "refuse" in WAYS:
                say(id=ident, error={"code": 1, "message": "not today"})
            else:
                say(id=ident, result={"protocolVersion": "1999-01-01" if "old" in WAYS else params["protocolVersion"],
                                      "capabilities": {"tools": {}},
                                      "serverInfo": {"name": NAME, "version": "1"}})
        elif method == "tools/list":
            say(id=ident, result=listed("tools", [
                {"name": t, "description": "d", "inputSchema": {"type": "object"}} for t in TOOLS],
                params))
        elif method == "tools/call":
            call(ident, params)
        elif method == "resources/list":
            say(id=ident, result={"resources": [{"uri": "mem://a/b", "name": "b"}]})
        elif method == "resources/read":
            say(id=ident, result={"contents": [{"uri": params["uri"], "text": NAME}]})
        elif method == "notifications/cancelled":
            with open(os.environ["CANCELLED"], "a") as f:
                f.write("%s\n" % params["requestId"])
        elif ident is not None:
            say(id=ident, error={"code": -32601, "message": "Method not found"})
    if "saves" in WAYS:
        threading.Event().wait(0.3)
        save()
    while "terms" in WAYS or "stays" in WAYS:
        signal.pause()


main()
