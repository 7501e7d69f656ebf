#!/usr/bin/env python3
"""Claude Code and Codex with the lines of doc/agents.md, "What to paste", word for word. They need no key for a model:
both connect to an MCP server and report it. By hand, in the build directory:

    npm install @anthropic-ai/claude-code @openai/codex
    PATH=$PWD/node_modules/.bin:$PATH ../t/e2e/mcp_agents.py"""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.supervised import Server  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402

KEY = "a-key-that-nobody-guesses"
TOOLS = {"run", "wait", "read", "write", "edit", "grep"}
with open(os.path.join(SRC, "doc", "agents.md")) as doc:
    PASTE = doc.read().split("\n## What to paste\n")[1].split("\n## ")[0]


def block(start):
    """The first indented block after the paragraph that begins with these words."""
    after = PASTE.split("\n" + start, 1)[1]
    return re.sub(r"^    ", "", re.search(r"(?:^    .*\n)+", after, re.M)[0], flags=re.M)


def row(client):
    """The cell of the table that says how this client connects over HTTP."""
    return re.search(r"^\| (?:[^|]*, )?%s\b[^|]*\| (.*) \|$" % client, PASTE, re.M)[1]


class Client(Host):
    def __init__(self):
        super().__init__(RUNTIME="local", MCP_TIMEOUT=str(int(PATIENCE * 1000)))
        self.env["PATH"] = BUILD + ":" + self.env["PATH"]

    def shell(self, command):
        done = subprocess.run(["sh", "-c", command], env=self.env, cwd=self.path("cwd"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                              timeout=2 * PATIENCE)
        equal(done.returncode, 0, done.stdout)
        return done.stdout

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w") as f:
            f.write(text)

    def project(self, text):
        """Writes .mcp.json, and approves its servers, as a person does who starts `claude` there."""
        self.write(text, "cwd", ".mcp.json")
        equal("Pending approval" in self.shell("claude mcp list"), True, "not before a person has approved it")
        with open(self.path("home", ".claude.json")) as f:
            kept = json.load(f)
        approved = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["sandbox"]}
        kept.setdefault("projects", {}).setdefault(self.path("cwd"), {}).update(approved)
        self.write(json.dumps(kept), "home", ".claude.json")

    def codex_tools(self, config):
        """The tools that Codex finds at the server `sandbox`, by its own interface for editors."""
        self.write(config, "home", ".codex", "config.toml")
        with subprocess.Popen(["codex", "app-server"], env=self.env, cwd=self.path("cwd"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True) as p:
            try:
                for n, method, params in ((1, "initialize", {"clientInfo": {"name": "test", "version": "1"}}),
                                          (None, "initialized", {}), (2, "mcpServerStatus/list", {})):
                    p.stdin.write(json.dumps({"id": n, "method": method, "params": params} if n is not None else
                                             {"method": method}) + "\n")
                    p.stdin.flush()
                    said = next((d for d in map(json.loads, p.stdout) if d.get("id") == n), None) if n else None
            finally:
                p.kill()
        equal([s["name"] for s in said["result"]["data"]], ["sandbox"], said)
        return set(said["result"]["data"][0]["tools"])


def connected(said):
    equal(re.search(r"^sandbox: .*✔ Connected$", said, re.M) is not None, True, said)


def claude_add(h):
    command = re.search(r"`(claude mcp add [^`]*)`", PASTE)[1]
    h.shell(command)
    connected(h.shell("claude mcp list"))
    equal([s["sid"] for s in json.loads(h.ok("ps", "--json"))], ["default"], "it started the sandbox, which stays")


def claude_project(h):
    h.project(block("Claude Code: "))
    connected(h.shell("claude mcp list"))


def claude_printed(h):
    h.project(h.ok("mcp", "--print-config", "claude", "-n", "other"))
    connected(h.shell("claude mcp list"))
    equal([s["sid"] for s in json.loads(h.ok("ps", "--json"))], ["other"])


def claude_http(h, url):
    cell = row("Claude Code").strip("`").replace("ADDRESS", url).replace("KEY", KEY)
    h.project('{"mcpServers": {"sandbox": {%s}}}' % cell)
    connected(h.shell("claude mcp list"))


def passed_on(h):
    names = [name for name in h.env if name.startswith(("HANDRAIL_", "XDG_")) or name in ("RUNTIME", "CACHE_DIR")]
    return "env_vars = %s\n" % json.dumps(names)


def codex_pasted(h):
    equal(TOOLS - h.codex_tools(block("Codex: ") + passed_on(h)), set())


def codex_printed(h):
    equal(TOOLS - h.codex_tools(h.ok("mcp", "--print-config", "codex", "-n", "other") + passed_on(h)), set())
    equal([s["sid"] for s in json.loads(h.ok("ps", "--json"))], ["other"])


def codex_add(h):
    h.shell(re.search(r"`(codex mcp add [^`]*)`", PASTE)[1])
    said = json.loads(h.shell("codex mcp list --json 2>/dev/null"))
    equal([(s["name"], s["enabled"], s["transport"]["command"], s["transport"]["args"]) for s in said],
          [("sandbox", True, "handrail", ["mcp", "--up", "-n", "default"])])


def codex_http(h, url):
    h.env["KEY_OF_THE_SANDBOX"] = KEY
    lines = re.findall(r"`(\w+ = [^`]*)`", row("Codex"))
    equal(len(lines), 2, lines)
    config = "[mcp_servers.sandbox]\n" + "\n".join(lines) + "\n"
    equal(TOOLS - h.codex_tools(config.replace("ADDRESS", url).replace("VARIABLE", "KEY_OF_THE_SANDBOX")), set())


def main():
    for program in ("claude", "codex"):
        if shutil.which(program) is None:
            skip_all("%s is missing: see the head of this file" % program)
    process.become_subreaper()
    tap = Tap()

    def alone(case):
        with Client() as h:
            case(h)

    def served(case):
        with Server(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"]) as s, Client() as h:
            case(h, "http://127.0.0.1:%d/handrail/mcp" % s.port)
            s.stop()
    for how, cases in ((alone, (claude_add, claude_project, claude_printed, codex_add, codex_pasted, codex_printed)),
                       (served, (claude_http, codex_http))):
        for case in cases:
            if case.__name__ in sys.argv[1:] or len(sys.argv) == 1:
                tap.run(case.__name__, how, case)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
