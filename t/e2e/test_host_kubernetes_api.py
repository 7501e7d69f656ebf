#!/usr/bin/env python3
"""Sandboxes of the kind "kubernetes" against what answers like an API server (lib/apiserver.py): what is sent,
and what becomes of answers that are late, refused, cut or forgotten. The server in the pod is a local one."""

import base64
import concurrent.futures
import copy
import datetime
import json
import os
import signal
import socket
import ssl
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.apiserver import ApiServer, Stub, running  # noqa: E402
from lib.certs import Authority  # noqa: E402
from lib.host import PATIENCE, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

POD = "/api/v1/namespaces/default/pods/openhands-runtime-default"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/openhands-runtime-default-pvc"
KEY = "the key of both"
ALL = ["openhands-runtime-default", "openhands-runtime-default-ingress-code", "openhands-runtime-default-key",
       "openhands-runtime-default-pvc", "openhands-runtime-default-svc", "openhands-runtime-default-svc-code"]


class Cluster(Host):
    """A user with a kubeconfig, and the API server it names."""

    def __init__(self, token="good", user=None, server=False, tls=False, **env):
        Host.__init__(self, SESSION_API_KEY=KEY, RUNTIME="kubernetes",
                      SANDBOX_RUNTIME_CONTAINER_IMAGE="registry/image:1")
        self.cluster, self.api = {}, None
        try:
            self.begin(user or {"token": token}, server, tls)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        self.env.update(dict({"KUBECONFIG": self.path("kubeconfig")}, **env))

    def begin(self, user, server, tls):
        context = None
        if tls:
            authority = Authority(self.top, "authority")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*authority.make("api.example", 1, names="IP:127.0.0.1,DNS:api.example"))
            self.cluster = {"certificate-authority": authority.pem}
        self.api = ApiServer(tls=context)
        self.kubeconfig(user)
        if server:
            self.ok("up", "-r", "local", "-n", "server")
            self.api.port = int(self.record("server")["url"].rsplit(":", 1)[1])

    def kubeconfig(self, user):
        with open(self.path("kubeconfig"), "w") as f:
            json.dump({"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": dict(self.cluster, server=self.api.url)}],
                       "users": [{"name": "u", "user": user}]}, f)
        os.chmod(self.path("kubeconfig"), 0o600)

    def __exit__(self, *unused):
        if self.api:
            self.api.failures, self.api.denied, self.api.tokens = [], set(), {"good"}
        try:
            Host.__exit__(self, *unused)
        finally:
            if self.api:
                self.api.__exit__()


def refuses(h, text, *argv):
    done = h(*argv)
    equal((done.returncode > 0, text in done.stderr), (True, True), "%r %r" % (done.returncode, done.stderr))


def state(h):
    return json.loads(h.ok("ps", "--json"))[0]["state"]


def conversation():
    with Cluster(server=True) as h:
        h.ok("up", "-e", "GREETING=it's \"me\"")
        equal(h.api.names(), ALL, "objects")
        equal(h.ok("run", "echo \"$GREETING\"; cd /tmp"), "it's \"me\"\n", "a variable")
        equal(h.ok("run", "pwd"), "/tmp\n", "the same shell from a second process")
        equal(h("run", "exit 3; false").returncode, 3, "status")
        with open(h.path("cwd", "file"), "w") as f:
            f.write("content\n" * 100000)
        h.ok("put", "file", h.path("there") + "/")
        h.ok("get", h.path("there"), "out")
        with open(h.path("cwd", "out", "file")) as f:
            equal(f.read(), "content\n" * 100000, "copied in and out")
        equal(h.ok("logs"), "handraild ready: listening on 0.0.0.0:8080\n", "log")
        done = h("sh", "some", "words", "5", input="and input")
        equal((done.returncode, done.stdout, done.stderr), (5, "some words 5\nand input", "told\n"), "a program in it")
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "running", "state")
        urls = json.loads(h.ok("url", "--json"))
        equal(sorted(urls["web_hosts"].values()), [30082, 30083], "addresses")
        h.fails(1, "no call that copies the files of a running pod", "snapshot", "default")
        h.ok("pause")
        equal(h.api.names(), ALL[1:], "paused: all but the pod")
        equal([r["state"] for r in json.loads(h.ok("ps", "--json")) if r["sid"] == "default"], ["paused"], "state")
        refuses(h, "it was paused or deleted; \"handrail resume\" continues", "run", "true")
        h.ok("resume")
        equal(h.api.names(), ALL, "resumed")
        pods = h.api.sent("POST", "/pods")
        equal(pods[1]["spec"], pods[0]["spec"], "the same pod")
        h.ok("run", "true")
        h.ok("pause")
        h.ok("up")
        equal(h.api.names(), ALL, "up resumes, too")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")


def agent_sandbox():
    """Where a Sandbox of agent-sandbox makes the pod: the same one, scaled for a pause, and ended with it."""
    for version, spec in (("v1alpha1", {"replicas": 0}), ("v1beta1", {"operatingMode": "Suspended"})):
        with Cluster(server=True, KUBERNETES_AGENT_SANDBOX="auto") as h:
            h.ok("up")
            plain = h.api.sent("POST", "/pods")[0]
            equal(h.api.sent("POST", "/sandboxes"), [], "not where none are served")
            h.ok("pause")
            h.api.agents = version
            h.ok("up")
            equal(h.api.names(), ALL, "what was paused goes on as what it was")
            h.ok("down")
            with h.api.lock:
                h.api.requests.clear()
            h.ok("up")
            equal(h.api.names(), ["openhands-runtime-default"] + ALL, "beside the pod a Sandbox of its name")
            equal(h.api.sent("POST", "/pods"), [], "which makes it")
            sandbox = h.api.sent("POST", "/sandboxes")[0]
            template = sandbox["spec"]["podTemplate"]
            equal((sandbox["apiVersion"], sandbox["metadata"]["labels"], template["metadata"]["labels"],
                   template["spec"]), ("agents.x-k8s.io/" + version, plain["metadata"]["labels"],
                                       plain["metadata"]["labels"], plain["spec"]), "as the pod was")
            equal(h.ok("run", "echo there"), "there\n", "a command")
            h.ok("pause")
            equal((h.api.names(), state(h)), (ALL, "paused"), "all but the pod")
            path = "/apis/agents.x-k8s.io/%s/namespaces/default/sandboxes/openhands-runtime-default" % version
            equal({k: h.api.objects[path]["spec"][k] for k in spec}, spec, "scaled")
            h.ok("resume")
            equal((h.ok("run", "echo there"), state(h)), ("there\n", "running"), "resumed")
            # its controller makes another pod, which is not what ran
            h.api.remove(POD)
            equal((POD in h.api.objects, state(h)), (True, "exited"), "another pod")
            h.ok("resume")
            equal(state(h), "running", "as it is wanted")
            h.api.remove(POD)
            h.ok("up")
            equal(state(h), "running", "again")
            h.api.change(POD, lambda o: o.update(status={"phase": "Failed"}))
            was = h.api.objects[path]["metadata"]["uid"]
            h.ok("up")
            equal(h.api.objects[path]["metadata"]["uid"] != was, True, "one that has ended is made anew")
            h.ok("pause")
            h.api.remove(path)
            refuses(h, "it was deleted while it was paused", "resume")
            h.ok("up")
            equal(h.ok("run", "echo there"), "there\n", "with its files")
            # who has no such setting
            del h.env["KUBERNETES_AGENT_SANDBOX"]
            h.ok("down")
            equal(h.api.names(), [], "nothing is left")
            h.env["KUBERNETES_AGENT_SANDBOX"] = "auto"
            h.ok("up")
            h.api.change(POD, lambda o: o["metadata"]["labels"].update({"handrail/sandbox": "default"}))
            h.ok("pause")
            h.ok("resume")
            equal(h.api.objects[POD]["metadata"]["labels"].get("handrail/sandbox"), "default", "one that was of a pool")
            h.ok("down")
            equal(h.api.names(), [], "nothing is left")


def agent_sandbox_trouble():
    """A Sandbox that is somebody else's, one that has no pod, and rights that are missing, are told in words."""
    with Cluster(server=True, KUBERNETES_AGENT_SANDBOX="auto") as h:
        h.api.agents = "v1alpha1"
        path = "/apis/agents.x-k8s.io/v1alpha1/namespaces/default/sandboxes/openhands-runtime-default"
        with h.api.lock:
            h.api.put(path, {"kind": "Sandbox", "metadata": {"name": path.rsplit("/", 1)[1], "uid": "theirs"}})
        refuses(h, "handrail did not make it", "up")
        h("down")
        equal(h.api.names(), ["openhands-runtime-default"], "it is left alone")
        h.api.remove(path)

        def refused(where):
            h.api.put(where, dict(h.api.objects[where], status={"conditions": [
                {"type": "Ready", "status": "False", "reason": "ReconcilerError", "message":
                 'Error seen: pods "x" is forbidden: exceeded quota: small'}]}))
        h.api.controller = refused
        refuses(h, "exceeded quota: small", "up")
        equal(h.api.names(), [], "nothing is left")
        h.api.controller = lambda unused: None
        refuses(h, "check that the controller of agent-sandbox runs", "up")
        equal(h.api.names(), [], "nothing is left")
        equal("right to sandboxes " in h("doctor").stdout, True, "doctor")
        h.api.denied = {("create", "sandboxes")}
        done = h("up")
        equal((done.returncode, "has no right to create sandboxes" in done.stderr), (0, True), done.stderr)
        equal(h.api.names(), ALL, "without one")
        equal("BAD  right to sandboxes " in h("doctor").stdout, True, "doctor")
        h.ok("down")
        h.env["KUBERNETES_AGENT_SANDBOX"] = "sometimes"
        refuses(h, "Invalid value for kubernetes.agent_sandbox: sometimes", "up")


def much_over_tls():
    """More than the connection takes at once, in both directions: TLS wants what it refused again as it was."""
    with Cluster(server=True, tls=True) as h:
        h.ok("up")
        with open(h.path("cwd", "file"), "wb") as f:
            f.write(os.urandom(1 << 20) * 12)
        h.ok("put", "file", h.path("there") + "/")
        h.ok("get", h.path("there"), "out")
        with open(h.path("cwd", "file"), "rb") as a, open(h.path("cwd", "out", "file"), "rb") as b:
            equal(a.read() == b.read(), True, "the same")
        h.cluster = {}
        h.kubeconfig({"token": "good"})
        refuses(h, "cannot be reached", "up", "-n", "other")
        h.cluster = {"insecure-skip-tls-verify": True}
        h.kubeconfig({"token": "good"})
        h.ok("down")


def behind_a_proxy():
    """A server's URL with a path, as proxies of many clusters have it, and the name that its certificate is for."""
    path = "/k8s/clusters/c-1"
    with Cluster(server=True, tls=True) as h:
        plain = h.api.handle

        def handle(handler):
            if not handler.path.startswith(path + "/"):
                return h.api.refuse(handler, 404, "NotFound", "this is no cluster: " + handler.path)
            handler.path = handler.path[len(path):]
            return plain(handler)
        h.api.handle = handle
        h.api.url += path
        for name in (None, "api.example"):
            h.cluster.update({"tls-server-name": name} if name else {})
            h.kubeconfig({"token": "good"})
            h.ok("up")
            equal(h.ok("run", "echo there"), "there\n", "by a port-forward, too")
            h.ok("down")
        h.cluster["tls-server-name"] = "another.example"
        h.kubeconfig({"token": "good"})
        refuses(h, "cannot be reached", "up", "-n", "other")
        h.cluster["tls-server-name"] = "api.example"
        h.kubeconfig({"token": "good"})


def stopped_while_it_waits():
    """SIGINT and SIGTERM in up clear away what it has made, say so, and end it."""
    for sig in (signal.SIGINT, signal.SIGTERM):
        with Cluster() as h:
            h.api.node = None
            p = h.popen("up", "-s", "kubernetes.schedule_timeout=600")
            pod = "/api/v1/namespaces/default/pods/openhands-runtime-default"
            with h.api.lock:
                h.api.lock.wait_for(lambda: pod in h.api.objects and any(
                    "watch=true" in path for _, path, _, _ in h.api.requests), PATIENCE)
            p.send_signal(sig)
            _, err = p.communicate(timeout=PATIENCE)
            equal((p.returncode, "stopped while Pod" in err), (-sig, True), err)
            equal((h.api.names(), os.listdir(h.path("state"))), ([], []), "nothing is left")


def unknown_states():
    """A state that cannot be known is told with its reason, and is no success."""
    with Cluster(server=True) as h:
        h.ok("up")
        h.api.tokens = {"another"}
        done = h("ps", "--json")
        states = {r["sid"]: r["state"] for r in json.loads(done.stdout)}
        equal((done.returncode, states), (1, {"default": "unknown", "server": "running"}), done.stderr)
        equal("default: " in done.stderr and "(401)" in done.stderr, True, done.stderr)
        h.api.tokens = {"good"}
        equal(h("ps").returncode, 0)
        h.ok("down")


def no_such_class():
    """A storage class that is not there is told before anything waits for it."""
    with Cluster(server=True) as h:
        done = h("up", "-s", "kubernetes.pvc_storage_class=nothere")
        equal('there is no storage class "nothere"' in done.stderr, True, done.stderr)
        h.ok("down")
        done = h("up", "-s", "kubernetes.pvc_storage_class=s")
        equal((done.returncode, "storage class" in done.stderr), (0, False), done.stderr)
        h.ok("down")

        def unbound(o):
            o.update(status={"phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}]})
        h.api.node = unbound
        refuses(h, "its claim is bound to no volume", "up", "-s", "kubernetes.schedule_timeout=600",
                "-s", "kubernetes.pvc_storage_class=nothere")


def objects_as_captured():
    """Of an unmodified client's objects nothing is missing, and what is more is known."""
    env = {"KUBERNETES_NAMESPACE": "n", "KUBERNETES_PVC_STORAGE_CLASS": "fast", "KUBERNETES_IMAGE_PULL_SECRET": "pull",
           "KUBERNETES_NODE_SELECTOR_KEY": "key", "KUBERNETES_NODE_SELECTOR_VAL": "val",
           "KUBERNETES_INGRESS_TLS_SECRET": "tls", "KUBERNETES_INGRESS_DOMAIN": "example.com", "DEBUG": "true",
           "KUBERNETES_TOLERATIONS_YAML": "- key: k\n  operator: Equal\n  value: 'v'\n  effect: NoSchedule\n"
                                          "  toleration_seconds: 30\n- {key: a, tolerationSeconds: 5}\n",
           "SANDBOX_RUNTIME_STARTUP_ENV_VARS": "{'ONE': 'two'}"}
    with Cluster(**env) as h:
        h.api.node = None  # nothing becomes of it, and nobody waits for that
        p = h.popen("up", "-p", "vscode")
        with h.api.lock:
            while not any("/log" in path or "watch=true" in path for _, path, _, _ in h.api.requests):
                h.api.lock.wait()
        p.kill()
        p.communicate()
        pod = h.api.sent("POST", "/n/pods")[0]
        name = "openhands-runtime-default"
        equal((pod["apiVersion"], pod["kind"], pod["metadata"]["name"]), ("v1", "Pod", name))
        equal(pod["metadata"]["labels"], {"app": "openhands-runtime", "session": "default"})
        c = pod["spec"].pop("containers")[0]
        equal(pod["spec"], {
            "restartPolicy": "Never", "volumes": [{"name": "workspace-volume", "persistentVolumeClaim": {
                "claimName": name + "-pvc"}}],
            "imagePullSecrets": [{"name": "pull"}], "nodeSelector": {"key": "val"},
            "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule",
                             "tolerationSeconds": 30}, {"key": "a", "tolerationSeconds": 5}],
            "automountServiceAccountToken": False, "enableServiceLinks": False}, "pod")
        equal(c, {
            "name": "runtime", "image": "registry/image:1",
            "command": "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m "
                       "openhands.runtime.action_execution_server 8080 --working-dir /workspace --plugins vscode "
                       "--username root --user-id 0".split(),
            "workingDir": "/openhands/code/",
            "env": [{"name": "port", "value": "8080"}, {"name": "PYTHONUNBUFFERED", "value": "1"},
                    {"name": "VSCODE_PORT", "value": "8081"}, {"name": "DEBUG", "value": "true"},
                    {"name": "ONE", "value": "two"}],
            "envFrom": [{"secretRef": {"name": name + "-key"}}],
            "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 8081, "name": "vscode"},
                      {"containerPort": 30082}, {"containerPort": 30083}],
            "volumeMounts": [{"name": "workspace-volume", "mountPath": "/workspace"}],
            "resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "readinessProbe": {"httpGet": {"path": "/alive", "port": 8080}, "initialDelaySeconds": 5,
                               "periodSeconds": 10, "timeoutSeconds": 5, "successThreshold": 1, "failureThreshold": 3},
            "securityContext": {"privileged": False, "seccompProfile": {"type": "RuntimeDefault"}}}, "container")
        equal(h.api.sent("POST", "/persistentvolumeclaims")[0]["spec"], {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}},
            "storageClassName": "fast"}, "claim")
        services = {s["metadata"]["name"]: s["spec"] for s in h.api.sent("POST", "/services")}
        selector = {"app": "openhands-runtime", "session": "default"}
        equal(services, {
            name + "-svc": {"type": "ClusterIP", "publishNotReadyAddresses": True, "selector": selector, "ports": [
                {"name": "execution-server", "port": 8080, "targetPort": "http"}]},
            name + "-svc-code": {"type": "ClusterIP", "publishNotReadyAddresses": True, "selector": selector, "ports": [
                {"name": "code", "port": 8081, "targetPort": "vscode"}]}}, "services")
        ingress = h.api.sent("POST", "/ingresses")[0]
        equal(ingress["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/hostname"], "default.example.com")
        equal(ingress["spec"], {
            "rules": [{"host": "default.example.com", "http": {"paths": [{
                "path": "/", "pathType": "Prefix", "backend": {
                    "service": {"name": name + "-svc-code", "port": {"number": 8081}}}}]}}],
            "tls": [{"hosts": ["default.example.com"], "secretName": "tls"}]}, "ingress")
        equal({o["kind"] for o in h.api.sent("POST") if KEY in json.dumps(o)}, {"Secret"}, "the key is there alone")
        equal([o["data"] for p, o in h.api.objects.items() if "/secrets/" in p],
              [{"SESSION_API_KEY": base64.b64encode(KEY.encode()).decode()}], "there it is")
        h.ok("down")
        equal(h.api.names(), [], "what was begun is ended")


def hardened():
    env = {"SANDBOX_SECURITY_RUN_AS_USER": "1000", "SANDBOX_SECURITY_RUN_AS_GROUP": "1001",
           "SANDBOX_SECURITY_READONLY_ROOT_FS": "true", "SANDBOX_SECURITY_NO_NEW_PRIVILEGES": "true",
           "SANDBOX_SECURITY_CAP_DROP": "['ALL']", "KUBERNETES_RUNTIME_CLASS": "gvisor",
           "KUBERNETES_SERVICE_ACCOUNT": "nobody", "KUBERNETES_NETWORK_POLICY": "offline",
           "SANDBOX_LIMITS_PROFILE": "standard", "KUBERNETES_INGRESS": "false", "SANDBOX_LIMITS_PIDS": "7"}
    with Cluster(server=True, **env) as h:
        done = h("up")
        equal(done.returncode, 0, done.stderr)
        equal("sandbox.limits.pids" in done.stderr, True, done.stderr)
        spec = h.api.sent("POST", "/pods")[0]["spec"]
        equal(spec["securityContext"], {"runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 1001, "runAsNonRoot": True})
        equal((spec["runtimeClassName"], spec["serviceAccountName"]), ("gvisor", "nobody"))
        c = spec["containers"][0]
        equal(c["securityContext"], {"privileged": False, "readOnlyRootFilesystem": True,
                                     "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                                     "seccompProfile": {"type": "RuntimeDefault"}})
        equal(c["command"][-4:], ["--username", "openhands", "--user-id", "1000"])
        equal(c["resources"]["limits"], {"memory": str(4 << 30), "cpu": "1000m"})
        equal(sorted(m["mountPath"] for m in c["volumeMounts"]),
              sorted(["/workspace", "/tmp", "/run", "/var/tmp", "/openhands/logs", "/openhands/var", "/home/openhands",
                      "/root"]))
        policy = h.api.sent("POST", "/networkpolicies")[0]["spec"]
        equal((policy["egress"], policy["policyTypes"]), ([], ["Ingress", "Egress"]))
        equal([n for n in h.api.names() if "code" in n], [], "no ingress")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")


def rules():
    """Addresses and ports make a policy, before the pod; what no policy can enforce is refused by its name."""
    def up(h, network, *words):
        return h("up", "--network", "egress", "-s", "sandbox.network=" + json.dumps(network), *words)

    enforced = {"KUBERNETES_NETWORK_POLICY_ENFORCED": "true"}
    tcp = [{"protocol": "TCP", "port": 80}, {"protocol": "TCP", "port": 443}]
    with Cluster(server=True, **enforced) as h:
        done = up(h, {"allowOut": ["10.1.0.0/16", "93.184.216.34:8080", "172.0.0.0/8"], "denyOut": ["10.1.2.0/24"]})
        equal(done.returncode, 0, done.stderr)
        made = [path.rsplit("/", 1)[1] for method, path, _, _ in h.api.requests if method == "POST"]
        equal(made.index("networkpolicies") < made.index("pods"), True, made)
        policy = h.api.sent("POST", "/networkpolicies")[0]["spec"]
        equal((policy["policyTypes"], policy["podSelector"]), (["Ingress", "Egress"], {"matchLabels": {
            "app": "openhands-runtime", "session": "default"}}))
        equal(policy["egress"], [
            {"to": [{"ipBlock": {"cidr": "10.1.0.0/16", "except": []}}], "ports": tcp},
            {"to": [{"ipBlock": {"cidr": "93.184.216.34/32", "except": []}}],
             "ports": [{"protocol": "TCP", "port": 8080}]},
            {"to": [{"ipBlock": {"cidr": "172.0.0.0/8", "except": ["172.16.0.0/12"]}}], "ports": tcp}], "no resolver")
        h.ok("pause")
        equal([n for n in h.api.names() if "policy" in n], ["openhands-runtime-default-policy"])
        h.ok("resume")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")
    with Cluster(server=True, **enforced) as h:
        equal(up(h, {"allowInternetAccess": True, "denyOut": ["8.8.8.0/24"], "ports": [22]}).returncode, 0)
        internet, resolver = h.api.sent("POST", "/networkpolicies")[0]["spec"]["egress"]
        block = internet["to"][0]["ipBlock"]
        equal((block["cidr"], internet["ports"]), ("0.0.0.0/0", [{"protocol": "TCP", "port": 22}]))
        equal({"10.0.0.0/8", "169.254.0.0/16", "127.0.0.0/8", "8.8.8.0/24"} - set(block["except"]), set())
        equal(([p["port"] for p in resolver["ports"]], resolver["to"][0]["podSelector"]),
              ([53, 53], {"matchLabels": {"k8s-app": "kube-dns"}}))
        h.ok("down")
    with Cluster(server=True, **enforced) as h:
        equal(h("up", "--network", "egress").returncode, 0)
        equal(h.api.sent("POST", "/networkpolicies")[0]["spec"]["egress"], [], "no rules allow nothing")
        h.ok("down")
        for network, text in (({"allowOut": ["github.com"]}, '"github.com" in allowOut'),
                              ({"allowOut": ["[2606:4700::1]:443"]}, '"[2606:4700::1]:443" in allowOut'),
                              ({"rules": {"a.example": [{"methods": ["GET"]}]}}, '"rules"'),
                              ({"credentials": {"T": {"secret": "t", "hosts": ["a.example"]}}}, '"credentials"'),
                              ({"presets": ["pypi"]}, '"presets"'), ({"dnsServers": ["1.1.1.1"]}, '"dnsServers"')):
            done = up(h, network)
            equal((done.returncode, "cannot enforce " + text in done.stderr), (1, True), done.stderr)
        h.fails(1, "kubernetes.network_policy is closed", "up", "--network", "egress", "-s",
                "kubernetes.network_policy=closed")
        h.fails(1, "use --network egress", "up", "-s", 'sandbox.network={"allowOut":["10.0.0.0/8"]}')
        h.fails(1, "set kubernetes.network_policy_enforced to true", "up", "--network", "egress", "-s",
                "kubernetes.network_policy_enforced=false")
        equal(h.api.names(), [], "nothing was made")


def passing_trouble():
    """What is late, busy, cut or forgotten is asked again, and made only once."""
    busy = (429, [("Retry-After", "1")], {"kind": "Status", "code": 429, "message": "slow down"})
    with Cluster(server=True) as h:
        h.api.failures = [busy, None, (503, [], b"no"), None]
        h.api.cuts, h.api.forgotten = 3, 2
        h.ok("up")
        equal(h.api.names(), ALL, "objects")
        equal(len(h.api.sent("POST", "/pods")) >= 1, True)
        h.api.failures = [None]
        equal(h.ok("run", "echo there"), "there\n", "a port-forward that was cut at its beginning")
        h.api.cuts = 5
        h.ok("pause")
        h.ok("resume")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")


def lost_answer():
    """A pod whose creation was answered by nobody is ours, and not one that is in the way."""
    with Cluster(server=True) as h:
        plain, lost = h.api.answer, []

        def answer(handler, status, o, headers=()):
            if handler.command == "POST" and handler.path.endswith("/pods") and not lost:
                lost.append(1)
                handler.close_connection = True
                handler.connection.shutdown(2)
            else:
                plain(handler, status, o, headers)
        h.api.answer = answer
        h.ok("up")
        equal(len(h.api.sent("POST", "/pods")), 2, "asked twice")
        equal(h.api.names(), ALL, "made once")
        h.ok("down")


def pages():
    """A list in pages is a whole list: one of a pool is found on the last one."""
    with Cluster(server=True) as h:
        h.api.page = 1
        h.ok("up")
        h.api.change(POD, lambda o: o["metadata"]["labels"].update({"handrail/sandbox": "taken"}))
        for i in range(3):
            with h.api.lock:
                h.api.new(POD + "-%d" % i, {"kind": "Other", "metadata": {
                    "name": "openhands-runtime-default-%d" % i, "labels": {"handrail/sandbox": "taken"}}, "spec": {}})
        h.ok("up", "-n", "taken")
        equal([n for n in h.api.names() if "-taken" in n], [], "nothing was made")
        h.ok("down")
        h("down", "-n", "taken")


def not_searched():
    """A search of the pool's pods that fails must not make a second sandbox beside one that was taken."""
    with Cluster(server=True) as h:
        plain = h.api.answer

        def answer(handler, status, o, headers=()):
            if "handrail%2Fsandbox" in handler.path:
                status, o = 403, {"kind": "Status", "code": 403, "message": "not by this account"}
            plain(handler, status, o, headers)
        h.api.answer = answer
        refuses(h, "forbids it: not by this account", "up")
        equal((h.api.sent("POST", "/pods"), h.api.names()), ([], []), "nothing was made")


def taken():
    """The way to one of a pool is opened while it is taken: neither waits for the other."""
    with Cluster() as h:
        del h.env["SESSION_API_KEY"]
        stub = Stub()
        h.api.port = stub.port
        h.ok("pool", "1")
        opened, waited = threading.Event(), []
        plain = h.api.handle

        def handle(handler):
            if "/portforward" in handler.path:
                opened.set()
            if handler.command == "PATCH" and "/pods/" in handler.path:
                waited.append(opened.wait(PATIENCE))
            plain(handler)
        h.api.handle = handle
        h.ok("up")
        equal(waited, [True], "opened")
        h.ok("down")
        h.ok("pool", "0")
        equal(h.api.names(), [], "nothing is left")
        stub.end()


def taken_without_an_answer():
    """The label that is written, and answered by nobody, is read."""
    with Cluster() as h:
        del h.env["SESSION_API_KEY"]
        stub = Stub()
        h.api.port = stub.port
        h.ok("pool", "1")
        warm = next(p for p, o in h.api.objects.items() if "/pods/openhands-runtime-warm-" in p)
        plain, lost = h.api.answer, []

        def answer(handler, status, o, headers=()):
            if handler.command == "PATCH" and handler.path.partition("?")[0] == warm:
                lost.append(status)
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
            else:
                plain(handler, status, o, headers)
        h.api.answer = answer
        up = h.popen("up")
        err = up.communicate(timeout=60 + PATIENCE)[1]  # it asks for a minute before it reads
        h.api.answer = plain
        equal((up.returncode, set(lost)), (0, {200}), err)
        equal((h.record()["backend"]["name"], POD in h.api.objects), (warm.rsplit("/", 1)[1], False), "it is taken")
        equal([n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")], [], "and not the pool's")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")
        stub.end()


def not_taken():
    """A pod of the pool that is not taken leaves nothing of itself in what is made in its place: a dead one is ended,
    and one that only a right is missing for waits on."""
    with Cluster() as h:
        del h.env["SESSION_API_KEY"]
        stub = Stub()
        h.api.port = stub.port
        h.ok("up", "-n", "keep")
        h.ok("pool", "1")
        warm = next(p for p, o in h.api.objects.items() if "/pods/openhands-runtime-warm-" in p)
        others = [n for n in h.api.names() if "-warm-" not in n]

        def parts():
            return [n for n in h.api.names() if "-warm-" not in n and n not in others]
        for dead in (False, True):
            if dead:
                h.api.change(warm, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted"}))
            else:
                h.api.denied = {("patch", "pods")}
            done = h("up")
            h.api.denied = set()
            equal((done.returncode, "is not taken: " in done.stderr), (0, True), done.stderr)
            equal((h.record()["backend"]["name"], warm in h.api.objects), ("openhands-runtime-default", not dead))
            equal([n for n in parts() if not n.startswith("openhands-runtime-default")], [], "all under its own name")
            equal(POD in h.api.objects, True)
            h.ok("down", "default")
        equal(h.api.names(), others, "nothing else is left")
        h.ok("down", "--all")
        stub.end()


def does_not_come():
    """Why, at once and in words, with the last lines; and nothing of it stays."""
    def state(text):
        return lambda o: o.update(status=dict({"phase": "Pending"}, **text))

    def waits(reason, message):
        return state({"containerStatuses": [{"image": "i", "state": {"waiting": {
            "reason": reason, "message": message}}}]})

    dead = state({"phase": "Failed", "containerStatuses": [{"image": "i", "state": {"terminated": {
        "reason": "OOMKilled", "exitCode": 137}}}]})
    nowhere = state({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                     "message": "0/3 nodes: Insufficient cpu"}]})
    for node, text in ((waits("ErrImagePull", "registry/image:1: not found"), "its image i is not available"),
                       (waits("CreateContainerError", "no such device"), "no such device"),
                       (nowhere, "no node takes it: 0/3 nodes: Insufficient cpu"),
                       (dead, "it ran out of memory and was killed")):
        with Cluster() as h:
            h.api.node, h.api.log = node, ["first", "the last line"]
            done = h("up")
            equal((done.returncode, text in done.stderr), (5, True), done.stderr)
            if node is dead:
                equal("the last line" in done.stderr, True, done.stderr)
            equal((h.api.names(), os.listdir(h.path("state"))), ([], []), "nothing is left")


def refused():
    quota = (403, [], {"kind": "Status", "code": 403, "reason": "Forbidden", "message":
                       'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'})
    with Cluster() as h:
        # the pod, behind what is looked at and made first
        plain = h.api.plain

        def refuse_pods(handler, path, q, body):
            if handler.command == "POST" and path.endswith("/pods"):
                h.api.answer(handler, quota[0], quota[2])
            else:
                plain(handler, path, q, body)
        h.api.plain = refuse_pods
        refuses(h, 'the quota "q" of the namespace is used up: requested pods=1, used pods=2 of pods=2', "up")
        equal(h.api.names(), [], "what was made before is gone")
    with Cluster() as h:
        h.api.denied = {("create", "services")}
        refuses(h, 'eve has no right to create services in the namespace "default"', "up")
        h.api.denied = {("create", "services"), ("create", "pods")}
        done = h("doctor")
        bad = [line for line in done.stdout.splitlines() if line.startswith("BAD")]
        equal(done.returncode > 0, True, done.stdout)
        equal({line.split()[3] for line in bad if "has no right to create in" in line} >= {"pods", "services"}, True,
              done.stdout)
        equal(h.api.names(), [], "nothing is left")
    with Cluster(token="wrong") as h:
        refuses(h, "does not know these credentials", "up")
    with Cluster(KUBECONFIG="/nonexistent") as h:
        refuses(h, "Failed to initialize Kubernetes client", "up")
    with Cluster() as h:
        refuses(h, "invalid pod name", "up", "-n", "No_Pod")


def credentials():
    """A token's file is read again, a program asked again, when what it gave is refused."""
    with Cluster(user={"tokenFile": "token"}) as h:
        with open(h.path("token"), "w") as f:
            f.write("good\n")
        equal(h("ps").returncode, 0)
        h.ok("doctor", "-s", "core.file_store=local")
    script = ("echo run >>runs; printf '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' "
              "\"$(test $(wc -l <runs) = 1 && echo old || echo good)\"")
    with Cluster(user={"exec": {"command": "sh", "args": ["-c", script]}}) as h:
        h.ok("doctor")
        with open(h.path("cwd", "runs")) as f:
            equal(f.read(), "run\nrun\n", "once for the answer that was refused, and no more")
    # a short life, in another time zone
    ends = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=5))) + datetime.timedelta(seconds=50)
    script = ("echo run >>runs; echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"good\","
              "\"expirationTimestamp\":\"%s\"}}'" % ends.isoformat(timespec="seconds"))
    with Cluster(user={"exec": {"command": "sh", "args": ["-c", script]}}) as h:
        h.ok("doctor")
        with open(h.path("cwd", "runs")) as f:
            equal(f.read(), "run\n", "once for all requests")
    with Cluster(user={"exec": {"command": "sh", "args": ["-c", "exit 4"]}}) as h:
        refuses(h, "it ended (exit 4)", "up")
    with Cluster() as h:
        os.chmod(h.path("kubeconfig"), 0o666)
        equal("kubeconfig" in h("up").stderr, True, "others can write it")


def somebody_else():
    """A pod that somebody deletes or that dies is told as that; a new one of the name is not deleted with it."""
    with Cluster(server=True) as h:
        h.ok("up")
        h.api.change(POD, lambda o: o.update(status={"phase": "Failed", "reason": "Evicted", "message": "disk"}))
        h.api.port = 1
        refuses(h, "sent it away", "run", "true")
        equal([r["state"] for r in json.loads(h.ok("ps", "--json")) if r["sid"] == "default"], ["exited"], "state")
        h.api.port = int(h.record("server")["url"].rsplit(":", 1)[1])
        h.ok("up")
        equal(h.ok("run", "echo anew"), "anew\n", "made anew")
        h.api.remove(POD)
        refuses(h, "it was paused or deleted; \"handrail resume\" continues", "run", "true")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")


def elsewhere():
    """A recorded sandbox is looked for in its cluster alone, which may have another address."""
    with Cluster(server=True) as h, ApiServer() as other:
        h.ok("up")
        first = h.api
        h.api = other
        h.kubeconfig({"token": "good"})
        try:
            for words in (("up",), ("run", "true"), ("pause",), ("resume",), ("ps",), ("down",)):
                done = h(*words)
                equal((done.returncode > 0, first.url in done.stderr, other.url in done.stderr), (True,) * 3,
                      "%s: %s" % (words[0], done.stderr))
                equal((first.names(), other.names()), (ALL, []), words[0])
            equal(os.path.exists(h.path("state", "default.json")), True, "its record stays")
        finally:
            h.api = first
            h.kubeconfig({"token": "good"})
        equal(h.ok("run", "echo there"), "there\n")
        h.ok("down")
    with Cluster(server=True, tls=True) as h:
        h.ok("up")
        h.api.url = h.api.url.replace("127.0.0.1", "localhost")
        h.cluster["tls-server-name"] = "api.example"
        h.kubeconfig({"token": "good"})
        equal(h.ok("run", "echo there"), "there\n", "the same authority: the same cluster")
        h.ok("down")


def made_again_meanwhile():
    """A pod of the name that another process has made since "down" looked is not deleted, and "down" says so."""
    with Cluster(server=True) as h:
        h.ok("up")
        plain, late = h.api.handle, []

        def held(request):
            if request.command == "DELETE" and request.path == POD and not late:
                late.append(h.api.objects[POD]["metadata"]["uid"])
                with h.api.lock:
                    pod = copy.deepcopy(h.api.objects[POD])
                    h.api.delete(POD)
                    h.api.new(POD, pod)
            plain(request)
        h.api.handle = held
        refuses(h, "Pod openhands-runtime-default was replaced by another process", "down")
        equal((h.api.names(), h.api.objects[POD]["metadata"]["uid"] != late[0]), (ALL, True), "all of it is there")
        h.ok("down")
        equal(h.api.names(), [], "nothing is left")
        equal([b for b in h.api.sent("DELETE") if "uid" not in ((b or {}).get("preconditions") or {})], [],
              "each delete says which object it means")


def made_while_it_is_ended():
    """A Sandbox that another process makes after "down" has looked for one is not deleted with the leftovers of the
    one before."""
    with Cluster(server=True, KUBERNETES_AGENT_SANDBOX="auto") as h:
        h.api.agents = "v1beta1"
        path = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/openhands-runtime-default"
        h.ok("up")
        old = copy.deepcopy(h.api.objects[path])
        h.api.controller = lambda unused: None
        h.api.remove(path)
        plain, made = h.api.handle, []

        def held(request):
            if request.command == "DELETE" and not made:
                made.append(request.path)
                with h.api.lock:
                    h.api.new(path, old)
            plain(request)
        h.api.handle = held
        h.ok("down")
        h.api.handle = plain
        equal((len(made), path in h.api.objects), (1, True), "the next one is there")
        h.api.remove(path)


def of_other_owners():
    """What another user or machine has made is refused by its annotation, unless a record leads to it."""
    other = {"handrail/owner": "colleague-0"}
    with Cluster(server=True) as h:
        h.ok("up")
        h.api.change(POD, lambda o: o["metadata"]["annotations"].update(other))
        h.api.change(CLAIM, lambda o: o["metadata"]["annotations"].update(other))
        h.ok("run", "true")
        record = h.path("state", "default.json")
        os.rename(record, record + ".away")
        was = h.api.names()
        for words in (("up",), ("run", "true"), ("pause",), ("down",)):
            refuses(h, 'its annotation handrail/owner is "colleague-0"', *words)
            equal(h.api.names(), was, "nothing is ended by " + words[0])
        equal(h.ok("run", "--any-owner", "echo theirs"), "theirs\n", "who says so")
        os.rename(record + ".away", record)
        h.ok("pause")
        os.rename(record, record + ".away")
        refuses(h, "is not yours", "up")
        equal(h.api.names(), ALL[1:], "paused, it stays paused")
        h.api.change(CLAIM, lambda o: o["metadata"]["annotations"].pop("handrail/paused"))
        refuses(h, "is not yours", "up")
        equal(h.api.names(), ALL[1:], "nobody works with the files of another")
        h.ok("up", "--any-owner")
        done = h("down", "--any-owner")
        equal((done.returncode, h.api.names(), 'ended "default": kubernetes openhands-runtime-default' in done.stderr),
              (0, [], True), done.stderr)


def only_what_was_made_is_deleted():
    """A start that fails deletes no pod that it found, and no claim that was there before."""
    with Cluster(server=True) as h:
        h.ok("up")
        h.ok("run", "rm -f ~/.bashrc && mkdir ~/.bashrc")
        was = h.api.names()
        os.unlink(h.path("state", "default.json"))
        h.env["SANDBOX_ENV_X"] = "1"
        refuses(h, ".bashrc", "up")
        equal(h.api.names(), was, "found")
        h.api.remove(POD)
        refuses(h, ".bashrc", "up")
        equal(("openhands-runtime-default-pvc" in h.api.names(), "openhands-runtime-default" in h.api.names()),
              (True, False), "made, with the files of the one before")
        h.env.pop("SANDBOX_ENV_X")
        h.ok("up")
        h.ok("run", "rmdir ~/.bashrc")


def events():
    """One watch for all of them."""
    with Cluster(server=True) as h:
        h.ok("up")
        p = h.popen("events", "--json")
        first = json.loads(p.stdout.readline())
        with h.api.lock:
            while not any("watch=true" in path and "labelSelector" in path for _, path, _, _ in h.api.requests):
                h.api.lock.wait()
        h.api.change(POD, lambda o: o.update(status={"phase": "Failed", "containerStatuses": [
            {"state": {"terminated": {"reason": "OOMKilled"}}}]}))
        got = json.loads(p.stdout.readline())
        while got.get("event") != "oom" and got.get("what") != "oom":
            got = json.loads(p.stdout.readline())
        equal("default" in json.dumps(got), True, (first, got))
        p.kill()
        p.communicate()
        h.ok("down")


TESTS = [conversation, agent_sandbox, much_over_tls, behind_a_proxy, stopped_while_it_waits,
         unknown_states, no_such_class,
         objects_as_captured, hardened, rules, passing_trouble, lost_answer, pages, not_searched, taken, not_taken,
         does_not_come, refused,
         credentials, somebody_else, elsewhere, made_again_meanwhile,
         made_while_it_is_ended, of_other_owners, only_what_was_made_is_deleted, events]

# These wait half a minute and a minute for the end of a patience, beside the others.
WAITING = [agent_sandbox_trouble, taken_without_an_answer]

if __name__ == "__main__":
    tap = Tap()

    def chosen(tests):
        return [test for test in tests if (len(sys.argv) < 2 or test.__name__ in sys.argv[1:]) and
                (tap.only == [""] or test.__name__ in tap.only)]

    with concurrent.futures.ThreadPoolExecutor() as beside:
        began = [(test.__name__, beside.submit(test)) for test in chosen(WAITING)]
        for test in chosen(TESTS):
            tap.run(test.__name__, test)
        for name, waiting in began:
            tap.run(name, waiting.result)
    sys.exit(tap.done())
