#!/usr/bin/env python3
"""The broker of a box's network, handrail-egress, between a network namespace with only a loopback interface and a
machine of the test's own. As root each case is done twice, by root and by another account."""

import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import egressworld, process  # noqa: E402
from lib.egressworld import METADATA, OTHER, PRIVATE, PUBLIC, Server, World, echo, tls, tunnels, web  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

UID = 54325  # of no account
REFUSED = (35, 56)  # curl's codes for a connection that is reset


def names(w):
    """An allowed name leads to its server; another one is reset, with an event."""
    server = w.serve(PUBLIC, 80, web(b"outside"))
    w.names.add(allowed_test=PUBLIC, refused_test=PUBLIC)
    w.put(allowOut=["allowed.test"])
    equal(w.ask(op="reload"), {"ok": True})
    equal(w.curl("http://allowed.test/"), (0, "outside"))
    code, out = w.curl("http://refused.test/")
    equal((code in REFUSED, out), (True, ""))
    equal(w.names.asked.count("refused.test"), 0, "a question leaves the machine for an allowed connection only")
    event = w.events(name="refused.test")
    equal([(e["verdict"], e["kind"], e["port"], e["rule"], e["count"]) for e in event],
          [("deny", "tcp", 80, "no rule", 1)])
    equal(w.events(name="allowed.test")[0]["verdict"], "allow")
    equal(server.count, 1)


CASES = (names,)


def main():
    egressworld.enter()
    tap = Tap()
    uids = (0, UID) if os.geteuid() == 0 and not os.environ.get("E2E_UID") else (os.geteuid(),)
    for case in CASES:
        if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
            continue
        for uid in uids:
            tap.run(case.__name__ + (", another account" if uid else ""), alone, case, uid)
    return tap.done()


def alone(case, uid):
    top = tempfile.mkdtemp(prefix="e2e-egress-")
    os.chmod(top, 0o755)
    try:
        w = World(top, uid, {"allowOut": []})
        try:
            case(w)
        finally:
            w.end()
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    sys.exit(main())
