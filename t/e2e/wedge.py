#!/usr/bin/env python3
"""A wedged shell is always recovered: each wedge of lib/wedges.py in the one default session.

usage: wedge.py [--keeper PROGRAM [--typed]] [--list] [--pile SEED] [NAME...]"""

import argparse
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import process, shells, wedges  # noqa: E402
from lib.observation import NOTHING_RUNS  # noqa: E402
from lib.tap import Tap, short, verbose  # noqa: E402

BOUND = 1.9  # seconds; the session's own patience with a silent shell is longer


class Failed(AssertionError):
    pass


def insist(good, what, observation):
    if not good:
        raise Failed("%s: %r" % (what, observation))


def play_step(shell, step):
    o = shell.run(step.command, **step.request)
    if verbose():
        print("#   %s -> %r" % (short(step.command, 80), o))
    seen = o.content
    tries = 0
    while step.until is not None and step.until not in seen and tries < 40:
        o = shell.run("", timeout=0.5)
        seen += o.content
        tries += 1
    what = "after %s" % short(step.command, 200)
    if step.ended and o.content.startswith(NOTHING_RUNS):
        return
    if step.given_up:
        if not o.completed:
            o = shell.run("C-c", is_input=True, timeout=5)
            insist(o.completed and o.exit_code == 130, what + " C-c", o)
        insist("PROMPT_COMMAND" not in o.content, what + " the hook is seen", o)
        return
    insist(not o.is_error, what, o)
    if step.going is None:
        insist(o.going_on or o.completed, what, o)
    elif step.going:
        insist(o.going_on, what + " (must go on)", o)
    else:
        insist(o.completed, what + " (must complete)", o)
        if not step.code_any:
            insist(o.exit_code == step.code, what + " (exit code %d)" % step.code, o)
    if step.restarted is not None:
        insist(o.restarted == step.restarted, what + " (restart said: %s)" % step.restarted, o)
    if step.content is not None:
        insist(o.content == step.content, what + " (content %r)" % step.content, o)
    if step.has is not None:
        insist(step.has in o.content, what + " (content with %r)" % step.has, o)
    if step.lacks is not None:
        insist(step.lacks not in o.content, what + " (content without %r)" % step.lacks, o)
    if step.until is not None:
        insist(step.until in seen, what + " (never said %r)" % step.until, o)


def check_ok(shell, wedge, place):
    o = shell.run("echo ok", timeout=20)
    insist(o.completed, "echo ok", o)
    if wedge.shows is not None:
        insist(o.content == wedge.shows, "echo ok (content %r)" % wedge.shows, o)
    if wedge.code is not None:
        insist(o.exit_code == wedge.code, "echo ok (exit code)", o)
    insist(o.seconds < (wedge.seconds or BOUND) * shells.slack(), "echo ok came late", o)
    if wedge.kept:
        insist(o.working_dir == place, "echo ok (directory %s)" % place, o)


def prepare(shell, place):
    os.makedirs(place, exist_ok=True)
    o = shell.run("cd '%s'; export E2E_KEPT='kept %s'" % (place, os.path.basename(place)))
    insist(o.completed and o.exit_code == 0 and o.working_dir == place and o.content == "",
           "the shell before the wedge", o)


def play(shell, wedge, place):
    if wedge.needs is not None:
        wedge.needs(shell)
    prepare(shell, place)
    for step in wedge.steps:
        play_step(shell, step)
    check_ok(shell, wedge, place)
    for command in wedge.undo:
        o = shell.run(command, timeout=20)
        insist(o.completed, "undo %s" % command, o)
    o = shell.run('printf %s "$E2E_KEPT"', timeout=20)
    insist(o.completed and o.exit_code == 0, "the exported variable", o)
    if wedge.kept:
        insist(o.content == "kept " + os.path.basename(place), "the exported variable", o)
    insist("restarted" not in o.suffix, "a second restart", o)


def reset(shell):
    """A fresh shell for the next wedge; whatever state a failed one left."""
    shell.run("C-c", is_input=True, timeout=1)
    shell.run("kill -9 $$", timeout=5)
    o = shell.run("echo reset", timeout=20)
    if o.content != "reset" or o.exit_code != 0:
        raise Failed("no shell after a reset: %r" % o)


def play_all(tap, start, chosen):
    shell = start()
    for number, (group, wedge) in enumerate(chosen):
        place = os.path.join(shell.work_dir, "w%d" % number)
        good = tap.run("%s: %s" % (group, wedge.name), play, shell, wedge, place)
        try:
            reset(shell)
        except (AssertionError, OSError) as wrong:
            tap.ok(False, "%s: the session after %s" % (group, wedge.name), str(wrong))
            good = False
        if not good:
            # one failure is one failure: the next wedge meets a session of its own
            tap.diag("\n".join(shell.stop()))
            shell = start()
    return shell


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keeper", help="test handrail-session alone: its path")
    parser.add_argument("--typed", action="store_true", help="its bash has no handrail-line.so")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--shuffle", type=int, help="seed: in another order")
    parser.add_argument("names", nargs="*", help="groups or wedges")
    options = parser.parse_args()
    chosen = [(group, wedge) for group, list_ in wedges.GROUPS.items() for wedge in list_
              if (not options.names or group in options.names or wedge.name in options.names) and
              (wedge.typed or not options.typed)]
    if options.list:
        for group, wedge in chosen:
            print("%s: %s" % (group, wedge.name))
        return 0
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(chosen)
    if options.typed and not options.keeper:
        parser.error("--typed needs --keeper")
    if not options.keeper:
        shells.need_programs()
    process.become_subreaper()
    tap = Tap()
    shell = play_all(tap, lambda: shells.start(
        options.keeper, no_change=10, typed=options.typed), chosen)
    wrong = shell.stop()
    tap.ok(not wrong, "the server ends and leaves nothing", "\n".join(wrong))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
