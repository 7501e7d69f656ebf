#!/usr/bin/env python3
"""The tools of "handrail mcp" for branches of a box: their list, calls that name a branch, and what is refused.
As root each case is done twice, by root and by another account."""

import json
import os
import re
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.hostbox import below, run  # noqa: E402
from lib.tap import equal  # noqa: E402

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """A client of "handrail mcp" with these arguments; it asks one thing after another."""

    def __init__(self, h, *argv):
        self.p = h.popen("mcp", *argv, stdin=subprocess.PIPE)
        self.n = 0

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.p.returncode is None:
            self.p.kill()
            self.p.communicate()

    def send(self, method, **params):
        self.n += 1
        self.p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}) + "\n")
        self.p.stdin.flush()

    def ask(self, method, **params):
        """The result; after the end of the command, its status and errors are shown."""
        self.send(method, **params)
        return self.answer()

    def answer(self):
        line = self.p.stdout.readline()
        equal(line != "", True, line or self.p.communicate())
        answer = json.loads(line)
        equal((answer["id"], answer["jsonrpc"], set(answer) - {"id", "jsonrpc"}), (self.n, "2.0", {"result"}), answer)
        return answer["result"]

    def call(self, name, /, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)

    def run(self, command, **more):
        answer = self.call("run", command=command, **more)
        equal(answer["isError"], False, answer)
        return answer["structuredContent"]["output"]

    def refused(self, words, name, /, **arguments):
        answer = self.call(name, **arguments)
        equal((answer["isError"], words in answer["content"][0]["text"]), (True, True), answer)

    def leave(self):
        out, err = self.p.communicate(None, PATIENCE)
        equal((self.p.returncode, out, err), (0, "", ""))


def schemas(client, **more):
    return {t["name"]: t["inputSchema"] for t in client.ask("tools/list", **more)["tools"]}


def two_ways(h):
    """An agent tries two ways from one state, and ends the worse one."""
    with Client(h, "-q", "--up", "-n", "one", "--end") as c:
        tools = schemas(c)
        equal({name for name, s in tools.items() if "sandbox" not in s["properties"]}, set())
        equal((tools["fork"]["required"], tools["end_branch"]["required"], tools["run"]["required"]),
              (["name"], ["sandbox"], ["command"]))
        with open(os.path.join(SRC, "doc/agents.md"), encoding="utf-8") as f:
            rows = re.findall(r"(?m)^\| `(fork|end_branch)` \|([^|]*)\|", f.read())
        equal({name: sorted(args.strip().split(", ")) for name, args in rows},
              {name: sorted(tools[name]["properties"]) for name in ("fork", "end_branch")})
        c.run("cd /workspace; echo first >file; GOAL=fast")
        c.call("run", command="cd /usr; LEVEL=9", session="build")
        answer = c.call("fork", name="way", count=2)
        text, kept = answer["content"][0]["text"], answer["structuredContent"]
        equal((answer["isError"], kept["sandbox"], kept["branches"], sorted(kept["sessions"])),
              (False, "one", ["way-1", "way-2"], ["build", "default"]))
        for words in ("branches way-1, way-2.", "Pass a name as sandbox", "handrail sh -n way-1", "Not copied:",
                      "- connections, open descriptors"):
            equal(words in text, True, text)
        equal(c.run("pwd; echo $GOAL; echo second >>file; cat file", sandbox="way-1"),
              "/workspace\nfast\nfirst\nsecond")
        equal(c.run("pwd; echo $LEVEL", sandbox="way-2", session="build"), "/usr\n9")
        c.call("write", path="/workspace/file", content="third\n", sandbox="way-2")
        equal((c.run("cat file"), c.run("cat file", sandbox="one"), c.run("cat file", sandbox="way-2")),
              ("first", "first", "third"))
        handle = c.call("run", command="sleep 1; echo $GOAL", wait_s=0, sandbox="way-2")["structuredContent"]["handle"]
        equal(c.call("wait", handle=handle, wait_s=60, sandbox="way-2")["structuredContent"]["output"], "fast\n")
        # a branch can be forked, and the shell command of the answer works
        equal(c.call("fork", name="deep", sandbox="way-1")["structuredContent"]["branches"], ["deep"])
        equal(h.ok("run", "-n", "deep", "cat file; echo $GOAL"), "first\nsecond\nfast\n")
        boxes = [h.box(name) for name in ("one", "way-1", "way-2", "deep")]
        equal(c.call("end_branch", sandbox="way-2")["content"][0]["text"], "The branch way-2 has ended.")
        c.refused("fork has started: way-1, deep.", "run", command="true", sandbox="way-2")
        # requests of the newer revision get its form, from this process and from the sandbox
        for arguments in ({"name": "x", "count": 0}, {"name": "deep"}):
            answer = c.ask("tools/call", name="fork", arguments=arguments, _meta=MODERN)
            equal((answer["resultType"], answer["isError"]), ("complete", True), answer)
        equal("fork" in schemas(c, _meta=MODERN), True)
        answer = c.ask("tools/call", name="run", arguments={"command": "pwd", "sandbox": "deep"}, _meta=MODERN)
        equal((answer["resultType"], answer["structuredContent"]["output"]), ("complete", "/workspace"))
        c.leave()
        equal(h.left(*boxes), [], "--end ends the branches, too")
    equal([n for n in os.listdir(h.path("state")) if n != "secrets"], [])


def refused(h):
    """What fork cannot do, and what it does not let a client reach."""
    h.ok("up", "-q", "other")
    with Client(h, "-q", "--up", "-n", "one") as c:
        c.refused("name is missing", "fork")
        c.refused("invalid sandbox name", "fork", name="../x")
        c.refused('there is a sandbox "other"', "fork", name="other")
        for count in (0, -1, 17, "2", 1.5, True):
            c.refused("count must be an integer from 1 to 16", "fork", name="x", count=count)
        c.refused("freeze must be true or false", "fork", name="x", freeze="yes")
        c.refused("there is none now", "run", command="true", sandbox="other")
        c.refused("there is none now", "run", command="true", sandbox=5)
        c.refused("there is none now", "fork", name="x", sandbox="other")
        c.refused("there is none now", "end_branch", sandbox="other")
        c.refused("sandbox is missing", "end_branch")
        c.refused("only branches", "end_branch", sandbox="one")
        handle = c.call("run", command="cat >/dev/null", wait_s=0)["structuredContent"]["handle"]
        c.refused("a command runs in the session", "fork", name="x")
        answer = c.call("fork", name="x", freeze=True)
        equal((answer["isError"], "shells of sessions that run a command" in answer["content"][0]["text"]),
              (False, True), answer)
        c.call("interrupt", handle=handle)
        c.refused("There can be 16 branches", "fork", name="y", count=16)
        c.leave()
    equal(h.ok("run", "-n", "x", "echo there"), "there\n", "branches stay without --end")
    with Client(h, "-q", "-n", "one") as c:  # another client's branches are not this one's
        c.refused("there is none now", "run", command="true", sandbox="x")
        c.leave()
    h.ok("down", "-q", "one", "other", "x")


def killed(h):
    """A killed fork is an error with its cause, and the next one is made."""
    with Client(h, "-q", "--up", "-n", "one", "--end") as c:
        c.send("tools/call", name="fork", arguments={"name": "x"})
        pid = below(c.p, "handrail fork", lambda: not select.select([c.p.stdout], [], [], 0)[0])
        equal(pid is not None, True, "the fork is seen")
        os.kill(pid, signal.SIGKILL)
        answer = c.answer()
        equal((answer["isError"], "handrail fork: signal 9" in answer["content"][0]["text"]), (True, True), answer)
        equal(c.call("fork", name="x")["isError"], False)
        equal(c.run("echo on", sandbox="x"), "on")
        c.leave()


def unreachable(h):
    """If a branch cannot be reached after the fork, all branches of that fork end."""
    with Client(h, "-q", "--up", "-n", "one", "--end") as c:
        c.send("tools/call", name="fork", arguments={"name": "x", "count": 2})
        pid = below(c.p, "handrail fork", lambda: not select.select([c.p.stdout], [], [], 0)[0])
        equal(pid is not None, True, "the fork is seen")
        c.p.send_signal(signal.SIGSTOP)
        equal(process.wait_gone(pid, PATIENCE), True)
        boxes = [h.box(name) for name in ("x-1", "x-2")]
        h.file(json.dumps(dict(h.record("x-2"), begun=True)), "state", "x-2.json")
        c.p.send_signal(signal.SIGCONT)
        answer = c.answer()
        equal((answer["isError"], "all were ended" in answer["content"][0]["text"]), (True, True), answer)
        equal((h.left(*boxes), h.ok("ps", "-q")), ([], "one\n"))
        c.refused("there is none now", "run", command="true", sandbox="x-1")
        equal(c.call("fork", name="x", count=2)["isError"], False)
        c.leave()


def no_box(h):
    """Other back-ends do not offer what they cannot do."""
    if h.change:
        return  # the back-end local needs an account with a name
    h.env["RUNTIME"] = "local"
    with Client(h, "-q", "--up", "-n", "one", "-p", "none", "--end") as c:
        tools = schemas(c)
        equal(("run" in tools, "fork" in tools, "end_branch" in tools, "sandbox" in tools["run"]["properties"]),
              (True, False, False, False))
        c.refused('There is no argument "sandbox"', "run", command="true", sandbox="one")
        c.leave()


if __name__ == "__main__":
    sys.exit(run([two_ways, refused, killed, unreachable, no_box]))
