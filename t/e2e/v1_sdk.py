#!/usr/bin/env python3
"""The unmodified RemoteWorkspace of OpenHands V1 against a server of ours, by hand, in the build directory:

    python3.12 -m venv V && V/bin/pip install openhands-sdk openhands-workspace
    V/bin/python ../t/e2e/v1_sdk.py [FILE]

FILE gets the requests that it makes, a line each, and what they were answered. test_v1.py makes the same ones."""

import json
import os
import subprocess
import sys
import tempfile

try:
    from openhands.sdk.workspace import RemoteWorkspace
except ModuleNotFoundError:
    RemoteWorkspace = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

KEY = "a-key-that-nobody-guesses"


def record(client, path):
    """A line for each request of an httpx.Client."""
    def line(answer):
        answer.read()
        r = answer.request
        with open(path, "a") as f:
            f.write(json.dumps({"method": r.method, "target": r.url.raw_path.decode(),
                                "type": r.headers.get("content-type"),
                                "body": r.read().decode("utf-8", "replace"),
                                "status": answer.status_code, "answer": answer.text[:4000]}) + "\n")
    client.event_hooks = {"response": [line]}


def work(s, w, local):
    r = w.execute_command("echo out; echo err >&2; exit 3")
    equal((r.exit_code, r.stdout, r.stderr, r.timeout_occurred), (3, "out\n", "err\n", False))
    r = w.execute_command("pwd; cat <<'E'\na 'b' \"c\" $d\nE", cwd="/tmp")
    equal((r.exit_code, r.stdout), (0, "/tmp\na 'b' \"c\" $d\n"))
    equal(w.execute_command("cd /nowhere", cwd="/nowhere").exit_code, -1)
    r = w.execute_command("head -c 3000000 /dev/zero | tr '\\0' x; printf 'ä%.0s' $(seq 700000) >&2", timeout=60)
    equal((r.exit_code, len(r.stdout), r.stderr == "ä" * 700000), (0, 3000000, True))
    r = w.execute_command("echo first; sleep 600", timeout=1.9)  # one second for the server
    equal(r.exit_code, -1)
    id = w.start_command("echo begun; sleep 600", timeout=500)
    w.stop_command(id)
    while not (w.get_command_output(id) or {}).get("exit_code"):
        pass
    equal(w.get_command_output(id)["exit_code"], -15)
    w.stop_command(id)
    w.stop_command("00000000-0000-4000-8000-000000000000")
    # files
    path = os.path.join(local, "file")
    with open(path, "wb") as f:
        f.write(bytes(range(256)) * 5000)
    there = s.work_dir + "/new/dir/päth & more"
    r = w.file_upload(path, there)
    equal((r.success, r.file_size), (True, 256 * 5000), r)
    r = w.file_download(there, path + "2")
    equal((r.success, open(path + "2", "rb").read() == open(path, "rb").read()), (True, True), r)
    equal(w.file_download(s.work_dir + "/none", path).success, False)
    equal(w.file_upload(b"bytes", s.work_dir + "/bytes").success, True)
    # git
    equal(w.git_changes("."), [])
    subprocess.run("git init -q . && git add bytes && git -c user.name=a -c user.email=a@b commit -qm a && "
                   "echo more >>bytes && chown -R --reference=. .", shell=True, cwd=s.work_dir, check=True)
    equal([c.status.value for c in w.git_changes(".") if str(c.path) == "bytes"], ["UPDATED"])
    d = w.git_diff("bytes")
    equal((d.modified, d.original), ("bytesmore", "bytes"), d)
    print(w.get_server_info())


def main():
    if RemoteWorkspace is None:
        skip_all("needs the package openhands-sdk: see the beginning of this file")
    with Server(env={"SESSION_API_KEY": KEY}, settings={"openhands_v1": True}) as s, \
            tempfile.TemporaryDirectory() as local:
        w = RemoteWorkspace(host="http://127.0.0.1:%d" % s.port, api_key=KEY, working_dir=s.work_dir)
        if len(sys.argv) > 1:
            record(w.client, sys.argv[1])
        try:
            work(s, w, local)
        finally:
            w.reset_client()
    return 0


if __name__ == "__main__":
    sys.exit(main())
