#!/usr/bin/env python3
"""The control API of E2B on handrail-fleetd: calls and errors, times, lists, pauses, and kills of the service."""

import calendar
import contextlib
import json
import os
import re
import sys
import threading
import time
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.e2bfleet import E2b, metadata  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.tap import equal  # noqa: E402

REQUIRED = {"templateID", "sandboxID", "clientID", "startedAt", "endAt", "envdVersion", "cpuCount", "memoryMB",
            "diskSizeMB", "state"}
NOWHERE = "0" * 32


def seconds(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def left(info):
    return seconds(info["endAt"]) - time.time()


def about(value, wanted):
    equal(wanted - 5 < value < wanted + 5, True, "%r is not about %r" % (value, wanted))


def life(f):
    o = f.create(metadata={"a": "1"}, envVars={"X": "y"})
    equal(sorted(set(o) - {"domain", "alias"}),
          ["clientID", "envdAccessToken", "envdVersion", "sandboxID", "templateID"])
    equal((o["templateID"], o["domain"]), ("base", None))
    status, info = f.info(o)
    equal((status, REQUIRED - set(info), info["state"], info["metadata"]), (200, set(), "running", {"a": "1"}), info)
    equal((info["lifecycle"], info["envdAccessToken"]),
          ({"onTimeout": "kill", "autoResume": False}, o["envdAccessToken"]))
    about(left(info), 300)
    about(left(f.info(f.create("/sandboxes"))[1]), 15)
    # one sandbox, whichever API asks
    equal(f.call("GET", "/runtime/" + o["sandboxID"])[1]["status"], "running")
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"]), (204, None))
    equal((f.info(o)[0], f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0]), (404, 404))
    equal(f.edge("GET", "/health", o),
          (502, {"sandboxId": o["sandboxID"], "message": "The sandbox was not found", "code": 502}))


def times(f):
    o = f.create(timeout=3600)
    path = "/sandboxes/" + o["sandboxID"]
    equal(f.api("POST", path + "/timeout", {"timeout": 60}), (204, None))
    about(left(f.info(o)[1]), 60)
    for call, body, wanted in (("/connect", {"timeout": 30}, 60), ("/connect", {"timeout": 90}, 90),
                               ("/refreshes", {"duration": 1}, 90), ("/refreshes", {"duration": 200}, 200)):
        equal(f.api("POST", path + call, body)[0], 204 if call == "/refreshes" else 200)
        about(left(f.info(o)[1]), wanted)
    equal(f.api("POST", "/v2" + path + "/connect", {})[1]["envdAccessToken"], o["envdAccessToken"])
    about(left(f.info(o)[1]), 300)
    end = time.monotonic() + 1
    equal(f.api("POST", path + "/timeout", {"timeout": 1})[0], 204)
    f.gone(o)
    equal(time.monotonic() < end + 1 and time.monotonic() > end - 0.1, True, "it ends within the second")
    p = f.create()
    equal(f.api("POST", "/sandboxes/%s/timeout" % p["sandboxID"], {"timeout": 0})[0], 204)
    f.gone(p)
    equal([f.api("POST", path + "/timeout", b)[0] for b in ({"timeout": 5}, {}, {"timeout": "5"})], [404, 400, 400])


def pauses(f):
    o = f.create(timeout=600)
    path = "/sandboxes/" + o["sandboxID"]
    if not f.pauses(o):
        status, answer = f.api("POST", path + "/pause")
        equal((status, "could not be paused: " in answer["message"]), (500, True), answer)
        equal(f.info(o)[1]["state"], "running")
        return
    equal(f.api("POST", path + "/resume", {"timeout": 60})[0], 409)
    equal(f.api("POST", path + "/pause", {}), (204, None))
    equal(f.api("POST", path + "/pause")[0], 409)
    info = f.info(o)[1]
    equal((info["state"], info["pauseMode"], left(info) <= 0), ("paused", "full", True), info)
    equal(f.api("POST", path + "/timeout", {"timeout": 60})[0], 404, "a paused one has no time")
    equal(f.edge("GET", "/health", o)[0], 502, "and traffic does not wake it")
    equal(f.edge("GET", "/health", o, X_Access_Token=o["envdAccessToken"])[0], 502)
    status, again = f.api("POST", "/v2" + path + "/connect", {"timeout": 100})
    equal((status, again["envdAccessToken"]), (201, o["envdAccessToken"]))
    about(left(f.info(o)[1]), 100)
    equal(f.api("POST", path + "/pause")[0], 204)
    equal(f.api("POST", path + "/resume", {})[0], 201, "an older client's way")
    about(left(f.info(o)[1]), 15)
    equal(f.api("POST", path + "/pause")[0], 204)
    equal(f.api("DELETE", path)[0], 204, "a paused one is killed")
    # one of another API wakes by its key
    v0 = f.up("v0")
    equal(f.call("POST", "/pause", {"runtime_id": v0["runtime_id"]})[0], 200)
    o = {"sandboxID": v0["runtime_id"]}
    f.until(lambda: f.edge("GET", "/health", o, X_Access_Token="wrong")[0], lambda status: status == 502)
    equal(f.edge("GET", "/health", o, X_Access_Token=v0["session_api_key"])[0], 204)
    equal(f.call("POST", "/stop", {"runtime_id": v0["runtime_id"]})[0], 200)
    # at its end it is paused, and wakes by traffic
    p = f.create(timeout=1, autoPause=True, autoResume={"enabled": True})
    f.until(lambda: f.info(p)[1]["state"], lambda state: state == "paused")
    equal(f.edge("GET", "/process", p)[0], 401, "without a token nobody wakes it")
    equal(f.info(p)[1]["state"], "paused")
    equal(f.edge("GET", "/nothing", p, X_Access_Token=p["envdAccessToken"])[0] in (404, 405), True)
    equal(f.api("DELETE", "/sandboxes/" + p["sandboxID"])[0], 204)


def lists(f):
    other = f.make_key("other")
    theirs = f.api("POST", "/v2/sandboxes", {"templateID": "base"}, key=other)[1]
    ids = [f.create(metadata={"sid": "x y", "n": str(i), "\u017e&=": "100%"})["sandboxID"] for i in range(3)]
    paused = f.pauses(theirs)
    if paused:
        equal(f.api("POST", "/sandboxes/%s/pause" % ids[0])[0], 204)

    def found(query, path="/v2/sandboxes"):
        status, answer = f.api("GET", path + "?" + query)
        equal(status, 200, answer)
        return [s["sandboxID"] for s in answer]

    equal((found("order=asc"), found("")), (ids, ids[::-1]), "also within a second")
    equal((f.head["X-Total-Running"], f.head["X-Next-Token"]), ("2" if paused else "3", None))
    equal(sorted(found(metadata(sid="x y"))), sorted(ids))
    equal(found(metadata(sid="x y", n="1")), [ids[1]])
    equal(found(metadata(**{"\u017e&=": "100%", "n": "2"})), [ids[2]])
    equal((found(metadata(sid="x")), found(metadata(nothing="")), found("state=paused")), ([], [], ids[:paused]))
    equal(sorted(found("state=running%2Cpaused")), sorted(ids))
    equal(sorted(found("", "/sandboxes")), sorted(ids[paused:]), "the older list has those that run")
    equal(found(metadata(n="1"), "/sandboxes"), [ids[1]])
    equal((found("startedAfter=2999-01-01T00%3A00%3A00%2B00%3A00"), found("template=other")), ([], []))
    equal(len(found("startedAfter=2020-01-01T00%3A00%3A00.5%2B00%3A00")), 3)
    started = f.api("GET", "/sandboxes/" + ids[1])[1]["startedAt"]
    equal(ids[1] in found("startedAfter=" + quote(started)), True, "the time of its own start")
    for order in ("asc", "desc"):
        whole, pages, token = found("order=" + order), [], ""
        for more in (True, True, False):
            pages += found("order=%s&limit=1&nextToken=%s" % (order, token))
            token = f.head["X-Next-Token"]
            equal(token is not None, more)
        equal(pages, whole)
    equal([f.api("GET", "/v2/sandboxes?" + q)[0] for q in (
        "limit=0", "limit=101", "limit=x", "order=up", "state=odd", "nextToken=x", "startedAfter=now",
        "metadata=%3D1")], [400] * 8)
    equal(f.api("GET", "/sandboxes/" + theirs["sandboxID"])[0], 404, "those of other keys are not there")
    equal(f.api("DELETE", "/sandboxes/" + theirs["sandboxID"])[0], 404)
    equal(f.api("DELETE", "/sandboxes/" + theirs["sandboxID"], key=other)[0], 204)


def refusals(f):
    def refused(status, **body):
        answer = f.api("POST", "/v2/sandboxes", dict({"templateID": "base"}, **body))
        equal(answer[0], status, answer)
        return answer[1]["message"]

    for body in ({"timeout": "1"}, {"timeout": 0}, {"metadata": {"a": 1}}, {"envVars": {"1a": ""}}, {"envVars": []},
                 {"templateID": None}, {"autoPause": 1}, {"autoPauseMemory": False},
                 {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
                 {"iam": {}}, {"mcp": []},
                 {"volumeMounts": [{"name": "a", "path": "/b"}]}, {"network": {"denyOut": ["a.test"]}},
                 {"network": {"allowOut": ["a.test"]}}, {"network": {"maskRequestHost": 1}},
                 {"network": {"maskRequestHost": "a\r\nb: c"}}, {"network": {"httpsPorts": ["1"]}},
                 *({"network": {"maskRequestHost": bad}}
                   for bad in ("", ":80", "a..b", "a.", "${HOST}.a", "a:b", "a:1:2")),
                 {"network": {"httpsPorts": [0]}}, {"network": {"httpsPorts": [49983]}}, {"network": {"httpsPorts": 1}},
                 {"network": {"egressProxy": {"address": "a"}}},
                 {"network": {"dnsServers": ["1.1.1.1"]}}, {"network": []}, {"autoResume": {"enabled": 1}}):
        refused(400, **body)
    # the SDK itself starts the gateway by a command
    o = f.create(mcp={"server": {}})
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)
    equal(refused(400, timeout=25 * 3600), "Timeout cannot be greater than 24 hours")
    equal("unknown" in refused(404, templateID="unknown"), True)
    equal(f.api("POST", "/v2/sandboxes", b"{")[0], 400)
    equal(f.api("POST", "/v2/sandboxes", b"[]")[0], 400)
    equal(f.api("POST", "/v2/sandboxes", b" " * 2000000)[0], 413, "nginx's own errors have the form, too")
    equal(f.api("POST", "/v2/sandboxes", {"templateID": "base"}, key="e2b_12")[0], 401)
    equal(f.api("GET", "/v2/sandboxes", key="", Authorization="Bearer sk_e2b_1")[0], 401)
    equal(f.api("GET", "/v2/sandboxes", key=f.key)[0], 200, "the key of the fleet's own form")
    for method, path in (("POST", "/sandboxes/%s/fork" % NOWHERE), ("POST", "/sandboxes/%s/snapshots" % NOWHERE),
                         ("POST", "/v3/templates"), ("GET", "/templates"), ("POST", "/templates/tags"),
                         ("GET", "/volumes"), ("GET", "/volumecontent/a/path"), ("POST", "/secrets"),
                         ("GET", "/templates/a/tags"), ("GET", "/sandboxes/metrics?sandbox_ids=a"),
                         ("POST", "/v2/templates/a/builds/b")):
        equal(f.api(method, path)[0], 501, path)
    equal(f.api("DELETE", "/templates/a")[0], 404)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/metrics"), ("POST", "/pause"), ("PUT", "/network")):
        equal(f.api(method, "/sandboxes/" + NOWHERE + path, {} if method == "PUT" else None)[0], 404, path)
    equal((f.api("PATCH", "/sandboxes")[0], f.api("GET", "/sandboxes/a/b")[0]), (405, 404))
    equal(f.api("GET", "/templates/aliases/base%3Adefault"), (200, {"templateID": "base", "public": True}))
    equal(f.api("GET", "/templates/aliases/none%2Fsuch")[0], 404)
    equal((f.edge("OPTIONS", "/v2/sandboxes")[0], f.head["Access-Control-Allow-Origin"]), (204, "*"))
    equal(f.call("POST", "/start", {"session_id": "a", "e2b": {"root": "/"}})[0], 400, "no other API makes these")


def documented(f):
    """doc/e2b.md, "What is refused": each request of the table is answered as the table says."""
    with open(os.path.join(SRC, "doc/e2b.md"), encoding="utf-8") as doc:
        text = doc.read().split("\n## What is refused\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (\d+) \| .*\|$", text, re.M)
    equal(len(rows), text.count("\n|") - 2, "each row but the head has a status")
    o, asked = f.create(), 0
    for requests, status in rows:
        for text in re.findall("`(.*?)`", requests):
            method, path, body = re.fullmatch(r"(?:([A-Z]+) (/\S*) ?)?(\{.*\})?", text).groups()
            body = json.loads(body) if body else None
            if method is None:
                method, path, body = "POST", "/v2/sandboxes", dict({"templateID": "base"}, **body)
            found, answer = f.api(method, path.replace("ID", o["sandboxID"]), body)
            equal(found, int(status), (text, answer))
            if found == 201:
                equal(f.api("DELETE", "/sandboxes/" + answer["sandboxID"])[0], 204)
            asked += 1
    equal(asked > 20, True, asked)
    equal(f.info(o)[1]["state"], "running", "no refused request has changed it")
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)


def once(f):
    """An Idempotency-Key makes one sandbox of several creates, also across a kill of the service."""
    o = f.api("POST", "/v2/sandboxes", {"templateID": "base"}, Idempotency_Key="a-1")[1]
    f.kill()
    f.start()
    for _ in range(2):
        equal(f.api("POST", "/v2/sandboxes", {"templateID": "base"}, Idempotency_Key="a-1")[1]["sandboxID"],
              o["sandboxID"])
    status, answer = f.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 9}, Idempotency_Key="a-1")
    equal((status, answer["error_code"]), (422, "idempotency_request_mismatch"))
    equal(f.api("POST", "/v2/sandboxes", {"templateID": "base"}, Idempotency_Key="a" * 256)[0], 400)
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)


def kills(f):
    """The service is killed while it creates, pauses and ends sandboxes; the next one continues."""
    answers = []

    def create():
        try:
            answers.append(f.api("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"k": "1"}},
                                 Idempotency_Key="killed"))
        except (OSError, ValueError, AssertionError) as why:
            answers.append(why)

    t = threading.Thread(target=create)
    t.start()
    f.until(lambda: f.call("GET", "/handrail/v1/sandboxes")[1]["sandboxes"], lambda all: all != [])
    f.kill()
    f.start()
    t.join(PATIENCE)
    o = f.api("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"k": "1"}}, Idempotency_Key="killed")[1]
    equal([s["sandboxID"] for s in f.api("GET", "/v2/sandboxes")[1]], [o["sandboxID"]], "there is one")
    if f.pauses(o):
        t = threading.Thread(target=f.api, args=("POST", "/sandboxes/%s/pause" % o["sandboxID"]), daemon=True)
        t.start()
        f.until(lambda: f.info(o)[1]["state"], lambda state: state == "paused")
        f.kill()
        f.start()
        f.until(lambda: f.call("GET", "/runtime/" + o["sandboxID"])[1]["state"], lambda state: state == "paused")
        equal(f.api("POST", "/v2/sandboxes/%s/connect" % o["sandboxID"], {"timeout": 60})[0], 201)
    # its time is over while no service runs
    until = time.time() + 1
    equal(f.api("POST", "/sandboxes/%s/timeout" % o["sandboxID"], {"timeout": 1})[0], 204)
    f.kill()
    f.start()
    f.gone(o)
    equal(time.time() >= until, True, "not before its end")


def quota(f):
    small = f.make_key("small", sandboxes=1)
    o = f.api("POST", "/v2/sandboxes", {"templateID": "base"}, key=small)[1]
    equal(f.api("POST", "/v2/sandboxes", {"templateID": "base"}, key=small)[0], 429)
    equal((f.head["Should-Retry"], f.head["Retry-After"]), ("false", None), "clients need not repeat it")
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"], key=small)[0], 204)


def measured(f):
    o = f.create()
    status, answer = f.api("GET", "/sandboxes/%s/metrics" % o["sandboxID"])
    equal((status, len(answer)), (200, 1), answer)
    equal(sorted(answer[0]), ["cpuCount", "cpuUsedPct", "diskTotal", "diskUsed", "memCache", "memTotal", "memUsed",
                              "timestamp", "timestampUnix"])
    equal(answer[0]["memTotal"] > 0, True)
    equal(f.api("GET", "/sandboxes/%s/metrics?start=0&end=1" % o["sandboxID"])[1], [])
    equal(f.api("DELETE", "/sandboxes/" + o["sandboxID"])[0], 204)


def internet(f):
    """Each sandbox has rules that can be changed, and a pool for them has the same."""
    pool = {"name": "p", "size": 1, "request": {"e2b": {"user": "user"} if f.uid == 0 else {}, "command": [
        "--plugins", "jupyter"], "network": {"allowInternetAccess": True}}}
    equal(f.call("POST", "/handrail/v1/pools", {"pools": [pool]})[0], 200)
    waiting = f.until(f.sandboxes, lambda all: [s for s in all if s["state"] == "warm"])[0]["runtime_id"]
    o, closed = f.create(), f.create(allow_internet_access=False)

    def rules(o):
        return f.call("GET", "/handrail/v1/network?runtime_id=" + o["sandboxID"])[1]["network"]

    equal((o["sandboxID"], rules(o)["allowInternetAccess"], rules(closed)["allowInternetAccess"]),
          (waiting, True, False))
    equal(f.api("PUT", "/sandboxes/%s/network" % o["sandboxID"], {"denyOut": ["8.8.8.8"]}), (204, None))
    equal(rules(o)["denyOut"], ["8.8.8.8"])


def networks(f):
    """The rules that hold are those that a client sees, whichever API has set them."""
    o = f.create(network={"denyOut": ["0.0.0.0/0"], "allowOut": ["a.test"], "allowPublicTraffic": False})
    path = "/sandboxes/%s/network" % o["sandboxID"]

    def seen():
        info = f.info(o)[1]
        return info["allowInternetAccess"], info["network"]

    equal(seen(), (False, {"denyOut": ["0.0.0.0/0"], "allowOut": ["a.test"], "allowPublicTraffic": False}))
    for body, allows, wanted in (
            ({"denyOut": ["8.8.8.8"]}, True, {"denyOut": ["8.8.8.8"]}),
            ({"allow_internet_access": False, "allowOut": ["b.test"]}, False,
             {"denyOut": ["0.0.0.0/0"], "allowOut": ["b.test"]}),
            ({"egressProxy": {"address": "a.test:1080"}}, True, {"egressProxy": {"address": "a.test:1080"}}),
            ({}, True, {})):
        equal(f.api("PUT", path, body), (204, None), body)
        equal(seen(), (allows, dict(wanted, allowPublicTraffic=False)), body)
    for body, named in (({"denyOut": ["b.test"]}, "b.test"), ({"maskRequestHost": "a.test"}, "maskRequestHost"),
                        ({"httpsPorts": [443]}, "httpsPorts"), ({"allow_internet_access": "no"}, "must be a boolean")):
        status, answer = f.api("PUT", path, body)
        equal((status, named in answer["message"]), (400, True), answer)
    equal(f.call("POST", "/handrail/v1/network", {"runtime_id": o["sandboxID"], "deny": ["9.9.9.9"]})[0], 200)
    equal(seen(), (True, {"denyOut": ["9.9.9.9"], "allowPublicTraffic": False}), "a refused one changes nothing")
    # one without rules has no network that could have them, and says so
    p = f.create()
    equal("network" in f.info(p)[1], False)
    for body in ({}, {"denyOut": ["8.8.8.8"]}, {"allow_internet_access": False}):
        status, answer = f.api("PUT", "/sandboxes/%s/network" % p["sandboxID"], body)
        equal((status, 'without "network"' in answer["message"]), (400, True), answer)
    equal("network" in f.info(p)[1], False)


def each(case):
    def one(uid):
        with E2b(uid, *(["--e2b-internet"] if case == internet else [])) as f:
            case(f)
    one.__name__ = case.__name__
    return one


CASES = [each(c) for c in (life, times, pauses, lists, refusals, documented, once, kills, quota, measured,
                           networks, internet)]

if __name__ == "__main__":
    sys.exit(run(CASES, made=contextlib.nullcontext))
