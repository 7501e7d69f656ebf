#!/usr/bin/env python3
"""Sandboxes of the kind "kubernetes" in the cluster that KUBECONFIG names (lib/cluster.py): terminals, other machines,
pods as machines, and what is away or wrong for a while."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import cluster  # noqa: E402
from lib.cluster import IMAGE, NAMESPACE, POD, Between, Cluster, kubeconfig, kubectl, left, refuses  # noqa: E402
from lib.host import BUILD, SRC  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

AWAY_S = 30


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, h, *argv):
        self.master, slave = pty.openpty()
        self.size(30, 70)
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "handrail")] + list(argv), env=h.env, cwd=h.path("cwd"), stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = b""

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, text):
        """Reads on until it comes, and takes that away."""
        while text.encode() not in self.seen:
            self.seen += os.read(self.master, 4096)
        self.seen = self.seen.split(text.encode(), 1)[1]

    def end(self):
        status = self.process.wait(cluster.PATIENCE)
        os.close(self.master)
        return status


def terminal():
    with Cluster() as h:
        h.ok("up")
        t = Terminal(h, "sh")
        # the size comes after the program has begun
        t.type("until test \"$(stty size)\" = '30 70'; do sleep 0.1; done; tty; echo be''gun\n")
        t.until("/dev/pts/")
        t.until("begun\r\n")
        t.size(44, 111)
        t.type("until test \"$(stty size)\" = '44 111'; do sleep 0.1; done; echo wi''der\n")
        t.until("wider\r\n")
        t.type("echo sleeps''now; sleep 1000\n")
        t.until("sleepsnow\r\n")
        t.type("\x03")
        t.type("echo inter''rupted $?\n")
        t.until("interrupted 130\r\n")
        t.type("exit 7\n")
        equal(t.end(), 7, "its status")
        h.ok("down")


def from_another_machine():
    """Who has no record of it finds it by its name, with its key and variables."""
    with Cluster() as h, Cluster() as other:
        h.ok("up", "-e", "GREETING=hello")
        h.ok("run", "cd /tmp")
        other.ok("up")
        equal(other.ok("run", "pwd; echo $GREETING"), "/tmp\nhello\n", "the same one")
        other.ok("pause")
        equal(h.state(), ["paused"], "seen from here")
        h.ok("resume")
        equal(other.ok("run", "echo $GREETING"), "hello\n", "resumed from there")
        other.ok("down")
        equal(h.state(), ["gone"], "state")


def api_server_away():
    """For half a minute: nothing is lost, nothing is done twice, and what waits goes on."""
    between = Between()
    with Cluster() as h:
        h.use(between.config)
        h.ok("up")
        events = h.popen("events", "--json")
        events.stdout.readline()
        runs = h.popen("run", "-t", "100", "echo begun >/tmp/begun; sleep 10; echo once >>/tmp/n; cat /tmp/n")
        h.ok("sh", "sh", "-c", "until test -e /tmp/begun; do sleep 0.1; done")
        between.stop()
        refused = h.popen("up", "-n", "second", "--run", "echo second")
        threading.Event().wait(AWAY_S)  # that is the fault: it lasts
        between.start()
        equal(runs.communicate(timeout=cluster.PATIENCE)[0], "once\n", "a command that was under way")
        out, err = refused.communicate(timeout=2 * cluster.PATIENCE)
        equal((refused.returncode, out), (0, "second\n"), err)
        kubectl("delete", "pod", POD, "--wait=false")
        got = events.stdout.readline()
        while "destroy" not in got:
            got = events.stdout.readline()
        equal('"default"' in got, True, got)
        events.kill()
        events.communicate()
        h.ok("down", "-n", "second")
        h.ok("down")
    between.stop()


def rights_taken_away():
    """A service account with the rights that doc/kubernetes.md lists: they are enough, and without them each command
    says what is missing, and forgets nothing."""
    with open(os.path.join(SRC, "conf", "kubernetes", "sandboxes-role.yaml")) as f:
        role = f.read()
    kubectl("create", "serviceaccount", "maker")
    kubectl("apply", "-f", "-", input=role)
    bind = ("create", "rolebinding", "maker", "--role=handrail-sandboxes", "--serviceaccount=%s:maker" % NAMESPACE)
    kubectl(*bind)
    config = kubeconfig()
    config["users"][0]["user"] = {"token": kubectl("create", "token", "maker").strip()}
    with Cluster() as h:
        h.use(config)
        doctor = h("doctor").stdout
        equal([line for line in doctor.splitlines() if "right to" in line and line.startswith("BAD")], [], doctor)
        h.ok("up")
        equal(h.ok("run", "echo there"), "there\n", "a command")
        kubectl("delete", "rolebinding", "maker")
        for argv in (("run", "true"), ("pause",), ("logs",), ("down",), ("up", "-n", "second")):
            refuses(h, "has no right to", *argv)
        equal(os.listdir(h.path("state")), ["default.json"], "it is still known")
        kubectl(*bind)
        equal(h.ok("run", "echo again"), "again\n", "a command")
        h.ok("pause")
        h.ok("resume")
        h.ok("down")
        equal(left(), [], "nothing is left")
    kubectl("delete", "rolebinding/maker", "role/handrail-sandboxes", "serviceaccount/maker")


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static time_t shift(void) { const char *t = getenv("SHIFT_S"); return t ? atol(t) : 0; }
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime"), rc = real(id, ts);
	if (rc == 0 && id == CLOCK_REALTIME) ts->tv_sec += shift();
	return rc;
}
time_t time(time_t *ret)
{
	struct timespec ts; clock_gettime(CLOCK_REALTIME, &ts);
	if (ret) *ret = ts.tv_sec;
	return ts.tv_sec;
}
int gettimeofday(struct timeval *tv, void *tz)
{
	struct timespec ts; (void)tz; clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec; tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}
"""


def clocks_differ():
    """Ours is behind, or hours before (a certificate must be good by it): it is not compared with the cluster's."""
    for shift in (-600, 6 * 3600):
        with Cluster(SHIFT_S=str(shift)) as h:
            with open(h.path("clock.c"), "w") as f:
                f.write(CLOCK)
            if subprocess.run(["cc", "-shared", "-fPIC", "-o", h.path("clock.so"), h.path("clock.c"),
                               "-ldl"]).returncode != 0:
                raise Skip("no C compiler: apt-get install gcc")
            h.env["LD_PRELOAD"] = h.path("clock.so")
            h.ok("up", "--run", "echo there")
            events = h.popen("events", "--json")
            events.stdout.readline()
            h.ok("pause")
            got = events.stdout.readline()
            while "destroy" not in got:
                got = events.stdout.readline()
            events.kill()
            events.communicate()
            h.ok("resume")
            equal(h.ok("run", "echo there"), "there\n", "a command")
            h.ok("down")


def within_a_pod():
    """A pod is the machine: the credentials are its service account's, and the way is the sandbox's service."""
    libraries = subprocess.run(["ldd", os.path.join(BUILD, ".libs", "handrail-kubernetes.so")], stdout=subprocess.PIPE,
                               universal_newlines=True, check=True).stdout
    yaml = [line.split()[2] for line in libraries.splitlines() if "libyaml" in line][0]
    with open(os.path.join(SRC, "conf", "kubernetes", "sandboxes-role.yaml")) as f:
        kubectl("apply", "-f", "-", input=f.read())
    kubectl("create", "serviceaccount", "inside")
    kubectl("create", "rolebinding", "inside", "--role=handrail-sandboxes", "--serviceaccount=%s:inside" % NAMESPACE)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "machine"}, "spec": {
        "serviceAccountName": "inside", "terminationGracePeriodSeconds": 0, "containers": [{
            "name": "machine", "image": IMAGE, "command": ["sleep", "1000"]}]}}
    kubectl("create", "-f", "-", input=json.dumps(pod))
    kubectl("create", "service", "clusterip", POD + "-svc", "--tcp=8080:8080")
    try:
        kubectl("wait", "--for=condition=Ready", "pod/machine", "--timeout=60s")
        files = subprocess.run(["tar", "-ch", "-C", BUILD, "handrail", "-C", os.path.join(BUILD, ".libs")]
                               + [n for n in os.listdir(os.path.join(BUILD, ".libs")) if n.endswith(".so")]
                               + ["-C", os.path.dirname(yaml), os.path.basename(yaml)],
                               stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["kubectl", "-n", NAMESPACE, "exec", "-i", "machine", "--", "sh", "-c",
                        "mkdir /h && tar -x -C /h"], input=files, check=True)
        service = json.loads(kubectl("get", "service", POD + "-svc", "-o", "json"))
        # where its name leads is known before it is made by us: the cluster need not have DNS
        kubectl("patch", "service", POD + "-svc", "--type=merge", "-p", json.dumps({"spec": {
            "publishNotReadyAddresses": True, "selector": {"app": "openhands-runtime", "session": "default"}}}))
        script = """
            set -e
            echo '%s %s-svc.%s.svc.cluster.local' >>/etc/hosts
            export HOME=/h PATH=/h:$PATH LD_LIBRARY_PATH=/h HANDRAIL_LIBEXECDIR=/h RUNTIME=kubernetes
            export KUBERNETES_NAMESPACE=%s KUBERNETES_RESOURCE_CPU_REQUEST=50m
            export SANDBOX_RUNTIME_CONTAINER_IMAGE=%s
            handrail up
            handrail run 'echo inside' </dev/null
            handrail pause
            handrail resume
            handrail run 'echo resumed' </dev/null
            handrail down
            """ % (service["spec"]["clusterIP"], POD, NAMESPACE, NAMESPACE, IMAGE)
        done = subprocess.run(["kubectl", "-n", NAMESPACE, "exec", "-i", "machine", "--", "bash"], input=script,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        equal((done.returncode, "inside\n" in done.stdout, "resumed\n" in done.stdout), (0, True, True),
              done.stdout + done.stderr)
    finally:
        kubectl("delete", "pod/machine", "serviceaccount/inside", "rolebinding/inside", "role/handrail-sandboxes")
    equal(left(), [], "nothing is left")


def manifests():
    """Those of the fleet, as the API server takes them; nothing is made but their namespace."""
    names = kubectl("kustomize", os.path.join(SRC, "conf", "kubernetes"))
    equal("kind: PodDisruptionBudget" in names, True, names)
    done = subprocess.run(["kubectl", "get", "namespace", "handrail"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        kubectl("create", "namespace", "handrail")
    try:
        out = kubectl("apply", "-k", os.path.join(SRC, "conf", "kubernetes"), "--dry-run=server", "-o", "name",
                      "--namespace=handrail")
        equal(len(out.split()), 11, out)
    finally:
        if done.returncode != 0:
            kubectl("delete", "namespace", "handrail")


TESTS = [manifests, terminal, from_another_machine, api_server_away, rights_taken_away, clocks_differ, within_a_pod]

if __name__ == "__main__":
    cluster.needs()
    sys.exit(cluster.run(Tap(), TESTS, sys.argv[1:]))
