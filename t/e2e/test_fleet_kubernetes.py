#!/usr/bin/env python3
"""The engine "kubernetes" of handrail-fleetd: two replicas of the service on what answers like an API server
(lib/apiserver.py). The server of every pod is a stub that has done whatever it is asked."""

import base64
import copy
import json
import os
import select
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.apiserver import ApiServer, Stub, running  # noqa: E402
from lib.fleet import listen  # noqa: E402
from lib.host import PATIENCE, Host  # noqa: E402
from lib.replicas import Replicas  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

PODS = "/api/v1/namespaces/default/pods/"
SECRETS = "/api/v1/namespaces/default/secrets/"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims/"
RUNNING, PAUSING, STOPPING, DIED = 1, 2, 5, 7  # the numbers of the states in a row
SILENT_S = 8  # longer than a replica waits before it does what the other one began and can be done twice


class Fleet(Replicas, Host):
    IMAGE = "registry/image:1"
    KEPT = "openhands-runtime-hrf-%s-pvc"

    def __init__(self, *options, agents=None, denied=()):
        Host.__init__(self)
        self.stub = Stub()
        self.api = ApiServer(port=self.stub.port)
        self.api.agents, self.api.denied = agents, set(denied)
        with open(self.path("kubeconfig"), "w") as f:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
                       "users": [{"name": "u", "user": {"token": "good"}}]}, f)
        os.chmod(self.path("kubeconfig"), 0o600)
        self.env["KUBECONFIG"] = self.path("kubeconfig")
        # from outside of a cluster the pods are reached through the API server
        self.make(options, "kubernetes.access=forward")

    def __enter__(self):
        return self.begin()

    def __exit__(self, *unused):
        try:
            self.end()
        finally:
            self.api.__exit__()
            self.stub.end()
            Host.__exit__(self)

    def rows(self):
        """What the API server has of the store's sandboxes."""
        with self.api.lock:
            found = [o for p, o in self.api.objects.items() if p.startswith(SECRETS + "handrail-row-")]
            return [json.loads(base64.b64decode(o["data"]["data"])) for o in found]

    def owner(self, id):
        with self.api.lock:
            return self.api.objects[SECRETS + "handrail-row-" + id]["metadata"]["annotations"]["handrail/fleet-owner"]

    def parts(self, id):
        return [n for n in self.sandboxes() if n.startswith("openhands-runtime-hrf-" + id)]

    def sandboxes(self):
        return [n for n in self.api.names() if n.startswith("openhands-runtime-")]


def life():
    """Each replica goes on with what the other one did, and there is nothing but objects of the API server."""
    with Fleet() as f:
        status, made = f.one.begin("s", environment={"A": "a secret word"})
        equal((status, made["state"]), (200, "running"), made)
        id = made["runtime_id"]
        equal(f.two.ok("GET", "/sessions/s")["session_api_key"], made["session_api_key"], "the other replica")
        equal(f.two.begin("s")[1]["runtime_id"], id, "begun twice")
        equal("openhands-runtime-hrf-" + id in f.sandboxes(), True, f.sandboxes())
        equal([b for b in f.api.sent("POST", "/pods") if "a secret word" in json.dumps(b)], [],
              "variables are in the Secret alone")
        f.two.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal(PODS + "openhands-runtime-hrf-" + id in f.api.objects, False, "its pod is gone")
        equal(f.one.begin("s")[1]["state"], "running", "resumed by a start")
        f.two.ok("POST", "/stop", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "stopped")
        equal(f.sandboxes(), [], "nothing is left")
        again = f.two.begin("s")[1]
        equal((again["state"], again["runtime_id"] != id), ("running", True), "a new life has a new id")
        equal(len(f.rows()), 1, "and the earlier one is forgotten")
        f.until(lambda: [e["what"] for e in f.one.ok("GET", "/sessions/s")["events"]],
                lambda whats: whats == ["starting", "running"])  # told by the other replica
        f.one.ok("POST", "/stop", {"runtime_id": again["runtime_id"]})
        f.until(lambda: f.two.state("s"), lambda s: s == "stopped")


def new_keys():
    """A resume gives the sandbox another session key, which both replicas know then."""
    with Fleet("--resume-new-key") as f:
        made = f.one.begin("s")[1]
        id, key = made["runtime_id"], made["session_api_key"]
        f.two.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal(f.two.begin("s")[1]["session_api_key"], key, "not by a start")
        f.two.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        new = f.one.ok("POST", "/resume", {"runtime_id": id})["session_api_key"]
        equal(new != key, True)
        for replica in (f.one, f.two):
            f.until(lambda: replica.ok("GET", "/sessions/s")["session_api_key"], lambda k: k == new)
        f.until(lambda: f.one.state("s"), lambda s: s == "running")


def agent_sandbox():
    """Where the cluster serves Sandboxes they are what both replicas make, scale and end, and a pod that their
    controller makes anew is no sandbox of ours, also where nobody looked when it did."""
    with Fleet(agents="v1beta1") as f:
        ids = [f.one.begin(s)[1]["runtime_id"] for s in ("first", "second")]
        names = ["openhands-runtime-hrf-" + id for id in ids]
        paths = ["/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/" + n for n in names]
        equal((f.api.sent("POST", "/pods"), [p in f.api.objects for p in paths]), ([], [True, True]), "a Sandbox each")
        f.two.ok("POST", "/pause", {"runtime_id": ids[0]})
        f.until(lambda: f.one.state("first"), lambda s: s == "paused")
        equal((PODS + names[0] in f.api.objects, f.api.objects[paths[0]]["spec"]["operatingMode"]),
              (False, "Suspended"), "scaled")
        equal(f.one.begin("first")[1]["state"], "running", "resumed by a start")
        f.api.remove(PODS + names[0])
        f.until(lambda: f.two.state("first"), lambda s: s == "died")
        f.until(lambda: PODS + names[0] in f.api.objects or paths[0] in f.api.objects, lambda there: not there)
        equal(f.KEPT % ids[0] in f.sandboxes(), True, "its files are kept")
        f.one.kill()
        f.two.kill()
        f.api.remove(PODS + names[1])
        f.begin()
        f.until(lambda: f.two.state("second"), lambda s: s == "died")
        for id in ids:
            f.until(lambda: f.two.call("POST", "/stop", {"runtime_id": id})[0], lambda s: s == 200)
        f.until(f.sandboxes, lambda left: left == [])
    with Fleet(agents="v1alpha1", denied=[("create", "sandboxes")]) as f:
        id = f.one.begin("s")[1]["runtime_id"]
        equal(len(f.api.sent("POST", "/pods")), 1, "pods alone where no right is given")
        f.two.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def events():
    """What one replica does the other one tells, as it happens, once, also over cuts; nobody's look asks the server."""
    with Fleet() as f:
        status, told, _ = listen(f.two.address[1], f.key)
        made = f.one.begin("s")[1]
        first, second = next(told), next(told)
        equal((status, [(e["runtime_id"], e["what"]) for e in (first, second)]),
              (200, [(made["runtime_id"], "starting"), (made["runtime_id"], "running")]))
        asked = len(f.api.sent("GET", "/events?"))
        again = listen(f.one.address[1], f.key, Last_Event_ID=str(first["id"]))[1]
        equal(next(again), second, "it goes on at the other replica")
        page = f.two.ok("GET", "/handrail/v1/events?limit=1&after=%d" % first["id"])["events"]
        equal(page, [second])
        other = f.two.ok("POST", "/handrail/v1/keys", {"name": "other"})["key"]
        equal(f.two.ok("GET", "/handrail/v1/events", key=other), {"events": []}, "what is another's")
        equal(len(f.api.sent("GET", "/events?")), asked, "none of it asked the server")
        with f.api.lock:
            f.api.cuts, f.api.forgotten = 4, 1
        f.two.ok("POST", "/pause", {"runtime_id": made["runtime_id"]})
        for stream in (told, again):
            equal([next(stream)["what"], next(stream)["what"]], ["pausing", "paused"])
        f.one.end()
        equal(list(again), [], "it ends with its replica")
        f.one.start()
        third = next(listen(f.one.address[1], f.key, Last_Event_ID=str(second["id"]))[1])
        equal(third["what"], "pausing", "and goes on at the next one")


def one_session_once():
    """Twelve starts of one session at both replicas are one sandbox."""
    with Fleet() as f:
        got = f.at_once(12, lambda i: (f.one, f.two)[i % 2].begin("s"))
        equal({(s, a.get("runtime_id")) for s, a in got}, {(200, got[0][1]["runtime_id"])}, got)
        equal(len([b for b in f.rows() if b["session"] == "s"]), 1, "one row")
        equal(len([n for n in f.sandboxes() if n.endswith("-pvc")]), 1, f.sandboxes())
        f.one.ok("POST", "/stop", {"runtime_id": got[0][1]["runtime_id"]})
        f.until(lambda: f.two.state("s"), lambda s: s == "stopped")


def quota():
    """Of many at once at both replicas no more than the key may have; what was refused leaves nothing."""
    with Fleet() as f:
        key = f.one.ok("POST", "/handrail/v1/keys", {"name": "k", "sandboxes": 3})["key"]
        f.until(lambda: f.two.call("GET", "/list", key=key)[0], lambda s: s == 200)

        def begin(i):
            return (f.one, f.two)[i % 2].call("POST", "/start", {
                "session_id": "s%d" % i, "image": "registry/image:1", "command": []}, key=key)
        got = f.at_once(10, begin)
        equal({s for s, _ in got} <= {200, 429}, True, got)
        equal(sum(s == 200 for s, _ in got) <= 3, True, got)
        i = 10
        while sum(s == 200 for s, _ in got) < 3:
            got.append(begin(i))
            i += 1
        equal(begin(i)[0], 429, "full")
        equal(len(f.rows()), 3, "rows")
        ids = [a["runtime_id"] for s, a in got if s == 200]
        f.until(lambda: {r["state"] for r in f.rows()}, lambda states: states == {1})
        f.two.ok("POST", "/stop", {"runtime_id": ids[0]}, key=key)
        f.until(lambda: begin(i)[0], lambda s: s == 200)
        # a key of somebody else sees nothing of it
        other = f.two.ok("POST", "/handrail/v1/keys", {"name": "other"})["key"]
        f.until(lambda: f.one.call("GET", "/list", key=other)[0], lambda s: s == 200)
        equal(f.one.call("GET", "/runtime/" + ids[1], key=other)[0], 404, "another key's")
        for r in f.rows():
            f.one.call("POST", "/stop", {"runtime_id": r["id"]}, key=key)
        f.until(f.sandboxes, lambda left: left == [])


def dies():
    """A pod that somebody deletes, or that dies, also while the watch is cut and forgotten."""
    with Fleet() as f:
        first, second = (f.one.begin(s)[1]["runtime_id"] for s in ("first", "second"))
        f.api.remove(PODS + "openhands-runtime-hrf-" + first)
        for r in (f.one, f.two):
            f.until(lambda: r.state("first"), lambda s: s == "died")
        equal("destroy" in f.two.ok("GET", "/sessions/first")["reason"], True, "why")
        f.api.change(PODS + "openhands-runtime-hrf-" + second, lambda o: o.update(status={
            "phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}))
        for r in (f.one, f.two):
            f.until(lambda: r.state("second"), lambda s: s == "died")
        equal("out of memory" in f.one.ok("GET", "/sessions/second")["reason"], True, "why")
        kept = sorted(f.KEPT % id for id in (first, second))
        f.until(lambda: [n for n in f.sandboxes() if n.endswith("-pvc")], lambda left: left == kept)
        f.until(lambda: [p for p in f.api.objects if p.startswith(PODS)], lambda left: left == [])
        claim = f.api.objects[CLAIMS + f.KEPT % first]["metadata"]["uid"]
        status, again = f.two.begin("first")
        equal((status, again["state"], again["runtime_id"]), (200, "running", first), again)
        equal(f.api.objects[CLAIMS + f.KEPT % first]["metadata"]["uid"], claim, "its files")
        equal(len(f.rows()), 2, "one row for each session")
        for id, session in ((first, "first"), (second, "second")):
            f.one.ok("POST", "/stop", {"runtime_id": id})
            f.until(lambda: f.two.state(session), lambda s: s == "stopped")
        f.until(f.sandboxes, lambda left: left == [])
        equal(f.two.begin("first")[1]["runtime_id"] != first, True, "a stop ends it with its files")


def ended_unseen():
    """Nor do the files go where nobody served the fleet when it died, or its next start does not succeed."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        claim = f.api.objects[CLAIMS + f.KEPT % id]["metadata"]["uid"]
        f.one.kill()
        f.two.kill()
        f.api.remove(PODS + "openhands-runtime-hrf-" + id)
        f.begin()
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        f.api.node = lambda o: o.update(status={"phase": "Failed", "reason": "Evicted", "message": "low on memory"})
        equal(f.one.begin("s")[0] != 200, True, "evicted again")
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        f.api.node = running
        status, again = f.two.begin("s")
        equal((status, again["runtime_id"]), (200, id), again)
        equal(f.api.objects[CLAIMS + f.KEPT % id]["metadata"]["uid"], claim, "its files")
        # the key may have no second one while the session has its place
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def quota_of_a_dead_one():
    """One that died holds no room, and needs some to be started again."""
    with Fleet("--max-sandboxes", "1") as f:
        id = f.one.begin("s")[1]["runtime_id"]
        f.api.remove(PODS + "openhands-runtime-hrf-" + id)
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        other = f.one.begin("other")[1]["runtime_id"]
        equal(f.one.begin("s")[0] in (429, 503), True, "there is no room")
        equal((f.one.state("s"), f.KEPT % id in f.sandboxes()), ("died", True), "it stays, and so do its files")
        f.one.ok("POST", "/stop", {"runtime_id": other})
        f.until(lambda: f.one.state("other"), lambda s: s == "stopped")
        equal(f.one.begin("s")[1]["runtime_id"], id, "now there is")


def started_again_while_cleared():
    """What one replica clears away of a dead sandbox is nothing that the other one has made of its next life."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        pod = PODS + "openhands-runtime-hrf-" + id
        asked, go, follow = threading.Event(), threading.Event(), f.api.follow_log

        def held(*args):
            first = not asked.is_set()
            asked.set()
            if first:
                go.wait(PATIENCE)
            follow(*args)
        f.api.follow_log = held
        # so that the death is the other one's to see
        f.two.process.send_signal(signal.SIGSTOP)
        f.api.change(pod, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted"}))
        equal(asked.wait(PATIENCE), True, "its log is kept first")
        f.two.process.send_signal(signal.SIGCONT)
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        status, again = f.two.begin("s")
        equal((status, again.get("runtime_id")), (200, id), again)
        parts = {n: f.api.objects[n]["metadata"]["uid"] for n in f.api.objects if "openhands-runtime-hrf-" + id in n}
        equal(pod in parts, True)
        go.set()
        # jobs of one sandbox are done in their order: what was begun is over behind this one
        f.one.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal({n: f.api.objects.get(n, {"metadata": {"uid": None}})["metadata"]["uid"] for n in parts if n != pod},
              {n: u for n, u in parts.items() if n != pod})
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def deleted_late():
    """A replica that stalls before it deletes the pod of a dead sandbox deletes that one, and not the pod of the same
    name that the other replica has made since."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        pod = PODS + "openhands-runtime-hrf-" + id
        asked, go, handled, plain = threading.Event(), threading.Event(), threading.Event(), f.api.handle

        def held(h):
            first = h.command == "DELETE" and h.path == pod and not asked.is_set()
            if first:
                asked.set()
                go.wait(PATIENCE)
            plain(h)
            if first:
                handled.set()
        f.api.handle = held
        # so that the death is the other one's to see
        f.two.process.send_signal(signal.SIGSTOP)
        f.api.change(pod, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted"}))
        equal(asked.wait(PATIENCE), True, "it is cleared away")
        f.two.process.send_signal(signal.SIGCONT)
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        status, again = f.two.begin("s")
        equal((status, again.get("runtime_id")), (200, id), again)
        parts = {n: o["metadata"]["uid"] for n, o in f.api.objects.items() if "openhands-runtime-hrf-" + id in n}
        equal(pod in parts, True)
        go.set()
        equal(handled.wait(PATIENCE), True)
        equal(f.api.objects.get(pod, {"metadata": {"uid": None}})["metadata"]["uid"], parts[pod], "the new pod")
        # jobs of one sandbox are done in their order: what was begun is over behind this one
        f.one.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal({n: f.api.objects.get(n, {"metadata": {"uid": None}})["metadata"]["uid"] for n in parts if n != pod},
              {n: u for n, u in parts.items() if n != pod}, "nor what leads to it")
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])
        with f.api.lock:
            bare = [path for m, path, _, body in f.api.requests if m == "DELETE" and "openhands-runtime-" in path and
                    "uid" not in ((body or {}).get("preconditions") or {})]
        equal(bare, [], "each delete says which object it means")


def sandbox_made_meanwhile():
    """A replica that stalls while it clears away a dead sandbox whose Sandbox somebody deleted does not delete the one
    that the other replica has made since."""
    with Fleet(agents="v1beta1") as f:
        id = f.one.begin("s")[1]["runtime_id"]
        name = "openhands-runtime-hrf-" + id
        pod, path = PODS + name, "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/" + name
        claimed, asked, go, plain = threading.Event(), threading.Event(), threading.Event(), f.api.handle

        def held(h):
            late = claimed.is_set() and h.command == "GET" and h.path == pod and not asked.is_set()
            if late:
                asked.set()
                go.wait(PATIENCE)
                h.rfile.read(int(h.headers.get("Content-Length") or 0))
                f.api.refuse(h, 404, "NotFound", "no such pod")
                return
            # the store is asked who clears it away once the engine has looked at what there is
            if h.command == "GET" and h.path == SECRETS + "handrail-row-" + id and f.rows()[0]["state"] == DIED:
                claimed.set()
            plain(h)
        f.api.handle = held
        # so that the death is the other one's to see
        f.two.process.send_signal(signal.SIGSTOP)
        f.api.remove(path)
        equal(asked.wait(PATIENCE), True, "it is cleared away")
        f.two.process.send_signal(signal.SIGCONT)
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        status, again = f.two.begin("s")
        equal((status, again.get("runtime_id")), (200, id), again)
        there = {p: o["metadata"]["uid"] for p, o in f.api.objects.items() if name in p}
        equal((pod in there, path in there), (True, True))
        go.set()
        # jobs of one sandbox are done in their order: what was begun is over behind this one
        f.one.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal({p: f.api.objects.get(p, {"metadata": {"uid": None}})["metadata"]["uid"] for p in there if p != pod},
              {p: u for p, u in there.items() if p != pod}, "the next life is whole")
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def gone_and_made_again():
    """A replica that stalls after it has deleted the pod of a dead sandbox waits for that one to be gone, and not for
    the pod of the same name that the other replica has made since."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        pod = PODS + "openhands-runtime-hrf-" + id
        deleted, asked, go, plain = threading.Event(), threading.Event(), threading.Event(), f.api.handle
        waits = []

        def held(h):
            if go.is_set() and "watch=true" in h.path and "metadata.name" in h.path:
                waits.append(h.path)
            if deleted.is_set() and not asked.is_set() and h.command == "GET" and "metadata.name" in h.path:
                asked.set()
                go.wait(PATIENCE)
            plain(h)
            if h.command == "DELETE" and h.path == pod:
                deleted.set()
        f.api.handle = held
        # so that the death is the other one's to see
        f.two.process.send_signal(signal.SIGSTOP)
        f.api.change(pod, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted"}))
        equal(asked.wait(PATIENCE), True, "it waits until the pod is gone")
        f.two.process.send_signal(signal.SIGCONT)
        f.until(lambda: f.two.state("s"), lambda s: s == "died")
        status, again = f.two.begin("s")
        equal((status, again.get("runtime_id")), (200, id), again)
        go.set()
        # jobs of one sandbox are done in their order: what waits is over behind this one
        f.one.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal(waits, [], "it waits for the new one")
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def only_its_pod_goes():
    """What is cleared away of a dead sandbox is its pod: a late delete would find all else in the hands of its next
    life, which uses what is there already, under the same uid."""
    for kill in (lambda f, pod: f.api.remove(pod),
                 lambda f, pod: f.api.change(pod, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted"}))):
        with Fleet() as f:
            id = f.one.begin("s")[1]["runtime_id"]
            name = "openhands-runtime-hrf-" + id
            parts = {n: o["metadata"]["uid"] for n, o in f.api.objects.items() if name in n and n != PODS + name}
            kill(f, PODS + name)
            for r in (f.one, f.two):
                f.until(lambda: r.state("s"), lambda s: s == "died")
            # jobs of one sandbox are done in their order: what clears it away is over behind this one
            equal(f.one.begin("s")[1]["runtime_id"], id)
            f.two.ok("POST", "/pause", {"runtime_id": id})
            f.until(lambda: f.two.state("s"), lambda s: s == "paused")
            with f.api.lock:
                gone = {path for m, path, _, _ in f.api.requests if m == "DELETE" and name in path}
            equal(gone, {PODS + name}, "what was deleted")
            equal({n: f.api.objects.get(n, {"metadata": {"uid": None}})["metadata"]["uid"] for n in parts}, parts)
            f.one.ok("POST", "/stop", {"runtime_id": id})
            f.until(f.sandboxes, lambda left: left == [])


def dead_ones_are_bounded():
    """A key may keep about as many dead sandboxes as its quota has living ones; a stop makes room."""
    with Fleet() as f:
        made = f.one.ok("POST", "/handrail/v1/keys", {"name": "a", "sandboxes": 1})
        for r in (f.one, f.two):
            f.until(lambda: r.call("GET", "/list", key=made["key"])[0], lambda s: s == 200)

        def start(session):
            return f.two.call("POST", "/start?wait=ready", {
                "session_id": session, "image": f.IMAGE, "command": []}, key=made["key"])

        def dies(session):
            status, o = start(session)
            equal((status, o["state"]), (200, "running"), o)
            f.api.remove(PODS + "openhands-runtime-hrf-" + o["runtime_id"])
            f.until(lambda: f.two.call("GET", "/sessions/" + session, key=made["key"])[1]["state"],
                    lambda s: s == "died")
            return o["runtime_id"]
        first, second = dies("first"), dies("second")
        equal(start("third")[0], 429, "two claims are kept")
        equal(start("second")[1]["runtime_id"], second, "one of them is started again")
        f.two.ok("POST", "/stop", {"runtime_id": second}, key=made["key"])
        f.until(lambda: f.two.call("GET", "/sessions/second", key=made["key"])[1]["state"], lambda s: s == "stopped")
        equal(f.KEPT % second in f.sandboxes(), False, "its files are gone")
        equal(dies("third") != first, True, "there is room")
        equal(f.two.ok("POST", "/handrail/v1/keys/revoke", {"id": made["id"], "stop": True}),
              {"revoked": True, "sandboxes": 2, "stopped": True}, "those that died go with their key")
        f.until(f.sandboxes, lambda left: left == [])


def hanging():
    """While the API server answers nothing, routes to running sandboxes wait for nothing, and what would change
    something is refused after some seconds, however many ask."""
    with Fleet("--idle-pause", "20") as f:
        ids = [f.one.begin("s%d" % i)[1]["runtime_id"] for i in range(4)]

        def route():
            # nothing listens at the address of a pod: nginx has been told where to go
            equal(f.one.call("GET", "/%s/alive" % ids[1])[0], 502, "routed")

        def used():
            route()
            return {r["id"]: r["active"] for r in f.rows()}[ids[1]]
        f.until(used, lambda when, first=used(): when > first)  # a use is written down, some time later
        plain, gate = f.api.handle, threading.Event()
        f.api.handle = lambda h: (gate.wait(), plain(h))
        begun, done = time.monotonic(), []
        changes = [threading.Thread(target=lambda id=id: done.append(f.one.call("POST", "/pause", {"runtime_id": id})))
                   for id in ids]
        try:
            for t in changes:
                t.start()
            for _ in range(50):
                route()
            equal(done, [], "the changes wait meanwhile")
            for t in changes:
                t.join()
            took = time.monotonic() - begun
            equal(([s for s, _ in done], took < 15), ([503] * 4, True), "refused after %.1f s" % took)
            equal(f.one.call("GET", "/sessions/s0")[0] in (200, 503), True, "and so is a look")
        finally:
            gate.set()
            f.api.handle = plain
        f.until(lambda: f.one.call("POST", "/pause", {"runtime_id": ids[0]})[0], lambda s: s == 200)


def one_that_waits():
    """While one change waits for the API server, nobody who asks for nothing there waits with it."""
    with Fleet() as f:
        ids = [f.one.begin(s)[1]["runtime_id"] for s in ("slow", "paused")]
        f.one.ok("POST", "/pause", {"runtime_id": ids[1]})
        f.until(lambda: f.one.state("paused"), lambda s: s == "paused")
        plain, asked, go = f.api.handle, threading.Event(), threading.Event()
        slow, held, done = SECRETS + "handrail-row-" + ids[0], [], []

        def handle(h):
            if h.command == "PATCH" and h.path == slow and not held:
                held.append(h.connection)
                asked.set()
                go.wait(PATIENCE)
            plain(h)
        f.api.handle = handle
        change = threading.Thread(target=lambda: done.append(f.one.call("POST", "/pause", {"runtime_id": ids[0]})))
        change.start()
        try:
            equal(asked.wait(PATIENCE), True)
            equal(f.one.ok("GET", "/runtime/" + ids[1])["state"], "paused", "a look at another one")
            equal(sorted(r["runtime_id"] for r in f.one.ok("GET", "/list")["runtimes"]), sorted(ids), "at all of them")
            equal(f.one.call("GET", "/%s/alive" % ids[1])[0], 409, "a request without a key for it")
            # a client that has given up has closed its end
            equal((select.select(held, [], [], 0)[0], done), ([], []), "the change still waits")
        finally:
            go.set()
            change.join()
            f.api.handle = plain
        f.until(lambda: f.one.call("POST", "/pause", {"runtime_id": ids[0]})[0], lambda s: s == 200)
        f.until(lambda: f.two.state("slow"), lambda s: s == "paused")


def pools_one_after_the_other():
    """Two who have seen the same pools: one of them sets its own, and the other one is told."""
    with Fleet() as f:
        seen = f.one.ok("GET", "/handrail/v1/pools")["version"]
        plain, asked, go, done = f.api.handle, threading.Event(), threading.Event(), []

        def handle(h):
            if h.path.startswith(SECRETS[:-1]) and h.command in ("POST", "PATCH") and not asked.is_set():
                asked.set()
                go.wait(PATIENCE)
            plain(h)

        def put(name):
            done.append(f.one.call("POST", "/handrail/v1/pools", {"version": seen, "pools": [{
                "name": name, "size": 1, "request": {"image": "registry/" + name, "command": []}}]})[0])
        f.api.handle = handle
        setters = [threading.Thread(target=put, args=(n,)) for n in ("a", "b")]
        for t in setters:
            t.start()
            equal(asked.wait(PATIENCE), True)
        for _ in range(10):
            f.one.ok("GET", "/list")  # what was asked before these has come as far as it can
        go.set()
        for t in setters:
            t.join()
        f.api.handle = plain
        equal(done.count(200), 1, done)
        f.one.ok("POST", "/handrail/v1/pools", {"pools": []})
        f.until(f.sandboxes, lambda left: left == [])


def killed_replica():
    """A replica that is killed while it pauses and stops: the one that comes after it finishes that."""
    with Fleet() as f:
        ids = [f.one.begin("s%d" % i)[1]["runtime_id"] for i in range(4)]
        for id in ids[:2]:
            f.one.ok("POST", "/pause", {"runtime_id": id})
        for id in ids[2:]:
            f.one.ok("POST", "/stop", {"runtime_id": id})
        f.one.kill()
        equal(f.two.ok("GET", "/sessions/s0")["runtime_id"], ids[0], "the other one goes on serving")
        f.one.start()
        f.until(lambda: [f.two.state("s%d" % i) for i in range(4)],
                lambda states: states == ["paused", "paused", "stopped", "stopped"])
        for id in ids:
            f.two.call("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])
        f.until(lambda: {r["state"] for r in f.rows()}, lambda states: states == {6})


def warm():
    """Ones of the pool, claimed at both replicas at once: each once, with its variables."""
    with Fleet() as f:
        f.one.ok("POST", "/handrail/v1/pools", {"pools": [{
            "name": "p", "size": 4, "request": {"image": "registry/image:1", "command": []}}]})
        f.until(lambda: [r["state"] for r in f.rows()], lambda states: states.count(9) == 4)
        waiting = {r["id"] for r in f.rows()}
        got = f.at_once(4, lambda i: (f.one, f.two)[i % 2].begin("w%d" % i, environment={"WHO": "w%d" % i}))
        equal({s for s, _ in got}, {200}, got)
        equal({a["runtime_id"] for _, a in got}, waiting, "those that waited")
        said = " ".join(f.stub.commands)
        equal([i for i in range(4) if "WHO='w%d'" % i not in said.replace("'\\''", "'")], [], "variables")
        f.one.ok("POST", "/handrail/v1/pools", {"pools": []})
        for _, a in got:
            f.two.ok("POST", "/stop", {"runtime_id": a["runtime_id"]})
        f.until(f.sandboxes, lambda left: left == [])


def api_trouble():
    """A watch that is cut and forgotten, answers that do not come: nothing is lost or made twice."""
    with Fleet() as f:
        f.api.cuts, f.api.forgotten = 6, 2
        f.api.failures = [None, (503, [], b"no"), None]
        status, made = f.one.begin("s")
        equal((status, made.get("state")), (200, "running"), made)
        equal(len([n for n in f.sandboxes() if n.endswith("-pvc")]), 1, f.sandboxes())
        f.api.cuts = 4
        f.two.ok("POST", "/stop", {"runtime_id": made["runtime_id"]})
        f.until(lambda: f.one.state("s"), lambda s: s == "stopped")
        equal(f.sandboxes(), [], "nothing is left")


def slow_start():
    """A start that takes longer than a replica is silent otherwise is not done by the other one as well, and one that
    is stopped at the other one meanwhile leaves nothing."""
    with Fleet() as f:
        f.api.node = None
        ids = [f.one.begin(s, wait=False)[1]["runtime_id"] for s in ("slow", "stopped")]
        pods = [PODS + "openhands-runtime-hrf-" + id for id in ids]
        f.until(lambda: all(p in f.api.objects for p in pods), lambda there: there)
        owners = [f.owner(id) for id in ids]
        threading.Event().wait(SILENT_S)
        equal([f.owner(id) for id in ids], owners, "whose they are")
        f.two.ok("POST", "/stop", {"runtime_id": ids[1]})
        f.api.node = running
        f.api.change(pods[0], running)
        f.until(lambda: f.two.state("slow"), lambda s: s == "running")
        f.until(lambda: f.two.state("stopped"), lambda s: s == "stopped")
        f.until(f.sandboxes, lambda left: left == f.parts(ids[0]))
        f.two.ok("POST", "/stop", {"runtime_id": ids[0]})
        f.until(f.sandboxes, lambda left: left == [])


def paused_and_resumed():
    """A resume at one replica while the other one's pause is under way: nothing of it is lost."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        pod, claim = PODS + "openhands-runtime-hrf-" + id, "openhands-runtime-hrf-" + id + "-pvc"
        f.api.lingering.add(pod)
        f.one.ok("POST", "/pause", {"runtime_id": id})
        f.until(lambda: f.api.objects[pod]["metadata"].get("deletionTimestamp"), bool)
        f.two.ok("POST", "/resume", {"runtime_id": id})
        threading.Event().wait(SILENT_S)
        equal((f.one.state("s"), f.two.state("s")), ("resuming", "resuming"), "it waits for the pause")
        f.api.lingering.clear()
        f.api.remove(pod)
        f.until(lambda: f.two.state("s"), lambda s: s == "running")
        equal((pod in f.api.objects, claim in f.sandboxes()), (True, True), "its pod and its files")
        f.two.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def rewrite(o, **fields):
    row = dict(json.loads(base64.b64decode(o["data"]["data"])), **fields)
    o["data"] = {"data": base64.b64encode(json.dumps(row).encode()).decode()}


def changed_before(f, id, state, **fields):
    """The row as another process changes it just before the first move to that state; the event tells when."""
    path, patch, done = SECRETS + "handrail-row-" + id, f.api.patch, threading.Event()

    def late(h, to, o, body):
        encoded = ((body or {}).get("stringData") or {}).get("data")
        if to == path and not done.is_set() and encoded and json.loads(encoded)["state"] == state:
            rewrite(o, **fields)
            f.api.put(path, o)
            o = copy.deepcopy(f.api.objects[path])
            done.set()
        patch(h, to, o, body)
    f.api.patch = late
    return done


def used_before_its_pause():
    """A use that another replica writes down before an idle pause is decided keeps the sandbox running."""
    with Fleet("--idle-pause", "1") as f:
        id = f.one.begin("s")[1]["runtime_id"]
        used = changed_before(f, id, PAUSING, active=int(time.time()) + 1000)
        f.stub.info = {"status": "ok", "idle_time": 1000}
        f.api.change(SECRETS + "handrail-row-" + id, lambda o: rewrite(o, at="127.0.0.1:%d" % f.stub.port))
        equal(used.wait(PATIENCE), True, "it is idle")
        f.stub.info = {"status": "ok"}
        # a replica's changes of the store follow each other
        for replica in (f.one, f.two):
            replica.call("POST", "/handrail/v1/drain", {"off": True})
        equal([r["state"] for r in f.rows()], [RUNNING], "it runs")
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def another_of_its_id():
    """A stop means the sandbox that was read, and not one of another key that has its id by then."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        row = f.rows()[0]
        given = changed_before(f, id, STOPPING, key=row["key"] + 1, session_key="another")
        equal(f.one.call("POST", "/stop", {"runtime_id": id})[0], 404)
        equal((given.is_set(), [r["state"] for r in f.rows()]), (True, [RUNNING]), "the other one's runs")
        f.one.ok("POST", "/handrail/v1/sandboxes/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


def stopped_unseen():
    """A stop at a replica that has not heard yet that the sandbox runs is done all the same."""
    with Fleet() as f:
        f.api.node = None
        id = f.one.begin("s", wait=False)[1]["runtime_id"]
        pod = PODS + "openhands-runtime-hrf-" + id
        f.until(lambda: pod in f.api.objects and f.two.state("s"), lambda s: s == "starting")
        f.api.silent, f.api.node = "secrets", running
        f.api.change(pod, running)
        f.until(lambda: f.one.state("s"), lambda s: s == "running")
        equal(f.two.ok("POST", "/stop", {"runtime_id": id})["state"] in ("stopping", "stopped"), True, "it is done")
        f.until(lambda: f.two.state("s"), lambda s: s == "stopped")
        equal(f.sandboxes(), [], "nothing is left")


def lost_answers():
    """A change of the store that was made, and answered by nobody."""
    with Fleet() as f:
        plain, lost = f.api.answer, []

        def answer(handler, status, o, headers=()):
            # each kind of object once, made and changed
            what = (handler.command, str(isinstance(o, dict) and o.get("metadata", {}).get("name"))[:12])
            if what[0] in ("POST", "PATCH") and what[1] in ("handrail-row", "handrail-ses", "handrail-key") and \
                    status < 300 and what not in lost:
                lost.append(what)
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
            else:
                plain(handler, status, o, headers)
        f.api.answer = answer
        status, made = f.one.begin("s")
        equal((status, made.get("state")), (200, "running"), made)
        f.one.ok("POST", "/handrail/v1/keys", {"name": "k"})
        equal(len([k for k in f.one.ok("GET", "/handrail/v1/keys")["keys"] if k["name"] == "k"]), 1, "made once")
        equal(set(lost) >= {("POST", "handrail-row"), ("POST", "handrail-ses"), ("PATCH", "handrail-row")}, True, lost)
        equal(len(f.rows()), 1, "rows")
        f.one.ok("POST", "/stop", {"runtime_id": made["runtime_id"]})
        f.until(f.sandboxes, lambda left: left == [])


def foreign_objects():
    """A session's object that leads to a row of somebody else, and a key's that is none."""
    with Fleet() as f:
        id = f.one.begin("mine")[1]["runtime_id"]
        f.one.begin("theirs")
        with f.api.lock:
            leads = {json.loads(base64.b64decode(o["data"]["data"]))["id"]: p
                     for p, o in f.api.objects.items() if p.startswith(SECRETS + "handrail-session-")}
        theirs = next(p for i, p in leads.items() if i != id)
        data = base64.b64encode(json.dumps({"id": id}).encode()).decode()
        f.api.change(theirs, lambda o: o.update(data={"data": data}))
        equal(f.one.call("GET", "/sessions/theirs")[0], 404, "another session's")
        equal(f.one.begin("theirs")[0], 200, "begun anew")
        equal(f.two.state("mine"), "running", "and the other one is left alone")
        with f.api.lock:
            f.api.put(SECRETS + "handrail-key-7", {"kind": "Secret", "metadata": {
                "name": "handrail-key-7", "labels": {"handrail/fleet": "key"}}, "data": {"data": data}})
        equal(f.one.call("POST", "/handrail/v1/keys/revoke", {"id": 7})[0], 404, "no key")
        for r in f.rows():
            f.one.ok("POST", "/stop", {"runtime_id": r["id"]})
        f.until(f.sandboxes, lambda left: left == [])


def keys_of_the_cluster():
    """A key whose Secret was deleted asks for nothing any more, and a server that makes none is not asked for ever."""
    with Fleet() as f:
        k = f.one.ok("POST", "/handrail/v1/keys", {"name": "k"})
        for replica in (f.one, f.two):
            f.until(lambda: replica.call("GET", "/list", key=k["key"])[0], lambda s: s == 200)
        f.api.remove(SECRETS + "handrail-key-%d" % k["id"])
        for replica in (f.one, f.two):
            f.until(lambda: replica.call("GET", "/list", key=k["key"])[0], lambda s: s != 200)
        plain, asked = f.api.plain, []

        def refuse(status):
            def instead(h, path, q, body):
                if h.command != "POST" or path != SECRETS[:-1] or len(asked) == 40:
                    return plain(h, path, q, body)
                asked.append(path)
                return f.api.refuse(h, status, "", "not now")
            return instead

        for status, most in ((404, 1), (409, 16)):
            asked.clear()
            f.api.plain = refuse(status)
            equal(f.one.call("POST", "/handrail/v1/keys", {"name": "k"})[0] >= 500, True, "no key")
            equal(len(asked), most, "requests after %d" % status)
        f.api.plain = plain


def long_logs():
    """Lines of any length and number."""
    with Fleet() as f:
        id = f.one.begin("s")[1]["runtime_id"]
        f.api.log = ["a" * 300000, "b" * 300000] + ["c" * 4000] * 90 + ["the last"]
        logs = f.two.ok("GET", "/runtime/%s?logs=true" % id)["pod_logs"]
        equal((logs[-9:], len(logs) <= 8192), ("the last\n", True), "the newest lines")
        f.api.log = ["d" * 9000]
        equal(f.two.ok("GET", "/runtime/%s?logs=true" % id)["pod_logs"], "d" * 4096 + "\n", "the end of a line")
        f.one.ok("POST", "/stop", {"runtime_id": id})
        f.until(f.sandboxes, lambda left: left == [])


TESTS = [keys_of_the_cluster, long_logs, life, new_keys, agent_sandbox, events, one_session_once, quota, dies,
         killed_replica, warm, api_trouble, slow_start,
         paused_and_resumed, used_before_its_pause, another_of_its_id, stopped_unseen, lost_answers, foreign_objects,
         ended_unseen, quota_of_a_dead_one, dead_ones_are_bounded,
         started_again_while_cleared, deleted_late, sandbox_made_meanwhile, gone_and_made_again,
         only_its_pod_goes, hanging, one_that_waits,
         pools_one_after_the_other]

if __name__ == "__main__":
    tap = Tap()
    for test in TESTS:
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__, test)
    sys.exit(tap.done())
