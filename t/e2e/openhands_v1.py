#!/usr/bin/env python3
"""An image of "handrail image build --for openhands-v1" in the place of OpenHands V1's own: started by the SDK's
unmodified DockerWorkspace, with a conversation whose agent runs inside. By hand, since it fetches packages:

    t/real/run --get openhands_v1

BASE is a tar of Debian 13, as debootstrap makes it. The containers have this machine's network and port 8000."""

import http.server
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OPENHANDS_SUPPRESS_BANNER="1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.dockerhost import docker, find_engine  # noqa: E402
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import BUILD  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402
from fleet_v1_sdk import DOMAIN, name_server  # noqa: E402

try:
    import openhands.tools.terminal  # noqa: F401
    from openhands.sdk import LLM, Agent, Conversation, Tool
    from openhands.sdk.event import ObservationEvent
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.testing import TestLLM
    from openhands.workspace import APIRemoteWorkspace, DockerWorkspace
except ModuleNotFoundError as e:
    skip_all("needs the packages openhands-sdk, openhands-tools and openhands-workspace (%s)" % e)

KEY = "a-key-that-nobody-guesses"
BASE = "handrail-base:%d" % os.getpid()
CA = "/etc/ssl/certs/ca-certificates.crt"
PORT = 8000
LOOK = ("echo $((6*7)) > made.txt; id -u; pwd; test -e /proc/$PPID/environ && tr '\\0' '\\n' </proc/$PPID/environ | "
        "grep -c -e SESSION_API -e SECRET_KEY; grep -ls %s /proc/[0-9]*/environ /proc/[0-9]*/cmdline" % KEY)


class Model(http.server.BaseHTTPRequestHandler):
    """A model that runs one command and finishes."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        n = sum(m["role"] == "assistant" for m in asked["messages"])
        name, arguments = [("terminal", {"command": LOOK}), ("finish", {"message": "done"})][min(n, 1)]
        call = {"id": "c%d" % n, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        data = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "", "tool_calls": [
                call]}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *unused):
        pass


def ask(path, key=KEY, port=PORT):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), headers={"X-Session-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=120) as a:
            return a.status, json.load(a)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def make_base(top, tar):
    """The base, with what pip needs to trust here."""
    root = os.path.join(top, "more")
    os.makedirs(os.path.join(root, "etc"))
    shutil.copy(CA, os.path.join(root, "etc", "build-ca.crt"))
    whole = os.path.join(top, "base.tar")
    shutil.copy(tar, whole)
    subprocess.run(["tar", "-C", root, "-rf", whole, "./etc/build-ca.crt"], check=True)
    made = docker("import", "--change", "ENV PIP_CERT=/etc/build-ca.crt SSL_CERT_FILE=/etc/build-ca.crt", whole, BASE)
    equal(made.returncode, 0, made.stderr)
    os.unlink(whole)


def make_image(top):
    made = subprocess.run(["make", "-s", "kit"], cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    equal(made.returncode, 0, made.stdout)
    config = os.path.join(top, "config.toml")
    with open(config, "w") as f:
        f.write('[core]\nenable_browser = false\n[sandbox]\nruntime_extra_build_args = ["--network=host"]\n')
    env = dict(os.environ, HANDRAIL_IMAGE_KIT=os.path.join(BUILD, "kit"), HANDRAIL_LIBEXECDIR=BUILD)
    with open(os.path.join(top, "build.log"), "w") as log:
        made = subprocess.run([os.path.join(BUILD, "handrail"), "--config", config, "-r", "docker", "image", "build",
                               "-b", BASE, "--for", "openhands-v1", "--no-pull"], env=env, stdout=subprocess.PIPE,
                              stderr=log, universal_newlines=True)
    with open(os.path.join(top, "build.log")) as log:
        equal(made.returncode, 0, log.read()[-3000:])
    return made.stdout.strip()


def without_ulimit(tap, top):
    """The workspace asks for 65,536 files, which not every machine can give: then its docker leaves that out."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 65536:
        return
    tap.diag("this machine has fewer files than the SDK asks for: --ulimit is left out")
    path = os.path.join(top, "docker")
    with open(path, "w") as f:
        f.write('#!/bin/bash\nw=("$@")\nfor i in "${!w[@]}"; do\n\tif [ "${w[i]}" = --ulimit ]; then '
                'unset "w[i]" "w[i+1]"; fi\ndone\nexec %s "${w[@]}"\n' % shutil.which("docker"))
    os.chmod(path, 0o755)
    os.environ["PATH"] = top + ":" + os.environ["PATH"]


def memory(name):
    """The sum of the shares of memory of a container's processes, in MB."""
    pids = [line.split()[1] for line in docker("top", name).stdout.decode().splitlines()[1:]]
    kb = 0
    for pid in pids:
        with open("/proc/%s/smaps_rollup" % pid) as f:
            kb += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return len(pids), kb / 1024


def as_the_sdk_starts_it(tap, image):
    os.environ["OH_SESSION_API_KEYS_0"] = KEY
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    began = time.monotonic()
    with DockerWorkspace(server_image=image, host_port=PORT, network="host", detach_logs=False,
                         platform="linux/amd64") as w:
        tap.diag("healthy after %.2f s" % (time.monotonic() - began))
        equal(ask("/api/settings", key="x"), (401, {"detail": "Unauthorized"}))
        equal(ask("/server_info")[0], 200)
        r = w.execute_command("id -u; id -un; pwd; env | grep -c -e SESSION_API -e SECRET_KEY")
        equal(r.stdout.split(), ["10001", "openhands", "/workspace", "0"], r)
        equal(w.file_upload(b"bytes", "/workspace/project/bytes").success, True)
        tap.diag("%d processes, %.0f MB without the agent server" % memory(w._container_id))
        began = time.monotonic()
        equal(ask("/api/conversations/count"), (200, 0))
        tap.diag("the agent server's first answer after %.1f s" % (time.monotonic() - began))
        tap.diag("%d processes, %.0f MB with the agent server" % memory(w._container_id))
        agent = Agent(llm=LLM(model="openai/m", base_url="http://127.0.0.1:%d" % model.server_port, api_key="x",
                              usage_id="agent"), tools=[Tool(name="terminal")])
        seen = []
        c = Conversation(agent=agent, workspace=w, visualizer=None, callbacks=[seen.append])
        c.send_message("go")
        c.run()
        equal(c.state.execution_status.value, "finished")
        c.close()
        said = [e.observation.text for e in seen if isinstance(e, ObservationEvent)]
        equal(said[0].split()[:3], ["10001", "/workspace", "0"], said)
        equal("/proc/" in said[0], False, "the key is in no process's variables or arguments that the agent can read")
        equal(w.execute_command("cat made.txt; ls -d project conversations").stdout, "42\nconversations\nproject\n")
        w.pause()
        w.resume()
        equal(ask("/api/conversations/count")[0], 200)
    model.shutdown()


def as_a_runtime_api_starts_it(image):
    """By APIRemoteWorkspace's command and account; also by that for its target "source"."""
    for program, *words in (["/usr/local/bin/openhands-agent-server"],
                            ["/agent-server/.venv/bin/python", "-m", "openhands.agent_server"]):
        name = "handrail-v1-%d" % os.getpid()
        made = docker("run", "-d", "--rm", "--network", "host", "--user", "10001:10001", "--workdir", "/",
                      "--name", name, "-e", "SESSION_API_KEY=" + KEY, "--entrypoint", program, image, *words,
                      "--port", "60000")
        equal(made.returncode, 0, made.stderr)
        try:
            while True:
                try:
                    equal(ask("/health", port=60000)[0], 200)
                    break
                except urllib.error.URLError:
                    equal(docker("inspect", name).returncode, 0, "it has ended")
            equal(ask("/api/conversations/count", port=60000), (200, 0))
            equal(ask("/api/conversations/count", port=60000, key="")[0], 401)
        finally:
            docker("rm", "-f", name)


class Scripted(http.server.BaseHTTPRequestHandler):
    """The SDK's TestLLM as a service, since a conversation's model is called by the agent server, in the sandbox."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        # the server also asks for a title, without tools
        title = TestLLM.from_messages([Message(role="assistant", content=[TextContent(text="a title")])])
        llm = self.server.llm if asked.get("tools") else title
        answer = llm.completion([]).raw_response.model_dump_json().encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *unused):
        pass


def scripted_model():
    def call(n, name, **arguments):
        return Message(role="assistant", content=[], tool_calls=[MessageToolCall(
            id="c%d" % n, name=name, arguments=json.dumps(arguments), origin="completion")])

    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    model.llm = TestLLM.from_messages([call(0, "terminal", command="echo $((6*7)) > made.txt; id -u; pwd"),
                                       call(1, "finish", message="done")])
    threading.Thread(target=model.serve_forever, daemon=True).start()
    return model


def fleet(kind, options):
    env = {"DOCKER_HOST": os.environ["DOCKER_HOST"]} if kind == "docker" else {}
    return Fleet("--domain", DOMAIN, "--url-by-name", *options, kind=kind, **env)


def by_the_app_server(tap, image, python, kind, *options):
    """By the unmodified RemoteSandboxService of openhands-ai, whose packages have other versions."""
    model = scripted_model()
    with fleet(kind, options) as f:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openhands_app_server.py")
        p = subprocess.run([python, script, "http://127.0.0.1:%d" % f.port, f.key, image,
                            "http://127.0.0.1:%d" % model.server_port,
                            "WORKER_1" if kind == "box" else "APP_PORT_1"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True)
        equal(p.returncode, 0, p.stdout[-3000:])
        tap.diag(p.stdout.splitlines()[-1])
    model.shutdown()


def through_a_fleet(tap, image, kind, *options):
    """By the unmodified APIRemoteWorkspace, with a conversation whose agent runs in the sandbox."""
    model = scripted_model()
    with fleet(kind, options) as f:
        with APIRemoteWorkspace(runtime_api_url="http://127.0.0.1:%d" % f.port, runtime_api_key=f.key,
                                server_image=image, session_id="v1", working_dir="/workspace") as w:
            agent = Agent(llm=LLM(model="openai/m", base_url="http://127.0.0.1:%d" % model.server_port, api_key="x",
                                  usage_id="agent"), tools=[Tool(name="terminal")])
            seen = []
            c = Conversation(agent=agent, workspace=w, visualizer=None, callbacks=[seen.append])
            c.send_message("go")
            c.run()
            equal(c.state.execution_status.value, "finished")
            c.close()
            said = [e.observation.text for e in seen if isinstance(e, ObservationEvent)]
            equal(said[0].split()[:2], ["10001", "/workspace"], said)
            equal(w.execute_command("cat made.txt").stdout, "42\n")
            w.pause()
            w.resume()
            equal(w.execute_command("cat made.txt").stdout, "42\n")
    model.shutdown()


def files_of(image, top):
    """The image's files, which are the programs of boxes."""
    root = os.path.join(top, "root")
    os.mkdir(root)
    made = docker("create", image)
    equal(made.returncode, 0, made.stderr)
    id = made.stdout.decode().strip()
    try:
        subprocess.run("docker export %s | tar -C %s -x" % (id, root), shell=True, check=True)
    finally:
        docker("rm", id)
    return root


def main():
    if len(sys.argv) != 3 or not all(os.path.exists(path) for path in sys.argv[1:]):
        skip_all("usage: openhands_v1.py BASE PYTHON: a tar of Debian 13, and a Python with openhands-ai, which "
                 "t/real/run --get makes")
    find_engine()
    name_server()
    process.become_subreaper()
    tap, image = Tap(), os.environ.get("E2E_V1_IMAGE")
    with tempfile.TemporaryDirectory(prefix="handrail-v1-") as top:
        if image is None:
            make_base(top, sys.argv[1])
            image = make_image(top)
        tap.diag(docker("image", "ls", image).stdout.decode())
        without_ulimit(tap, top)
        tap.run("as the SDK starts it", as_the_sdk_starts_it, tap, image)
        tap.run("as a runtime API starts it", as_a_runtime_api_starts_it, image)
        containers = ("docker", "--set", "sandbox.use_host_network=true", "--set",
                      "sandbox.runtime_binding_address=127.0.0.1")
        tap.run("through a fleet of containers", through_a_fleet, tap, image, *containers)
        tap.run("by the app server, with containers", by_the_app_server, tap, image, sys.argv[2], *containers)
        boxes = ("box", "--set", "box.root=" + files_of(image, top), "--set", "box.network=host")
        tap.run("through a fleet of boxes", through_a_fleet, tap, image, *boxes)
        tap.run("by the app server, with boxes", by_the_app_server, tap, image, sys.argv[2], *boxes)
    sys.exit(tap.done())


if __name__ == "__main__":
    main()
