#!/usr/bin/env python3
"""./quickstart fleet with containers of a real Engine: the one of DOCKER_HOST, or for root one that is started for this
test (docker-engine)."""

import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.dockerhost import IMAGE, docker, find_engine, make_image  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_quickstart import Checkout, as_typed  # noqa: E402


def containers():
    """Where an Engine answers, sandboxes of the fleet are containers, which pause; a stop ends all of them."""
    with Checkout(DOCKER_HOST=os.environ["DOCKER_HOST"], HANDRAIL_FLEET_IMAGE=IMAGE,
                  HANDRAIL_FLEET_OPTIONS="--set sandbox.use_host_network=true --set core.run_as_openhands=false "
                  "--set sandbox.runtime_binding_address=127.0.0.1") as c:
        lines = c.quickstart("fleet")
        shown = [line for line in lines if line.startswith("$ ")]
        equal([line.split()[2] for line in shown], ["up", "run", "pause", "resume", "run", "fleet", "down"], lines)
        equal([line for line in lines if "expected to see" in line or "local" in line.split()], [], lines)
        page, path, up, ps, stop = [line.strip() for line in lines[-5:]]
        equal("<title>" in as_typed(c, "curl -sS --noproxy '*' " + page), True, "the console")
        with open(c.path("build/fleet/key")) as f:
            equal(f.read().strip() in "\n".join(lines), False, "its key is not shown")
        as_typed(c, path + "; " + up)
        rows = json.loads(as_typed(c, path + "; " + ps + " --json"))["sandboxes"]
        equal(len(rows), 1, rows)
        name = "openhands-runtime-" + rows[0]["runtime_id"]
        equal(docker("inspect", name).returncode, 0, "a container")
        equal(as_typed(c, stop), "The fleet has ended.\n")
        equal((docker("inspect", name).returncode, os.path.exists(c.path("build/fleet"))), (1, False), "all has ended")


def main():
    find_engine()
    top = tempfile.mkdtemp(prefix="e2e-image-")
    tap = Tap()
    try:
        make_image(top)
        tap.run("containers", containers)
    finally:
        docker("rmi", "-f", IMAGE)
        shutil.rmtree(top)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
