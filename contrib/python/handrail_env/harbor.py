"""An environment of Harbor (PyPI "harbor"): harbor run -e handrail_env:Handrail ...

--ek runtime=KIND is the kind of sandbox (docker), --ek settings='["key=value"]' are settings of handrail(1), and --ek
image=NAME a runtime image that is there already. Without one the task's image, or what its Dockerfile makes, becomes
the base of one: `handrail image build`."""

import asyncio
import json
import re
import subprocess
import threading
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities

from .client import HandrailError, Sandbox, handrail

LATE = 124  # of a command that was ended, as timeout(1) has it


def docker(*words):
    done = subprocess.run(["docker", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise HandrailError("docker %s: %s" % (words[0], done.stderr.strip()))
    return done.stdout


class Handrail(BaseEnvironment):
    def __init__(self, *args, runtime="docker", settings=(), image=None, **kwargs):
        self.runtime, self.image, self.box = runtime, image, None
        self.life = threading.Lock()  # a start that nobody waits for any more goes on
        self.settings = json.loads(settings) if isinstance(settings, str) else list(settings)
        super().__init__(*args, **kwargs)

    @staticmethod
    def type():
        return "handrail"

    @property
    def capabilities(self):
        return EnvironmentCapabilities()

    @classmethod
    def resource_capabilities(cls):
        return EnvironmentResourceCapabilities()

    @property
    def _dockerfile(self):
        return self.environment_dir / "Dockerfile"

    def _validate_definition(self):
        if self.runtime == "docker" and not (self.image or self.task_env_config.docker_image or
                                             self._dockerfile.exists()):
            raise FileNotFoundError("the task has no docker_image and no Dockerfile: %s" % self._dockerfile)

    def _settings(self, force_build):
        settings = list(self.settings)
        if self.runtime != "docker":
            return settings
        image = self.image
        if image is None:
            base, more = self.task_env_config.docker_image, []
            if self._dockerfile.exists() and (force_build or not base):
                made = docker("build", "-q", str(self.environment_dir)).strip().split(":")[-1]
                # a runtime image is found by its base's name: another Dockerfile must make another one
                base, more = "%s:%s" % (re.sub("[^a-z0-9_.-]", "-", self.environment_name.lower()), made[:12]), [
                    "--no-pull"]
                docker("tag", made, base)
            # the Engine that runs it makes it, whatever kind the user's settings name
            image = handrail("image", "build", "-q", "-r", self.runtime, "--allow-registry-port", "-b", base,
                             *more).decode().split()[-1]
        # as Docker's own default: root, unless the task names a user
        return ["sandbox.runtime_container_image=" + image, "core.run_as_openhands=false", *settings]

    def _start(self, force_build):
        with self.life:
            self.box = Sandbox.up(self.runtime, "harbor-" + re.sub(r"[^A-Za-z0-9_.-]", "-", self.session_id),
                                  self._settings(force_build), own=True)

    async def start(self, force_build):
        await asyncio.to_thread(self._start, force_build)
        if self.task_env_config.workdir:
            await asyncio.to_thread(self._made, self.task_env_config.workdir)
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    def _stop(self, delete):
        with self.life:
            box, self.box = self.box, None
            if box is not None and delete:
                box.down()

    async def stop(self, delete):
        await asyncio.to_thread(self._stop, delete)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        try:
            done = await asyncio.to_thread(
                self.box.execute, ["/bin/bash", "-c", command], None, cwd or self.task_env_config.workdir,
                self._merge_env(env), self._resolve_user(user), timeout_sec)
        except TimeoutError as e:
            return ExecResult(stdout="", stderr=str(e), return_code=LATE)
        # there is no such directory; that the sandbox itself is gone is no end of a command
        except (FileNotFoundError, NotADirectoryError, PermissionError) as e:
            return ExecResult(stdout="", stderr=str(e), return_code=1)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.exit_code)

    def _put(self, source, target):
        self.box.write(target, Path(source).read_bytes())
        self._done("/bin/chmod", "%o" % (Path(source).stat().st_mode & 0o777), "--", self.box.path(target))

    async def upload_file(self, source_path, target_path):
        await asyncio.to_thread(self._put, source_path, target_path)

    async def download_file(self, source_path, target_path):
        data = await asyncio.to_thread(self.box.read, source_path)
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(data)

    def _made(self, directory):
        self._done("/bin/mkdir", "-p", "--", directory)

    def _done(self, *words):
        done = self.box.execute(words)
        if done.exit_code != 0:
            raise HandrailError(done.stderr.strip())

    def _put_all(self, source, target):
        self._made(target)
        for each in sorted(Path(source).iterdir()):
            self.box.put(each, self.box.path(target).rstrip("/") + "/")

    async def upload_dir(self, source_dir, target_dir):
        await asyncio.to_thread(self._put_all, source_dir, target_dir)

    def _get_all(self, source, target):
        Path(target).mkdir(parents=True, exist_ok=True)
        for name in self.box.execute(["/bin/ls", "-A", "--zero", "--", source]).stdout.split("\0")[:-1]:
            self.box.get(self.box.path(source).rstrip("/") + "/" + name, str(target) + "/")

    async def download_dir(self, source_dir, target_dir):
        await asyncio.to_thread(self._get_all, source_dir, target_dir)
