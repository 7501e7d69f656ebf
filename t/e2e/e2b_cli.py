"""The command of E2B (npm @e2b/cli) as a user types it; e2b_sdks.py runs this: e2b_cli.py COMMAND. It prints a line for
each feature, as e2b_program.py does."""

import json
import os
import pty
import subprocess
import sys
import traceback

COMMAND = sys.argv[1]
ENV = dict(os.environ, NO_COLOR="1", TERM="dumb")


def equal(a, b):
    assert a == b, "%r is not %r" % (a, b)


def e2b(*words, status=0, stdin=""):
    """What it prints."""
    done = subprocess.run([COMMAND, "sandbox"] + list(words), env=ENV, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=120)
    assert done.returncode == status, done.stdout
    return done.stdout


def run(s):
    equal(e2b("exec", s, "echo out; exit 3", status=3).splitlines()[0], "out")
    equal(e2b("exec", "--user", "root", "--cwd", "/tmp", s, "id -u; pwd"), "0\n/tmp\n")


def stdin(s):
    equal(e2b("exec", s, "cat", stdin="Hello,\nWorld!\n"), "Hello,\nWorld!\n")


def envs(s):
    equal(e2b("exec", "--env", "FOO=f", s, "echo $FOO"), "f\n")


def terminal(s):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [COMMAND, "sandbox", "connect", s], ENV)
    text, asked = b"", False
    while True:
        try:
            text += os.read(fd, 4096)
        except OSError:
            break
        if not asked and b"$ " in text:
            os.write(fd, b"echo $((6*7)); exit\n")
            asked = True
    os.close(fd)
    equal((os.waitpid(pid, 0)[1], b"42\r" in text), (0, True))


def pause(s):
    e2b("pause", s)
    equal(json.loads(e2b("info", "--format", "json", s))["state"], "paused")
    e2b("resume", s)
    equal(json.loads(e2b("info", "--format", "json", s))["state"], "running")


def metadata(s):
    assert s in [o["sandboxId"] for o in json.loads(e2b("list", "--format", "json"))]


def metrics(s):
    assert "Cores" in e2b("metrics", s)


def copies(s):
    name = e2b("snapshot", "create", s).split()[2]
    assert name in e2b("snapshot", "list", s)
    e2b("snapshot", "delete", name)


def kill(s):
    e2b("kill", s)
    assert s not in e2b("list", "--state", "running,paused")


def main():
    bad = False
    s = e2b("create", "--detach", "base").split()[-1]
    print("pass create", flush=True)
    for case in (run, stdin, envs, terminal, pause, metadata, metrics, copies, kill):
        name = "pty" if case is terminal else case.__name__
        if name in os.environ.get("E2B_WITHOUT", "").split():
            print("-", name, flush=True)
            continue
        try:
            case(s)
            print("pass", name, flush=True)
        except Exception as e:
            bad = True
            traceback.print_exc()
            print("fail %s %s" % (name, str(e).split("\n")[0][:200]), flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
