#!/usr/bin/env python3
"""The RemoteSandboxService of OpenHands' app server (openhands-ai), unmodified, against a fleet: started by
openhands_v1.py, with the Python that has its package. URL and KEY are the fleet's, IMAGE the one with an agent server,
MODEL the address of a scripted model. VARIABLE has the port of a program: WORKER_1, or APP_PORT_1 where containers
share the machine's network."""

import asyncio
import logging
import os
import sys

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OPENHANDS_SUPPRESS_BANNER="1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.tap import equal  # noqa: E402

import httpx  # noqa: E402
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine  # noqa: E402
import openhands.tools.terminal  # noqa: E402,F401
from openhands.app_server.sandbox.preset_sandbox_spec_service import PresetSandboxSpecService  # noqa: E402
from openhands.app_server.sandbox.remote_sandbox_service import RemoteSandboxService  # noqa: E402
from openhands.app_server.sandbox.remote_sandbox_spec_service import get_default_sandbox_specs  # noqa: E402
from openhands.app_server.sandbox.sandbox_models import (  # noqa: E402
    AGENT_SERVER, VSCODE, WORKER_1, WORKER_2, SandboxStatus)
from openhands.app_server.user.specifiy_user_context import SpecifyUserContext  # noqa: E402
from openhands.app_server.utils.sql_utils import Base  # noqa: E402
from openhands.sdk import LLM, Agent, Conversation, Tool, Workspace  # noqa: E402
from openhands.sdk.event import ObservationEvent  # noqa: E402
from fleet_v1_sdk import name_server  # noqa: E402

# by the image's Python, since its base need have none on PATH
SERVE = ("nohup /openhands/agent-server/bin/python -u -m http.server $%s >served 2>&1 & "
         "until grep -q Serving served || ! kill -0 $!; do :; done; echo $%s")


async def running(service, client, id):
    """As the app server waits: for the status, then for /alive of the agent server."""
    info = await service.wait_for_sandbox_running(id, httpx_client=client)
    equal(info.status, SandboxStatus.RUNNING)
    urls = {u.name: u.url for u in info.exposed_urls}
    equal(sorted(urls), sorted([AGENT_SERVER, VSCODE, WORKER_1, WORKER_2]))
    return info, urls


async def run(client, info, urls, command):
    r = await client.post(urls[AGENT_SERVER] + "/api/bash/execute_bash_command", json={"command": command},
                          headers={"X-Session-API-Key": info.session_api_key})
    equal((r.status_code, r.json().get("exit_code")), (200, 0), r.text)
    return r.json()["stdout"].split()


def converse(url, key, model):
    """By the SDK of the app server's version, which need not be the version of the agent server."""
    agent = Agent(llm=LLM(model="openai/m", base_url=model, api_key="x", usage_id="agent"),
                  tools=[Tool(name="terminal")])
    seen = []
    c = Conversation(agent=agent, workspace=Workspace(host=url, api_key=key, working_dir="/workspace/project"),
                     visualizer=None, callbacks=[seen.append])
    c.send_message("go")
    c.run()
    equal(c.state.execution_status.value, "finished")
    c.close()
    said = [e.observation.text for e in seen if isinstance(e, ObservationEvent)]
    equal(said[0].split()[:2], ["10001", "/workspace/project"], said)


async def work(service, client, model, variable):
    info = await service.start_sandbox()
    id = info.id
    info, urls = await running(service, client, id)
    key = info.session_api_key
    equal(await run(client, info, urls, "id -u; id -g; echo kept >file; stat -c %u:%g . file"),
          ["10001", "10001", "10001:10001", "10001:10001"])
    equal((await service.get_sandbox_by_session_api_key(key)).id, id)
    equal([s.status for s in await service.batch_get_sandboxes([id])], [SandboxStatus.RUNNING])
    equal([s.id for s in (await service.search_sandboxes()).items], [id])
    port = await run(client, info, urls, SERVE % (variable, variable))
    answer = await client.get(urls[WORKER_1].rstrip("/") + "/served")
    equal((answer.status_code, "port " + port[0] in answer.text), (200, True), answer.text)
    await asyncio.to_thread(converse, urls[AGENT_SERVER], key, model)
    equal(await run(client, info, urls, "cat /workspace/project/made.txt"), ["42"])
    equal(await service.pause_sandbox(id), True)
    while (await service.get_sandbox(id)).status != SandboxStatus.PAUSED:
        await asyncio.sleep(0.2)
    equal(await service.get_sandbox_by_session_api_key(key), None)
    equal(await service.resume_sandbox(id), True)
    info, urls = await running(service, client, id)
    equal((await service.get_sandbox_by_session_api_key(info.session_api_key)).id, id)
    equal(await run(client, info, urls, "cat file"), ["kept"])
    equal(await service.delete_sandbox(id), True)
    equal(await service.get_sandbox(id), None)
    return port[0]


async def main(url, key, image, model, variable):
    specs = [s.model_copy(update={"id": image}) for s in get_default_sandbox_specs()]
    engine = create_async_engine("sqlite+aiosqlite://")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with httpx.AsyncClient(timeout=60) as client, AsyncSession(engine, expire_on_commit=False) as session:
        service = RemoteSandboxService(
            sandbox_spec_service=PresetSandboxSpecService(specs), api_url=url, api_key=key, web_url=None,
            resource_factor=1, runtime_class=None, start_sandbox_timeout=120, max_num_sandboxes=10,
            user_context=SpecifyUserContext("a-user"), httpx_client=client, db_session=session)
        port = await work(service, client, model, variable)
    await engine.dispose()
    print("a program answered at port %s" % port)


if __name__ == "__main__":
    logging.disable(logging.INFO)  # the database's statements
    name_server()
    asyncio.run(main(*sys.argv[1:]))
