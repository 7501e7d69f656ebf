#!/usr/bin/env python3
"""handrail-fleetd with containers of a real Engine: the one of DOCKER_HOST, or for root one that is started for this
test (docker-engine)."""

import base64
import os
import shutil
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.dockerhost import IMAGE, docker, find_engine, make_image  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_fleet_builds import folder, form  # noqa: E402


class DockerFleet(Fleet):
    def __init__(self, *options):
        super().__init__("--image", IMAGE, "--set", "sandbox.use_host_network=true", "--set",
                         "sandbox.runtime_binding_address=127.0.0.1", "--set", "core.run_as_openhands=false", *options,
                         kind="docker", DOCKER_HOST=os.environ["DOCKER_HOST"])

    def container(self, o, *what):
        return docker(*what, "openhands-runtime-" + o["runtime_id"])

    def state(self, o):
        return self.call("GET", "/runtime/" + o["runtime_id"])[1]["state"]

    def until_state(self, o, state):
        self.until(lambda: self.state(o), lambda s: s == state)


def pause_and_resume():
    """A pause that freezes keeps the shell and what runs in it; a request, a start and a resume end it."""
    with DockerFleet("--set", "sandbox.docker_pause_mode=freeze") as f:
        equal(f.call("GET", "/image_exists?image=" + IMAGE)[1]["exists"], True)
        equal(f.call("GET", "/image_exists?image=none:1")[1], {"exists": False})
        o = f.up("s", environment={"X": "a b"})
        equal(f.run(o, "cd /tmp; Y=7; echo $X"), "a b")
        for wake in (lambda: None, lambda: f.up("s"), lambda: f.call("POST", "/resume", o)):
            equal(f.call("POST", "/pause", {"runtime_id": o["runtime_id"]})[0], 200)
            f.until_state(o, "paused")
            equal(f.call("GET", "/sessions/s")[1]["status"], "paused")
            wake()
            equal(f.run(o, "echo $X $Y $PWD"), "a b 7 /tmp", "the same shell, and whole")
        equal(f.call("GET", "/runtime/" + o["runtime_id"])[1]["resumed"], 3)
        equal("ready: listening" in f.call("GET", "/runtime/%s?logs=true" % o["runtime_id"])[1]["pod_logs"], True)
        f.call("POST", "/stop", {"runtime_id": o["runtime_id"]})
        f.settled()
        equal(f.container(o, "inspect").returncode, 1, "the container is gone")


def recorded_client():
    """OpenHands 0.62 with runtime="remote": start, pause, resume, attach, stop."""
    with DockerFleet("--set", "sandbox.docker_pause_mode=freeze") as f:
        f.replay("remote-0.62.jsonl", IMAGE)


def stopped_for_a_pause():
    """The default: the shell is another one, with the same files and environment."""
    with DockerFleet() as f:
        o = f.up("s", environment={"X": "a b"})
        f.run(o, "echo kept >/root/file")
        f.call("POST", "/pause", {"runtime_id": o["runtime_id"]})
        f.until_state(o, "paused")
        f.kill()
        f.start()
        equal(f.state(o), "paused", "also to the next service")
        equal(f.run(o, "echo $X; cat /root/file"), "a b\nkept")


def idle():
    """Paused when it is idle, stopped when it was paused for long; a pause takes nothing of that time."""
    with DockerFleet("--idle-pause", "1", "--idle-stop", "2") as f:
        o = f.up("s")
        f.until_state(o, "paused")
        equal(f.run(o, "echo woken"), "woken")
        f.until_state(o, "stopped")
        whats = [e["what"] for e in f.call("GET", "/sessions/s")[1]["events"]]
        equal(whats, ["starting", "running"] + ["pausing", "paused", "resuming", "running"] +
              ["pausing", "paused", "stopping", "stopped"])


def one_that_dies():
    """Told with why and what it said last; the next start is another one."""
    with DockerFleet() as f:
        o = f.up("s")
        equal(f.container(o, "kill").returncode, 0)
        f.until_state(o, "died")
        # until its log has been read, the reason stands there
        s = f.until(lambda: f.call("GET", "/sessions/s")[1], lambda s: "ready: listening" in s["pod_logs"])
        equal((s["status"], s["pod_status"]), ("error", "failed"), repr(s))
        f.until(lambda: f.container(o, "inspect").returncode, lambda rc: rc == 1)
        p = f.up("s")
        equal(f.run(p, "echo again"), "again")
        status, bad = f.call("POST", "/start?wait=ready", {"session_id": "bad", "image": "127.0.0.1:1/none:1"})
        equal(status, 409, repr(bad))
        bad = f.call("GET", "/sessions/bad")[1]
        equal((bad["state"], bad["pod_logs"] != ""), ("died", True), "why it never ran: %r" % bad)


def a_service_that_is_killed():
    """Containers live on, paused ones paused; one that nobody knows is ended."""
    with DockerFleet() as f:
        o, p = f.up("s"), f.up("t")
        f.run(o, "Y=7")
        f.call("POST", "/pause", {"runtime_id": p["runtime_id"]})
        f.until_state(p, "paused")
        f.kill()
        f.start()
        equal((f.state(o), f.state(p)), ("running", "paused"))
        equal(f.run(o, "echo $Y"), "7")
        equal(f.run(p, "echo woken"), "woken")


def pool():
    """A claim with environment; limits and users of a request are another shape."""
    with DockerFleet() as f:
        f.ok("fleet", "pools", "set", "p", "1")
        waiting = f.until(f.sandboxes, lambda all: [s["state"] for s in all] == ["warm"])[0]
        o = f.up("s", environment={"A": "b c"}, image=IMAGE)
        equal((o["runtime_id"], f.run(o, "echo $A")), (waiting["runtime_id"], "b c"))
        other = f.up("t", resource_factor=2)
        f.until(f.sandboxes, lambda all: sorted(s["state"] for s in all) == ["running", "running", "warm"])
        equal(f.container(other, "inspect").returncode, 0)


def client_of_v1():
    """Its server has the routes of V1, also one that waited; another one has not."""
    command = "/usr/local/bin/openhands-agent-server --port 60000"

    def true(o):
        return f.call("POST", "/%s/api/bash/execute_bash_command" % o["runtime_id"], {"command": "true"}, key="",
                      X_Session_API_Key=o["session_api_key"])[0]

    with DockerFleet() as f:
        f.call("POST", "/handrail/v1/pools", {"pools": [{"name": "p", "size": 1, "request": {"command": command}}]})
        waiting = f.until(f.sandboxes, lambda all: [s["state"] for s in all] == ["warm"])[0]
        o, cold = f.up("s", command=command), f.up("t", command=command, resource_factor=2)
        equal((o["runtime_id"], true(o), true(cold), true(f.up("other"))), (waiting["runtime_id"], 200, 200, 404))


def account():
    """The user and the group of a request, and a log in JSON, which the app server of OpenHands asks for."""
    with DockerFleet() as f:
        o = f.up("s", run_as_user=0, run_as_group=54322, environment={"LOG_JSON": "true"})
        equal(f.run(o, "id -u; id -g; touch file; stat -c %u:%g file").split(), ["0", "54322", "0:54322"])


def builds():
    """By the Engine, from a folder as clients send it; what was built is started."""
    with DockerFleet("--registry-prefix", "test.example", "--builds") as f:
        target = f.call("GET", "/registry_prefix")[1]["registry_prefix"] + "/runtime:t%d" % os.getpid()
        dockerfile = "FROM %s\nCOPY Dockerfile /built\n" % IMAGE
        try:
            status, answer = f.call("POST", "/build", form([target], base64.b64encode(folder(dockerfile))),
                                    Content_Type="multipart/form-data; boundary=bOuNd")
            equal(status, 200, repr(answer))
            ask = "/build_status?logs=true&build_id=" + answer["build_id"]
            s = f.until(lambda: f.call("GET", ask)[1], lambda s: s["status"] not in ("QUEUED", "WORKING"))
            equal((s["status"], s["error"]), ("SUCCESS", None), s["log"])
            equal(f.call("GET", "/image_exists?image=" + target)[1]["exists"], True)
            o = f.up("s", image=target)
            equal(f.run(o, "cat /built"), dockerfile.strip())
            f.call("POST", "/stop", {"runtime_id": o["runtime_id"]})
            f.settled()
        finally:
            docker("rmi", "-f", target)


def networks():
    """Rules for the network of a container are changed while it runs or is paused, within the limit of a key."""
    with DockerFleet() as f, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        here = ["localhost:%d" % port, "127.0.0.1:%d" % port]
        key, other = f.make_key("limited", network={"allowOut": here}), f.make_key("other")

        def change(**what):
            return f.call("POST", "/handrail/v1/network", dict(what, runtime_id=o["runtime_id"]), key=key)

        def ask():
            """The status with which the broker answers for that server of this machine."""
            return f.run(o, "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT localhost:%d HTTP/1.1\\r\\n"
                            "Host: x\\r\\n\\r\\n' >&3; read -r a b c <&3; exec 3>&-; echo $b" % port)

        status, answer = f.call("POST", "/start", {"session_id": "b", "network": {"allowOut": ["10.0.0.1"]}}, key=key)
        equal((status, "allowOut 10.0.0.1" in str(answer)), (403, True), answer)
        o = f.up("a", key)
        equal(ask(), "200", "the limit is the rule")
        equal(change(network={}), (200, {"runtime_id": o["runtime_id"], "network": {}}))
        equal(ask(), "403")
        events = f.call("GET", "/handrail/v1/network/log?runtime_id=" + o["runtime_id"], key=key)[1]["events"]
        equal([(e["verdict"], e["name"], e["port"]) for e in events][-1], ("deny", "localhost", port))
        equal(change(allow=["a.test"])[0], 403)
        equal(change(allow=here)[1]["network"], {"allowOut": here})
        f.kill()
        f.start()
        equal(ask(), "200", "after a kill of the service")
        f.call("POST", "/pause", {"runtime_id": o["runtime_id"]}, key=key)
        f.until(lambda: f.call("GET", "/runtime/" + o["runtime_id"], key=key)[1]["state"], lambda s: s == "paused")
        equal(change(network={}), (200, {"runtime_id": o["runtime_id"], "network": {}}))
        equal(ask(), "403", "a change while it was paused")
        plain = f.up("plain", other)
        equal(f.run(plain, "echo beside"), "beside")
        for one, by in ((o, key), (plain, other)):
            equal(f.call("POST", "/stop", {"runtime_id": one["runtime_id"]}, key=by)[0], 200)
        f.settled()
        equal(f.container(o, "inspect").returncode, 1, "the container is gone")
        equal([pid for pid in process.all_pids() if not process.has_ended(pid) and
               o["runtime_id"] in process.command_line(pid)], [])


def main():
    find_engine()
    process.become_subreaper()
    top = tempfile.mkdtemp(prefix="test-fleet-docker-")
    tap = Tap()
    try:
        make_image(top)
        for test in TESTS:
            if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
                tap.run(test.__name__.replace("_", " "), test)
    finally:
        docker("rmi", "-f", IMAGE)
        shutil.rmtree(top, ignore_errors=True)
    return tap.done()


TESTS = [pause_and_resume, recorded_client, stopped_for_a_pause, idle, one_that_dies, a_service_that_is_killed, pool,
         client_of_v1, account, networks, builds]

if __name__ == "__main__":
    sys.exit(main())
