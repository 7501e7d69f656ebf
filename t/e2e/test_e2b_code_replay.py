#!/usr/bin/env python3
"""The recorded conversations with a code interpreter, as its clients had them."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import e2breplay  # noqa: E402
from lib.e2bworld import World  # noqa: E402
from lib.supervised import BUILDDIR, run_tests  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

PYTHON = "/usr/bin/python3"
# Differences that are meant.
EXPLAINED = {
    "code.contexts": "a context of an earlier conversation is in the recorded list, and a second Python for JavaScript",
    "code.env_global": "the recording ran outside of a sandbox and without its variables",
    "code.png": "the recorded kernel warned of a font, and described its charts",
    "code.sysexit": "the warning names a file of the recorded Python",
}


def recorded_conversations():
    """All in one kernel, as they were recorded."""
    found = {}
    with World(args=["--plugins", "jupyter"]) as w:
        service = e2breplay.Service(w.api, w.edge, "key", lambda setup: None)
        for recorded in e2breplay.scenarios(r"^code\."):
            differences = e2breplay.replay(service, recorded)
            if differences and os.environ.get("E2E_VERBOSE"):
                print("#", recorded["name"], differences)
            if differences and recorded["name"] not in EXPLAINED:
                found[recorded["name"]] = differences
    equal(found, {})


if __name__ == "__main__":
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        skip_all("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        skip_all("there is no kernel for %s: apt-get install python3-ipykernel" % PYTHON)
    sys.exit(run_tests([recorded_conversations]))
