#!/usr/bin/env python3
"""The test-suite of SWE-ReX itself against a server of ours, by hand, in the build directory:

    python3 -m venv V && V/bin/pip install swe-rex aiohttp pytest pytest-asyncio requests
    V/bin/pip download --no-deps --no-binary :all: swe-rex && tar xf swe_rex-*.tar.gz
    V/bin/python ../t/e2e/swerex_suite.py swe_rex-1.4.0 [pytest's arguments]

test_execution.py, test_runtime.py and test_server.py with the unmodified RemoteRuntime; the package's sources come
without its conftest.py, so that the fixtures are here. SWEREX_URL and SWEREX_KEY: another server than one of ours."""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server  # noqa: E402
from lib.tap import skip_all  # noqa: E402

FILES = ["test_execution.py", "test_runtime.py", "test_server.py"]
KEY = "a-key-that-nobody-guesses"
FIXTURES = '''
import os
import pytest
from swerex.runtime.abstract import BashAction, CloseBashSessionRequest, Command, CreateBashSessionRequest
from swerex.runtime.remote import RemoteRuntime

URL, KEY = os.environ["SWEREX_URL"], os.environ["SWEREX_KEY"]


class RemoteServer:
    port = URL.removeprefix("http://127.0.0.1:")  # with the path behind it
    headers = {"X-API-Key": KEY}


class _Action(BashAction):
    timeout: float | None = 5


class _Command(Command):
    timeout: float | None = 5


@pytest.fixture
def remote_server():
    return RemoteServer()


@pytest.fixture
async def remote_runtime():
    r = RemoteRuntime(host=URL, port=None, auth_token=KEY)
    yield r
    await r.close()


@pytest.fixture
async def runtime_with_default_session(remote_runtime):
    await remote_runtime.create_session(CreateBashSessionRequest(startup_timeout=10))
    yield remote_runtime
'''


def run(sources, args):
    import pytest
    top = tempfile.mkdtemp(prefix="swerex-")
    try:
        tests = os.path.join(top, "tests")
        os.mkdir(tests)
        for name in FILES:
            shutil.copy(os.path.join(sources, "tests", name), tests)
        for name, text in (("__init__.py", ""), ("conftest.py", FIXTURES)):
            with open(os.path.join(tests, name), "w") as f:
                f.write(text)
        with open(os.path.join(top, "pytest.ini"), "w") as f:
            f.write("[pytest]\nasyncio_mode = auto\n")
        os.chdir(top)
        return pytest.main(["-p", "no:cacheprovider", "-q", *args])
    finally:
        os.chdir("/")
        shutil.rmtree(top)


def main():
    try:
        import pytest, pytest_asyncio, requests, swerex  # noqa: E401, F401
    except ImportError as e:
        skip_all("%s: see the head of this file" % e)
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sources = os.path.abspath(sys.argv[1])
    if "SWEREX_URL" in os.environ:
        return run(sources, sys.argv[2:])
    with Server(env={"SESSION_API_KEY": KEY}, settings={"swerex": True}) as s:
        os.environ.update(SWEREX_URL="http://127.0.0.1:%d/swerex" % s.port, SWEREX_KEY=KEY)
        r = run(sources, sys.argv[2:])
        s.stop()
        return r


if __name__ == "__main__":
    sys.exit(main())
