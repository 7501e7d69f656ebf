#!/usr/bin/env python3
"""The tables of doc/e2b.md: each row of them has requests here, and is answered as it says. test_e2b_control.py has the
table of refused requests."""

import contextlib
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.e2bfleet import E2b  # noqa: E402
from lib.host import SRC  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

PYTHON = "/usr/bin/python3"


def rows(title):
    """The first and the second cell of each row of a section's table."""
    with open(os.path.join(SRC, "doc/e2b.md"), encoding="utf-8") as doc:
        text = doc.read().split("\n## %s\n" % title)[1].split("\n## ")[0]
    found = re.findall(r"^\| (.*?) \|(.*?)\|", text, re.M)
    return {first: second.strip() for first, second in found[2 if found[1][0].startswith("---") else 1:]}


def check(title, requests):
    """`requests` are calls by the first cell, with what they must return."""
    equal(sorted(rows(title)), sorted(requests), title)
    for cell, pairs in requests.items():
        for ask, wanted in pairs:
            equal(ask(), wanted, cell)


def control(f):
    o, rules = f.create(), f.create(allow_internet_access=False)
    path = "/sandboxes/" + o["sandboxID"]

    def status(method, path, body=None):
        return lambda: f.api(method, path, body)[0]

    paused = f.pauses(o)  # whether this account can pause boxes
    check("The control API", {
        "`POST /v2/sandboxes`, `POST /sandboxes`": [(status("POST", p, {"templateID": "base"}), 201)
                                                    for p in ("/v2/sandboxes", "/sandboxes")],
        "`GET /v2/sandboxes`, `GET /sandboxes`": [
            (status("GET", "/v2/sandboxes?state=running&order=asc&template=base&limit=1"), 200),
            (status("GET", "/sandboxes"), 200)],
        "`POST /sandboxes/ID/timeout`, `/refreshes`": [(status("POST", path + "/timeout", {"timeout": 60}), 204),
                                                       (status("POST", path + "/refreshes", {}), 204)],
        "`POST /sandboxes/ID/pause`": [(status("POST", path + "/pause"), 204 if paused else 500)],
        "`POST /v2/sandboxes/ID/connect`, `/sandboxes/ID/connect`, `/resume`": [
            (status("POST", "/v2" + path + "/connect"), 201 if paused else 200),
            (status("POST", path + "/connect", {"timeout": 9}), 200), (status("POST", path + "/resume"), 409)],
        "`PUT /sandboxes/ID/network`": [
            (status("PUT", "/sandboxes/%s/network" % rules["sandboxID"], {"allow_internet_access": True}), 204),
            (lambda: f.info(rules)[1]["allowInternetAccess"], True), (status("PUT", path + "/network", {}), 400)],
        "`POST /sandboxes/ID/fork`": [(status("POST", path + "/fork", {"count": 2}), 201)],
        "`POST /sandboxes/ID/snapshots`": [(status("POST", path + "/snapshots", {"memory": False, "name": "n"}), 201)],
        "`GET /snapshots`": [(lambda: f.api("GET", "/snapshots?name=n"),
                              (200, [{"snapshotID": "n.base", "names": ["n.base"]}]))],
        "`DELETE /templates/ID`": [(status("DELETE", "/templates/n.base"), 204),
                                   (status("DELETE", "/templates/n.base"), 404)],
        "`GET /sandboxes/ID/metrics`": [(status("GET", path + "/metrics"), 200)],
        "`GET /templates/aliases/NAME`": [(status("GET", "/templates/aliases/base"), 200),
                                          (status("GET", "/templates/aliases/none"), 404)],
        "`GET`, `DELETE /sandboxes/ID`": [(status("GET", path), 200), (status("DELETE", path), 204),
                                          (status("GET", path), 404)]})


def way(f):
    o, closed = f.create(), f.create(network={"allowPublicTraffic": False})

    def ask(method, path, o=o, port=49983, **headers):
        def one():
            status, answer = f.edge(method, path, o, port, "{}" if method == "POST" else None, **headers)
            return "%d \"%s\"" % (status, answer["message"]) if status == 502 else status
        return one

    gone, shut = '502 "The sandbox was not found"', '502 "The sandbox is running but port is not open"'
    wrong, right = {"X_Access_Token": "x"}, {"X_Access_Token": o["envdAccessToken"]}
    requests = {
        "401": [(ask("POST", "/process.Process/List", **wrong), 401), (ask("GET", "/health", **wrong), 204),
                (ask("GET", "/files?path=f&signature=v1_x"), 401), (ask("POST", "/execute", port=49999), 401),
                (ask("POST", "/contexts", port=49999), 200)],
        "403": [(ask("GET", "/", closed, 3000), 403),
                (ask("GET", "/", closed, 3000, E2b_Traffic_Access_Token="x"), 403)],
        "404": [(ask("POST", "/init", **right), 404)],
        gone: [(ask("GET", "/health", {"sandboxID": "0" * 32}), gone)],
        shut: [(ask("GET", "/", port=3000), shut)]}
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        requests["401"].pop()
    # a moment between two states cannot be held from outside
    check("The way to a sandbox", dict(requests, **{"409": []}))


def files(f):
    o = f.create()
    token = {"X_Access_Token": o["envdAccessToken"]}
    home = f.run({"runtime_id": o["sandboxID"], "session_api_key": o["envdAccessToken"]}, "mktemp -d").strip()
    watcher = []

    def call(name, **message):
        def one():
            status, answer = f.edge("POST", "/filesystem.Filesystem/" + name, o, body=json.dumps(message),
                                    Content_Type="application/json", **token)
            watcher.extend([answer["watcherId"]] if name == "CreateWatcher" else [])
            return status
        return one

    def later(name):
        return lambda: call(name, watcherId=watcher[0])()

    def http(method, path, body=None, **headers):
        return lambda: f.edge(method, path, o, body=body, **token, **headers)[0]

    stream = {"Content_Type": "application/octet-stream"}
    check("Files", {
        "`POST /files`": [(http("POST", "/files?path=%s/%s" % (home, n), n.encode(), **stream), 200) for n in "ab"],
        "`GET /files`": [(http("GET", "/files?path=%s/a" % home), 200),
                         (http("GET", "/files?path=%s/a" % home, Range="bytes=0-0"), 206),
                         (http("GET", "/files?path=%s/none" % home), 404)],
        "`POST /files/compose`": [(http("POST", "/files/compose", json.dumps(
            {"source_paths": [home + "/a", home + "/b"], "destination": home + "/c"}),
            Content_Type="application/json"), 200), (http("GET", "/files?path=%s/a" % home), 404),
            (lambda: f.edge("GET", "/files?path=%s/c" % home, o, **token), (200, "ab"))],
        "`Stat`, `ListDir`, `MakeDir`, `Move`, `Remove`": [
            (call("Stat", path=home), 200), (call("ListDir", path=home), 200), (call("MakeDir", path=home + "/d"), 200),
            (call("MakeDir", path=home + "/d"), 409), (call("Move", source=home + "/d", destination=home + "/e"), 200),
            (call("Remove", path=home + "/e"), 200), (call("Stat", path=home + "/e"), 404)],
        "`WatchDir`, `CreateWatcher`, `GetWatcherEvents`, `RemoveWatcher`": [
            (call("CreateWatcher", path=home), 200), (later("GetWatcherEvents"), 200), (later("RemoveWatcher"), 200),
            (later("GetWatcherEvents"), 404), (call("WatchDir", path=home), 415)],
        "`GET /health`, `/metrics`, `/envs`": [(http("GET", "/health"), 204), (http("GET", "/metrics"), 200),
                                               (http("GET", "/envs"), 200)]})


def code(f):
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("there is no kernel for %s: apt-get install python3-ipykernel" % PYTHON)
    o, made = f.create(), []

    def ask(method, path, body=None):
        status, answer = f.edge(method, path % made[0]["id"] if "%s" in path else path, o, 49999,
                                None if body is None else json.dumps(body), Content_Type="application/json",
                                X_Access_Token=o["envdAccessToken"])
        return status, answer

    def execute():
        status, text = ask("POST", "/execute", {"code": "1 + 1"})
        return status, [m["text"] for m in map(json.loads, text.splitlines()) if m["type"] == "result"]

    def make():
        status, answer = ask("POST", "/contexts", {"cwd": "/tmp"})
        made.append(answer)
        return status, answer["language"], answer["cwd"]

    check("Code interpreter", {
        "`GET /health`": [(lambda: ask("GET", "/health"), (200, "OK"))],
        "`POST /execute {code, context_id?, language?, env_vars?}`": [(execute, (200, ["2"]))],
        "`POST /contexts {cwd?, language?}`": [(make, (200, "python", "/tmp"))],
        "`GET /contexts`": [(lambda: made[0]["id"] in [c["id"] for c in ask("GET", "/contexts")[1]], True)],
        "`POST /contexts/{id}/restart`, `DELETE /contexts/{id}`": [
            (lambda: ask("POST", "/contexts/%s/restart"), (200, None)),
            (lambda: ask("DELETE", "/contexts/%s"), (200, None)),
            (lambda: ask("DELETE", "/contexts/%s")[0], 404)]})


def each(case):
    def one(uid):
        with E2b(uid, "--e2b-file-forks") as f:
            case(f)
    one.__name__ = case.__name__
    return one


CASES = [each(c) for c in (control, way, files, code)]

if __name__ == "__main__":
    sys.exit(run(CASES, made=contextlib.nullcontext))
