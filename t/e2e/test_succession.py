#!/usr/bin/env python3
"""The keeper of a shell is killed: the next one goes on with it, or, where it cannot know how, says that
another shell took its place."""

import json
import os
import random
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.boxed import BOXED  # noqa: E402
from lib.supervised import (  # noqa: E402
    PATIENCE, Server, gate, kill_keeper, kill_keeper_and_shell, kill_wait, marker, need, need_root, run_tests)
from lib.tap import equal  # noqa: E402
from test_door import call  # noqa: E402
from test_output import waited  # noqa: E402

V1 = "/handrail/v1/"
LOST = "[The shell was lost with its keeper, which had been killed, and has been restarted in %s."
KILLS = int(os.environ.get("KILLS", "60"))
SURE = 64  # where it stands in the keeper's page: behind its layout
TRIES = SURE + 12
CRASH = 8  # what it counts for there


def ready(s):
    return sum(" the shell is ready " in line for line in s.lines if line)


def shell_of(s):
    return s.run("echo $$")


def suffix(answer):
    return answer.json()["extras"]["metadata"]["suffix"]


def post(s, what, **body):
    return s.request("POST", V1 + what, json.dumps(body), {"Content-Type": "application/json"}).status


def short(s, command):
    """Answered after a second, whatever the command does."""
    body = {"action": {"action": "run", "timeout": 1, "args": {"command": command}}}
    return s.request("POST", "/execute_action", json.dumps(body), {"Content-Type": "application/json"})


def page(pid):
    """The memory that a keeper leaves to the next one; None: it has none yet."""
    top = "/proc/%d/fd" % pid
    try:
        for fd in os.listdir(top):
            if os.readlink(os.path.join(top, fd)).startswith("/memfd:handrail-session"):
                return open(os.path.join(top, fd), "r+b", buffering=0)
    except FileNotFoundError:
        pass  # closed since, or gone
    return None


def rests(pid):
    """It is at no step: what it gives the shell may be in doubt, and the prompt after a command may come
    later than its answer. Sure, at no report, and one that has itself gone on with the shell."""
    f = page(pid)
    if f is None:
        return False
    with f:
        f.seek(SURE)
        said = f.read(16)
        return said[:8] == (1).to_bytes(4, sys.byteorder) + bytes(4) and said[12:] == bytes(4)


def kill(s, pid=None, offset=0, data=b""):
    """Between two steps, and with this in its page. It is stopped first: else it may begin a step, or write over it."""
    def killed():
        one = ([pid] if pid else s.keeper() or [0])[0]
        if not one or not rests(one):
            return False
        os.kill(one, signal.SIGSTOP)
        s.until("it is stopped", lambda: process.stat_fields(one)[0] in b"Tt")
        if not rests(one):
            os.kill(one, signal.SIGCONT)
            return False
        with page(one) as f:
            f.seek(offset)
            f.write(data)
        kill_wait(one)
        return True
    s.until("one at rest is killed", killed)


def is_noted(pid, text):
    """In its page. The shell tells what it exports after the answer."""
    f = page(pid)
    if f is None:
        return False
    with f:
        return text in f.read()


def at_rest():
    """Variables, functions, jobs, traps, the last status, and what readline and the terminal are like."""
    for prepare in ("true", "export E=1",  # after which commands are typed
                    "exec 7>&2; stty -echo", "bash --norc -i"):
        with Server() as s:
            shell = shell_of(s)
            s.run("X=kept; f() { echo f-$X; }; cd /usr; sleep 1000 & job=$!")
            s.run(prepare)
            s.action("(exit 7)")
            for _ in range(3):
                kill(s)
                if prepare.startswith("bash"):
                    equal(s.run("echo $?; pwd"), "7\n/usr", prepare)
                    s.action("(exit 7)")
                    continue
                equal(s.run("echo $?; f; pwd; kill -0 $job && echo job"), "7\nf-kept\n/usr\njob", prepare)
                s.action("(exit 7)")
            if not prepare.startswith("bash"):
                equal(shell_of(s), shell)
            equal(s.stop(), -signal.SIGTERM)  # and nothing is left


def over_a_command():
    with Server() as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("echo one; %s; %s; echo two; (exit 5)" % (began, door))
        wait()
        for _ in range(5):
            kill(s)
        open_it()
        equal((b.content(), b.answer.json()["extras"]["metadata"]["exit_code"]), ("one\ntwo", 5))
        equal(LOST[:20] in suffix(b.answer), False)


def typed_command():
    """One that readline was typed, whose echo is no output."""
    with Server() as s:
        s.run("export E=1")
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("{ echo one; %s\n%s; echo two; }" % (began, door))
        wait()
        kill(s)
        open_it()
        equal(b.content(), "one\ntwo")


def told_to_go_on():
    """A command of which the client was told that it goes on: the rest comes later, and only the rest."""
    with Server() as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("echo first; %s; read -r line; echo second $line; %s; echo third" % (began, door))
        wait()
        kill(s)
        equal(post(s, "input", text="typed\n"), 200)
        open_it()
        equal(b.content().endswith("second typed\nthird"), True, b.content())
        door, open_it = gate(s, "gate2")
        a = short(s, "echo first; %s; echo second" % door)
        equal((a.json()["content"], "timed out after 1" in suffix(a)), ("first", True), a)
        kill(s)
        refused = s.action("echo other")
        equal("is NOT executed" in suffix(refused), True, suffix(refused))
        kill(s)
        b = s.in_background("", is_input=False)
        open_it()
        equal((b.content(), "exit code 0" in suffix(b.answer)), ("second", True), b.answer)


def interrupted():
    with Server() as s:
        b = s.in_background("trap 'echo caught; trap - INT' INT; echo on; cat")
        s.until("it runs", lambda: b"on\r\n" in s.get(V1 + "output").body)
        kill(s)
        s.until("the next one answers", lambda: s.get(V1 + "session").status == 200)
        equal(post(s, "keys", keys=["C-c"]), 200)
        equal(b.content().split("\n")[0], "on")
        equal(b.answer.json()["extras"]["metadata"]["exit_code"], 130)


def heavy_output():
    """Not a byte is missing in the log or doubled, wherever the kills came."""
    with Server(settings={"output_log_bytes": 16 << 20}) as s:
        rng = random.Random(7)
        b = s.in_background("seq 1000000; echo END", timeout=4 * PATIENCE)
        kills = 0
        s.until("it prints", lambda: b"100\r\n" in s.get(V1 + "output").body)
        while b.is_alive() and kills < 20:
            process.wait_gone(os.getpid(), rng.random() * 0.05)  # a pause of any length
            if b.is_alive():
                kill(s)
                kills += 1
        b.join(4 * PATIENCE)
        content = b.content()
        equal((content.endswith("1000000\nEND"), kills > 2), (True, True),
              (content[-50:], [line for line in s.lines if " replaced" in line]))
        log = s.get(V1 + "output").body
        want = b"".join(b"%d\r\n" % n for n in range(1, 1000001)) + b"END\r\n"
        equal(log.count(want), 1, "%d of %d bytes" % (len(log), len(want)))


def unread_input():
    """Of a long text the keeper does not know how much was read: the shell is replaced, and it is said."""
    with Server() as s:
        s.run("cd /usr; export E=kept; X=lost")
        began, wait = marker(s)
        b = s.in_background("echo x >>%s/count; %s; sleep 1000" % (s.work_dir, began))
        wait()
        kill_keeper_and_shell(s)
        b.join(PATIENCE)
        equal((b.answer.status, b.answer.json()["observation"]), (200, "error"), b.answer)
        equal(b.answer.json()["content"].startswith("Bash session was likely interrupted"), True)
        a = s.action("echo [$X] $E $PWD")
        equal((a.json()["content"], LOST % "/usr" in suffix(a)), ("[] kept /usr", True), a.json())
        equal(LOST[:20] in suffix(s.action("true")), False, "once")
        with open(os.path.join(s.work_dir, "count")) as f:
            equal(f.read(), "x\n")
        last = json.loads(s.get(V1 + "commands").body)["commands"]
        equal([c["state"] for c in last], ["completed", "shell ended", "completed", "completed"])


def in_the_middle_of_a_step():
    with Server() as s:
        s.run("cd /usr; export E=kept; X=lost; sleep 1000 &")
        keeper = s.keeper()[0]
        s.until("E is noted", lambda: is_noted(keeper, b'E="kept"'))
        kill(s, None, SURE, bytes(4))
        a = s.action("echo [$X] $E $PWD; alias git")
        equal((a.json()["content"], LOST % "/usr" in suffix(a)),
              ("[] kept /usr\nalias git='git --no-pager'", True), a.json())
        equal(s.wait_log("replaced: it was killed in the middle of a step") is not None, True)
        equal(keeper != s.keeper()[0], True)


def over_an_answer():
    """It is killed when it is about to answer the shell's report: the shell waits, and the next one answers."""
    need_root()
    strace = need("strace")
    with Server() as s:
        shell = shell_of(s)
        s.run("X=kept")
        (keeper,) = s.keeper()
        top = "/proc/%d/fd" % keeper
        (ack,) = {path for path in (os.readlink(os.path.join(top, fd)) for fd in os.listdir(top))
                  if os.path.basename(path).startswith("ack")}
        with subprocess.Popen([strace, "-o", "/dev/null", "-P", ack, "-e", "inject=write:signal=KILL", "-p",
                               str(keeper)], stderr=subprocess.PIPE, universal_newlines=True) as p:
            equal("attached" in p.stderr.readline(), True)
            a = s.action("echo on; (exit 3)")
            p.stderr.read()
        metadata = a.json()["extras"]["metadata"]
        equal((a.json()["content"], metadata["exit_code"], LOST[:20] in suffix(a)), ("on", 3, False))
        equal((s.run("echo $? $X"), shell_of(s), keeper in s.keeper()), ("3 kept", shell, False),
              "no interrupt was needed")


def its_start_fails():
    """A start-up file ends the shell that takes the place of a lost one: the next is started without, and has all
    the same what was to be kept."""
    with Server(env={"SU_TO_USER": "false"}) as s:
        s.run("cd /usr; export E=kept")
        keeper = s.keeper()[0]
        s.until("E is noted", lambda: is_noted(keeper, b'E="kept"'))
        with open(os.path.join(s.work_dir, ".bashrc"), "w") as f:
            f.write("exit\n")
        kill(s, None, SURE, bytes(4))
        equal(s.run("echo $E $PWD; alias git"), "kept /usr\nalias git='git --no-pager'")


def after_it_had_been_told_to_go_on():
    """The client waits for the rest of a command that went with its shell."""
    with Server() as s:
        door, _ = gate(s)
        short(s, "echo first; %s" % door)
        kill(s, None, SURE, bytes(4))
        a = s.action("")
        equal(("exit code 137" in suffix(a), LOST % s.work_dir in suffix(a)), (True, True), a.json())
        equal(s.run("echo on"), "on")


def replaced_repeats_nothing():
    """Where another shell takes its place, what clients had of the old one's output is not shown again."""
    with Server() as s:
        door, open_it = gate(s)
        ended, wait_ended = marker(s)
        other, _ = gate(s, "other")
        r = call(s, "run", command="echo first; %s; echo rest; %s; %s" % (door, ended, other), wait_s=0)
        equal(waited(s, r, "first\n")[0], "first\n")
        open_it()
        wait_ended()
        before = ready(s)
        kill(s, None, SURE, bytes(4))
        s.until("the other shell is ready", lambda: ready(s) > before)
        equal(s.run("echo on"), "on")


def its_end():
    """Of a shell that is not the keeper's child."""
    with Server() as s:
        s.run("cd /usr; export E=kept")
        kill(s)
        a = s.action("exit 3")
        known = a.json()["extras"]["metadata"]["exit_code"]
        equal((known in (3, -1), "restarted in /usr" in suffix(a)), (True, True), a.json())
        equal("with an unknown status" in suffix(a), known == -1)
        equal(s.run("echo $E $PWD"), "kept /usr")
        kill(s)
        a = s.action("kill -9 $$")
        equal(a.json()["extras"]["metadata"]["exit_code"] in (137, -1), True)
        kill(s)
        equal(s.run("kill -STOP $$; echo on"), "on")  # which only its parent is told


def dies_again_and_again():
    """One that dies over what it finds does not do so for ever."""
    with Server() as s:
        s.run("cd /usr; X=kept")
        kill(s)
        equal(s.run("echo $X"), "kept")
        # as those would leave it that crashed before they were ready
        kill(s, None, TRIES, (2 * CRASH).to_bytes(4, sys.byteorder))
        a = s.action("echo [$X] $PWD")
        equal((a.json()["content"], LOST % "/usr" in suffix(a)), ("[] /usr", True), a.json())
        equal(s.wait_log("replaced: those that went on with it died") is not None, True)


def killed_before_it_is_ready():
    """Whoever kills one kills the next as well, and it is not what that found that it died of."""
    with Server() as s:
        rng = random.Random(5)
        for turn in range(8):
            began, wait = marker(s)
            door, open_it = gate(s)
            s.run("X=kept-%d" % turn)
            b = s.in_background("echo first; %s; %s; echo second $X" % (began, door))
            wait()
            # one that has been killed was maybe at a step; what it left here is two successors' tries
            kill(s, None, TRIES, (2).to_bytes(4, sys.byteorder))
            for _ in range(2):
                s.until("there is another", s.keeper)
                process.wait_gone(os.getpid(), rng.random() * 0.01)  # a pause of any length
                kill_keeper(s)
            open_it()
            equal((b.content(), LOST[:20] in suffix(b.answer)), ("first\nsecond kept-%d" % turn, False))


def another_supervisor():
    """After an upgrade, or after the death of the supervisor, the next keeper goes on with the shell."""
    with Server() as s:
        s.run("X=kept")
        s.upgrade()
        kill(s)
        equal(s.run("echo $X"), "kept")
        kill(s)
        equal(s.run("echo $X"), "kept")
        keeper = s.keeper()[0]
        s.kill_and_start()
        kill(s, keeper)  # which is nobody's child
        equal(s.run("echo $X"), "kept")
        equal(s.stop(), -signal.SIGTERM)


UNTRACEABLE = """import ctypes, os, struct, sys
# as in a container: the system call by which one process takes another's descriptor is refused
call, eperm = 438, 0x00050001
code = b"".join(struct.pack("=HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, eperm), (0x06, 0, 0, 0x7fff0000)))
text = ctypes.create_string_buffer(code)
filter = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(text)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, filter, 0, 0) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"""


def upgrade_in_a_container():
    """Where no process may take another's descriptors the image before hands over what keepers keep."""
    with Server(prefix=[] if BOXED else [sys.executable, "-c", UNTRACEABLE]) as s:  # the filter of a box has the call
        s.run("X=kept")
        equal(post(s, "create", name="a"), 201)
        set_it = json.dumps({"action": {"action": "run", "args": {"command": "X=kept"}}})
        get_it = set_it.replace("X=kept", "echo $X")
        head = {"Content-Type": "application/json"}
        equal(s.request("POST", V1 + "run?session=a", set_it, head).status, 200)
        for _ in range(2):
            count = sum(" ready: " in line for line in s.lines if line)
            s.send(signal.SIGUSR2)
            equal(s.wait_log(" ready: ", count=count + 1) is not None, True)
            for keeper in s.keeper():
                kill(s, keeper)
            equal(s.run("echo $X"), "kept")
            equal(s.request("POST", V1 + "run?session=a", get_it, head).json()["content"], "kept\n")
        equal("are not available" in s.log(), False)


def many_at_once():
    """Kills of the keeper while four clients send commands: none runs twice, each answer is its own
    command's or says that the shell went."""
    with Server(settings={"action_workers": 4}) as s:
        path = os.path.join(s.work_dir, "lines")
        with open(path, "w"):
            os.chmod(path, 0o666)
        told, wrong, stop = {}, [], threading.Event()

        def client(name):
            n = 0
            while not stop.is_set():
                n += 1
                token = "%s-%d" % (name, n)
                a = s.action("echo %s >>%s; seq %d; echo %s" % (token, path, n % 40, token))
                if a.status == 503:
                    continue
                content = a.json().get("content", "") if a.status == 200 else a.body.decode()
                if content.split("\n")[-1] == token:
                    told[token] = 1
                elif content.startswith("Bash session was likely interrupted") or "second time" in content:
                    told[token] = 0
                else:
                    wrong.append((token, a.status, content[-200:]))
        threads = [threading.Thread(target=client, args=(n,)) for n in "abcd"]
        for t in threads:
            t.start()
        rng, kills = random.Random(11), 0
        while kills < KILLS and not wrong:
            # one that is not ready is no keeper yet
            s.until("it is ready", lambda n=kills: ready(s) > n)
            process.wait_gone(os.getpid(), rng.random() * 0.02)
            for pid in s.keeper():
                kill_wait(pid)
                kills += 1
        stop.set()
        for t in threads:
            t.join(PATIENCE)
        equal(wrong, [])
        with open(path) as f:
            lines = f.read().split()
        went = sum(v == 0 for v in told.values())
        replaced = sum("the shell of a killed keeper is replaced" in line for line in s.lines if line)
        print("# %d commands, %d kills, %d shells replaced, %d times the shell went with its command" % (
            len(told), kills, replaced, went))
        equal((len(lines), [t for t, v in told.items() if v and t not in lines]), (len(set(lines)), []))
        equal(s.run("echo on"), "on")


TESTS = [at_rest, over_a_command, typed_command, told_to_go_on, interrupted, heavy_output, unread_input,
         in_the_middle_of_a_step, over_an_answer, its_start_fails, after_it_had_been_told_to_go_on,
         replaced_repeats_nothing, its_end,
         dies_again_and_again, killed_before_it_is_ready, another_supervisor, upgrade_in_a_container, many_at_once]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
