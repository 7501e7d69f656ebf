#!/usr/bin/env python3
"""Two replicas of the fleet in the cluster that KUBECONFIG names (lib/cluster.py), by hand, in the build directory,
on a machine that reaches the addresses of pods, such as a node:

    KUBECONFIG=... E2E_KUBERNETES_IMAGE=registry/image:1 ../t/e2e/fleet_cluster.py [TEST...]

E2E_POOL is how many sandboxes wait to be claimed (6), E2E_KILLS how often a replica is killed (6), E2E_REQUESTS and
E2E_RATE how many requests a rollout is tried with (5000) and how many of them a second (50), and
E2E_KUBERNETES_FLEET_IMAGE an image with handrail-fleetd and nginx, for the manifests of conf/kubernetes.
test_fleet_kubernetes.py needs no cluster."""

import collections
import http.client
import json
import os
import random
import re
import select
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import cluster  # noqa: E402
from lib.cluster import IMAGE, NAMESPACE, PATIENCE, Cluster, kubectl, left  # noqa: E402
from lib.host import SRC  # noqa: E402
from lib.replicas import Replica, Replicas  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402

POOL, KILLS = int(os.environ.get("E2E_POOL", "6")), int(os.environ.get("E2E_KILLS", "6"))
FLEET_IMAGE = os.environ.get("E2E_KUBERNETES_FLEET_IMAGE")
REQUESTS, RATE = int(os.environ.get("E2E_REQUESTS", "5000")), float(os.environ.get("E2E_RATE", "50"))
POD = "openhands-runtime-hrf-"
ENDED = ("stopped", "died")


def run(replica, o, command):
    """By the replica's edge, which wakes a paused one: it says so until it has."""
    def ask():
        return replica.call("POST", "/%s/execute_action" % o["runtime_id"], {
            "action": {"action": "run", "args": {"command": command}}}, X_Session_API_Key=o["session_api_key"],
            Content_Type="application/json")
    status, answer = Replicas.until(ask, lambda a: a[0] != 503)
    equal(status, 200, answer)
    return answer["content"]


class Fleet(Replicas, Cluster):
    IMAGE = IMAGE

    def __init__(self, *options, **settings):
        Cluster.__init__(self)
        self.make(options, "kubernetes.namespace=" + NAMESPACE, "kubernetes.resource_cpu_request=10m",
                  "kubernetes.resource_memory_request=32Mi", *["kubernetes.%s=%s" % s for s in settings.items()])

    def __enter__(self):
        return self.begin()

    def __exit__(self, *unused):
        try:
            self.one.ok("POST", "/handrail/v1/pools", {"pools": []})
            self.stop_all(self.one)
            self.until(left, lambda there: there == [])
            self.end()
        finally:
            for r in (self.one, self.two):
                if r.process.poll() is None:
                    r.kill()
            Cluster.__exit__(self)

    @staticmethod
    def all(replica):
        return replica.ok("GET", "/handrail/v1/sandboxes")["sandboxes"]

    def stop_all(self, replica):
        for s in self.all(replica):
            replica.call("POST", "/handrail/v1/sandboxes/stop", {"runtime_id": s["runtime_id"]})

    def pods(self):
        return sorted(n.split(POD)[1] for n in kubectl("get", "pods", "-l", "app=openhands-runtime", "-o",
                                                       "name").split())


def life():
    """What one replica does the other one goes on with; a paused sandbox is woken by a request."""
    with Fleet() as f:
        status, o = f.one.begin("s", environment={"WHO": "it's me"})
        equal((status, o.get("state")), (200, "running"), o)
        equal(f.two.begin("s")[1]["runtime_id"], o["runtime_id"], "the same one")
        equal(run(f.two, o, "echo \"$WHO\" | tee /workspace/kept"), "it's me")
        f.two.ok("POST", "/pause", {"runtime_id": o["runtime_id"]})
        f.until(lambda: f.one.state("s"), lambda s: s == "paused")
        equal(f.pods(), [], "its pod is gone")
        equal(run(f.one, o, "cat /workspace/kept; echo \"$WHO\""), "it's me\nit's me", "woken by a request")
        f.one.ok("POST", "/pause", {"runtime_id": o["runtime_id"]})
        f.until(lambda: f.two.state("s"), lambda s: s == "paused")
        f.two.ok("POST", "/resume", {"runtime_id": o["runtime_id"]})
        f.until(lambda: f.one.state("s"), lambda s: s == "running")
        equal(run(f.one, o, "cat /workspace/kept"), "it's me")
        # both replicas die, and what comes after them knows it
        f.one.kill()
        f.two.kill()
        f.begin()
        equal((f.one.state("s"), run(f.two, o, "echo there")), ("running", "there"), "recovered")
        f.one.ok("POST", "/stop", {"runtime_id": o["runtime_id"]})
        f.until(lambda: f.two.state("s"), lambda s: s == "stopped")
        f.until(left, lambda there: there == [])


def idle():
    with Fleet("--idle-pause", "2") as f:
        o = f.one.begin("s")[1]
        f.until(lambda: f.two.state("s"), lambda s: s == "paused")
        equal([e["detail"] for e in f.two.ok("GET", "/sessions/s")["events"] if e["what"] == "pausing"], ["idle"])
        equal(run(f.two, o, "echo woken"), "woken")


def out_of_memory():
    """A pod whose first process is killed, since its memory is full."""
    with Fleet(resource_memory_limit="48Mi") as f:
        o = f.one.begin("s")[1]
        kubectl("exec", POD + o["runtime_id"], "--", "sh", "-c",
                "echo 1000 >/proc/1/oom_score_adj; head -c 64M /dev/zero >/dev/shm/full & ")
        for r in (f.one, f.two):
            f.until(lambda: r.state("s"), lambda s: s == "died")
        reason = f.two.ok("GET", "/sessions/s")["reason"]
        equal("it ran out of memory and was killed" in reason, True, reason)
        f.one.ok("POST", "/stop", {"runtime_id": f.one.ok("GET", "/sessions/s")["runtime_id"]})
        f.until(left, lambda there: there == [])


def dies():
    """A pod that somebody deletes."""
    with Fleet() as f:
        o = f.one.begin("s")[1]
        run(f.one, o, "printf kept >/workspace/precious")
        kubectl("delete", "pod", POD + o["runtime_id"], "--wait=false")
        for r in (f.one, f.two):
            f.until(lambda: r.state("s"), lambda s: s == "died")
        again = f.two.begin("s")[1]
        equal((again["state"], again["runtime_id"]), ("running", o["runtime_id"]), again)
        equal(run(f.one, again, "cat /workspace/precious"), "kept", "its files")


def warm():
    """As many as there are are claimed at once by both replicas: each once."""
    with Fleet() as f:
        f.one.ok("POST", "/handrail/v1/pools", {"pools": [
            {"name": "p", "size": POOL, "request": {"image": IMAGE, "command": []}}]})
        begun = time.monotonic()
        for r in (f.one, f.two):
            # as long as a node takes for them
            while True:
                states = [s["state"] for s in f.all(r)]
                if states.count("warm") >= POOL:
                    break
                equal(time.monotonic() - begun < PATIENCE + 10 * POOL, True, states)
                threading.Event().wait(0.5)
        took = time.monotonic() - begun
        times = [0] * POOL

        def claim(i):
            t = time.monotonic()
            got = (f.one, f.two)[i % 2].begin("w%d" % i)
            times[i] = (time.monotonic() - t) * 1000
            return got
        got = f.at_once(POOL, claim)
        equal({s for s, _ in got}, {200}, got)
        equal(len({a["runtime_id"] for _, a in got}), POOL, "each once")
        for r in (f.one, f.two):
            metrics = r.call("GET", "/metrics")[1].decode()
            equal('creations_total{outcome="ok",path="cold"} 0' in metrics, True, "none was made for it")
        times.sort()
        print("# %d waiting after %.0f s; claimed at once by two replicas: median %.0f ms, p99 %.0f ms" % (
            POOL, took, times[POOL // 2], times[min(POOL - 1, POOL * 99 // 100)]))
        f.one.ok("POST", "/handrail/v1/pools", {"pools": []})
        equal(run(f.two, got[0][1], "echo mine"), "mine")


def kills():
    """Sandboxes come, are paused and go by both replicas, one of which is killed at a random moment again and again."""
    chance = random.Random(int(os.environ.get("E2E_SEED", "7")))
    with Fleet() as f:
        over = threading.Event()

        def client(number):
            mine = random.Random(number)
            while not over.is_set():
                try:
                    r = mine.choice((f.one, f.two))
                    status, o = r.begin("s%d" % mine.randrange(4), wait=mine.random() < 0.5)
                    if status == 200 and mine.random() < 0.6:
                        r.call("POST", mine.choice(("/stop", "/pause")), {"runtime_id": o["runtime_id"]})
                except (OSError, http.client.HTTPException):
                    over.wait(0.05)
        threads = [threading.Thread(target=client, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(KILLS):
                over.wait(chance.random() * 5)
                r = chance.choice((f.one, f.two))
                r.kill()
                r.start()
        finally:
            over.set()
            for t in threads:
                t.join()

        def lives():
            return [s for s in f.all(f.two) if s["state"] not in ENDED]
        # of one that is being stopped the session is free already
        has = sorted((s["session_id"], s["state"]) for s in lives() if s["state"] != "stopping")
        equal(len({session for session, _ in has}), len(has), "one of each session: %r" % has)
        # what a killed one had begun to start is taken over after minutes, or stopped
        f.stop_all(f.one)
        f.until(lives, lambda there: there == [])
        f.until(left, lambda there: there == [])


def service(made=[]):
    """The manifests' Service, as a replica, after one sign of life."""
    if made:
        return made[0]
    if not FLEET_IMAGE:
        raise Skip("set E2E_KUBERNETES_FLEET_IMAGE to an image with handrail-fleetd and nginx in it")
    text = kubectl("kustomize", os.path.join(SRC, "conf", "kubernetes"))
    text = re.sub(r"\bhandrail-fleet:1\b", FLEET_IMAGE, re.sub(r"\bhandrail-sandbox:1\b", IMAGE, text))
    text = re.sub(r"namespace([:=]) ?handrail\b", lambda m: m.group(0).replace("handrail", NAMESPACE), text)
    text = text.replace("kind: Namespace\nmetadata:\n  name: handrail\n",
                        "kind: Namespace\nmetadata:\n  name: %s\n" % NAMESPACE)
    # a small node has not one processor for each
    text = text.replace("- --idle-pause=1800",
                        "- --idle-pause=1800\n        - --set=kubernetes.resource_cpu_request=10m")
    kubectl("apply", "-f", "-", input=text)
    kubectl("rollout", "status", "deployment/handrail-fleet", "--timeout=180s")

    class Deployed:
        key = kubectl("exec", "deploy/handrail-fleet", "--", "handrail-fleetd", "--engine", "kubernetes", "--set",
                      "kubernetes.namespace=" + NAMESPACE, "--state-dir", "/tmp/init", "--init").strip()
        IMAGE = IMAGE

        def path(self, name):
            return name
    r = Replica(Deployed(), "service")
    r.address = (kubectl("get", "service/handrail-fleet", "-o", "jsonpath={.spec.clusterIP}"), 80)
    # each replica hears of the key
    Replicas.until(lambda: {r.call("GET", "/list")[0] for _ in range(20)}, lambda got: got == {200})
    made.append(r)
    return r


def deployed():
    """The manifests: two replicas in pods, with their service account's rights."""
    r = service()
    status, o = r.begin("s")
    equal((status, o.get("state")), (200, "running"), o)
    equal(run(r, o, "echo in a cluster | tee /workspace/kept"), "in a cluster")
    pod = kubectl("get", "pods", "-l", "app=handrail-fleet", "-o", "name").split()[0]
    kubectl("delete", pod, "--grace-period=0", "--force")
    kubectl("rollout", "status", "deployment/handrail-fleet", "--timeout=180s")
    r.ok("POST", "/pause", {"runtime_id": o["runtime_id"]})
    Replicas.until(lambda: r.state("s"), lambda s: s == "paused")
    equal(run(r, o, "cat /workspace/kept"), "in a cluster", "woken")
    r.ok("POST", "/stop", {"runtime_id": o["runtime_id"]})
    Replicas.until(left, lambda there: there == [])


class Client(threading.Thread):
    """Sends its part of the requests, each at its time; kept: by one connection as long as it lasts."""

    def __init__(self, replica, kept, words, begun, every):
        super().__init__()
        self.replica, self.kept, self.words, self.begun, self.every = replica, kept, words, begun, every
        self.connection, self.failures, self.worst, self.sent = None, collections.Counter(), 0, 0

    def one(self):
        # as urllib3, curl and Go do, nothing is sent by one that was closed
        if self.connection is not None and select.select([self.connection.sock], [], [], 0)[0]:
            self.connection.close()
            self.connection = None
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.replica.address, timeout=PATIENCE)
        method, path, body, headers = self.words
        self.connection.request(method, path, body, dict(headers, **{"X-API-Key": self.replica.fleet.key}))
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, self.kept and not answer.will_close

    def run(self):
        pause = threading.Event()
        for i in range(REQUESTS * self.every // 1000):
            at = self.begun + i * 1000.0 / self.every / RATE
            pause.wait(max(0, at - time.monotonic()))
            begun, keep = time.monotonic(), False
            try:
                status, keep = self.one()
                if status != 200:
                    self.failures[status] += 1
            except (OSError, http.client.HTTPException) as e:
                self.failures[repr(e)] += 1
            self.sent += 1
            self.worst = max(self.worst, time.monotonic() - begun)
            if not keep:
                self.connection.close()
                self.connection = None


def rollout():
    """The Deployment is rolled out again and again while requests come at a steady rate through its Service: to the
    service and to a sandbox behind it, by new connections and by kept ones. Each is answered with 200."""
    r = service()
    status, o = r.begin("rolled")
    equal((status, o.get("state")), (200, "running"), o)
    run = ("POST", "/%s/execute_action" % o["runtime_id"], json.dumps({"action": {
        "action": "run", "args": {"command": "true"}}}),
        {"X-Session-API-Key": o["session_api_key"], "Content-Type": "application/json"})
    begun, rollouts = time.monotonic(), 0
    # thousandths of the requests; a sandbox runs one command at a time
    clients = [Client(r, kept, words, begun, every) for words, every in ((("GET", "/list", None, {}), 400), (run, 100))
               for kept in (False, True)]
    for c in clients:
        c.start()
    while any(c.is_alive() for c in clients):
        kubectl("rollout", "restart", "deployment/handrail-fleet")
        kubectl("rollout", "status", "deployment/handrail-fleet", "--timeout=300s")
        # the last of the old ones ends under load, too
        Replicas.until(lambda: kubectl("get", "pods", "-l", "app=handrail-fleet", "-o", "name").split(),
                       lambda pods: len(pods) == 2, 300)
        rollouts += any(c.is_alive() for c in clients)
    for c in clients:
        c.join()
        print("# %s, %s connections: %d requests, failed %r, the slowest took %.1f s" % (
            c.words[1].split("/")[-1], "kept" if c.kept else "new", c.sent, dict(c.failures), c.worst))
    print("# %d rollouts in %.0f s" % (rollouts, time.monotonic() - begun))
    equal(sum((c.failures for c in clients), collections.Counter()), collections.Counter(), "all were answered")
    equal(rollouts > 0, True, "a whole rollout within the requests: raise E2E_REQUESTS")
    r.ok("POST", "/stop", {"runtime_id": o["runtime_id"]})
    Replicas.until(left, lambda there: there == [])


TESTS = [life, idle, dies, out_of_memory, warm, kills, deployed, rollout]


def needs():
    """A server in a pod answers us, not something between."""
    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    kubectl("run", "reached", "--image=" + IMAGE, "--restart=Never", "--command", "--", "sh", "-c",
            "PATH=$PATH:/openhands/sbin; exec handraild --listen 0.0.0.0 8080 --working-dir /tmp "
            "--allow-unauthenticated")
    status = why = None
    try:
        kubectl("wait", "--for=condition=Ready", "pod/reached", "--timeout=120s")
        end = time.monotonic() + PATIENCE
        while "ready: listening" not in kubectl("logs", "reached") and time.monotonic() < end:
            threading.Event().wait(0.5)
        c = http.client.HTTPConnection(kubectl("get", "pod/reached", "-o", "jsonpath={.status.podIP}"), 8080, timeout=5)
        c.request("GET", "/alive")
        status = c.getresponse().status
        c.close()
    except (OSError, http.client.HTTPException) as e:
        why = e
    finally:
        kubectl("delete", "pod", "reached", "--grace-period=0", "--force", "--ignore-not-found")
    if status != 200:
        kubectl("delete", "namespace", NAMESPACE)
        skip_all("no pod is reached from here (%s): run it on a node" % (why or status))


if __name__ == "__main__":
    cluster.needs()
    needs()
    sys.exit(cluster.run(Tap(), TESTS, sys.argv[1:]))
