#!/usr/bin/env python3
"""The kinds daytona and runloop: against stand-ins that run their commands, and each recorded call of theirs."""

import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import clouds, process, standin  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_clouds_e2b import KEY, CloudHost  # noqa: E402


class DaytonaHost(CloudHost):
    provider, kind = standin.Daytona, "daytona"

    def account(self):
        return {"DAYTONA_API_KEY": KEY, "DAYTONA_API_URL": self.at.url}


class RunloopHost(CloudHost):
    provider, kind = standin.Runloop, "runloop"

    def account(self):
        return {"RUNLOOP_API_KEY": KEY, "RUNLOOP_BASE_URL": self.at.url}


HOSTS = (DaytonaHost, RunloopHost)


def life():
    for kind in HOSTS:
        with kind() as h:
            done = h("up", "-e", "GIVEN=a 'b'")
            equal(done.returncode, 0, done.stderr)
            equal("each command has a shell of its own" in done.stderr, True, done.stderr)
            for command, status in (("true", 0), ("exit 42", 42), ("kill -9 $$", 137)):
                equal(h("run", command).returncode, status, command)
            done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN")
            equal(sorted(done.stdout.splitlines()), sorted(["out", "err", h.work, "a 'b'"]), h.kind + done.stderr)
            h.ok("write", "sub/f.txt", input="one\ntwo\n")
            h.ok("edit", h.work + "/sub/f.txt", "two", "2")
            equal(h.ok("read", "sub/f.txt"), "one\n2\n")
            equal(h("read", "nothing").returncode != 0, True)
            equal(h.ok("ls").splitlines(), ["sub/"])
            h.ok("pause")
            equal(json.loads(h.ok("ps", "--json"))[0]["state"], "paused", h.kind)
            h.ok("resume")
            equal(h.ok("run", "echo again"), "again\n")
            h.ok("down")
            equal(h.boxes(), [], "it is ended")


def faults():
    for kind in HOSTS:
        with kind() as h:
            make = "^/sandbox$" if kind is DaytonaHost else "^/v1/devboxes$"
            h.at.fault("POST", make, after=True)
            h.at.fault("GET", "box", times=2, status=503)
            done = h("up")
            equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
            equal(h.ok("run", "echo x"), "x\n")
            before = h.path("tmp", "times")
            h.at.fault("POST", "execute", after=True)
            h("run", "echo x >>%s" % before)
            with open(before) as f:
                equal(f.read(), "x\n", "run once: " + h.kind)
            done = h("run", "-t", "1", "sleep 1000 & echo $! >%s/pid; wait" % h.path("tmp"))
            with open(h.path("tmp", "pid")) as f:
                equal(process.wait_gone(int(f.read()), PATIENCE), True, "what it started is ended with it")
            record = h.path("state", "default.json")
            with open(record) as f:
                equal(KEY in f.read(), False, "the key is in no record")
            os.unlink(record)
            equal(json.loads(h.ok("ps", "--all", "--json"))[0]["stray"], True, "found by its label")
            h.ok("down", "--all")
            equal(h.boxes(), [], h.kind)


def streams_go_on():
    """Cut in the middle of the output: the rest comes from where it was cut."""
    with RunloopHost() as h:
        h.ok("up", "-q")
        h.at.fault("GET", "stream_stdout", times=2, cut=1)
        done = h("run", "echo one; read -t 1 < <(sleep 5); echo two; read -t 1 < <(sleep 5); echo three; exit 5")
        equal((done.returncode, done.stdout), (5, "one\ntwo\nthree\n"), done.stderr)


# ---- recorded calls, one by one ----

def b64(text):
    return base64.b64encode(text.encode()).decode()


def op_of(r):
    """What is to be done for this request; what of it is compared."""
    path, body, query = re.sub("^/api", "", r["path"]), r["body"], dict(r["query"])
    path = re.sub("^/toolbox/[^/]+(/toolbox)?", "/toolbox", path)
    plain = ("method", "path")
    if re.match(r"/(v1/devboxes|sandbox)/[^/]+$", path):
        return {"GET": ("look", {}, plain), "DELETE": ("end", {}, plain)}.get(r["method"])
    m = re.match(r"/(?:v1/devboxes|sandbox)/[^/]+/(.+)$", path)
    if m and r["method"] == "POST" and m.group(1) in ("stop", "suspend"):
        return "pause", {}, plain
    if m and r["method"] == "POST" and m.group(1) in ("start", "resume"):
        return "resume", {}, plain
    if m and m.group(1) == "shutdown":
        return "end", {}, plain
    if m and m.group(1) == "create_tunnel":
        return "publish", {"port": body["port"]}, plain + ("body",)
    if m and re.match(r"ports/(\d+)/preview-url$", m.group(1)):
        return "publish", {"port": int(m.group(1).split("/")[1])}, plain
    if m and m.group(1) == "download_file":
        return "get", {"path": body["path"]}, plain + ("body",)
    if path == "/toolbox/files/download":
        return "get", {"path": query["path"]}, plain + ("query",)
    if path == "/toolbox/process/execute" and "echo '" not in body["command"][:10]:
        return "run", {"line": body["command"], "cwd": body.get("cwd"), "env": body.get("envs"),
                       "timeout_ms": body.get("timeout", 0) * 1000}, plain + ("body",)
    if path in ("/sandbox", "/v1/devboxes") and r["method"] == "POST":
        return "create", {"run": "r"}, plain
    return None


ENV = {"daytona": ("DAYTONA_API_KEY", "DAYTONA_API_URL", "/api"),
       "runloop": ("RUNLOOP_API_KEY", "RUNLOOP_BASE_URL", "")}


def one_call(provider, call):
    theirs = clouds.recorded(call["request"])
    what = op_of(theirs)
    if what is None or "connection" in call["response"]:
        return False
    op, args, compared = what
    responses = [json.loads(json.dumps(call["response"]))]
    with clouds.Replay(responses) as server:
        key, url, before = ENV[provider]
        name = theirs["headers"].get("authorization", "Bearer api_key")[7:]
        m = re.search("(?:sandbox|devboxes)/([^/]+)", theirs["path"])
        with clouds.Player(provider, **{key: name, url: server.url + before}) as play:
            # where the toolbox is, the API tells
            found = (responses[0].get("body") or {}).get("json")
            if isinstance(found, dict) and found.get("toolboxProxyUrl"):
                found["toolboxProxyUrl"] = server.url + "/toolbox"
                responses[0]["body"] = {"json": found}
            place = {"id": m.group(1) if m else "id", "run": "r"}
            if "/toolbox/" in theirs["path"]:
                at = {"id": "id", "state": "started"}
                if not theirs["path"].startswith("/api"):
                    at["toolboxProxyUrl"] = server.url + "/toolbox"
                responses.insert(0, {"status": 200, "headers": {"content-type": "application/json"},
                                     "body": {"json": at}})
                play("state", **place)
                play("look")
            else:
                play("state", **place)
            got = play(op, **{k: v for k, v in args.items() if v is not None})
        mine = server.seen[len(server.seen) - 1 if "/toolbox/" in theirs["path"] else 0]
    for field in compared:
        equal(mine[field], theirs[field], "%s %s: %s" % (theirs["method"], theirs["path"], field))
    equal(mine["headers"].get("authorization"), theirs["headers"].get("authorization"), "authorization")
    status = call["response"]["status"]
    if status >= 400 and op not in ("look", "end", "run") and status not in (408, 409, 429, 503):
        equal("error" in got, True, "status %d: %s" % (status, got))
    if op == "run" and status == 200:
        answer = call["response"]["body"]["json"]
        equal((got["ok"]["exit"], base64.b64decode(got["ok"]["stdout"]).decode()),
              (answer["exitCode"], answer["result"]), "what it gave")
    return True


def recorded(provider):
    n = 0
    for s in clouds.scenarios(provider):
        for call in clouds.plain(s["calls"], {"API_KEY": "api_key", "ID": "id", "ID2": "id", "ID3": "id"}):
            if call["response"].get("status") in (429, 500, 502, 503, 408, 409):
                continue  # they are sent again, which takes its time
            n += one_call(provider, call)
    equal(n > 20, True, "%d calls" % n)


def fields():
    """An answer that lacks a field, or has another type there, is an error with the field's name."""
    cases = (
        ("daytona", "look", {}, {"id": "x", "state": "started"}, ("id", "state")),
        ("daytona", "publish", {"port": 4444}, {"url": "https://x", "token": "t"}, ("url",)),
        ("runloop", "look", {}, {"status": "running"}, ("status",)),
        ("runloop", "publish", {"port": 4444}, {"url": "https://x"}, ("url",)),
        ("runloop", "create", {}, {"id": "x"}, ("id",)),
    )
    for provider, op, args, good, names in cases:
        key, url, _ = ENV[provider]
        for name in names:
            for body in ({k: v for k, v in good.items() if k != name}, dict(good, **{name: 5})):
                answer = {"status": 200, "headers": {"content-type": "application/json"}, "body": {"json": body}}
                with clouds.Replay([answer]) as server:
                    with clouds.Player(provider, **{key: "k", url: server.url}) as play:
                        play("state", id="id", run="r")
                        got = play(op, **args)
                equal('"%s"' % name in got.get("error", ""), True, "%s %s: %s" % (provider, name, got))


def said(body):
    """An answer of JSON, or of events."""
    if isinstance(body, list):
        text = "".join("data: %s\n\n" % json.dumps(x) for x in body)
        return {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": {"text": text}}
    return {"status": 200, "headers": {"content-type": "application/json"}, "body": {"json": body}}


def fields_of_commands_and_lists():
    """The same where the field stands deeper, or in a later answer: (provider, what is done, answers, where, names)."""
    update, over = {"output": "x", "offset": 0}, {"status": "completed", "exit_status": 0}
    run = [{"execution_id": "e"}, [update], over, [], []]
    cases = (
        ("daytona", ("look", "run"), [{"id": "id", "state": "started"}, {"exitCode": 0, "result": "x"}], 1,
         ("exitCode", "result")),
        ("daytona", ("list",), [{"items": [{"id": "x", "labels": {"handrail_run": "r"}}], "nextCursor": None}], 0,
         ("items", "id")),
        ("runloop", ("run",), run, 0, ("execution_id",)),
        ("runloop", ("run",), run, 1, ("output", "offset")),
        ("runloop", ("run",), run, 2, ("status", "exit_status")),
        ("runloop", ("list",), [{"devboxes": [{"id": "x", "metadata": {"handrail_run": "r"}}]}], 0,
         ("devboxes", "id")),
    )
    for provider, ops, answers, at, names in cases:
        key, url, _ = ENV[provider]
        for name in names:
            for other in (None, {"an": "object"}):
                changed = json.loads(json.dumps(answers))
                holder = changed[at]
                while name not in holder:
                    holder = holder[0] if isinstance(holder, list) else next(
                        v for v in holder.values() if isinstance(v, list))
                if other is None:
                    del holder[name]
                else:
                    holder[name] = other
                with clouds.Replay([said(x) for x in changed]) as server:
                    if provider == "daytona" and "run" in ops:
                        server.responses[0] = said(dict(changed[0], toolboxProxyUrl=server.url + "/toolbox"))
                    with clouds.Player(provider, **{key: "k", url: server.url}) as play:
                        play("state", id="id", run="r")
                        got = [play(op, **({"line": "x"} if op == "run" else {})) for op in ops][-1]
                equal('"%s"' % name in got.get("error", ""), True, "%s %s: %s" % (provider, name, got))


def limits_and_keys():
    """429 is waited for as it asks, a burst of 5xx is sat out, and a key that ended is told without its text."""
    for kind in HOSTS:
        with kind() as h:
            make = "^/sandbox$" if kind is DaytonaHost else "^/v1/devboxes$"
            h.at.fault("POST", make, status=429, headers={"Retry-After": "1"})
            h.at.fault("GET", "^/sandbox/" if kind is DaytonaHost else "stream_stdout", times=2, status=502)
            h.ok("up", "-q")
            equal((len(h.boxes()), h.ok("run", "echo x")), (1, "x\n"), h.kind)
            h.at.key = "other"
            done = h("ps", "--all")
            equal((done.returncode, "401" in done.stderr, KEY in done.stderr + done.stdout), (1, True, False),
                  done.stderr)
            h.at.key = KEY


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, faults, limits_and_keys, streams_go_on, fields, fields_of_commands_and_lists):
        tap.run(test.__name__.replace("_", " "), test)
    for provider in sorted(ENV):
        tap.run("recorded calls of " + provider, recorded, provider)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
