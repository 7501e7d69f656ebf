#!/usr/bin/env python3
"""Every recorded scenario of the providers' own clients: our requests are theirs in what a provider needs, and their
answers mean the same to us; answers that lack something are errors with the field's name."""

import base64
import copy
import json
import os
import re
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import clouds  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

NAMES = {"API_KEY": "e2b_0123", "ENVD_TOKEN": "envd-token", "TIME": "2026-01-02T03:04:05Z"}


# ---- E2B: from a request to what is to be done ----

def e2b_op(r):
    """(name, arguments), or None for what is no business of ours."""
    path, body, query = r["path"], r["body"], dict(r["query"])
    if r["path"] in ("/v2/sandboxes", "/sandboxes") and r["method"] == "POST":
        return "create", {"template": body["templateID"], "timeout": body.get("timeout", 0),
                          "metadata": body["metadata"], "env": body["envVars"],
                          "no_internet": body.get("allow_internet_access") is False,
                          "insecure": body.get("secure") is False}
    if path == "/v2/sandboxes":
        pair = urllib.parse.unquote(query["metadata"]) if "metadata" in query else None
        name, value = [urllib.parse.unquote(x) for x in pair.split("=")] if pair else (None, None)
        return "list", {"name": name, "value": value, "limit": int(query.get("limit", 0)),
                        "next": query.get("nextToken", "")}
    m = re.match(r"/(?:v2/)?sandboxes/([^/]+)(?:/(\w+))?$", path)
    if m:
        what = {None: "info" if r["method"] == "GET" else "kill",
                "resume": None}.get(m.group(2), m.group(2))
        return what and (what, {"id": m.group(1), "timeout": (body or {}).get("timeout", 0) if body else 0})
    if path == "/process.Process/Start" and r["kind"] == "frames":
        p = body[0][1]["process"]
        if p["cmd"] != "/bin/bash" or p["args"][:2] != ["-l", "-c"]:
            return None
        user = base64.b64decode(r["headers"].get("authorization", "Basic Og==")[6:]).decode()[:-1]
        return "run", {"line": p["args"][2], "cwd": p.get("cwd"), "env": p.get("envs"),
                       "user": None if user in ("", "user") else user,
                       "stdin": body[0][1].get("stdin", False) and True,
                       "timeout_ms": int(r["headers"].get("connect-timeout-ms", 0))}
    if path == "/execute":
        return "code", {"code": body["code"]}
    if path == "/process.Process/SendSignal":
        return "signal", {"pid": body["process"]["pid"], "name": body["signal"]}
    if path == "/files" and r["method"] == "GET" and "path" in query:
        return "get", {"path": query["path"]}
    if path == "/files" and r["kind"] == "parts":
        return "put", {"files": [{"path": f, "b64": base64.b64encode(b).decode()} for _, f, b in body]}
    if re.match(r"/\w+\.\w+/\w+$", path) and r["kind"] == "json":
        return "unary", {"procedure": path[1:], "body": body}
    return None


def e2b_alike(ours, theirs, tag):
    """What differs on purpose is made equal."""
    theirs, ours = copy.deepcopy(theirs), copy.deepcopy(ours)
    for r in (ours, theirs):
        # a service's own business, or a number of the client's choice
        if r["path"] not in ("/process.Process/Start",):
            r["headers"].pop("connect-timeout-ms", None)
        r["headers"].pop("keepalive-ping-interval", None)
        if r["kind"] == "frames":
            # without it the server leaves the input open: always said
            r["body"][0][1].setdefault("stdin", False)
        if r["kind"] == "json" and r["body"] == {} and r["method"] == "POST":
            r["kind"], r["body"] = "bytes", b""
    return ours, theirs


E2B_LEFT_OUT = {
    "new.template_from_image": "templates are made with E2B's own tools",
    "new.snapshot": "no image is made of a sandbox",
}


def e2b_left_out(s):
    if s["name"] in E2B_LEFT_OUT:
        return E2B_LEFT_OUT[s["name"]]
    if not s["calls"]:
        return "no request"
    return None


def raw(s):
    return s["name"].startswith("raw.")


def e2b_player(s, url):
    env = {"E2B_API_KEY": NAMES["API_KEY"], "E2B_API_URL": url, "E2B_SANDBOX_URL": url}
    old = s["name"].startswith("62.")
    if old:
        env["E2B_OLD_ROUTES"] = "1"
    return clouds.Player("e2b", **env), {"id": "id", "token": NAMES["ENVD_TOKEN"], "address": "e2b.app",
                                         "version": "0.2.0" if old else "0.6.13", "old": old}


def expected_output(result):
    return isinstance(result, dict) and "exit_code" in result and "stdout" in result


def check_run(result, got, name):
    """What a command gave, by what the client gave its caller."""
    if "ok" not in got:
        raise AssertionError("%s: %s" % (name, got))
    out, err = [base64.b64decode(got["ok"][n]).decode("utf-8", "replace") for n in ("stdout", "stderr")]
    code = result["exit_code"]
    # the number of a signal is said here, -1 there
    equal(got["ok"]["exit"] if code != -1 else got["ok"]["exit"] > 128 or got["ok"]["exit"] == -1,
          code if code != -1 else True, name + ": exit")
    if "\ufffd" not in result["stdout"]:
        equal((out, err), (result["stdout"], result["stderr"]), name + ": output")


def play_e2b(s, responses=None):
    """Runs it; (what each operation gave, what was asked, what was recorded)."""
    # their client asks before some of its requests whether the sandbox is there; the answer to ours says so
    calls = [c for c in clouds.plain(s["calls"], NAMES) if c["request"]["path"] != "/health"]
    theirs = [clouds.recorded(c["request"]) for c in calls]
    results = []
    with clouds.Replay(responses or [c["response"] for c in calls]) as server:
        player, state = e2b_player(s, server.url)
        with player as play:
            play("state", **state)
            while len(server.seen) < len(theirs):
                n = len(server.seen)
                op = e2b_op(theirs[n])
                if op is None:
                    raise AssertionError("none of ours: %s %s" % (theirs[n]["method"], theirs[n]["path"]))
                if op[0] == "timeout" and s["name"].startswith("62.") and n + 1 < len(theirs) and (
                        theirs[n + 1]["path"] in (theirs[n]["path"].replace("/timeout", ""),
                                                  theirs[n]["path"].replace("timeout", "resume")) and
                        "connect" in s["name"]):
                    op = "connect", op[1]
                if op[0] == "create":
                    play("state", old=s["name"].startswith("62."))
                got = play(op[0], **{k: v for k, v in op[1].items() if v is not None})
                results.append((op[0], got, calls[n]))
                if len(server.seen) == n:
                    raise AssertionError("%s made no request: %s" % (op, got))
        return results, server.seen, theirs


def e2b(s):
    results, ours, theirs = play_e2b(s)
    if s["name"] in REPEATS:
        return REPEATS[s["name"]](results, ours)
    for mine, other in zip(ours, theirs):
        mine, other = e2b_alike(mine, other, s["name"])
        for field in ("method", "path", "query", "kind", "body"):
            equal(mine[field], other[field], "%s %s: %s" % (other["method"], other["path"], field))
        for name, value in other["headers"].items():
            equal(mine["headers"].get(name), value, "%s: header %s" % (other["path"], name))
    equal(len(ours), len(theirs), "number of requests")
    result = s.get("sdk_result")
    runs = [got for op, got, _ in results if op == "run"]
    if expected_output(result) and len(runs) == 1:
        check_run(result, runs[0], s["name"])
    if isinstance(result, dict) and len(result) == len(results):
        for (op, got, _), (name, want) in zip(results, result.items()):
            raised = isinstance(want, dict) and "raised" in want
            if op in ("kill", "pause", "signal"):
                if want in (True, False, None):
                    equal(got.get("ok", {}).get("did"), 0 if want is False else 1, name)
            elif raised and op == "create":
                equal("error" in got, True, "%s is an error: %s" % (name, got))
    if isinstance(result, dict) and "raised" in result and len(results) == 1 and results[0][0] != "run":
        equal("error" in results[0][1], True, "an error: %s" % results[0][1])
    return None


# ---- what no client asked: each answer of the real daemon for itself, to whatever of ours reads such a one ----

def raw_op(r):
    what = {"/process.Process/Start": "run", "/process.Process/Connect": "run"}.get(r["path"])
    if what is None and re.match(r"/\w+\.\w+/\w+$", r["path"]):
        what = "unary"
    if what is None and r["path"] == "/files":
        what = "get" if r["method"] == "GET" else "put"
    return what


RAW_ARGS = {"run": {"line": "x", "timeout_ms": 60000}, "unary": {"procedure": "process.Process/List", "body": {}},
            "get": {"path": "/f"}, "put": {"files": [{"path": "/f", "b64": ""}]}}


def raw_answers(s):
    for c in clouds.plain(s["calls"], NAMES):
        op = raw_op(c["request"])
        if op is None:
            continue  # /health, /metrics and /envs: nobody of ours asks for them
        with clouds.Replay([c["response"]]) as server:
            player, state = e2b_player({"name": "new.x"}, server.url)
            with player as play:
                play("state", **state)
                check_raw(op, c["response"], play(op, **RAW_ARGS[op]), "%s %s" % (s["name"], c["request"]["path"]))


def check_raw(op, answer, got, name):
    body = answer.get("body") or {}
    if answer["status"] >= 300:
        text = (body.get("json") or {}).get("message", str(answer["status"]))
        return equal((text in got.get("error", "")), True, "%s: %s" % (name, got))
    if op != "run":
        equal("ok" in got, True, "%s: %s" % (name, got))
        want = {"unary": lambda: body["json"], "put": lambda: json.loads(body["text"]),
                "get": lambda: base64.b64encode(clouds.body_bytes(body)).decode()}[op]()
        return equal(got["ok"][{"unary": "json", "put": "files", "get": "b64"}[op]], want, name)
    events = [f["json"] for f in body["frames"]]
    out = b"".join(base64.b64decode(e["event"].get("data", {}).get("stdout", "")) for e in events if "event" in e)
    end = [e["event"]["end"] for e in events if "end" in e.get("event", {})]
    failed = [e["error"] for e in events if "error" in e]
    if failed and len(events) == 1:
        return equal((failed[0]["code"] in got["error"], failed[0]["message"] in got["error"]), (True, True), name)
    equal((base64.b64decode(got["ok"]["stdout"]), got["ok"]["timed_out"]), (out, bool(failed)), name)
    code = end[0].get("exitCode", 0) if end else -1
    return equal(got["ok"]["exit"], 143 if end and end[0]["status"] == "signal: terminated" else code, name)


# The older client repeats nothing, nor does it look for a stream again: how often, and what is told instead.
def streams_cut(results, ours):
    equal([r["path"] for r in ours[:2]], ["/process.Process/Start", "/process.Process/Connect"][:len(ours)])
    equal("error" in results[0][1], True, results[0][1])
    equal("how it ended is not known" in results[0][1]["error"], True, results[0][1])


def limits_are_waited_for(results, ours):
    equal(len(results) < len(ours), True, "429 and 503 are asked again")


def sent_once(results, ours):
    starts = [r for r in ours if r["path"] == "/process.Process/Start"]
    commands = [op for op, _, _ in results if op == "run"]
    equal(len(starts), len(commands), "no command is sent twice")


def fields_are_named(results, ours):
    """One field is left out each time."""
    for op, got, call in results:
        answer = call["response"]["body"]["json"]
        for name in ("sandboxID", "templateID", "clientID", "envdVersion"):
            if name not in answer:
                equal('"%s"' % name in got.get("error", ""), True, "%s is missing: %s" % (name, got))


REPEATS = {
    "62.stream_cut": streams_cut, "new.stream_cut": streams_cut,
    "62.auth_errors": limits_are_waited_for, "new.auth_errors": limits_are_waited_for,
    "62.envd_drop_retry": sent_once, "new.envd_drop_retry": sent_once,
    "62.create_fields": fields_are_named, "new.create_fields": fields_are_named,
}


# ---- answers that are wrong ----

def without(v, path):
    v = copy.deepcopy(v)
    at = v
    for name in path[:-1]:
        at = at[name]
    del at[path[-1]]
    return v


def with_other(v, path, other):
    v = copy.deepcopy(v)
    at = v
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = other
    return v


def wrong_answers():
    s = next(x for x in clouds.scenarios("e2b") if x["name"] == "new.create_kill")
    good = clouds.plain(s["calls"][0]["response"], NAMES)
    body = good["body"]["json"]
    for name in ("sandboxID", "templateID", "clientID", "envdVersion"):
        for changed in (without(body, [name]), with_other(body, [name], 7), with_other(body, [name], None)):
            answer = dict(good, body={"json": changed})
            with clouds.Replay([answer]) as server:
                player, _ = e2b_player(s, server.url)
                with player as play:
                    got = play("create", template="base")
            equal('"%s"' % name in got.get("error", ""), True, "%s: %s" % (name, got))
    for name in ("envdAccessToken", "domain"):
        answer = dict(good, body={"json": with_other(body, [name], {"a": 1})})
        with clouds.Replay([answer]) as server:
            player, _ = e2b_player(s, server.url)
            with player as play:
                got = play("create", template="base")
        equal('"%s"' % name in got.get("error", ""), True, "%s: %s" % (name, got))


def frame(o, flags=0):
    b = o if isinstance(o, bytes) else json.dumps(o).encode()
    return bytes([flags]) + len(b).to_bytes(4, "big") + b


def play_stream(stream, **more):
    """What a command gives whose stream is this."""
    s = {"name": "new.x"}
    answer = {"status": 200, "headers": {"content-type": "application/connect+json"},
              "body": {"b64": base64.b64encode(stream).decode()}}
    with clouds.Replay([answer] + more.get("then", [])) as server:
        player, state = e2b_player(s, server.url)
        with player as play:
            play("state", **state)
            return play("run", line="x"), server.seen


START = {"event": {"start": {"pid": 7}}}
END = {"event": {"end": {"exitCode": 3, "exited": True, "status": "exit status 3"}}}


def wrong_streams():
    last = frame({}, 2)
    for events, text in (
            ([{"event": {"start": {}}}], '"pid"'), ([{"event": {"start": {"pid": "7"}}}], '"pid"'),
            ([START, {"event": {"data": {"stdout": 5}}}], '"stdout"'),
            ([START, {"event": {"data": {"stdout": "%%%"}}}], "base64"),
            ([START, {"event": {"end": {"exitCode": "3"}}}], '"exitCode"'),
            ([{"nothing": 1}], '"event"'), ([b"[1]"], "not a JSON object"), ([b"{"], "not a JSON object")):
        got, _ = play_stream(b"".join(frame(e) for e in events) + last)
        equal(text in got.get("error", ""), True, "%s: %s" % (events, got))
    got, _ = play_stream(frame(START, 1) + last)
    equal("compressed" in got.get("error", ""), True, got)
    got, _ = play_stream(frame(START) + frame({"error": {"code": 5}}, 2))
    equal('"code"' in got.get("error", ""), True, got)


def streams_go_on():
    """Cut in the middle: joined by the process, and told; nothing is started twice."""
    data = {"event": {"data": {"stdout": base64.b64encode(b"one\n").decode()}}}
    rest = {"event": {"data": {"stdout": base64.b64encode(b"two\n").decode()}}}
    whole = frame(START) + frame(data) + frame(rest) + frame(END) + frame({}, 2)
    then = {"status": 200, "headers": {"content-type": "application/connect+json"},
            "body": {"b64": base64.b64encode(frame(START) + frame(rest) + frame(END) + frame({}, 2)).decode()}}
    at = len(frame(START) + frame(data))
    got, seen = play_stream(whole)
    equal((got["ok"]["exit"], base64.b64decode(got["ok"]["stdout"]), got["ok"]["note"]), (3, b"one\ntwo\n", ""))
    for cut in (at, at + 3, at + 20):
        got, seen = play_stream(whole[:cut], then=[then])
        equal([r["path"].rsplit("/", 1)[1] for r in seen], ["Start", "Connect"], "joined")
        equal((got["ok"]["exit"], base64.b64decode(got["ok"]["stdout"])), (3, b"one\ntwo\n"))
        equal("restored" in got["ok"]["note"], True, got)
    gone = {"status": 404, "headers": {"content-type": "application/json"},
            "body": {"json": {"code": "not_found", "message": "process with pid 7 not found"}}}
    got, seen = play_stream(whole[:at], then=[gone])
    equal("how it ended is not known" in got.get("error", ""), True, got)


def main():
    tap = Tap()
    for s in clouds.scenarios("e2b"):
        left_out = e2b_left_out(s)
        if left_out:
            tap.diag("left out: %s: %s" % (s["name"], left_out))
            continue
        tap.run("e2b " + s["name"], lambda s=s: raw_answers(s) if raw(s) else e2b(s))
    for test in (wrong_answers, wrong_streams, streams_go_on):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
