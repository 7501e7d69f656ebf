#!/usr/bin/env python3
"""Daytona and Runloop: each recorded scenario of their own clients from its first call to its last; and for E2B too,
each answer with each of its fields missing, null or of another type: it means the same to us, or it is an error with
the field's name."""

import base64
import collections
import copy
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import clouds  # noqa: E402
from lib.host import SRC  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_clouds_replay import REPEATS, e2b_left_out, e2b_op, e2b_player, frame, raw, NAMES  # noqa: E402

KEY = "api_key"
SESSION = "action-execution-server"
ENV = {"daytona": ("DAYTONA_API_KEY", "DAYTONA_API_URL", "/api"),
       "runloop": ("RUNLOOP_API_KEY", "RUNLOOP_BASE_URL", "")}

COUNTS = collections.Counter()

# Calls of their clients that no request of ours is like, and why.
NOT_OURS = {
    "daytona": (
        ("GET /api/socket.io/", "states are asked for; a WebSocket is not spoken"),
        ("GET .*/(project-dir|user-home-dir|work-dir)$", "a command's directory is told with it"),
        ("POST .*/files/folder$", "an upload makes its directories"),
        ("(GET|DELETE) .*/files$", "files are listed and removed by commands"),
        ("GET .*/files/info$", "files are looked at by commands"),
        ("POST .*/files/bulk-download$", "the older route, one file each"),
        ("(GET|DELETE) .*/process/session/.*", "the server's session is left alone"),
        ("PUT .*/labels$", "labels are said when it is made"),
        ("POST .*/(autostop|autoarchive|autodelete)/.*", "said when it is made, or not at all"),
        ("POST .*/(pause|last-activity)$", "it is stopped and started"),
        ("GET .*/signed-preview-url$", "the preview's token is a header"),
        ("(GET|POST) /(alive|execute_action)$", "the server's own"),
    ),
    "runloop": (
        ("POST .*/(write|read)_file_contents$", "files are bytes: uploaded and downloaded"),
        ("POST .*/execute(_sync)?$", "a command is asynchronous, so that its streams can go on"),
        ("POST .*/executions/.*/wait_for_status$", "of one that was begun by another call"),
        ("GET .*/stream_stderr_updates$", "with what is asked of a command"),
        ("POST .*/remove_tunnel$", "a tunnel ends with its devbox"),
        ("GET .*/logs$", "there are none of the server"),
        ("(GET|POST) /(alive|execute_action)$", "the server's own"),
    ),
}


def b64(body):
    return base64.b64encode(body).decode()


def reason(provider, r):
    text = "%s %s" % (r["method"], r["path"])
    return next((why for pattern, why in NOT_OURS[provider] if re.fullmatch(pattern, text)), None)


def one_line(parts):
    """The file of a form with one, or None."""
    files = [p for p in parts if p[1] is not None]
    return files[0] if len(files) == 1 else None


def ops_of(provider, calls):
    """The scenario as what is to be done: (op, arguments, recorded calls that it stands for)."""
    wanted = [clouds.recorded(c["request"]) for c in calls]
    out, i = [], 0

    def same_key(a, b):
        keys = [c["request"]["headers"].get("x-request-id") for c in (calls[a], calls[b])]
        return keys[0] is not None and keys[0] == keys[1]

    def gets(j):
        """The looks that follow."""
        n = []
        while j < len(calls) and (reason(provider, wanted[j]) or
                                  (wanted[j]["method"] == "GET" and re.search(r"/(sandbox|devboxes)/[^/]+$",
                                                                              wanted[j]["path"]))):
            if not reason(provider, wanted[j]):
                n.append(j)
            j += 1
        return n

    while i < len(calls):
        r, used = wanted[i], [i]
        what = re.sub(r"^(/api)?(/toolbox/[^/]+(/toolbox)?)?", "", r["path"]) if provider == "daytona" else r["path"]
        m = re.match(r"/(?:sandbox|v1/devboxes)/([^/]+)(?:/(.+))?$", what)
        verb = m.group(2) if m else None
        while i + len(used) < len(calls) and same_key(i, i + len(used)):
            used.append(i + len(used))
        args = {}
        if "connection" in calls[i]["response"] and provider == "daytona":
            op = None  # which of its requests are sent again is told by test_clouds_others.py
        elif reason(provider, r):
            op = None
        elif what in ("/sandbox", "/v1/devboxes"):
            op = "create" if r["method"] == "POST" else "list"
        elif m and verb is None:
            op, args = {"GET": "look", "DELETE": "end"}[r["method"]], {"id": m.group(1)}
        elif m and verb in ("stop", "start") or verb in ("suspend", "resume"):
            op = "pause" if verb in ("stop", "suspend") else "resume"
            used += gets(i + 1)
        elif verb == "wait_for_status":
            op = "wait"
            while used[-1] + 1 < len(calls) and wanted[used[-1] + 1]["path"] == r["path"]:
                used.append(used[-1] + 1)
        elif verb in ("shutdown", "keep_alive"):
            op = {"shutdown": "end", "keep_alive": "keep"}[verb]
        elif m and re.match(r"ports/\d+/preview-url$", verb):
            op, args = "publish", {"port": int(verb.split("/")[1])}
        elif verb in ("create_tunnel", "enable_tunnel"):
            op, args = "publish", {"port": (r["body"] or {}).get("port", 4444) if r["kind"] == "json" else 4444}
        elif what == "/process/session":
            used = [i] + ([i + 1] if i + 1 < len(calls) and wanted[i + 1]["path"].endswith("/exec") else [])
            op, args = "launch", {"line": wanted[used[-1]]["body"].get("command", "true")}
        elif what == "/process/execute":
            b = r["body"]
            op, args = "run", {"line": b["command"], "cwd": b.get("cwd"), "env": b.get("envs"),
                               "timeout_ms": b.get("timeout", 0) * 1000}
        elif verb == "execute_async":
            op, args = "run", {"line": r["body"]["command"]}
            while used[-1] + 1 < len(calls) and re.search("/executions/[^/]+(/stream_stdout_updates)?$",
                                                          wanted[used[-1] + 1]["path"]):
                used.append(used[-1] + 1)
        elif what == "/files/download":
            op, args = "get", {"path": dict(r["query"])["path"]}
        elif verb == "download_file":
            op, args = "get", {"path": r["body"]["path"]}
        elif what == "/files/bulk-upload" or verb == "upload_file":
            one = one_line(r["body"])
            op = "put" if one else None  # several: one request for each
            args = {"path": r["body"][0][2].decode(), "b64": b64(one[2])} if one else {}
        else:
            raise AssertionError("none of ours: %s %s" % (r["method"], r["path"]))
        if op:
            out.append((op, {k: v for k, v in args.items() if v is not None}, used))
        # the first call after those that this stands for; a list, as looks may have others between them
        i = used[-1] + 1 if op else i + 1
    return out, wanted


class Server(clouds.Replay):
    """Answers of one operation; where `routes` has one for the path, that one."""

    def begin(self, responses, routes=()):
        with self.lock:
            self.responses, self.seen = responses, []
        self.routes = routes

    def answer(self, n, request):
        for pattern, answer in getattr(self, "routes", ()):
            if re.search(pattern, request["path"]):
                return answer
        return super().answer(n, request)


def said(body, status=200):
    return {"status": status, "headers": {"content-type": "application/json"}, "body": {"json": body}}


def events(updates):
    text = "".join("data: %s\n\n" % json.dumps(u) for u in updates)
    return {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": {"text": text}}


def ours(provider, name, server, response):
    """The answer with what differs from run to run: where the toolbox is, whose label, and no long waits."""
    response = copy.deepcopy(response)
    if response.get("status", 200) >= 400:
        response["headers"] = dict({k: v for k, v in response["headers"].items() if not k.startswith("retry-after")},
                                   **{"retry-after-ms": "1", "retry-after": "0"})
    body = (response.get("body") or {}).get("json")
    for o in ([body] if isinstance(body, dict) else []) + (body if isinstance(body, list) else []) + \
            (list(body.get("items", body.get("devboxes")) or []) if isinstance(body, dict) else []):
        if not isinstance(o, dict):
            continue
        if name.startswith("62.") and provider == "daytona":
            o.pop("toolboxProxyUrl", None)  # it was not there yet
        elif isinstance(o.get("toolboxProxyUrl"), str):
            o["toolboxProxyUrl"] = server.url + "/toolbox"
        labels = o.get("labels" if provider == "daytona" else "metadata")
        if isinstance(labels, dict):
            labels["handrail_run"] = labels.pop("OpenHands_SID", "r")
    if isinstance(body, (dict, list)):
        response["body"] = {"json": body}
    return response


def routes_of(provider, op, calls, used, server, name):
    """Runloop: a command's answers by what is asked, since their client polls and ours waits."""
    if provider != "runloop" or op != "run":
        return ()
    routes, status, out = [], {"status": "completed", "exit_status": 0}, []
    for j in used[1:]:
        body = calls[j]["response"]["body"]
        if "text" in body:
            routes.append(("stream_stdout", ours(provider, name, server, calls[j]["response"])))
        elif body["json"]["status"] == "completed":
            status, out = body["json"], [{"output": body["json"]["stdout"], "offset": 0}]
    return routes + [("stream_stdout", events(out)), ("stream_stderr", events([])), ("wait_for_status", said(status)),
                     ("execute_async", ours(provider, name, server, calls[used[0]]["response"]))]


def begin(provider, s, server, op, args, used, calls):
    """Sets the answers for one operation."""
    responses = [ours(provider, s["name"], server, calls[j]["response"]) for j in used]
    if op == "list" and isinstance(responses[-1]["body"]["json"], dict):
        # one page, as they asked for one; that all are asked for is told by test_clouds_others.py
        responses[-1]["body"]["json"].update({k: v for k, v in (("nextCursor", None), ("has_more", False))
                                              if k in responses[-1]["body"]["json"]})
    if op == "pause" and provider == "runloop" or op == "resume" and provider == "runloop":
        # a long poll in place of their looks
        responses[1:] = [said(dict(responses[-1]["body"]["json"], status="suspended" if op == "pause" else "running"))]
    if provider == "runloop" and op == "publish" and calls[used[0]]["request"]["path"].endswith("enable_tunnel"):
        responses.insert(0, said({"message": "not found", "code": 404}, 404))
    if op == "launch" and len(used) == 1:
        responses.append(said({"cmdId": "one"}))  # a session that is there already is as good
    last = responses[-1]
    if last.get("status", 200) >= 400 and op != "wait":
        responses += [last] * 8  # as often as ours asks
    server.begin(responses, routes_of(provider, op, calls, used, server, s["name"]))


def compare(provider, op, mine, theirs, args):
    """The first request for the operation is theirs in what the provider needs."""
    path = theirs["path"].replace(SESSION + "-62", SESSION).replace(SESSION + "-new", SESSION)
    if provider == "runloop" and op == "publish" and path.endswith("enable_tunnel"):
        path = path.replace("enable_tunnel", "create_tunnel")  # the older one first
    equal((mine["method"], mine["path"]), (theirs["method"], path), op)
    equal(mine["headers"].get("authorization"), theirs["headers"].get("authorization"), "authorization")
    if op == "list" and provider == "daytona":
        query = [(k, v.replace("OpenHands_SID", "handrail_run")) for k, v in theirs["query"]
                 if k not in ("limit", "page", "cursor")]
        equal(mine["query"], query, "the filter")
    elif op in ("get", "end") and provider == "daytona":
        equal([q for q in mine["query"] if q != ("force", "true")],
              [q for q in theirs["query"] if q != ("force", "true")], op)
    if op == "run" and provider == "runloop":
        equal("exec bash -l -c '%s'" % theirs["body"]["command"].replace("'", "'\\''"), mine["body"]["command"], op)
    elif op == "put":
        equal([[p[0], p[2]] for p in mine["body"]], [[p[0], p[2]] for p in theirs["body"]], "the form")
    elif op == "wait":
        equal(set(theirs["body"]["statuses"]) <= set(mine["body"]["statuses"]), True, mine["body"])
    elif op == "create":
        for name in ("name", "target", "autoStopInterval", "snapshot", "blueprint_name"):
            if name in mine["body"] and name in theirs["body"] and provider == "daytona":
                equal(type(mine["body"][name]), type(theirs["body"][name]), name)
        label = "labels" if provider == "daytona" else "metadata"
        equal(isinstance(mine["body"][label], dict), True, label)
    elif op == "launch":
        equal(mine["body"], {"sessionId": SESSION}, op)
    elif op in ("get", "publish") and theirs["kind"] == "json" and not theirs["path"].endswith("enable_tunnel"):
        equal(mine["body"], theirs["body"], op)
    elif op == "run":
        equal(mine["body"], theirs["body"], op)


def check(provider, op, args, got, last, s):
    """What the answer means."""
    status, body = last.get("status"), (last.get("body") or {}).get("json")
    where = "%s %s %s: %s" % (s["name"], op, args, got)
    if status is None:
        return equal("error" in got, True, where)
    if status >= 400:
        gone = status == 404 and op in ("look", "end")
        over = status == 408 and op == "run" and args.get("timeout_ms", 0) > 0
        return equal("error" in got, not (gone or over or (op == "launch" and status == 409)), where)
    for name in {"create": ("id", "state"), "look": ("id", "state")}.get(op, ()) if provider == "daytona" else ():
        if name not in body:
            return equal('"%s"' % name in got.get("error", ""), True, where)
    if op == "wait":
        return equal("error" in got, body["status"] != "running", where)
    if op in ("pause", "resume") and provider == "daytona" and body["state"] in ("error", "build_failed"):
        return equal("error" in got, True, where)
    equal("error" in got, False, where)
    if op == "create":
        equal(got["ok"]["id"], body["id"], where)
    elif op == "list":
        items = body if isinstance(body, list) else body.get("items", body.get("devboxes"))
        equal(got["ok"]["list"], [o["id"] for o in items], where)
        equal(len(got["ok"]["states"]), len(items), where)
    elif op == "publish" and "url" in body:
        equal(got["ok"]["url"], body["url"], where)
        if body.get("token"):
            equal(got["ok"]["header"], "x-daytona-preview-token: " + body["token"], where)
    elif op == "publish":
        equal(got["ok"]["url"], "https://%d-%s.tunnel.runloop.ai" % (args["port"], body["tunnel_key"]), where)
        if body.get("auth_token"):
            equal(body["auth_token"] in got["ok"]["header"], True, where)
    elif op == "get":
        equal(base64.b64decode(got["ok"]["b64"]), clouds.body_bytes(last["body"]), where)
    elif op == "run":
        out = base64.b64decode(got["ok"]["stdout"]).decode()
        if provider == "daytona":
            equal((got["ok"]["exit"], out), (body["exitCode"], body["result"]), where)
        elif isinstance(s.get("sdk_result"), dict) and "exit" in s["sdk_result"]:
            equal((got["ok"]["exit"], out), (s["sdk_result"]["exit"], s["sdk_result"]["out"]), where)
        elif isinstance(s.get("sdk_result"), dict) and "out" in s["sdk_result"]:
            equal(out, "".join(text for text, _ in s["sdk_result"]["out"]), where)


def player(provider, server, key):
    name, url, before = ENV[provider]
    return clouds.Player(provider, **{name: key, url: server.url + before})


def scenario(provider, s):
    calls = clouds.plain(s["calls"], {"API_KEY": KEY})
    ops, theirs = ops_of(provider, calls)
    COUNTS["calls"] += len(calls)
    COUNTS["played"] += len({j for _, _, used in ops for j in used})
    key = theirs[0]["headers"].get("authorization", "Bearer " + KEY)[7:] if theirs else KEY
    with Server([]) as server, player(provider, server, key) as play:
        play("state", run="r", id="id")
        for op, args, used in ops:
            first = theirs[used[0]]
            if first["headers"].get("authorization", "Bearer " + key) != "Bearer " + key:
                continue  # another account's
            if "id" in args:
                play("state", id=args["id"])
            if op == "list":
                labels = json.loads(dict(first["query"]).get("labels", "{}"))
                args = {"run": labels["OpenHands_SID"]} if "OpenHands_SID" in labels else {}
            begin(provider, s, server, op, args, used, calls)
            got = play(op, **args)
            if not server.seen:
                raise AssertionError("%s made no request: %s" % (op, got))
            compare(provider, op, server.seen[0], first, args)
            last = server.responses[-1] if op in ("pause", "resume") else calls[used[-1]]["response"]
            check(provider, op, args, got, last, s)
            if op == "create" and provider == "runloop" and len(used) > 1:
                equal(len(server.seen) >= len(used), True, "as often as they did: %d" % len(server.seen))
                equal(len({r["headers"].get("x-request-id") for r in server.seen}), 1, "of one key")
    return len(ops)


# ---- answers that lack something ----

def paths(v, at=()):
    """Where the members are; of a list, those of its first entry."""
    if isinstance(v, dict):
        for name, x in v.items():
            yield at + (name,)
            yield from paths(x, at + (name,))
    elif isinstance(v, list) and v:
        yield from paths(v[0], at + (0,))


def changes(v):
    """(where, what is there instead, the whole): each member missing, null, and of another type."""
    for path in paths(v):
        for other in ("missing", None, "other"):
            whole = copy.deepcopy(v)
            at = whole
            for step in path[:-1]:
                at = at[step]
            if other == "missing":
                del at[path[-1]]
            else:
                other = ([5] if isinstance(at[path[-1]], dict) else {"an": "object"}) if other else None
                at[path[-1]] = other
            yield path, other, whole


# Members without which an answer means something else, by design: the provider leaves them out then.
MEANS_LESS = {
    ("e2b", "create", "domain"): "the domain of the settings", ("e2b", "connect", "domain"): "the same",
    ("e2b", "create", "envdAccessToken"): "no token is asked for", ("e2b", "connect", "envdAccessToken"): "the same",
    ("e2b", "run", "exitCode"): "0", ("e2b", "run", "status"): "a word for people", ("e2b", "run", "error"): "the same",
    ("e2b", "run", "stdout"): "nothing was printed",
    ("e2b", "run", "stderr"): "the same",
    ("e2b", "run", "pty"): "the same", ("e2b", "run", "data"): "an event that is not known yet",
    ("e2b", "run", "message"): "for people",
    ("daytona", "look", "toolboxProxyUrl"): "below the API", ("daytona", "create", "toolboxProxyUrl"): "the same",
    ("daytona", "publish", "token"): "a public preview", ("daytona", "list", "nextCursor"): "the last page",
    ("daytona", "list", "state"): "not known", ("runloop", "list", "status"): "not known",
    ("e2b", "all", "state"): "it runs", ("e2b", "run", "exited"): "it was ended by a signal",
    ("e2b", "stats", "cpuUsedPct"): "0", ("e2b", "stats", "memUsed"): "0", ("e2b", "stats", "memTotal"): "0",
    ("e2b", "code", "text"): "another form of it", ("e2b", "code", "html"): "the same",
    ("daytona", "list", "labels"): "none of ours", ("daytona", "list", "handrail_run"): "none of ours",
    ("modal", "SandboxCreateV2", "task_id"): "asked for later",
    ("modal", "SandboxCreateV2", "command_router_access"): "asked for later",
    ("modal", "EnvironmentGetOrCreate", "metadata"): "an error with the name of what is in it",
    ("modal", "EnvironmentGetOrCreate", "settings"): "the same",
    ("modal", "ImageGetOrCreate", "result"): "it is still built", ("modal", "ImageGetOrCreate", "status"): "the same",
    ("modal", "ImageJoinStreaming", "result"): "it is still built",
    ("modal", "ImageJoinStreaming", "status"): "the same",
    ("modal", "ContainerExecGetOutput", "exit_code"): "more comes",
    ("modal", "ContainerExecGetOutput", "items"): "nothing was printed",
    ("modal", "ContainerExecWait", "completed"): "it goes on",
    ("modal", "SandboxWait", "result"): "it goes on", ("modal", "SandboxWait", "status"): "the same",
    ("modal", "SandboxWaitV2", "result"): "it goes on", ("modal", "SandboxWaitV2", "status"): "the same",
    ("modal", "SandboxGetTunnels", "tunnels"): "no port is open",
    ("modal", "SandboxGetTunnelsV2", "tunnels"): "no port is open",
    ("runloop", "publish", "auth_token"): "an open tunnel", ("runloop", "list", "has_more"): "the last page",
    ("runloop", "wait", "failure_reason"): "for people",
    ("runloop", "list", "metadata"): "none of ours", ("runloop", "list", "handrail_run"): "none of ours",
}
# What each operation cannot do without, at least: the figure for "nothing is overlooked".
NEEDED = {
    "daytona": {("create", "id"), ("create", "state"), ("look", "id"), ("look", "state"), ("list", "items"),
                ("list", "id"), ("list", "state"), ("publish", "url"), ("run", "exitCode"), ("run", "result"),
                ("launch", "cmdId"),
                ("pause", "state"), ("resume", "state")},
    "runloop": {("create", "id"), ("look", "status"), ("wait", "status"), ("list", "devboxes"), ("list", "id"),
                ("list", "status"), ("list", "has_more"),
                ("publish", "url"), ("publish", "tunnel_key"), ("run", "execution_id"), ("run", "output"),
                ("run", "offset"), ("run", "status"), ("run", "exit_status"), ("pause", "status"),
                ("resume", "status")},
    "modal": {("AppGetOrCreate", "app_id"), ("AuthTokenGet", "token"),
              ("EnvironmentGetOrCreate", "image_builder_version"), ("ImageGetOrCreate", "image_id"),
              ("SandboxCreate", "sandbox_id"), ("SandboxCreateV2", "sandbox_id"), ("SandboxCreateV2", "task_id"),
              ("SandboxCreateV2", "jwt"), ("SandboxCreateV2", "url"), ("SandboxGetTaskId", "task_id"),
              ("SandboxGetTunnels", "host"), ("SandboxGetTunnels", "port"), ("SandboxGetTunnels", "container_port"),
              ("SandboxGetTunnelsV2", "host"), ("SandboxGetTunnelsV2", "port"),
              ("SandboxGetTunnelsV2", "container_port"), ("SandboxList", "id"), ("SandboxList", "created_at"),
              ("SandboxListV2", "id"), ("SandboxListV2", "created_at"), ("TaskExecStdioRead", "data"),
              ("TaskExecWait", "code"), ("ContainerExec", "exec_id"), ("ContainerExecGetOutput", "message_bytes"),
              ("ContainerExecGetOutput", "batch_index"), ("ContainerExecGetOutput", "exit_code"),
              ("ContainerExecWait", "exit_code"), ("ContainerExecWait", "completed"), ("SandboxWait", "status"),
              ("SandboxWaitV2", "status"), ("ImageJoinStreaming", "result"), ("ImageJoinStreaming", "entry_id")},
    "e2b": {("create", "sandboxID"), ("create", "templateID"), ("create", "clientID"), ("create", "envdVersion"),
            ("connect", "sandboxID"), ("connect", "envdVersion"), ("run", "event"),
            ("run", "pid"), ("run", "exited"), ("look", "state"), ("all", "sandboxID"), ("all", "metadata"),
            ("all", "state"), ("stats", "cpuUsedPct"), ("stats", "memUsed"), ("stats", "memTotal"), ("code", "type"),
            ("code", "text")},
}


class Mutations:
    def __init__(self, provider):
        self.provider, self.needed, self.n, self.wrong, self.seen = provider, set(), 0, [], set()

    def judge(self, op, path, other, good, got):
        name = next(x for x in reversed(path) if isinstance(x, str))
        self.n += 1
        if got == good:
            return
        text = got.get("error", "")
        if any('"%s"' % x in text for x in path):
            self.needed.add((op, name))
        elif (self.provider, op, name) not in MEANS_LESS or (
                "error" not in got and other not in ("missing", None)):
            self.wrong.append("%s: %s as %s: %s" % (op, path, other, json.dumps(got)[:300]))

    def done(self):
        equal(self.wrong, [], "%d of %d changed answers" % (len(self.wrong), self.n))
        equal(NEEDED[self.provider] - self.needed, set(), "each of these is asked for by its name")


def each_answer(m, op, play_it, responses):
    """Plays an operation with each change of each of its answers of JSON. play_it(responses) gives the result."""
    good = play_it(responses)
    for i, r in enumerate(responses):
        body = r.get("body") or {}
        if "json" in body and r["status"] < 300:
            for path, other, whole in changes(body["json"]):
                key = (op, i, tuple(x for x in path if isinstance(x, str)), repr(other))
                if key in m.seen:
                    continue
                m.seen.add(key)
                changed = [dict(x, body={"json": whole}) if j == i else x for j, x in enumerate(responses)]
                m.judge(op, path, other, good, play_it(changed))


def wrong_answers(provider):
    m = Mutations(provider)
    with Server([]) as server, player(provider, server, KEY) as play:
        for s in clouds.scenarios(provider):
            calls = clouds.plain(s["calls"], {"API_KEY": KEY})
            for op, args, used in ops_of(provider, calls)[0]:
                if op == "wait":
                    used = used[-1:]
                if any(calls[j]["response"].get("status", 500) >= 300 for j in used):
                    continue
                if op == "list":
                    args = {}
                begin(provider, s, server, op, args, used, calls)
                responses, routes = server.responses, list(server.routes)
                if op in ("pause", "resume", "wait") and provider == "daytona":
                    responses = [responses[0], responses[-1]]

                def play_it(changed, op=op, args=args, routes=routes):
                    play("state", id="id", run="r", state="")
                    server.begin(changed, routes)
                    return play(op, **args)

                if routes:
                    play_routes(m, op, play, server, args, routes)
                else:
                    each_answer(m, op, play_it, responses)
    m.done()


def play_routes(m, op, play, server, args, routes):
    """The same where answers go by the path."""
    def play_it(changed):
        play("state", id="id", run="r")
        server.begin([], changed)
        return play(op, **args)

    good = play_it(routes)
    for i, (pattern, r) in enumerate(routes):
        text = (r["body"] or {}).get("text")
        whole = r["body"].get("json")
        if text:
            whole = [json.loads(x[6:]) for x in text.split("\n\n") if x.startswith("data: ")]
        for path, other, changed in changes(whole):
            if whole and (op, pattern, path, repr(other)) not in m.seen:
                m.seen.add((op, pattern, path, repr(other)))
                answer = events(changed) if text else said(changed)
                m.judge(op, path, other, good, play_it(routes[:i] + [(pattern, answer)] + routes[i + 1:]))


# What the kind reads of E2B's answers; the names of the operations of its table.
READ = {"create": "create", "connect": "connect", "info": "look", "list": "all",
        "run": "run", "code": "code"}


def wrong_answers_of_e2b():
    m = Mutations("e2b")
    with Server([]) as server:
        made, state = e2b_player({"name": "new.x"}, server.url)
        with made as play:
            for s in clouds.scenarios("e2b"):
                if e2b_left_out(s) or raw(s) or s["name"] in REPEATS or s["name"].startswith("62."):
                    continue
                for c in clouds.plain(s["calls"], NAMES):
                    op = e2b_op(clouds.recorded(c["request"]))
                    if op is None or c["response"].get("status", 500) >= 300 or op[0] not in READ:
                        continue
                    op = READ[op[0]], op[1] if op[0] != "list" else {}
                    args = {k: v for k, v in op[1].items() if v is not None}

                    def play_it(responses, op=op[0], args=args):
                        play("state", **state)
                        server.begin(responses)
                        return play(op, **args)

                    body = c["response"].get("body") or {}
                    for box in body["json"] if op[0] == "all" else ():
                        box["metadata"] = {"handrail_run": "r", "handrail_sid": "s"}
                    if "frames" in body:
                        mutate_frames(m, op[0], play_it, c["response"])
                    elif op[0] == "code":
                        mutate_lines(m, op[0], play_it, c["response"])
                    else:
                        each_answer(m, op[0], play_it, [c["response"]])

            def figures(responses):
                play("state", **state)
                server.begin(responses)
                return play("stats")

            # of which there is no recording
            each_answer(m, "stats", figures, [said([{"cpuCount": 2, "cpuUsedPct": 12.5, "memUsed": 256,
                                                     "memTotal": 1024}])])
    m.done()


def mutate_frames(m, op, play_it, response):
    frames = [(f["flags"], f["json"]) for f in response["body"]["frames"]]

    def whole(fs):
        stream = b"".join(frame(o, flags) for flags, o in fs)
        return [dict(response, body={"b64": b64(stream)})] + [said({"code": "not_found", "message": "gone"}, 404)]

    good = play_it(whole(frames))
    for i, (flags, o) in enumerate(frames):
        for path, other, changed in changes(o):
            if (op, flags, path, repr(other)) in m.seen:
                continue
            m.seen.add((op, flags, path, repr(other)))
            m.judge(op, path, other, good, play_it(whole(frames[:i] + [(flags, changed)] + frames[i + 1:])))


def mutate_lines(m, op, play_it, response):
    lines = [json.loads(x) for x in response["body"]["text"].splitlines() if x]
    good = play_it([response])
    for path, other, changed in changes_of_each(lines):
        text = "".join(json.dumps(x) + "\n" for x in changed)
        m.judge(op, path, other, good, play_it([dict(response, body={"text": text})]))


def changes_of_each(lines):
    for i, one in enumerate(lines):
        for path, other, changed in changes(one):
            yield path, other, lines[:i] + [changed] + lines[i + 1:]


# ---- the table of the manual ----

ROWS = {"a handrail server": ("server",), "pause, resume": ("pause", "resume"), "figures (`handrail top`)": ("stats",),
        "Python cells without a handrail server": ("code",), "`handrail logs`": ("logs",), "a terminal (`sh`)": ("sh",),
        "freezing for `pool`": ("pool",), "building an image": ("build",)}
ACCOUNTS = {"e2b": {"E2B_API_KEY": KEY}, "daytona": {"DAYTONA_API_KEY": KEY}, "runloop": {"RUNLOOP_API_KEY": KEY},
            "modal": {"MODAL_TOKEN_ID": KEY, "MODAL_TOKEN_SECRET": KEY}}


def manual():
    """doc/clouds.md, "What each can do", says what the tables of functions have; each "no" has its reason."""
    with open(os.path.join(SRC, "doc/clouds.md"), encoding="utf-8") as f:
        text = f.read().split("## What each can do")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    equal(sorted(rows[0][1:]), sorted(ACCOUNTS), "a column for each provider")
    table = {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}
    for provider, account in ACCOUNTS.items():
        with clouds.Player(provider, **account) as play:
            can = play("can")["ok"]
        equal(sorted(n for names in ROWS.values() for n in names), sorted(can), "a row for each function")
        for row, names in ROWS.items():
            said_of_it = table[row][provider]
            for name in names:
                equal(said_of_it.startswith("no"), not can[name], "%s of %s: %s" % (row, provider, said_of_it))
            if said_of_it.startswith("no"):
                equal(len(said_of_it.partition(": ")[2]) > 10, True, "%s of %s has no reason" % (row, provider))


def main():
    tap = Tap()
    tap.run("the table of the manual", manual)
    for provider in sorted(ENV):
        for s in clouds.scenarios(provider):
            if not s["calls"]:
                tap.diag("left out: %s: no request" % s["name"])
                continue
            tap.run("%s %s" % (provider, s["name"]), scenario, provider, s)
        tap.diag("%s: %d scenarios; %d of %d calls are ours to make, NOT_OURS says why not the others" % (
            provider, len(clouds.scenarios(provider)), COUNTS["played"], COUNTS["calls"]))
        COUNTS.clear()
    for provider in sorted(ENV):
        tap.run("each field of each answer of " + provider, wrong_answers, provider)
    tap.run("each field of each answer of e2b", wrong_answers_of_e2b)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
