#!/usr/bin/env python3
"""The MCP proxy with servers and a client that others wrote: those of the npm registry. Where they are
is said by HANDRAIL_TEST_NODE_MODULES; nothing is installed here."""

import json
import os
import select
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import BUILDDIR, PATIENCE, SRCDIR, Server, kill_wait, run_tests  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

CLIENT = os.path.join(SRCDIR, "t", "e2e", "mcp_client.js")
MODULES = os.environ.get("HANDRAIL_TEST_NODE_MODULES", "")
PACKAGES = ("sdk", "server-everything", "server-filesystem", "server-memory")
HOW = ("no MCP packages: npm install %s; then set HANDRAIL_TEST_NODE_MODULES to that node_modules"
       % " ".join("@modelcontextprotocol/" + p for p in PACKAGES))
KEY = "k1"
OK = {"detail": "MCP server updated successfully", "router_error_log": ""}


def server(package, *args, name=None, **more):
    top = os.path.join(MODULES, "@modelcontextprotocol", "server-" + package)
    return dict({"name": name or package, "command": "node",
                 "args": [os.path.join(top, "dist", "index.js"), *args], "env": {}}, **more)


class Mcp(Server):
    def __init__(self):
        super().__init__(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"])

    def update(self, *servers):
        a = self.request("POST", "/update_mcp_server", json.dumps(servers),
                         {"Content-Type": "application/json", "X-Session-API-Key": KEY}, 2 * PATIENCE)
        equal((a.status, a.json()), (200, OK))

    def children(self):
        """Of the proxy, by the word that names their package."""
        found = {}
        for parent in process.children(self.pid):
            if process.command_line(parent).endswith("handrail-mcp"):
                for pid in process.children(parent):
                    words = process.command_line(pid)
                    found.update({p: pid for p in PACKAGES if p in words})
        return found


class Client:
    """One of the SDK, as a process that is told what to do."""

    def __init__(self, s, kind, key=KEY):
        self.popen = subprocess.Popen(
            ["node", CLIENT, MODULES, kind, "http://127.0.0.1:%d/mcp/%s" % (s.port, kind), key],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, what, **more):
        self.popen.stdin.write(json.dumps(dict({"do": what}, **more)).encode() + b"\n")
        self.popen.stdin.flush()

    def hear(self):
        if not select.select([self.popen.stdout], [], [], 2 * PATIENCE)[0]:
            raise AssertionError("the client says nothing")
        return json.loads(self.popen.stdout.readline())

    def ask(self, what, **more):
        self.say(what, **more)
        answer = self.hear()
        if "ok" not in answer:
            raise AssertionError("%s: %r" % (what, answer))
        return answer["ok"]

    def text(self, name, **args):
        r = self.ask("call", name=name, args=args)
        return r["content"][0]["text"], r.get("isError", False)

    def names(self):
        return sorted(t["name"] for t in self.ask("tools"))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.popen.stdin.close()
        try:
            self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()


def one_server(kind):
    with Mcp() as s:
        s.update(server("everything"))
        with Client(s, kind) as c:
            who = c.ask("connect")
            equal(who["server"]["name"][:12], "handrail-mcp")
            names = c.names()
            equal({"echo"} <= set(names), True, names)
            equal(c.text("echo", message="hi"), ("Echo: hi", False))
            tools = {t["name"]: t for t in c.ask("tools")}
            equal(tools["echo"]["inputSchema"]["properties"]["message"]["type"], "string")
            # a mistake of the caller, and no such tool: results, not errors
            equal(c.ask("call", name="echo", args={}).get("isError"), True)
            equal(c.ask("call", name="nope").get("isError"), True)
            prompts = [p["name"] for p in c.ask("prompts")]
            equal(len(prompts) > 0, True)
            resources = c.ask("resources")
            equal(len(resources) > 0, True)
            uri = resources[0]["uri"]
            equal(c.ask("read", uri=uri)["contents"][0]["uri"], uri)
            c.ask("close")


def two_servers(kind):
    with Mcp() as s:
        with open(os.path.join(s.work_dir, "a.txt"), "w") as f:
            f.write("first line\n")
        s.update(server("filesystem", s.work_dir, name="files"), server("memory", name="memory"))
        with Client(s, kind) as c:
            c.ask("connect")
            names = c.names()
            equal({n.split("_")[0] for n in names}, {"files", "memory"}, names)
            text, error = c.text("files_list_directory", path=s.work_dir)
            equal(("[FILE] a.txt" in text, error), (True, False), text)
            equal(c.text("files_read_text_file", path=os.path.join(s.work_dir, "a.txt"))[0],
                  "first line\n")
            text, error = c.text("files_read_text_file", path="/etc/passwd")
            equal(("Access denied" in text, error), (True, True), text)
            r = c.ask("call", name="memory_create_entities", args={"entities": [
                {"name": "x", "entityType": "t", "observations": ["seen"]}]})
            equal(r.get("isError", False), False, r)
            equal("seen" in json.dumps(c.ask("call", name="memory_read_graph")), True)


def dies_and_comes_back(kind):
    with Mcp() as s:
        s.update(server("everything"), server("filesystem", s.work_dir, name="files"))
        with Client(s, kind) as c:
            c.ask("connect")
            names = c.names()
            first = s.children()
            kill_wait(first["server-everything"])
            equal(c.text("everything_echo", message="again"), ("Echo: again", False))
            again = s.children()
            equal(again["server-everything"] != first["server-everything"], True)
            equal(again["server-filesystem"], first["server-filesystem"], "the other goes on")
            equal(c.names(), names)
            # under a call: the call fails with words, the next one is answered
            c.say("call", name=long_tool(names), args={"duration": 60, "steps": 600}, progress=True)
            equal(c.hear(), {"began": True})
            kill_wait(again["server-everything"])
            answer = c.hear()
            equal(list(answer), ["ok"], answer)
            answer = answer["ok"]["result"]
            equal((answer["isError"], "is not available: it ended (signal 9 (Killed))"
                   in answer["content"][0]["text"]), (True, True), answer)
            equal(c.text("everything_echo", message="still"), ("Echo: still", False))


def long_tool(names):
    (name,) = [n for n in names if "ong" in n and "unning" in n]
    return name


def progress_and_cancel(kind):
    with Mcp() as s:
        s.update(server("everything"))
        with Client(s, kind) as c:
            c.ask("connect")
            name = long_tool(c.names())
            c.say("call", name=name, args={"duration": 0.2, "steps": 4}, progress=True)
            equal(c.hear(), {"began": True})
            r = c.hear()["ok"]
            # this client takes a result before a notification that came in the same piece
            equal(r["progress"] in ([1, 2, 3], [1, 2, 3, 4]), True, r)
            equal(r["result"].get("isError", False), False, r)
            r = c.ask("cancel", name=name, args={"duration": 60, "steps": 600})
            equal("enough" in r.get("cancelled", ""), True, r)
            equal(c.text("echo", message="after"), ("Echo: after", False))


def an_update(kind):
    with Mcp() as s:
        s.update(server("everything"))
        with Client(s, kind) as c:
            c.ask("connect")
            before = c.names()
            pid = s.children()["server-everything"]
            s.update(server("everything"), server("memory", name="memory"))
            equal(c.ask("changed"), True)
            names = c.names()
            equal({"everything_" + n for n in before} <= set(names), True, names)
            equal(s.children()["server-everything"], pid, "what has not changed goes on")
            s.update(server("memory", name="memory"))
            equal(process.wait_gone(pid, PATIENCE), True, "what was removed ends")
            equal("read_graph" in c.names(), True, "one again: no prefix")


def wrong_keys(kind):
    with Mcp() as s:
        s.update(server("everything"))
        with Client(s, kind, "k2") as c:
            c.say("connect")
            equal("error" in c.hear(), True)


def main():
    if not os.access(os.path.join(BUILDDIR, "handrail-mcp"), os.X_OK):
        skip_all("handrail-mcp is not built")
    if shutil.which("node") is None or not MODULES:
        skip_all(HOW)
    for package in PACKAGES:
        if not os.path.isdir(os.path.join(MODULES, "@modelcontextprotocol", package)):
            skip_all(HOW)

    def with_kind(test, kind):
        def run():
            test(kind)
        run.__name__ = "%s_%s" % (test.__name__, kind)
        return run
    return run_tests([with_kind(test, kind) for kind in ("sse", "shttp") for test in (
        one_server, two_servers, dies_and_comes_back, progress_and_cancel, an_update, wrong_keys)])


if __name__ == "__main__":
    sys.exit(main())
