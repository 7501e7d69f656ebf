#!/usr/bin/env python3
"""A server in a box keeps what a server of the machine keeps: the cases of its upgrades, of actions at most once, of
successions, starts and kills, with handraild as process 1 of a box.

    test_box_server.py [--all | CASE...]          --all: also those that `make check` leaves out, 5 minutes"""

import argparse
import os
import random
import signal
import sys

os.environ["E2E_BACKEND"] = "box"  # for lib.supervised
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_held  # noqa: E402
import test_kills  # noqa: E402
import test_once  # noqa: E402
import test_succession  # noqa: E402
import test_upgrades  # noqa: E402
from lib import box, process  # noqa: E402
from lib.supervised import PATIENCE, Server, run_tests  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402
from test_once import held, named, times  # noqa: E402


def process_one_dies():
    """All of the box ends with it. The server of the next box knows the action, and does not do it again."""
    with Server() as s:
        inside = process.descendants(s.pid)
        b, _ = held(s, headers=named("one"))
        inside += process.descendants(s.pid)
        s.send(signal.SIGKILL)
        equal(s.wait(), -signal.SIGKILL)
        equal([pid for pid in inside if not process.wait_gone(pid, PATIENCE)], [])
        b.join(PATIENCE)
        equal((b.answer, b.error is not None), (None, True))
        os.unlink(os.path.join(s.work_dir, "gate"))
        s.start()
        a = s.action(*b.args, **b.kw)
        equal((a.status, "not run a second time" in a.json()["detail"], times(s)), (500, True, 1), a)


# A command does not outlive process 1 of its box: process_one_dies has what holds.
OUTLIVES = {"nameless_after_a_killed_server", "supervisor_dies", "another_supervisor"}
# A box's server listens on a Unix socket: clients wait there for a start, and cannot be told apart (handraild(8)).
TCP = {"waits_for_the_shell", "seems_to_stand"}

test_upgrades.OPTIONS = argparse.Namespace(upgrades=6, clients=4, requests=200, pause=0)
test_kills.OPTIONS = argparse.Namespace(actions=300, clients=4, gap=5, seed=random.randrange(1 << 30))

CASES = [process_one_dies, test_kills.kills] + [
    case for file in (test_upgrades, test_once, test_succession, test_held) for case in file.TESTS
    if case.__name__ not in OUTLIVES | TCP]
USUAL = """
    process_one_dies kills nothing_is_refused kept_connections another_nginx command_under_way the_end_is_not_lost
    sockets_stay worker_dies all_workers_die_twice nginx_dies keeper_dies keeper_and_shell_die everything_dies
    static_session killed_after_a_change upload_end_not_known plugin_action survives_a_restart over_a_command
    typed_command interrupted unread_input in_the_middle_of_a_step its_end killed_before_it_is_ready
    upgrade_in_a_container reloads_by_itself is_stopped dies goes_with_the_supervisor""".split()

if __name__ == "__main__":
    box.need_launcher()
    with box.Boxes(os.geteuid()) as boxes:
        why = box.refused(boxes)
    if why:
        skip_all(why)
    if sys.argv[1:] in ([], ["--all"]):
        CASES = [case for case in CASES if sys.argv[1:] or case.__name__ in USUAL]
        sys.argv[1:] = []
    sys.exit(run_tests(CASES))
