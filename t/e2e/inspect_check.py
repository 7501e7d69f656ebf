#!/usr/bin/env python3
"""The checks that Inspect AI has for sandbox providers (self_check in its wheel), by hand, in the build directory:

    python3.12 -m venv V && V/bin/pip install inspect_ai pytest ../contrib/python
    V/bin/python ../t/e2e/inspect_check.py [KIND [pytest's arguments]]

KIND: local unless something else is named. One check makes and removes an account of the machine that the sandbox is
on: as root, and of the kind local, it is left out unless INSPECT_ACCOUNTS=1 says that it may."""

import os
import sys
import tempfile
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import BUILD, Host  # noqa: E402

CHECKS = '''
import os
import pytest
from inspect_ai.util._sandbox.self_check import *
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
import inspect_ai._util.entrypoints as entrypoints

entrypoints.ensure_entry_points()
PROVIDER = registry_find_sandboxenv("handrail")
ACCOUNTS = os.environ.get("INSPECT_ACCOUNTS") or os.environ["KIND"] != "local"
ROOT = os.environ["KIND"] != "local" or os.geteuid() == 0


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def whole(anyio_backend):
    all = await PROVIDER.sample_init("self_check", os.environ["CONFIG"], {})
    yield all["default"]
    await PROVIDER.sample_cleanup("self_check", None, all, False)


@pytest.fixture
async def sandbox_env(whole, request):
    name = request.node.originalname
    if name == "test_exec_as_user" and not (ACCOUNTS and ROOT):
        pytest.skip("it makes an account: INSPECT_ACCOUNTS=1, as root")
    if ROOT and name in ("test_read_file_not_allowed", "test_write_text_file_without_permissions",
                         "test_write_binary_file_without_permissions"):
        request.node.add_marker(pytest.mark.xfail(reason="root may read and write all"))
    yield whole



pytestmark = pytest.mark.anyio
'''


def main():
    import pytest
    kind = sys.argv[1] if len(sys.argv) > 1 else "local"
    with Host() as h, tempfile.TemporaryDirectory() as top:
        with open(os.path.join(top, "test_checks.py"), "w") as f:
            f.write(CHECKS)
        with open(os.path.join(top, "handrail.toml"), "w") as f:
            f.write('[core]\nruntime = "%s"\n' % kind)
        os.chmod(top, 0o700)
        with mock.patch.dict(os.environ, dict(h.env, HANDRAIL=os.path.join(BUILD, "handrail"), KIND=kind,
                                              CONFIG=os.path.join(top, "handrail.toml"))):
            os.chdir(top)
            r = pytest.main(["-p", "no:cacheprovider", "-q", "test_checks.py", *sys.argv[2:]])
            os.chdir("/")
    return r


if __name__ == "__main__":
    sys.exit(main())
