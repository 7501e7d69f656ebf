"""A sandbox provider of Inspect AI (PyPI "inspect_ai"): sandbox="handrail", or ("handrail", FILE) with a TOML file of
handrail(1), whose core.runtime is the kind."""

from functools import partial

import anyio.to_thread
from inspect_ai.util import (ExecResult, OutputLimitExceededError, SandboxConnection, SandboxEnvironment,
                             SandboxEnvironmentLimits, sandboxenv)

from .client import Sandbox, handrail


async def apart(call, *args, **more):
    return await anyio.to_thread.run_sync(partial(call, *args, **more))


def limited(text, most, said):
    if len(text.encode()) > most:
        raise OutputLimitExceededError(said, text[:most])
    return text


@sandboxenv(name="handrail")
class HandrailSandboxEnvironment(SandboxEnvironment):
    def __init__(self, box):
        super().__init__()
        self.box = box

    @classmethod
    def config_files(cls):
        return ["handrail.toml"]

    @classmethod
    async def sample_init(cls, task_name, config, metadata):
        more = ["-c", config] if isinstance(config, str) else []
        return {"default": cls(await apart(Sandbox.up, options=more))}

    @classmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted):
        for one in environments.values():
            await apart(one.as_type(cls).box.down)

    @classmethod
    async def cli_cleanup(cls, id):
        if id is not None:
            await apart(handrail, "down", "-q", id)

    async def connection(self, *, user=None):
        return SandboxConnection(type="handrail", command="handrail sh -n " + self.box.name)

    async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, timeout_retry=True,
                   concurrency=True):
        done = await apart(self.box.execute, cmd, input, cwd, env, user, timeout)
        most, said = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE, SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
        return ExecResult(done.exit_code == 0, done.exit_code, limited(done.stdout, most, said),
                          limited(done.stderr, most, said))

    async def write_file(self, file, contents):
        await apart(self.box.write, file, contents)

    async def read_file(self, file, text=True):
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        data = await apart(self.box.read, file, most)
        if len(data) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return data.decode() if text else data
