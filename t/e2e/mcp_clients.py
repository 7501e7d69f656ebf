#!/usr/bin/env python3
"""The clients of the MCP project against a sandbox of ours, over HTTP and by `handrail mcp`; by hand, in the build
directory:

    python3.12 -m venv V && V/bin/pip install mcp        from 2.3 on, which speaks 2026-07-28 and 2025-11-25
    npm install @modelcontextprotocol/sdk
    V/bin/python ../t/e2e/mcp_clients.py NODE_MODULES"""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import BUILD, Host  # noqa: E402
from lib.supervised import SRCDIR, Server  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

KEY = "a-key-that-nobody-guesses"
WORDS = [os.path.join(BUILD, "handrail"), "mcp", "--up", "--end", "-n"]


async def talk(call, directory):
    """call(name, arguments): (is_error, text, structured content, progress messages)"""
    async def good(name, **arguments):
        error, text, more, messages = await call(name, arguments)
        equal(error, False, text)
        return text, more, messages
    await good("run", command="cd /usr; A=1", key="first")
    text, more, _ = await good("run", command="echo $A; pwd; false", key="second")
    equal(("1\n/usr" in text, more["exit_code"]), (True, 1), text)
    equal((await good("run", command="echo $A; pwd; false", key="second"))[0], text, "the same answer")
    _, _, messages = await good("run", command="for i in 1 2 3; do echo $i; sleep 1; done")
    equal(messages > 0, True, "progress")
    _, more, _ = await good("run", command="echo a; sleep 2; echo b", wait_s=1)
    text, more, _ = await good("wait", handle=more["handle"], wait_s=30)
    equal(("b" in text, more["exit_code"]), (True, 0), text)
    path = os.path.join(directory, "f")
    await good("write", path=path, content="one\ntwo\n")
    await good("edit", path=path, old="two", new="three")
    equal("three" in (await good("read", path=path))[0], True)
    equal("three" in (await good("grep", path=directory, pattern="^th"))[0], True)
    equal((await call("read", {"path": "/nowhere"}))[0], True)
    await good("run", command="sleep 600", wait_s=0)
    error, text, _, _ = await call("run", {"command": "echo twice"})
    equal((error, "Not started" in text), (True, True), text)
    handle = re.search(r"[0-9a-f-]+@default", text)[0]
    await good("interrupt", handle=handle)
    equal((await good("wait", handle=handle))[1]["exit_code"], 130)


async def python(directory, mode, to):
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(to, list):
            server = StdioServerParameters(command=to[0], args=to[1:], env=dict(os.environ))
        else:
            http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + KEY}, timeout=60)
            server = streamable_http_client(to, http_client=await stack.enter_async_context(http))
        client = await stack.enter_async_context(Client(server, mode=mode))

        async def call(name, arguments):
            messages = []

            async def progress(at, total, message):
                messages.append(message)
            r = await client.call_tool(name, arguments, progress_callback=progress)
            return bool(r.is_error), r.content[0].text, r.structured_content, len(messages)
        equal("run" in [t.name for t in (await client.list_tools()).tools], True)
        await talk(call, directory)
        print("ok - Python, revision %s, %s" % (client.protocol_version, "stdio" if isinstance(to, list) else "HTTP"))


async def typescript(directory, modules, to):
    words = ["stdio", *to] if isinstance(to, list) else ["shttp", to, KEY]
    program = os.path.join(SRCDIR, "t", "e2e", "mcp_client.js")
    with subprocess.Popen(["node", program, modules, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        def ask(what, **more):
            p.stdin.write(json.dumps(dict(more, do=what)).encode() + b"\n")
            p.stdin.flush()
            said = json.loads(p.stdout.readline())
            while "began" in said:
                said = json.loads(p.stdout.readline())
            return said["ok"]

        async def call(name, arguments):
            said = ask("call", name=name, args=arguments, progress=True)
            r = said["result"]
            return (r.get("isError", False), r["content"][0]["text"], r.get("structuredContent"),
                    len(said["progress"]))
        ask("connect")
        equal("run" in [t["name"] for t in ask("tools")], True)
        await talk(call, directory)
        ask("close")
    print("ok - TypeScript, %s" % ("stdio" if isinstance(to, list) else "HTTP"))


def main():
    try:
        import httpx2, mcp  # noqa: E401, F401
    except ImportError as e:
        skip_all("%s: see the head of this file" % e)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    modules = os.path.abspath(sys.argv[1])
    for how in ([python, "auto"], [python, "legacy"], [typescript, modules]):
        with Server(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"]) as s, Host() as h:
            os.environ.update(h.env)
            asyncio.run(how[0](s.work_dir, how[1], "http://127.0.0.1:%d/handrail/mcp" % s.port))
            asyncio.run(how[0](h.path("cwd"), how[1], [*WORDS, "default"]))
            equal(h.ok("ps", "--json").strip(), "[]", "it is ended with the client")
            s.stop()


if __name__ == "__main__":
    main()
