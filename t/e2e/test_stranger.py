#!/usr/bin/env python3
"""The first hour: what somebody types who knows docker, kubectl and git but not this command, with typos and in the
wrong order, against one sandbox of this machine. Of each the exit status is looked at, and that no message needs the
source to be understood. What was typed and said is printed: it is there to be read."""

import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

# (exit status, what a message has to say, what is typed); "" for what says nothing on standard error
BEFORE = (
    (2, "", ""),
    (0, "", "help"),
    (0, "", "--help"),
    (0, "", "--version"),
    (0, "", "version"),
    (0, "", "up --help"),
    (0, "", "ps"),
    (3, 'handrail up', "run ls"),
    (3, 'handrail up', "attach"),
    (3, 'handrail up', "read x"),
    (3, 'handrail up', "put notes"),
    (3, 'handrail up', "get notes"),
    (3, 'handrail up', "logs"),
    (3, 'handrail up', "top"),
    (3, 'handrail up', "sh"),
    (3, 'handrail up', "url"),
    (3, 'there is no sandbox "default"', "down"),
    (3, "handrail ps", "down web"),
    (2, 'did you mean "up"?', "pu"),
    (2, 'did you mean "run"?', "rnu ls"),
    (3, 'there is no sandbox "default"', "start"),
    (2, "handrail up", "create box"),
    (3, '"handrail up" starts it', "exec -it default bash"),
    (2, "handrail up", "launch"),
    (2, 'one argument too many', "up a b"),
    (2, """invalid sandbox name "a b": use letters, digits""", "up 'a b'"),
    (2, """invalid sandbox name "a/b": use letters, digits""", "logs a/b"),
    (2, "at most 200", "up " + 201 * "a"),
    (2, "first a letter or a digit", "-n .a up"),
    (1, "Is a directory", "up -c folder"),
    (2, 'there is no command "ls"; did you mean "secret list"?', "secret ls"),
    (2, 'there is no command "list"; did you mean "image ls"?', "image list"),
    (2, 'there is no command "delete"; did you mean "secret rm"?', "secret delete NAME"),
    (2, '"handrail run ls -l" prints modes, sizes and times', "ls -l"),
    (3, '"handrail up box" starts it', "logs box"),
    (3, 'there is no sandbox "box"', "pause box"),
    (2, 'did you mean "handrail up --help"?', "up help"),
    (2, 'did you mean "handrail up -i python:3.12"?', "up python:3.12"),
    (2, "sandbox.volumes", "up ."),
    (2, "sandbox.volumes", "up -v .:/work"),
    (2, 'no option "--detach"', "up --detach"),
    (2, 'no option "-d"', "up -d"),
    (2, "use -r BACKEND", "up --kind docker"),
    (2, "handrail down", "up --rm"),
    (2, 'no option "--force"', "down --force"),
    (2, 'handrail: there is no option "--verson"', "--verson"),
    (2, 'did you mean "--version"?', "--verson"),
    (2, "handrail version", "-V"),
    (0, "", "help run"),
    (2, 'did you mean "run"?', "help rnu"),
    (2, "there is no sign-in", "login"),
    (2, "handrail up", "init"),
    (2, "up -i IMAGE", "pull python:3.12"),
    (3, '"handrail up nobody" starts it', "exec nobody true"),
    (2, "handrail put", "push"),
    (2, "handrail get", "commit"),
    (2, "handrail config", "set"),
    (2, "handrail rm", "destroy"),
    (2, "handrail down", "exit"),
    (2, 'there is no command "tag"; see', "tag"),
    (2, 'there is no command "box"; see', "box"),
    (2, "one argument too many; usage: handrail config", "config get sandbox.timeout"),
    (2, 'not supported, known are', "up -r podman"),
    (2, 'did you mean "docker"? Known are: box, cli,', "up -r dcoker"),
    (2, "letters, digits", "-n my/box up"),
    (2, "--set must be KEY=VALUE", "up -s timeout"),
    (2, "sandbox.timeout", "up -s sandbox.timeuot=5"),
    (2, "No such file", "up -c nowhere.toml"),
    (2, "handrail url", "port"),
    (2, "usage: handrail image preflight", "image preflight"),
    (2, 'did you mean "image preflight"?', "preflight alpine:3"),
    (1, "empty, or too long", "image preflight ''"),
    (1, "", "images"),
    (1, "packaging/payload DIR", "image preflight --payload . alpine:3"),
    (1, "unpack it by", "image preflight --payload notes alpine:3"),
    (2, '--payload cannot be used with the back-end local', "up --payload payload"),
    (2, 'the back-end local runs on this machine and has no images', "up --image python:3.12"),
    (2, 'the back-end cli runs on this machine and has no images', "up -r cli -i python:3.12"),
    (1, '"handrail up -r box" needs none', "up -r docker"),
    (2, 'option "-i" needs a value', "up -i"),
)
WITH = (
    (0, "isolates nothing", "up"),
    (0, "", "up -q"),
    (0, "", "ps"),
    (0, "", "ps --json"),
    (0, "", "ps -a"),
    (0, "", "run echo hello"),
    (0, "", "run 'echo a; echo b'"),
    (7, "", "run 'exit 7'"),
    (127, "", "run gti status"),
    (127, '"default" is a sandbox: "handrail exec default COMMAND"', "run default echo hi"),
    (2, "sandbox.limits.mem_limit", "up --memory 1g"),
    (2, "sandbox.limits.cpu_quota", "up --cpus 1"),
    (2, "sandbox.enable_gpu", "up --gpus all"),
    (2, "handrail fork [OPTION]... NAME NEW", "fork default"),
    (124, "handrail attach", "run -t 0.5 sleep 1000"),
    (124, "not run: the shell is busy", "run echo hello"),
    (130, "", "run -i C-c"),
    (2, "usage: handrail run", "run"),
    (2, "give up waiting", "run -d sleep 1"),
    (0, "", "run --env A=b env"),
    (0, "", "run -w /tmp pwd"),
    (2, "--env must be NAME=VALUE", "run -e A env"),
    (2, "is not a valid name for a variable", "run -e A-B=1 env"),
    (2, "--env must not be given with --input", "run -e A=1 -i y"),
    (0, "", "exec default echo hello"),
    (7, "", "exec default sh -c 'exit 7'"),
    (7, "", "exec -it default sh -c 'exit 7'"),
    (0, "", "exec -e A=1 -w /tmp default pwd"),
    (2, "usage: handrail exec", "exec pwd"),
    (2, "usage: handrail exec", "exec default"),
    (2, "end the command with &", "exec -d default sleep 1"),
    (3, "comes first; -n default", "exec nobody true"),
    (2, 'leave out "default:"', "put notes default:/tmp"),
    (2, 'leave out "default:"', "get default:notes"),
    (2, "handrail attach", "wait"),
    (2, "keeps its name", "rename a b"),
    (2, "--timeout must be a number", "run -t soon ls"),
    (0, "", "run -- ls -la"),
    (0, "", "attach"),
    (1, "no command runs", "run -i y"),
    (3, "handrail up prod", "-n prod run ls"),
    (2, "NAME:PATH", "cp notes /tmp"),
    (2, "NAME:PATH", "cp default:notes default:other"),
    (2, "two sandboxes", "-n prod cp notes default:"),
    (3, 'there is no sandbox "prod"', "cp notes prod:/tmp"),
    (0, "", "cp notes default:"),
    (0, "", "cp default:notes copied"),
    (0, "", "cp notes :copied"),
    (2, "invalid sandbox name", "cp notes a@b:/tmp"),
    (3, "No such file", "cp nothing-here default:/tmp"),
    (3, "not-there", "cp default:not-there ."),
    (2, "handrail read", "cat notes"),
    (3, "No such file", "put nothing-here"),
    (0, "", "put notes"),
    (0, "", "put notes sub/dir/"),
    (0, "", "put folder"),
    (0, "", "ls"),
    (0, "", "ls folder"),
    (3, "not-there", "ls not-there"),
    (0, "", "read notes"),
    (3, "not-there", "read not-there"),
    (1, "directory", "read folder"),
    (3, "not-there", "get not-there"),
    (0, "", "get notes copy"),
    (0, "", "get folder folder-copy"),
    (2, "usage: handrail get", "get"),
    (2, "usage: handrail write", "write"),
    (2, "PATH <FILE", "write a.txt hello"),
    (2, "usage: handrail edit", "edit notes"),
    (0, "", "edit notes one two"),
    (1, "absolutely-not", "edit notes absolutely-not x"),
    (0, "", "-n bare up -q -p none"),
    (1, "python3-ipykernel", "-n bare py 1+2"),
    (0, "", "-n bare down"),
    (1, "python3-ipykernel", "py 1+2"),
    (0, "", "read notes"),
    (0, "", "repo changes"),
    (1, "not in a git repository", "repo diff notes"),
    (3, "there is no file", "repo diff not-there"),
    (2, 'did you mean "repo diff"?', "diff notes"),
    (0, "", "logs"),
    (0, "", "logs default"),
    (3, 'there is no sandbox "nobody"', "logs nobody"),
    (2, "one argument too many", "logs default more"),
    (2, '"default" is one argument too many', "-n default logs default"),
    (2, 'no option "--tail"', "logs --tail 5"),
    (0, "", "top"),
    (0, "", "top --once"),
    (2, "--delay must be", "top -d soon"),
    (0, "", "inspect"),
    (0, "", "inspect default"),
    (3, "handrail ps", "inspect nobody"),
    (0, "", "stats --once default"),
    (2, "use --once", "stats --no-stream"),
    (0, "", "ps -q"),
    (0, "", "url"),
    (2, "handrail ps", "status"),
    (2, "handrail ps", "list"),
    (2, "handrail ps", "info"),
    (1, "local", "pause"),
    (1, "handrail rm default", "stop"),
    (1, "handrail rm default", "stop default"),
    (3, "no sandbox", "stop nobody"),
    (2, "invalid sandbox name", "stop a/b"),
    (2, "invalid sandbox name", "inspect default a/b"),
    (2, "give either names or --name, not both", "-n default inspect other"),
    (2, "handrail rm", "kill default"),
    (0, "", "doctor local"),
    (2, "known are: box, cli,", "doctor nowhere"),
    (2, "known are: box, cli,", "run -r nonsense true"),
    (2, "known are: box, cli,", "ps -s core.runtime=nonsense"),
    (0, "", "backends"),
    (0, "", "config"),
    (0, "", "completion"),
    (0, "", "completion zsh"),
    (0, "", "completion fish"),
    (2, "bash", "completion tcsh"),
    (2, "", "image list"),
    (2, "", "mcp --print-config emacs"),
    (2, "name the repository", "repo clone"),
    (0, "", "repo setup"),
    (2, "name the sandbox", "rm"),
    (2, "name the sandbox", "rm -f"),
    (0, "", "rm -f default"),
    (3, 'there is no sandbox "default"', "down"),
    (0, "", "down --all"),
    (0, "", "ps"),
)

# what only they understand who have read the source, or another program's
NEVER = re.compile(r"Internal server error|developer\.mozilla|Traceback|\b[A-Z]\w+(Error|Exception)\b|errno|\(null\)|"
                   r"RetryError|STATUS\$|hr_\w+|0x[0-9a-f]{4}|for url ")


def typed(h, tap, lines):
    wrong = []
    for status, says, line in lines:
        done = h(*shlex.split(line))
        tap.diag("$ handrail %s   [%d]" % (line, done.returncode))
        for text in (done.stdout, done.stderr):
            shown = text.splitlines()
            tap.diag("\n".join("  " + t[:160] for t in shown[:8] + ["..."] * (len(shown) > 8)))
        said = done.stderr
        if done.returncode != status:
            wrong.append("%s: status %d instead of %d" % (line, done.returncode, status))
        if says not in said:
            wrong.append("%s: %r does not say %r" % (line, said, says))
        if NEVER.search(said):
            wrong.append("%s: needs the source: %r" % (line, said))
        if status not in (0, 7, 127, 130) and not re.match(r"handrail: \S", said) and line:
            wrong.append("%s: says nothing: %r" % (line, said))
    equal(wrong, [], "")


def main():
    process.become_subreaper()
    tap = Tap()
    with Host(HANDRAIL_JUPYTER_PYTHON="/nonexistent/python3", DOCKER_HOST="unix:///nonexistent/docker.sock") as h:
        with open(h.path("cwd", "notes"), "w") as f:
            f.write("one\n")
        os.mkdir(h.path("cwd", "folder"))
        with open(h.path("cwd", "folder", "a.py"), "w") as f:
            f.write("print(1)\n")
        equal(len(BEFORE) + len(WITH) >= 60, True, "sixty things")
        tap.run("before there is a sandbox", typed, h, tap, BEFORE)
        tap.run("with one", typed, h, tap, WITH)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
