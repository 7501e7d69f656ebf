#!/usr/bin/env python3
"""Sandboxes of the kind "kubernetes" in the cluster that KUBECONFIG names (lib/cluster.py)."""

import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import cluster  # noqa: E402
from lib.cluster import IMAGE, NAMESPACE, POD, Between, Cluster, kubeconfig, kubectl, left, refuses  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402


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


def agent_sandbox():
    """By the controller of agent-sandbox, which makes a pod anew that is deleted."""
    if not cluster.agents():
        raise Skip("the cluster has no agent-sandbox: install its CRDs and its controller (sigs.k8s.io/agent-sandbox)")
    with Cluster(KUBERNETES_AGENT_SANDBOX="auto") as h:
        equal("ok   agent-sandbox " in h.ok("doctor"), True, "doctor")
        h.ok("up", "-e", "GREETING=it's \"me\"")
        equal(sandboxes(), [POD], "a Sandbox of the pod's name")
        equal(h.ok("run", "echo \"$GREETING\" | tee /workspace/kept"), "it's \"me\"\n", "a variable")
        h.ok("pause")
        equal((h.state(), POD in kubectl("get", "pods", "-o", "name"), sandboxes()), (["paused"], False, [POD]),
              "paused")
        h.ok("resume")
        equal((h.state(), h.ok("run", "cat /workspace/kept")), (["running"], "it's \"me\"\n"), "it goes on")
        was = kubectl("get", "pod", POD, "-o", "jsonpath={.metadata.uid}")
        kubectl("delete", "pod", POD)
        kubectl("wait", "--for=create", "pod/" + POD, "--timeout=60s")
        kubectl("wait", "--for=condition=Ready", "pod/" + POD, "--timeout=60s")
        equal(kubectl("get", "pod", POD, "-o", "jsonpath={.metadata.uid}") == was, False, "another pod")
        equal(h.state(), ["exited"], "which is not what ran")
        h.ok("up")
        equal((h.state(), h.ok("run", "cat /workspace/kept")), (["running"], "it's \"me\"\n"), "with its files")
        h("sh", "sh", "-c", "kill -TERM 1")
        kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated.containerID}", "pod/" + POD,
                "--timeout=60s")
        h.ok("up")
        equal(h.ok("run", "echo anew"), "anew\n", "made anew")
        h.ok("pause")
        del h.env["KUBERNETES_AGENT_SANDBOX"]
        h.ok("down")
        equal((left(), sandboxes(), os.listdir(h.path("state"))), ([], [], []), "nothing is left")
        h.env["KUBERNETES_AGENT_SANDBOX"] = "auto"
        h.ok("pool", "1")
        h.ok("up")
        h.ok("pause")
        h.ok("resume")
        equal(h.ok("run", "echo mine"), "mine\n", "of a pool")
        h.ok("down")
        h.ok("pool", "0")
        kubectl("create", "quota", "small", "--hard=pods=0")
        try:
            kubectl("wait", "--for=jsonpath={.status.hard.pods}=0", "quota/small", "--timeout=60s")
            refuses(h, "exceeded quota", "up")
        finally:
            kubectl("delete", "quota", "small")
        equal((left(), sandboxes()), ([], []), "nothing is left")


def sandboxes():
    return [n.split("/")[1] for n in kubectl("get", "sandboxes.agents.x-k8s.io", "-o", "name").split()]


def does_not_come():
    for env, text in ((dict(SANDBOX_RUNTIME_CONTAINER_IMAGE="localhost:1/there/is:none"), "is not available"),
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
        config = kubeconfig()
        config["users"][0]["user"] = {"token": token}
        mine = h.env["KUBECONFIG"]
        h.use(config)
        refuses(h, "has no right to get pods/portforward", "run", "true")
        refuses(h, "has no right to get pods", "up", "-n", "other")
        equal("BAD  right to pods " in h("doctor").stdout, True, "doctor")
        h.env["KUBECONFIG"] = mine
        h.ok("down")


def killed_from_outside():
    with Cluster() as h:
        h.ok("up")
        kubectl("delete", "pod", POD)
        equal(h.state(), ["gone"], "state")
        refuses(h, "deleted", "run", "true")
        h.ok("up")
        equal(h.ok("run", "echo anew"), "anew\n", "made anew")
        h("sh", "sh", "-c", "kill -TERM 1")
        kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated.containerID}", "pod/" + POD,
                "--timeout=60s")
        equal(h.state(), ["exited"], "state")
        refuses(h, "its program has ended with status", "run", "true")
        h.ok("up")
        h.ok("down")


def out_of_memory():
    """The first process of a pod is killed, since its memory is full: files in memory stay, whatever ends."""
    with Cluster(KUBERNETES_RESOURCE_MEMORY_REQUEST="32Mi", KUBERNETES_RESOURCE_MEMORY_LIMIT="48Mi") as h:
        h.ok("up")
        h("sh", "sh", "-c", "echo 1000 >/proc/1/oom_score_adj; exec head -c 64M /dev/zero >/dev/shm/full")
        kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled",
                "pod/" + POD, "--timeout=60s")
        equal(h.state(), ["exited"], "state")
        refuses(h, "it ran out of memory and was killed; kubernetes.resource_memory_limit is its limit", "run", "true")
        h.ok("up")
        equal(h.ok("run", "echo anew"), "anew\n", "made anew")
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
            refuses(h, "deleted", "run", "true")
            refuses(h, "no node takes it", "up")
        finally:
            kubectl("uncordon", node)
        h.ok("up")
        h.ok("down")


def cut_again_and_again():
    """All connections are cut each second, from up to down."""
    between = Between()
    done = threading.Event()

    def saw():
        while not done.wait(1):
            between.cut()
    with Cluster() as h:
        h.use(between.config)
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
            between.stop()


def rules():
    """The API server takes the policy of the rules, which is there before the pod and as long as the sandbox, also
    while that is paused; what no policy can enforce is refused. The effect of a policy is the network plug-in's."""
    def policies():
        return json.loads(kubectl("get", "networkpolicy", "-l", "app=openhands-runtime", "-o", "json"))["items"]

    tcp = [{"protocol": "TCP", "port": 80}, {"protocol": "TCP", "port": 443}]
    with Cluster(KUBERNETES_NETWORK_POLICY_ENFORCED="true") as h:
        refuses(h, 'cannot enforce "github.com" in allowOut', "up", "--network", "egress", "-s",
                'sandbox.network={"allowOut":["github.com"]}')
        equal(left(), [], "nothing was made")
        for network, want in (
                ({"allowOut": ["10.1.0.0/16", "93.184.216.34:8080", "172.0.0.0/8"]}, [
                    {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": tcp},
                    {"to": [{"ipBlock": {"cidr": "93.184.216.34/32"}}], "ports": [{"protocol": "TCP", "port": 8080}]},
                    {"to": [{"ipBlock": {"cidr": "172.0.0.0/8", "except": ["172.16.0.0/12"]}}], "ports": tcp}]),
                ({"denyOut": ["0.0.0.0/0"], "allowInternetAccess": True}, None)):
            h.ok("up", "--network", "egress", "-s", "sandbox.network=" + json.dumps(network))
            policy, = policies()
            equal((policy["spec"].get("egress"), policy["spec"]["policyTypes"]), (want, ["Ingress", "Egress"]))
            pod = json.loads(kubectl("get", "pod", POD, "-o", "json"))
            times = [o["metadata"]["creationTimestamp"] for o in (policy, pod)]
            equal(times, sorted(times))
            labels = policy["spec"]["podSelector"]["matchLabels"]
            equal({k: pod["metadata"]["labels"].get(k) for k in labels}, labels, "it selects the pod")
            h.ok("pause")
            equal([p["metadata"]["uid"] for p in policies()], [policy["metadata"]["uid"]])
            h.ok("resume")
            h.ok("down")
            equal(left(), [])


def pool():
    with Cluster() as h:
        equal(json.loads(h.ok("pool", "--json", "2")), {"waiting": 2})
        h.ok("up")
        pod = h.record()["backend"]["name"]
        equal(pod.startswith("openhands-runtime-warm-"), True, pod)
        labels = json.loads(kubectl("get", "pod", pod, "-o", "json"))["metadata"]["labels"]
        equal(labels["handrail/sandbox"], "default", "its label")
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


TESTS = [conversation, agent_sandbox, does_not_come, quota, rights, killed_from_outside, out_of_memory, drained,
         cut_again_and_again, rules, pool, events, figures]


if __name__ == "__main__":
    cluster.needs()
    sys.exit(cluster.run(Tap(), TESTS, sys.argv[1:]))
