#!/usr/bin/env python3
"""The conformance runner of the MCP project against a server of ours, by hand, in the build directory:

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12      (needs Node 22)
    make t/e2e/mcp_worker && ../t/e2e/mcp_conformance.py REVISION RUNNER...

REVISION: 2026-07-28, 2025-11-25, or 0.1 for that with the runner 0.1.16; RUNNER: how the runner is started, as
node_modules/.bin/conformance. The worker has those tools of the runner's own example server that are like one of ours.
What fails has to be in the table below, whose reasons doc/agents.md has, "Conformance"."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import BUILDDIR, Server  # noqa: E402

# scenarios that ask for what the server does not offer; and such checks of scenarios that pass otherwise
OTHERS = re.compile("resources-|prompts-|completion-complete|logging-set-level|tasks-|input-required-result-|"
                    "elicitation-|"
                    "tools-call-(audio|with-logging|sampling|elicitation)|json-schema-2020-12|http-custom-header-")
CHECKS = {
    "caching": {"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints",
                "sep-2549-resources-templates-list-caching-hints"},
    "sep-2164-resource-not-found": {"sep-2164-error-code", "sep-2164-data-uri"},
    "server-stateless": {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
                         "sep-2575-http-server-no-independent-requests-on-stream",
                         "sep-2575-server-no-log-without-loglevel"},
    "server-sse-multiple-streams": {"server-sse-multiple-streams-session"},
    "server-sse-polling": {"server-sse-polling-session"},
}
OPTIONS = {"2026-07-28": ["--requirements", "2026-07-28"], "0.1": [],
           "2025-11-25": ["--spec-version", "2025-11-25", "--suite", "all"]}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in OPTIONS:
        sys.exit(__doc__)
    revision, runner = sys.argv[1], sys.argv[2:]
    worker = os.path.join(BUILDDIR, "t/e2e/mcp_worker")
    if not os.access(worker, os.X_OK):
        sys.exit("there is no %s: make t/e2e/mcp_worker" % worker)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        for path in glob.glob(os.path.join(BUILDDIR, "handrail*")):
            os.symlink(worker if os.path.basename(path) == "handrail-worker" else path,
                       os.path.join(top, os.path.basename(path)))
        out = os.path.join(top, "results")
        with Server(args=["--listen", "127.0.0.1"], settings={"mcp": "true"}, libexec=top) as s:
            subprocess.run([*runner, "server", "--url", "http://127.0.0.1:%d/handrail/mcp" % s.port,
                            *OPTIONS[revision], "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            s.stop()
        counts, bad = {}, 0
        for path in sorted(glob.glob(os.path.join(out, "**", "checks.json"), recursive=True)):
            scenario = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*", r"\1", os.path.basename(os.path.dirname(path)))
            with open(path) as f:
                checks = json.load(f)
            for check in checks:
                status = check["status"]
                counts[status] = counts.get(status, 0) + 1
                if status in ("SUCCESS", "INFO", "SKIPPED"):
                    continue
                known = OTHERS.match(scenario) is not None or check["id"] in CHECKS.get(scenario, ())
                bad += not known
                print("%s %s: %s %s" % ("other" if known else "FAILS", scenario, check["id"],
                                        (check.get("errorMessage") or "")[:150]))
        print(counts)
    return 1 if bad or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
