#!/usr/bin/env python3
"""The unmodified APIRemoteWorkspace of OpenHands V1 against a fleet of ours, by hand, in the build directory:

    python3.12 -m venv V && V/bin/pip install openhands-sdk openhands-workspace
    V/bin/python ../t/e2e/fleet_v1_sdk.py [--box]

Sandboxes are boxes with --box, as root. Otherwise they are containers of the Engine in DOCKER_HOST, or, as root with
docker.io, of one of its own; their image is made of what this machine has. v1_sdk.py has more of what a workspace
does."""

import os
import shutil
import socket
import sys
import tempfile

try:
    from openhands.workspace import APIRemoteWorkspace
except ModuleNotFoundError:
    APIRemoteWorkspace = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.dockerhost import IMAGE, docker, find_engine, make_image  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

DOMAIN = "fleet.example"


def name_server():
    """What a wildcard record does."""
    ask = socket.getaddrinfo

    def getaddrinfo(host, *args, **more):
        name = host.decode() if isinstance(host, bytes) else host
        return ask("127.0.0.1" if name and name.endswith("." + DOMAIN) else host, *args, **more)
    socket.getaddrinfo = getaddrinfo


def work(f, here):
    def workspace(**more):
        return APIRemoteWorkspace(runtime_api_url="http://127.0.0.1:%d" % f.port, runtime_api_key=f.key,
                                  server_image=IMAGE, session_id="v1", **more)

    def run(w, command):
        r = w.execute_command(command)
        equal((r.exit_code, r.stderr), (0, ""), r)
        return r.stdout

    with workspace(keep_alive=True) as w:
        id = w._runtime_id
        equal(run(w, "id -u; echo kept >file; pwd"), "10001\n/workspace\n")
        with open(os.path.join(here, "up"), "wb") as out:
            out.write(bytes(range(256)) * 1000)
        equal(w.file_upload(os.path.join(here, "up"), "/workspace/dir/there").success, True)
        equal(w.file_download("/workspace/dir/there", os.path.join(here, "down")).success, True)
        equal(open(os.path.join(here, "down"), "rb").read(), bytes(range(256)) * 1000)
        w.pause()
        f.until(lambda: f.call("GET", "/runtime/" + id)[1]["state"], lambda s: s == "paused")
        w.resume()
        equal(run(w, "cat file"), "kept\n")
    with workspace(pause_on_close=True) as w:
        equal((w._runtime_id, run(w, "cat file")), (id, "kept\n"), "attached")
    f.until(lambda: f.call("GET", "/runtime/" + id)[1]["state"], lambda s: s == "paused")
    with workspace() as w:
        equal((w._runtime_id, run(w, "cat file")), (id, "kept\n"), "attached to one that was paused")
    f.until(lambda: f.call("GET", "/runtime/" + id)[1]["state"], lambda s: s == "stopped")


def in_boxes():
    process.become_subreaper()
    here = tempfile.mkdtemp(prefix="fleet-v1-")
    try:
        with Fleet("--domain", DOMAIN, "--url-by-name", kind="box") as f:
            work(f, here)
    finally:
        shutil.rmtree(here, ignore_errors=True)
    print("all of it works")
    return 0


def main():
    if APIRemoteWorkspace is None:
        skip_all("needs the packages openhands-sdk and openhands-workspace: see the beginning of this file")
    name_server()
    if sys.argv[1:] == ["--box"]:
        return in_boxes()
    find_engine()
    process.become_subreaper()
    here = tempfile.mkdtemp(prefix="fleet-v1-")
    try:
        make_image(here, {"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/:/bin/false\n"
                                         "openhands:x:10001:10001::/workspace:/bin/bash\n"},
                   owned={"workspace": 10001, "run": 10001, "var/log/nginx": 10001, "var/lib/nginx": 10001})
        with Fleet("--set", "sandbox.use_host_network=true", "--set", "sandbox.runtime_binding_address=127.0.0.1",
                   "--domain", DOMAIN, "--url-by-name", kind="docker", DOCKER_HOST=os.environ["DOCKER_HOST"]) as f:
            work(f, here)
    finally:
        docker("rmi", "-f", IMAGE)
        shutil.rmtree(here, ignore_errors=True)
    print("all of it works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
