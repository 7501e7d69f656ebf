#!/usr/bin/env python3
"""The unmodified client of OpenHands 0.62 with runtime="kubernetes", by hand, in the cluster that KUBECONFIG names
(lib/cluster.py):

    python3.12 -m venv V && V/bin/pip install openhands-ai==0.62.0
    KUBECONFIG=... E2E_KUBERNETES_IMAGE=registry/image:1 V/bin/python ../t/e2e/kubernetes_openhands.py [TEST...]

It makes all objects itself, as it does for its own image. It wants to be in a pod: what one would have, a service
account's files and the address of the API server, is made here, with the rights of conf/kubernetes/sandboxes-role.yaml;
and the names of services, which only a pod could look up, are those of a proxy of HTTP that goes by port-forward."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import cluster  # noqa: E402
from lib.cluster import IMAGE, NAMESPACE, kubeconfig, kubectl, left  # noqa: E402
from lib.host import SRC  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

NAME = "openhands-runtime-"


class Way:
    """A port of a pod, or of a service, as long as it is wanted."""

    def __init__(self, what, port):
        self.process = subprocess.Popen(["kubectl", "-n", NAMESPACE, "port-forward", what, ":%d" % port],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        universal_newlines=True)
        said = self.process.stdout.readline()
        equal(said.startswith("Forwarding from 127.0.0.1:"), True, said)
        self.port = int(said.split(":")[1].split(" ")[0])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()

    def fetch(self, text):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(text.encode())
            got = b""
            while True:
                data = s.recv(65536)
                if not data:
                    return got
                got += data


class Proxy:
    """Of HTTP: the first head of a connection says which service all of it is for."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            one, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    @staticmethod
    def serve(one):
        with one:
            head = b""
            while b"\r\n" not in head:
                data = one.recv(65536)
                if not data:
                    return
                head += data
            to = urllib.parse.urlsplit(head.split(b" ")[1].decode())
            service, ns = to.hostname.split(".")[:2]
            assert to.hostname == "%s.%s.svc.cluster.local" % (service, ns) and ns == NAMESPACE, to
            with Way("service/" + service, to.port) as way, socket.create_connection(("127.0.0.1", way.port)) as other:
                other.sendall(head)
                back = threading.Thread(target=cluster.Between.pump, args=(other, one), daemon=True)
                back.start()
                cluster.Between.pump(one, other)
                back.join()


def machine(directory):
    """What a pod with a service account of ours has."""
    with open(os.path.join(SRC, "conf", "kubernetes", "sandboxes-role.yaml")) as f:
        kubectl("apply", "-f", "-", input=f.read())
    kubectl("create", "serviceaccount", "client")
    kubectl("create", "rolebinding", "client", "--role=handrail-sandboxes", "--serviceaccount=%s:client" % NAMESPACE)
    token = kubectl("create", "token", "client").strip()
    server = urllib.parse.urlsplit(kubeconfig()["clusters"][0]["cluster"]["server"])
    ca = kubectl("get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}")
    for name, text in (("token", token), ("ca.crt", ca)):
        with open(os.path.join(directory, name), "w") as f:
            f.write(text)
    os.environ.update(KUBERNETES_SERVICE_HOST=server.hostname, KUBERNETES_SERVICE_PORT=str(server.port or 443),
                      HTTP_PROXY=Proxy().url, NO_PROXY="127.0.0.1,localhost", LOG_TO_FILE="false")
    from kubernetes.config import incluster_config
    incluster_config.SERVICE_TOKEN_FILENAME = os.path.join(directory, "token")
    incluster_config.SERVICE_CERT_FILENAME = os.path.join(directory, "ca.crt")


def connect(sid, attach=False, keep=False):
    """A client that has connected."""
    from openhands.core.config import OpenHandsConfig
    from openhands.core.config.kubernetes_config import KubernetesConfig
    from openhands.events import EventStream
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime import get_runtime_cls
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement
    from openhands.storage.memory import InMemoryFileStore

    config = OpenHandsConfig(runtime="kubernetes", kubernetes=KubernetesConfig(
        namespace=NAMESPACE, resource_cpu_request="50m", resource_memory_request="64Mi", ingress_domain="example.org"))
    config.sandbox.runtime_container_image = IMAGE
    config.sandbox.runtime_startup_env_vars = {"GREETING": "hello world"}
    config.sandbox.keep_runtime_alive = keep
    # not headless: the editor is a plugin, as in its application
    c = get_runtime_cls("kubernetes")(config, EventStream(sid, InMemoryFileStore()), LLMRegistry(config), sid,
                                      plugins=[AgentSkillsRequirement(), JupyterRequirement()],
                                      attach_to_existing=attach, headless_mode=False, env_vars={"MINE": "mine"})
    asyncio.run(c.connect())
    return c


def run(c, command, exit_code=0):
    from openhands.events.action import CmdRunAction

    o = c.run_action(CmdRunAction(command))
    equal((o.observation, o.exit_code), ("run", exit_code), o)
    return o.content


def gone(sid):
    kubectl("wait", "--for=delete", "pod/" + NAME + sid, "--timeout=120s")


def conversation():
    """Starts, runs, reads, writes, edits, moves files, and closes; what is in the claim is there for the next one."""
    from openhands.events.action import FileEditAction, FileReadAction, FileWriteAction, IPythonRunCellAction

    with tempfile.TemporaryDirectory() as here:
        c = connect("one")
        equal(run(c, "id -u; pwd; echo \"$GREETING,$MINE\""), "0\n/workspace\nhello world,mine")
        equal(run(c, "cd /tmp && export A=7; false", 1), "")
        equal(run(c, "echo $A; pwd"), "7\n/tmp")
        run(c, "mkdir -p /workspace/dir && cd /workspace")
        equal(c.run_action(FileWriteAction("/workspace/hello.txt", "hi\nyou")).observation, "write")
        equal(c.run_action(FileReadAction("/workspace/hello.txt")).content, "hi\nyou\n")
        o = c.run_action(FileEditAction("/workspace/hello.txt", command="str_replace", old_str="you", new_str="they"))
        equal((o.observation, run(c, "cat hello.txt")), ("edit", "hi\nthey"), o)
        equal(c.run_action(FileReadAction("/nonexistent/file")).observation, "error")
        o = c.run_action(IPythonRunCellAction("import os; print(6 * 7, os.getcwd())"))
        equal((o.observation, o.content.split()[:2]), ("run_ipython", ["42", "/workspace"]), o)
        for name, text in (("a", b"bytes\0\n" * 100000), ("dir/b", b"b")):
            os.makedirs(os.path.dirname(os.path.join(here, "up", name)), exist_ok=True)
            with open(os.path.join(here, "up", name), "wb") as out:
                out.write(text)
        c.copy_to(os.path.join(here, "up", "a"), "/workspace")
        c.copy_to(os.path.join(here, "up"), "/workspace", recursive=True)
        equal(run(c, "stat -c '%n %s' a up/a up/dir/b"), "a 700000\nup/a 700000\nup/dir/b 1")
        # the disk of a claim may have a directory of its own
        equal([n for n in c.list_files("/workspace") if n != "lost+found/"],
              [".vscode/", "dir/", "up/", "a", "hello.txt"])
        zipped = c.copy_from("/workspace/up")
        shutil.unpack_archive(zipped, os.path.join(here, "down"), "zip")
        os.unlink(zipped)
        found = [n for _, _, names in os.walk(os.path.join(here, "down")) for n in names]
        equal(sorted(found), ["a", "b"])
        c.close()
        gone("one")
        equal(left(), [], "its claim has no label")
        equal(kubectl("get", "pod,pvc,service,ingress", "-o", "name").split(),
              ["persistentvolumeclaim/" + NAME + "one-pvc"], "what is kept")
        c = connect("one")
        equal(run(c, "cat hello.txt; stat -c %s up/a"), "hi\nthey\n700000")
        c.close()
        asyncio.run(type(c).delete("one"))
        gone("one")
        kubectl("wait", "--for=delete", "pvc/" + NAME + "one-pvc", "--timeout=120s")


def attach():
    """One that is kept goes on, and is attached to; what attaches ends nothing."""
    a = connect("two", keep=True)
    run(a, "cd /tmp; B=8")
    a.close()
    b = connect("two", attach=True)
    equal(run(b, "echo $B $PWD"), "8 /tmp")
    b.close()
    c = connect("two")
    equal(run(c, "echo $B $PWD"), "8 /tmp")
    c.close()
    gone("two")
    asyncio.run(type(c).delete("two"))
    # as the original has it: without a pod it goes no further than the claim
    failed = None
    try:
        connect("nobody", attach=True)
    except Exception as e:  # noqa: B902
        failed = type(e).__name__
    equal(failed, "AgentRuntimeDisconnectedError")


def what_leads_to_it():
    """Its services, its ingress, and the ports that an application may have."""
    c = connect("three")
    equal(c.web_hosts, {"http://%sthree-svc.%s.svc.cluster.local:%d" % (NAME, NAMESPACE, p): p for p in (30082, 30083)})
    run(c, "(python3 -m http.server 30082 >/dev/null 2>&1 &) ; until (: </dev/tcp/127.0.0.1/30082) 2>/dev/null; do "
           "sleep 0.1; done")
    with Way("pod/" + NAME + "three", 30082) as way:
        equal(way.fetch("GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200"), True, "an application's port")
    with Way("service/" + NAME + "three-svc", 8080) as way:
        equal(b"200 OK" in way.fetch("GET /alive HTTP/1.0\r\n\r\n"), True, "the service")
    backend = kubectl("get", "ingress/" + NAME + "three-ingress-code", "-o",
                      "jsonpath={.spec.rules[0].host} {.spec.rules[0].http.paths[0].backend.service.name}")
    equal(backend, "three.example.org %sthree-svc-code" % NAME)
    token = c.get_vscode_token()
    print("# the editor's token: %s" % ("there" if token else "none, as there is no editor in the image"))
    if token:
        with Way("service/" + NAME + "three-svc-code", 8081) as way:
            got = way.fetch("GET /?tkn=%s HTTP/1.0\r\n\r\n" % token)
            equal(got.split(b" ")[1] in (b"200", b"302"), True, got[:200])
    c.close()
    gone("three")
    asyncio.run(type(c).delete("three"))


TESTS = [conversation, attach, what_leads_to_it]


def main():
    try:
        import openhands.runtime.impl.kubernetes.kubernetes_runtime  # noqa: F401
    except ModuleNotFoundError:
        skip_all("needs the package openhands-ai, of Python 3.12: see the beginning of this file")
    cluster.needs()
    with tempfile.TemporaryDirectory() as directory:
        kubectl("wait", "--for=create", "configmap/kube-root-ca.crt", "--timeout=60s")
        machine(directory)
        return cluster.run(Tap(), TESTS, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
