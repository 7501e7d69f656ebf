#!/usr/bin/env python3
"""Sandboxes of the kind "kubernetes" in the cluster that KUBECONFIG names. Their image is E2E_KUBERNETES_IMAGE, which
"handrail build" makes and the nodes have or reach; the namespace E2E_KUBERNETES_NAMESPACE is made for the test."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import Host  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

IMAGE = os.environ.get("E2E_KUBERNETES_IMAGE")
NAMESPACE = os.environ.get("E2E_KUBERNETES_NAMESPACE", "handrail-test-%d" % os.getpid())
KINDS = "pod,pvc,secret,service,ingress,networkpolicy"
POD = "openhands-runtime-default"


def kubectl(*argv, **more):
    done = subprocess.run(("kubectl", "-n", NAMESPACE) + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, **more)
    equal(done.returncode, 0, "kubectl %s\n%s" % (" ".join(argv), done.stderr))
    return done.stdout


def left():
    return kubectl("get", KINDS, "-l", "app=openhands-runtime", "-o", "name").split()


class Cluster(Host):
    def __init__(self, **env):
        Host.__init__(self, **dict({
            "RUNTIME": "kubernetes", "SANDBOX_RUNTIME_CONTAINER_IMAGE": IMAGE, "KUBERNETES_NAMESPACE": NAMESPACE,
            "KUBECONFIG": os.environ["KUBECONFIG"], "KUBERNETES_RESOURCE_CPU_REQUEST": "50m",
            "KUBERNETES_RESOURCE_MEMORY_REQUEST": "64Mi"}, **env))

    def __exit__(self, *unused):
        Host.__exit__(self, *unused)
        equal(left(), [], "objects left behind")

    def state(self):
        return [r["state"] for r in json.loads(self.ok("ps", "--json"))]


def refuses(h, text, *argv):
    done = h(*argv)
    equal((done.returncode > 0, text in done.stderr), (True, True), "%r %r" % (done.returncode, done.stderr))


def conversation():
    with Cluster() as h:
        h.ok("doctor")
        h.ok("up", "-e", "GREETING=it's \"me\"")
        equal(h.ok("run", "echo \"$GREETING\"; cd /tmp"), "it's \"me\"\n", "a variable")
        equal(h.ok("run", "pwd"), "/tmp\n", "the same shell from a second process")
        equal(h("run", "exit 3; false").returncode, 3, "status")
        with open(h.path("cwd", "file"), "w") as f:
            f.write("content\n" * 1000000)
        h.ok("put", "file", "/workspace/in/")
        h.ok("get", "/workspace/in", "out")
        with open(h.path("cwd", "out", "file")) as f:
            equal(f.read() == "content\n" * 1000000, True, "8 MB copied in and out")
        equal("ready: listening" in h.ok("logs"), True, "log")
        done = h("sh", "sh", "-c", "cat; echo told >&2; exit 5", input="and input")
        equal((done.returncode, done.stdout, done.stderr), (5, "and input", "told\n"), "a program in it")
        equal(h.state(), ["running"], "state")
        h.ok("pause")
        equal((h.state(), POD in kubectl("get", "pods", "-o", "name")), (["paused"], False), "paused")
        refuses(h, "it was paused", "run", "true")
        h.ok("resume")
        equal(h.ok("run", "wc -c </workspace/in/file; echo \"$GREETING\""), "8000000\nit's \"me\"\n", "it goes on")
        h.ok("down")
        equal((left(), os.listdir(h.path("state"))), ([], []), "nothing is left")


def does_not_come():
    for env, text in ((dict(SANDBOX_RUNTIME_CONTAINER_IMAGE="localhost:1/there/is:none"), "cannot be had"),
                      (dict(KUBERNETES_RESOURCE_CPU_REQUEST="1000"), "no node takes it"),
                      (dict(KUBERNETES_RUNTIME_CLASS="there-is-none"), "there-is-none")):
        with Cluster(**env) as h:
            refuses(h, text, "up")
            equal((left(), os.listdir(h.path("state"))), ([], []), "nothing is left")


def quota():
    with Cluster() as h:
        kubectl("create", "quota", "small", "--hard=pods=0")
        try:
            # the controller has counted when its status is there
            kubectl("wait", "--for=jsonpath={.status.hard.pods}=0", "quota/small", "--timeout=60s")
            equal('quota            "small" has no room' in h("doctor").stdout, True, "doctor")
            refuses(h, 'the quota "small" of the namespace is used up', "up")
            equal(left(), [], "nothing is left")
        finally:
            kubectl("delete", "quota", "small")


def rights():
    """A user who may do nothing is told what, and one whose rights are taken away while a sandbox is there as well."""
    with Cluster() as h:
        h.ok("up")
        token = subprocess.run(["kubectl", "-n", NAMESPACE, "create", "token", "default"], stdout=subprocess.PIPE,
                               universal_newlines=True, check=True).stdout.strip()
        config = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        config["users"][0]["user"] = {"token": token}
        with open(h.path("kubeconfig"), "w") as f:
            json.dump(config, f)
        os.chmod(h.path("kubeconfig"), 0o600)
        mine, h.env["KUBECONFIG"] = h.env["KUBECONFIG"], h.path("kubeconfig")
        refuses(h, "may not get pods/portforward", "run", "true")
        refuses(h, "may not get pods", "up", "-n", "other")
        equal("BAD  right to pods " in h("doctor").stdout, True, "doctor")
        h.env["KUBECONFIG"] = mine
        h.ok("down")


def killed_from_outside():
    with Cluster() as h:
        h.ok("up")
        kubectl("delete", "pod", POD)
        equal(h.state(), ["gone"], "state")
        refuses(h, "somebody deleted it", "run", "true")
        h.ok("up")
        equal(h.ok("run", "echo anew"), "anew\n", "made anew")
        h("sh", "sh", "-c", "kill -TERM 1")
        kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated.containerID}", "pod/" + POD,
                "--timeout=60s")
        equal(h.state(), ["exited"], "state")
        refuses(h, "its program has ended with status", "run", "true")
        h.ok("up")
        h.ok("down")


def drained():
    """A node that sends its pods away."""
    node = json.loads(kubectl("get", "nodes", "-o", "json"))["items"][0]["metadata"]["name"]
    with Cluster() as h:
        h.ok("up")
        kubectl("cordon", node)
        try:
            body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction",
                               "metadata": {"name": POD, "namespace": NAMESPACE}})
            kubectl("create", "--raw", "/api/v1/namespaces/%s/pods/%s/eviction" % (NAMESPACE, POD), "-f", "-",
                    input=body)
            kubectl("wait", "--for=delete", "pod/" + POD, "--timeout=60s")
            refuses(h, "somebody deleted it", "run", "true")
            refuses(h, "no node takes it", "up")
        finally:
            kubectl("uncordon", node)
        h.ok("up")
        h.ok("down")


class Cut:
    """Passes connections on to the API server, and cuts all of them when it is told."""

    def __init__(self, host, port):
        self.to, self.open, self.lock = (host, port), [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                mine, _ = self.listener.accept()
            except OSError:
                return
            try:
                other = socket.create_connection(self.to)
            except OSError:
                mine.close()
                continue
            with self.lock:
                self.open += [mine, other]
            for a, b in ((mine, other), (other, mine)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            gone, self.open = self.open, []
        for s in gone:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def cut_again_and_again():
    """All connections are cut each second, from up to down."""
    config = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
    server = config["clusters"][0]["cluster"]["server"].split("//", 1)[1]
    host, _, port = server.partition(":")
    between = Cut(host, int(port or 443))
    config["clusters"][0]["cluster"].update({"server": "https://127.0.0.1:%d" % between.port, "tls-server-name": host})
    done = threading.Event()

    def saw():
        while not done.wait(1):
            between.cut()
    with Cluster() as h:
        with open(h.path("kubeconfig"), "w") as f:
            json.dump(config, f)
        os.chmod(h.path("kubeconfig"), 0o600)
        h.env["KUBECONFIG"] = h.path("kubeconfig")
        thread = threading.Thread(target=saw)
        thread.start()
        try:
            h.ok("up")
            equal(h.ok("run", "echo there"), "there\n", "a command")
            equal(h.ok("run", "-t", "30", "sleep 3; echo once >>/tmp/n; cat /tmp/n"), "once\n",
                  "one that is cut off is done once")
            h.ok("pause")
            h.ok("resume")
            h.ok("down")
        finally:
            done.set()
            thread.join()
            between.listener.close()
            between.cut()


def pool():
    with Cluster() as h:
        equal(json.loads(h.ok("pool", "--json", "2")), {"waiting": 2})
        h.ok("up")
        pod = h.record()["backend"]["name"]
        equal(pod.startswith("openhands-runtime-warm-"), True, pod)
        labels = json.loads(kubectl("get", "pod", pod, "-o", "json"))["metadata"]["labels"]
        equal((labels["handrail/sandbox"], "handrail/pool" in labels), ("default", False), "labels")
        equal(h.ok("run", "echo mine"), "mine\n", "a command")
        h.ok("pause")
        h.ok("resume")
        equal(h.ok("run", "echo mine"), "mine\n", "a command")
        h.ok("down")
        h.ok("pool", "0")
        equal(left(), [], "nothing is left")


def events():
    with Cluster() as h:
        h.ok("up")
        p = h.popen("events", "--json")
        p.stdout.readline()  # "watching"
        kubectl("delete", "pod", POD, "--wait=false")
        got = [json.loads(p.stdout.readline())]
        while "destroy" not in json.dumps(got[-1]):
            got.append(json.loads(p.stdout.readline()))
        equal("default" in json.dumps(got[-1]), True, got)
        p.kill()
        p.communicate()
        h.ok("down")


def figures():
    """Told, not judged: up to the first command beside kubectl run and its readiness."""
    with Cluster() as h:
        for i in range(3):
            t = time.monotonic()
            kubectl("run", "floor", "--image=" + IMAGE, "--restart=Never", "--command", "--", "sleep", "60")
            kubectl("wait", "--for=condition=Ready", "pod/floor", "--timeout=60s")
            floor = time.monotonic() - t
            kubectl("delete", "pod", "floor", "--grace-period=0", "--force")
            t = time.monotonic()
            h.ok("up", "-q", "--run", "true")
            cold = time.monotonic() - t
            h.ok("down")
            print("# kubectl run and ready %.2f s, up and a command %.2f s: %.2f x" % (floor, cold, cold / floor))
        h.ok("pool", "2")
        for i in range(2):
            t = time.monotonic()
            kubectl("get", "--raw", "/version")
            floor = time.monotonic() - t
            t = time.monotonic()
            h.ok("up", "-q", "-n", "p%d" % i, "--run", "true")
            print("# from the pool %.0f ms; kubectl get --raw /version %.0f ms" % (
                (time.monotonic() - t) * 1000, floor * 1000))
        h.ok("down", "-n", "p0")
        h.ok("down", "-n", "p1")
        h.ok("pool", "0")


TESTS = [conversation, does_not_come, quota, rights, killed_from_outside, drained, cut_again_and_again, pool, events,
         figures]


def needs():
    if not os.environ.get("KUBECONFIG") or not IMAGE:
        skip_all("no Kubernetes: set KUBECONFIG, and E2E_KUBERNETES_IMAGE to an image that its nodes have")
    if not shutil.which("kubectl"):
        skip_all("no Kubernetes: there is no kubectl")
    done = subprocess.run(["kubectl", "create", "namespace", NAMESPACE], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        skip_all("no Kubernetes: " + done.stderr.strip())


if __name__ == "__main__":
    needs()
    tap = Tap()
    try:
        # what a pod needs of its namespace
        kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        for test in TESTS:
            if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
                tap.run(test.__name__, test)
    finally:
        kubectl("delete", "namespace", NAMESPACE)
    sys.exit(tap.done())
