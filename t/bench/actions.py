#!/usr/bin/env python3
"""60 actions of OpenHands' own client (0.62, unmodified) with handrail and with the original's server, turn by turn, by
hand in the build directory, with a Python that has openhands-ai, and tmux:

    ../t/real/run --get --dir DIR fleet_openhands             gets it, once, into DIR/openhands
    DIR/openhands/v/bin/python ../t/bench/actions.py --json actions.jsonl
    python3 ../t/bench/plot.py actions.jsonl ../doc/actions.svg

The actions are those of an agent that looks at a small repository, edits it and runs its tests. A line of the result is
one action: who answered, which round, its number, its type, its milliseconds. Both servers run as this user, and one at
a time works. Answers that differ between the two are printed and counted."""

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import servers  # noqa: E402
from lib.tools import PATH  # noqa: E402

FILE = "def total(items):\n    return sum(items)\n"
TEST = "from shop import total\nassert total([1, 2]) == 3\nprint('passed')\n"


servers.START_SECONDS = 300  # the original takes its time


def openhands():
    """The client's class, and its actions. Its log goes to files of its own unless it is quiet."""
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    from openhands.core.config import OpenHandsConfig
    from openhands.events import EventStream, action
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient
    from openhands.storage.memory import InMemoryFileStore

    class Client(ActionExecutionClient):
        """The part of it that all its runtimes share, at an address."""

        def __init__(self, url):
            self.url = url
            config = OpenHandsConfig()
            super().__init__(config, EventStream("bench", InMemoryFileStore()), LLMRegistry(config), "bench")

        @property
        def action_execution_server_url(self):
            return self.url

        async def connect(self):
            self.check_if_alive()

    return Client, action


class Original(servers.Handrail):
    """The original's server, in a directory of its own."""

    who = "OpenHands 0.62"

    def __init__(self):
        super().__init__(sys.executable)
        self.env.update(PATH=PATH, LOG_LEVEL="ERROR", HOME=self.dir)

    def args(self):
        return [self.program, "-m", "openhands.runtime.action_execution_server", str(self.address[1]), "--working-dir",
                self.work_dir, "--username", servers_user(), "--user-id", str(os.geteuid()), "--no-enable-browser"]

    def start(self):
        self.process = servers._spawn(self.args(), self.log, env=self.env, cwd="/")
        servers.wait_port(self.address, self.process, self.log)


def servers_user():
    import pwd
    return pwd.getpwuid(os.geteuid()).pw_name


def handrail(build):
    build = os.path.abspath(build)
    s = servers.Handrail(os.path.join(build, "handraild"), libexecdir=build, datadir=os.path.join(HERE, "../../conf"))
    # the same account as the original's
    s.user = servers_user()
    s.env.update(RUNTIME_USERNAME=s.user, HOME=s.dir)
    return s


def script(a, top):
    """(what it is, the action) of 60."""
    shop, test = top + "/shop.py", top + "/test_shop.py"
    one = [("run", a.CmdRunAction("mkdir -p %s && cd %s && git init -q . 2>&1; pwd" % (top, top))),
           ("write", a.FileWriteAction(shop, FILE)), ("write", a.FileWriteAction(test, TEST)),
           ("run", a.CmdRunAction("ls -la | wc -l")), ("run", a.CmdRunAction("git add -A && git status --short")),
           ("run", a.CmdRunAction("python3 test_shop.py"))]
    for n in range(9):
        one += [("run", a.CmdRunAction("grep -n 'def ' *.py | head")), ("read", a.FileReadAction(shop)),
                ("edit", a.FileEditAction(shop, command="str_replace", old_str="(items)" if n == 0 else " + 0" * n,
                                          new_str="(items) + 0" if n == 0 else " + 0" * (n + 1))),
                ("run", a.CmdRunAction("python3 test_shop.py 2>&1 | tail -n 1")),
                ("run", a.CmdRunAction("git diff --stat | tail -n 1")), ("run", a.CmdRunAction("echo $? && pwd"))]
    return one


def played(client, actions):
    """[(milliseconds, content)]"""
    found = []
    for _, action in actions:
        began = time.perf_counter()
        o = client.run_action(action)
        found.append((1e3 * (time.perf_counter() - began), o.content))
        if o.observation == "error":
            raise SystemExit("%s: %s" % (action, o.content))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=".", help="the build tree [.]")
    p.add_argument("--rounds", type=int, default=5, help="[5]")
    p.add_argument("--json", metavar="FILE", help="each action as a line of JSON")
    options = p.parse_args()
    try:
        Client, actions = openhands()
    except ModuleNotFoundError as e:
        p.error("%s: run it with the Python of a directory with openhands-ai==0.62.0" % e)
    out = open(options.json, "w") if options.json else None
    load = os.getloadavg()

    def record(**fields):
        if out:
            out.write(json.dumps(fields, sort_keys=True) + "\n")

    record(section="machine", kernel=platform.release(), cores=os.cpu_count(), load=load,
           date=time.strftime("%Y-%m-%d"))
    both = [handrail(options.build), Original()]
    sums = {s.who: [] for s in both}
    # paths of both have the same length, and outputs are compared without them
    scratch = tempfile.mkdtemp(prefix="bench-actions-")
    try:
        for s in both:
            s.start()
        clients = [Client("http://%s:%d" % s.address) for s in both]
        for c in clients:
            asyncio.run(c.connect())
        differ = 0
        for number in range(options.rounds):
            seen = []
            order = list(zip(both, clients))
            for s, client in order if number % 2 else reversed(order):
                top = os.path.join(scratch, "%s-%d" % ("h" if s is both[0] else "o", number))
                steps = script(actions, top)
                found = played(client, steps)
                seen.append([text.replace(top, "") for _, text in found])
                sums[s.who].append(sum(ms for ms, _ in found) / 1e3)
                for n, ((kind, _), (ms, _)) in enumerate(zip(steps, found), 1):
                    record(section="actions", who=s.who, round=number, n=n, action=kind, ms=round(ms, 3))
            names = [s.who for s, _ in (order if number % 2 else reversed(order))]
            for n, (one, other) in enumerate(zip(*seen), 1):
                if one != other:
                    differ += 1
                    print("round %d, action %d: %s answers %r, %s %r" % (number, n, names[0], one, names[1], other))
        for who, seconds in sums.items():
            print("%-16s %d actions in %.2f s (median of %d rounds, %.2f to %.2f)" % (
                who, len(steps), statistics.median(seconds), len(seconds), min(seconds), max(seconds)))
        print("%d answers differ; %d cores, load %.1f; publish it only of an idle machine" % (
            differ, os.cpu_count(), load[0]))
    finally:
        for s in both:
            s.stop()
        shutil.rmtree(scratch, ignore_errors=True)
        if out:
            out.close()


if __name__ == "__main__":
    main()
