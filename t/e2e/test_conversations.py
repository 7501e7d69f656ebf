#!/usr/bin/env python3
"""Recorded conversations (t/corpus/actions/README), played to servers of this build through nginx, and
every answer compared. Without arguments: all that this build has the means for, in an order that is
another one each time; the seed is printed. By hand a part of them:

usage: test_conversations.py [--seed N] [--tag TAG] [--skip-tag TAG] [--without FEATURE]
                             [--answers improved|response|any] [--servers N] [--corpus FILE]
                             [--list] [NAME...]

Names may be patterns (run_*)."""

import argparse
import fnmatch
import json
import multiprocessing
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import process, scenario, shells, supervised  # noqa: E402
from lib.compare import Compare  # noqa: E402
from lib.tap import Tap  # noqa: E402

KEY = "e2e-Key_0123456789"
CORPUS = os.path.join(supervised.SRCDIR, "t/corpus/actions/actions.jsonl")
PROGRAMS = {"python": "python3", "git": "git", "pager": "less"}
NOT_YET = {"mcp"}  # what this build does not have
SHARE, WAITING = 15, 3  # scenarios for one server; of those that wait for seconds each


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def selected(options, one):
    return (not options.names or any(fnmatch.fnmatch(one["name"], g) for g in options.names)) and \
        (not options.tag or set(options.tag) & set(one["tags"])) and \
        not set(options.skip_tag) & set(one["tags"])


def cannot(one):
    """Why a scenario cannot be played on this machine; None: it can."""
    for tag in one["tags"]:
        if tag in PROGRAMS and supervised.find_program(PROGRAMS[tag]) is None:
            return "%s is missing: apt-get install %s" % (PROGRAMS[tag], PROGRAMS[tag])
    if "python_3_12" in one["tags"] and sys.version_info >= (3, 13):
        return "needs Python 3.12 or older, as in Debian 12: newer ones read a block differently"
    return None


def in_order(scenarios):
    """Those for a fresh shell first, those that change the server for good last."""
    return sorted(scenarios, key=lambda one: (not one.get("fresh"), bool(one.get("last"))))


def groups(scenarios):
    """(environment, scenarios) for one server each."""
    by_env = {}
    for one in scenarios:
        by_env.setdefault(json.dumps(one.get("env", {}), sort_keys=True), []).append(one)
    # where the environment has a say, most of the time is waiting: those begin
    for env, group in sorted(by_env.items(), key=lambda one: one[0] == "{}"):
        parts = -(-len(group) // (SHARE if env == "{}" else WAITING))
        for n in range(parts):
            yield json.loads(env), in_order(group[n::parts])


def play_group(env, scenarios, answers, results):
    """One server, its scenarios in order; results get (name, what is wrong), and None at the end."""
    where = "the server with %s" % (env or "no environment of its own")
    process.become_subreaper()  # what a server leaves behind is looked for among our children
    try:
        # the default of the contract; the recordings are of a server without a browser
        shell = shells.ServerShell(no_change=10, env=dict(env, HANDRAIL_BROWSER_CHROMIUM="/nonexistent"), key=KEY)
        player = scenario.Player(shell, Compare(), answers)
        for one in scenarios:
            try:
                wrong = player.play(one)
            except Exception as error:  # the connection, most likely
                wrong = ["%s: %s" % (type(error).__name__, error)]
            results.put((one["name"], wrong))
        wrong = shell.stop()
    except Exception as error:
        wrong = ["%s: %s" % (type(error).__name__, error)]
    results.put((where + " ends and leaves nothing", wrong))
    results.put(None)


def play(tap, todo, options):
    results, waiting, running = multiprocessing.Queue(), [], 0
    for env, group in groups(todo):
        waiting.append(multiprocessing.Process(
            target=play_group, args=(env, group, options.answers, results)))
    while waiting or running:
        while waiting and running < options.servers:
            waiting.pop(0).start()
            running += 1
        result = results.get()
        if result is None:
            running -= 1
        else:
            tap.ok(not result[1], result[0], "\n".join(result[1]))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of the order")
    p.add_argument("--tag", action="append", default=[])
    p.add_argument("--skip-tag", action="append", default=[])
    p.add_argument("--without", action="append", default=[], choices=sorted(scenario.FEATURES))
    p.add_argument("--answers", choices=["improved", "response", "any"], default="improved",
                   help="which is right where there are two")
    p.add_argument("--servers", type=int, default=8,
                   help="at once: most of the time is waiting for time-outs")
    p.add_argument("--corpus", default=CORPUS)
    p.add_argument("--list", action="store_true", help="say what would be played")
    p.add_argument("names", nargs="*")
    options = p.parse_args()
    tap, todo = Tap(sys.stderr if options.list else sys.stdout), []
    tap.diag("seed %d" % options.seed)
    for one in load(options.corpus):
        if not selected(options, one):
            continue
        lacks = sorted(scenario.needs(one) & (NOT_YET | set(options.without)))
        why = cannot(one)
        if lacks:
            tap.diag("not played: %s needs %s" % (one["name"], " and ".join(lacks)))
        elif why and not options.list:
            tap.skip(one["name"], why)
        else:
            todo.append(one)
    if options.list:
        print("\n".join(one["name"] for one in todo))
        return 0
    shells.need_programs()
    random.Random(options.seed).shuffle(todo)
    play(tap, todo, options)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
