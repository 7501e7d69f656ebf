#!/usr/bin/env python3
"""A task of Harbor in a sandbox of ours, by `harbor run` with the agent that runs the task's own solution; by hand, in
the build directory:

    python3.12 -m venv V && V/bin/pip install harbor ../contrib/python
    V/bin/python ../t/e2e/harbor_check.py [KIND [IMAGE]]

KIND: local unless something else is named, which is for machines that can be thrown away: Harbor's own directories
(/logs, /tests, /solution) are made where the sandbox is. IMAGE: a runtime image that is there."""

import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import BUILD, Host  # noqa: E402
from lib.tap import equal  # noqa: E402

TASK = {
    "task.toml": """version = "1.0"
[metadata]
[verifier]
timeout_sec = 120.0
[agent]
timeout_sec = 120.0
[environment]
docker_image = "debian:12"
""",
    "instruction.md": "Write the word done into the file /tmp/handrail-harbor.txt.\n",
    "environment/seed.txt": "seed\n",
    "solution/solve.sh": "#!/bin/bash\nset -o pipefail\necho done >/tmp/handrail-harbor.txt\n",
    "tests/test.sh": "#!/bin/bash\nread word </tmp/handrail-harbor.txt\nmkdir -p /logs/verifier\n"
                     "[ \"$word\" = done ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n",
}


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "local"
    with Host() as h:
        for name, text in TASK.items():
            path = h.path("task", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o755)
        words = [os.path.join(os.path.dirname(sys.executable), "harbor"), "run", "-p", h.path("task"), "-a", "oracle",
                 "-e", "handrail_env:Handrail", "--ek", "runtime=" + kind, "-o", h.path("jobs")]
        if len(sys.argv) > 2:
            words += ["--ek", "image=" + sys.argv[2]]
        done = subprocess.run(words, env=dict(h.env, HANDRAIL=os.path.join(BUILD, "handrail"), USER="root"),
                              cwd=h.path("cwd"), stdin=subprocess.DEVNULL)
        equal(done.returncode, 0)
        results = glob.glob(h.path("jobs", "**", "reward.txt"), recursive=True)
        equal([open(r).read().strip() for r in results], ["1"])
        for path in glob.glob(h.path("jobs", "*", "*", "result.json")):
            with open(path) as f:
                equal(json.load(f)["exception_info"], None)
        equal(h.ok("ps", "--json").strip() in ("", "[]"), True, "the sandbox is ended")
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
