"""The cluster that KUBECONFIG names: the image of tests is E2E_KUBERNETES_IMAGE, which "handrail image build" makes and
the nodes have or reach; the namespace E2E_KUBERNETES_NAMESPACE is made for a test and deleted behind it."""

import json
import os
import shutil
import socket
import subprocess
import threading

from .host import PATIENCE, Host  # noqa: F401  (PATIENCE: for tests)
from .tap import equal, skip_all

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


def kubeconfig():
    """What KUBECONFIG says, without files."""
    return json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))


def refuses(h, text, *argv):
    done = h(*argv)
    equal((done.returncode > 0, text in done.stderr), (True, True), "%r %r" % (done.returncode, done.stderr))


def agents():
    """Whether the cluster serves Sandboxes of agent-sandbox."""
    return subprocess.run(("kubectl", "get", "--raw", "/apis/agents.x-k8s.io"), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


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

    def use(self, config):
        """From now on it is this kubeconfig."""
        with open(self.path("kubeconfig"), "w") as f:
            json.dump(config, f)
        os.chmod(self.path("kubeconfig"), 0o600)
        self.env["KUBECONFIG"] = self.path("kubeconfig")


class Between:
    """Passes connections on to the API server; cut() ends all of them, stop() also takes no more until start()."""

    def __init__(self):
        config = kubeconfig()
        cluster = config["clusters"][0]["cluster"]
        host, _, port = cluster["server"].split("//", 1)[1].partition(":")
        self.to, self.open, self.lock = (host, int(port or 443)), [], threading.Lock()
        self.listener = None
        self.start(0)
        cluster.update({"server": "https://127.0.0.1:%d" % self.port, "tls-server-name": host})
        self.config = config

    def start(self, port=None):
        self.listener = socket.create_server(("127.0.0.1", self.port if port is None else port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                mine, _ = listener.accept()
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

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


def needs():
    if not os.environ.get("KUBECONFIG") or not IMAGE:
        skip_all("no Kubernetes: set KUBECONFIG, and E2E_KUBERNETES_IMAGE to an image that its nodes have")
    if not shutil.which("kubectl"):
        skip_all("no Kubernetes: there is no kubectl")
    done = subprocess.run(["kubectl", "create", "namespace", NAMESPACE], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        skip_all("no Kubernetes: " + done.stderr.strip())


def run(tap, tests, names):
    """The tests, or those of these names; the exit status."""
    try:
        # what a pod needs of its namespace
        kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        for test in tests:
            if not names or test.__name__ in names:
                tap.run(test.__name__, test)
    finally:
        kubectl("delete", "namespace", NAMESPACE)
    return tap.done()
