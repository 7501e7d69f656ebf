#!/usr/bin/env python3
"""The handrail command itself: every option's errors, and the commands that need no sandbox."""

import fcntl
import http.server
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import termios
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402


def commands(h):
    return re.findall(r"^  ((?:\w+ )?\w+)(?:, \w+)? ", h.ok("--help").split("\nOptions")[0], re.M)


def options(h, command):
    """(long name, letter or "", takes a value) of each."""
    found = re.findall(r"^  (?:-(\w),|   ) --([\w-]+)( [A-Z=]+)? ", h.ok(*command.split() + ["--help"]), re.M)
    return [(name, letter, bool(value)) for letter, name, value in found]


def every_option_alone():
    """One that needs a value is given none, one that takes none is given one; nothing happens."""
    with Host() as h:
        names = commands(h)
        equal(set("up ls ps run py read write edit put get sh logs events top pause resume down config doctor "
                  "version exec cp inspect stop".split()) - set(names), set(), "commands")
        for command in names:
            if command == "fleet doctor":  # its options are handrail-fleetd's
                continue
            has, words = options(h, command), tuple(command.split())
            equal(len(has) >= 7, True, command)
            for name, letter, value in has:
                if value:
                    h.fails(2, 'option "--%s" needs a value' % name, *words + ("--" + name,))
                    if letter:
                        h.fails(2, 'option "-%s" needs a value' % letter, *words + ("-" + letter,))
                else:
                    h.fails(2, "takes no value", *words + ("--%s=x" % name,))
            h.fails(2, 'there is no option "--nothing-such"', *words + ("--nothing-such",))
        equal(os.path.exists(h.path("state")), False, "nothing was made")


def an_argument_too_many():
    """Each command says how many arguments it takes, and refuses more, also if an option names the sandbox."""
    with Host() as h:
        for command in commands(h):
            usage = h.ok(*command.split() + ["--help"]).split("\n")[0].partition("[OPTION]...")[2]
            takes = usage.split()
            if "..." in usage or command == "fleet doctor":  # its arguments are handrail-fleetd's
                continue
            words = ["x"] * (len(takes) - (takes[:1] == ["[NAME]"] and command != "id"))
            done = h("-n", "a", *command.split() + words + ["surplus"])
            equal((done.returncode, "one argument too many" in done.stderr), (2, True), (command, done.stderr))
        equal(os.path.exists(h.path("state")), False, "nothing was made")


def wrong_values():
    """Every option that takes a value, with one that cannot be."""
    with Host() as h:
        for status, text, argv in (
                (2, "invalid sandbox name", ("up", "-n", "a/b")),
                (2, "invalid sandbox name", ("down", "a/b")),
                (2, "Runtime nonexistent not supported", ("up", "-r", "nonexistent")),
                (2, "core.runtime is empty: it must name a back-end", ("up", "-s", "core.runtime=")),
                (2, "--config-file missing.toml: No such file", ("up", "-c", "missing.toml")),
                (2, "--set must be KEY=VALUE", ("up", "-s", "x")),
                (2, "--env must be NAME=VALUE", ("up", "-e", "=x")),
                (5, "nothing_such not found; there are agent-server, ", ("up", "-p", "nothing_such")),
                (2, "--timeout must be a number of seconds above 0", ("run", "-t", "0", "x")),
                (2, "--timeout must be a number of seconds", ("py", "-t", "soon", "x")),
                (2, "--timeout must be a number of seconds", ("up", "--run", "x", "-t", "-1")),
                (2, "--most must be a number", ("fleet", "keys", "make", "x", "--most", "9" * 20)),
                (2, "the size must be a number", ("fleet", "pools", "set", "x", "9" * 20)),
                (2, "the number must be from 0 to 64", ("pool", "65")),
                (2, "--timeout needs --run", ("up", "-t", "1")),
                (2, 'invalid name of a secret "a b"', ("secret", "set", "a b")),
                (2, 'invalid name of a secret ""', ("secret", "rm", "")),
                (2, "repo clone: name the repository", ("repo", "clone")),
                (2, "the argument is not UTF-8", ("up", "--run", "\udcff")),
                (1, "too many values to unpack", ("image", "build", "-b", "a:b:c", "-d")),
                (2, 'no command "zzz"; see "handrail image --help"', ("image", "zzz")),
                (2, "usage: handrail image rm", ("image", "rm")),
                (2, "Runtime nowhere not supported, known are: box, cli, ", ("doctor", "nowhere"))):
            h.env["HANDRAIL_IMAGE_KIT"] = h.path("kit")
            if "build" in argv and not os.path.exists(h.path("kit")):
                subprocess.run([os.path.join(SRC, "runtime-image/mkkit"), SRC, h.path("kit")], check=True)
            h.fails(status, text, *argv)
        equal(os.listdir(h.path("state")) if os.path.exists(h.path("state")) else [], [], "nothing was left")


def guessed_words():
    """What a person tries first: options before the command, words of other programs."""
    with Host() as h:
        h.ok("-n", "second", "-q", "up", "-r", "cli")
        equal(json.loads(h.ok("-j", "ps"))[0]["sid"], "second", "options before the command")
        said = json.loads(h.ok("--json", "-n", "second", "run", "echo", "-n", "x"))
        equal(said["content"], "x", "and a command's own")
        equal(h.ok("-h"), h.ok("help"), "help")
        equal(h.ok("-h", "up"), h.ok("up", "--help"), "of a command")
        listed = h.ok("--help").split("\nOptions")[0]
        equal(re.findall(r"^  \S[^A-Z\n]*$", listed, re.M), [], "each command says what it does")
        h.fails(2, 'handrail: there is no option "-z"; see "handrail --help"', "-z", "up")
        h.fails(2, 'option "-n" needs a value', "-n")
        for word, here in (("kill", "handrail rm"), ("cat", "handrail read"), ("info", "handrail ps"),
                           ("rnu", 'did you mean "run"?'), ("clone", 'did you mean "repo clone"?'),
                           ("imag", 'did you mean "image"?')):
            h.fails(2, here, word, "x")
        h.fails(2, 'did you mean "fleet ps"?', "fleet", "ls")


def words_of_docker():
    """Its names where docker has them, its options, and what each leads to."""
    with Host() as h:
        h.ok("up", "-q", "box")
        h.ok("up", "-q")
        workspace = h.record("box")["backend"]["workspace"]
        equal(sorted(h.ok("ps", "-q").splitlines()), ["box", "default"], "names alone")
        equal(h.ok("exec", "box", "pwd").strip(), os.path.realpath(workspace), "exec NAME COMMAND")
        equal(h.ok("exec", "-n", "default", "echo", "box"), "box\n", "with -n no argument is a name")
        for words in (("exec", "echo", "box"), ("exec", "-it", "echo", "x")):
            h.fails(3, '"echo" was read as the sandbox\'s name', *words)
        h.fails(2, "usage: handrail exec", "exec", "echo")
        h.fails(2, 'invalid sandbox name "ls -l"', "exec", "ls -l", "box")
        for word in ("stop", "start", "rm", "inspect", "stats", "logs"):
            h.fails(3, 'there is no sandbox "nobody"', word, "nobody")
        h.fails(3, 'there is no sandbox "nobody"', "cp", "nobody:x", "x")
        equal(h("exec", "-i", "-e", "A=b c", "-w", "/tmp", "box", "sh", "-c", 'echo "$A" "$PWD" $(cat)',
                input="in").stdout, "b c /tmp in\n", "a program of its own")
        for word in ("sh", "shell"):
            equal(h.ok(word, "box", "pwd").strip(), os.path.realpath(workspace), "sh NAME")
            equal(h.ok(word, "echo", "box"), "box\n", "what is recorded nowhere is a program")
            done = h(word, "bxo", "pwd")
            equal((done.returncode, 'there is no sandbox "bxo" either' in done.stderr), (127, True), done)
        with open(h.path("cwd", "one"), "w") as f:
            f.write("1\n")
        h.ok("cp", "one", "box:two")
        with open(os.path.join(workspace, "two")) as f:
            equal(f.read(), "1\n", "into box alone")
        h.ok("cp", "box:two", "three")
        with open(h.path("cwd", "three")) as f:
            equal(f.read(), "1\n", "and out of it")
        h.fails(3, "two", "cp", ":two", "four")
        whole = json.loads(h.ok("inspect", "box", "default"))
        equal([(s["sid"], s["state"], s["runtime"]) for s in whole],
              [("box", "running", "local"), ("default", "running", "local")], "inspect")
        equal(json.loads(h.ok("inspect"))[0]["sid"], "default")
        for option in ("-f", "--follow"):
            p = h.popen("logs", "box", option)
            equal(p.stdout.readline() != "", True, "an option behind the name")
            p.kill()
            p.communicate()
        shown = dict(line.split(None, 1) for line in h.ok("stats", "box").splitlines())
        equal(["uptime" in shown, shown["resources.memory.rss"].endswith(" MiB")], [True, True], shown)
        h.fails(1, "cannot be stopped and continued", "stop", "box")
        for words in (("rm",), ("rm", "-f"), ("rm", "-q")):
            h.fails(2, "name the sandbox to end", *words)
        h.fails(2, 'there is no option "-f"', "down", "-f")
        equal(sorted(h.ok("ps", "-q").splitlines()), ["box", "default"], "rm without a name ends none")
        h.ok("rm", "-f", "default")
        h.fails(3, '"box" is a sandbox: "handrail exec box COMMAND"', "run", "box", "true")
        h.fails(3, '"handrail up bxo" starts it', "exec", "bxo", "true")
        h.ok("up", "-q")
        h.ok("rm", "-n", "box")
        h.ok("rm", "-a")
        equal(h.ok("ps", "-q"), "", "none is left")


def variables_of_one_command():
    """-e of run: what the command sees, what the shell keeps, and what is no name."""
    for kind in ("local", "cli"):
        with Host() as h:
            h.ok("up", "-q", "-r", kind)
            for value in ("b", "", "it's", 'a "b" $c `d` \\', "two\nlines", "x=y"):
                equal(h.ok("run", "-e", "A=" + value, 'printf "[%s]" "$A"'), "[%s]\n" % value, (kind, value))
                equal(h.ok("run", "-e", "A=" + value, "printenv", "A"), value + "\n", (kind, value))
            equal(h.ok("run", "-e", "A=a\r\nb\r\t\x01", 'printf "%s" "$A" | od -An -c').split(),
                  ["a", "\\r", "\\n", "b", "\\r", "\\t", "001"], "a line end of Windows stays one: " + kind)
            equal(h.ok("run", "-e", "A=1", "-e", "B=2", "-e", "A=3", "echo $A$B; cat <<X\n$B\nX"), "32\n2\n", kind)
            equal(h("run", "-e", "A=1", "(exit 9)").returncode, 9, "its status")
            equal(h.ok("run", "echo [$A]"), "[]\n", "for that command alone")
            if kind == "local":
                h.ok("run", "-e", "A=1", "mkdir d; cd d")
                equal(h.ok("run", "echo ${PWD##*/}"), "d\n", "it is the shell's own command")
            for bad in ("A-B=1", "1A=1", "A B=1", "\u00e9=1"):
                h.fails(2, "is not a valid name for a variable", "run", "-e", bad, "true")


def statuses():
    """2 is for a command line that is wrong; lack of memory and services that fail have statuses of their own."""
    class Service(http.server.BaseHTTPRequestHandler):
        status = 401

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(self.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = answer

        def log_message(self, *unused):
            pass

    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (96 << 20, 96 << 20))

    with Host() as h:
        with open(h.path("code"), "wb") as f:
            f.write(b"#" * (30 << 20))
        # AddressSanitizer needs more address space than that for itself, and aborts
        if b"__asan_init" not in open(os.path.join(BUILD, "handrail"), "rb").read():
            with open(h.path("code")) as f:
                done = h("py", "-", stdin=f, preexec_fn=little_memory)
            equal((done.returncode, done.stderr), (1, "handrail: out of memory\n"),
                  "no memory is no wrong command line")
        service = http.server.HTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        url = "http://127.0.0.1:%d" % service.server_port
        every = (("ps",), ("keys",), ("keys", "make", "a"), ("keys", "revoke", "7"), ("drain",), ("pools",),
                 ("pools", "set", "a", "1"), ("pools", "rm", "a"))
        for words in every:
            h.env.pop("SANDBOX_API_KEY", None)
            h.fails(2, "SANDBOX_API_KEY is not set", "fleet", *words)
            h.env.update(SANDBOX_API_KEY="k", SANDBOX_REMOTE_RUNTIME_API_URL=url)
            for Service.status, status in ((401, 1), (404, 3)):
                h.fails(status, "status %d" % Service.status, "fleet", *words)
        service.shutdown()
        service.server_close()
        with socket.socket() as silent:  # no other test gets its port
            silent.bind(("127.0.0.1", 0))
            h.env["SANDBOX_REMOTE_RUNTIME_API_URL"] = "http://127.0.0.1:%d" % silent.getsockname()[1]
            for words in every:
                h.fails(5, "", "fleet", *words)
        del h.env["SANDBOX_API_KEY"]
        for words in (("doctor", "remote"), ("up", "-r", "remote"), ("up", "-s", "core.runtime=remote")):
            h.fails(1, "API key is required", *words)
        equal(h.ok("ps", "-q", "-r", "remote"), "", "a list needs no key")


def unfinished():
    """Why a command was not waited for, in words that say what to do; nothing with --quiet."""
    with Host() as h:
        h.ok("-n", "x", "up", "-q")
        done = h("-n", "x", "run", "-t", "0.5", "echo a; sleep 1000")
        equal((done.returncode, done.stdout, done.stderr), (124, "a\n", (
            'handrail: the command still runs after 0.5 seconds; "handrail attach -n x" waits for its end, '
            '"handrail run -n x -i C-c" interrupts it\n')))
        done = h("-n", "x", "run", "echo ']'; echo b")
        equal((done.returncode, done.stderr.startswith("handrail: not run: the shell is busy"),
               done.stderr.count("\n")), (124, True, 1), done)
        equal(h("-n", "x", "-q", "run", "echo b").stderr, "", "--quiet")
        h("-n", "x", "run", "-i", "C-c")
        equal(h("-n", "x", "attach").returncode, 130, "it was interrupted")
        h.fails(2, 'Runtime locla not supported; did you mean "local"?', "up", "-r", "locla")


def documented():
    """What handrail(1) says of each command's JSON: {command: (members that are always there, others)}."""
    with open(os.path.join(SRC, "man/handrail.1")) as f:
        text = f.read().split(".Ss Answers in JSON\n")[1].split("\n.Ss ")[0]
    ret = {}
    for item in text.split(".It Cm ")[1:]:
        always, also = (set(re.findall(r"\w[\w.]*", " ".join(re.findall(r"^\.%s (.*)$" % macro, item, re.M))))
                        for macro in ("Va", "Em"))
        for command in item.split("\n")[0].split(" , "):
            ret[command] = always, also
    return ret


def members(value):
    """Of an object, or of all in a list; with those of extras that the manual names."""
    objects = value if isinstance(value, list) else [value]
    ret = []
    for o in objects:
        if isinstance(o, dict):
            ret.append(set(o))
            if "exit_code" in o.get("extras", {}).get("metadata", ()):
                ret[-1].add("extras.metadata.exit_code")
    return ret


def answers_in_json():
    """Every member that handrail(1) names is there, and every one that is there is named."""
    told = documented()
    with Host() as h:
        with open(h.path("cwd", "a"), "w") as f:
            f.write("one\n")
        asked = (("up", "-q"), ("run", "echo x"), ("attach",), ("put", "a"), ("read", "a"), ("edit", "a", "one", "two"),
                 ("get", "a", "b"), ("ls",), ("run", "git init -q . && git add a && git commit -qm x && echo y >>a"),
                 ("repo changes",), ("repo diff", "a"), ("repo setup",), ("repo microagents",), ("ps",),
                 ("inspect",), ("top",), ("url",), ("logs",),
                 ("doctor", "local"), ("backends",), ("id",), ("config",), ("version",), ("pool", "0"), ("down",))
        seen = set()
        for argv in asked:
            done = h(*tuple(argv[0].split()) + ("-j",) + argv[1:])
            equal((done.returncode, done.stdout[-1:]), (0, "\n"), (argv, done))
            lines = done.stdout.splitlines()
            equal(len(lines) == 1 or argv[0] == "logs", True, (argv, lines))
            always, also = told[argv[0]]
            for line in lines:
                for has in members(json.loads(line)):
                    seen.add(argv[0])
                    if argv[0] in ("run", "read", "edit"):  # an observation may have more
                        equal(always - {"extras.metadata.exit_code"} <= has, True, (argv, has))
                        equal("extras.metadata.exit_code" in has, argv[0] == "run", argv)
                    elif argv[0] != "config":
                        equal((sorted(always - has), sorted(has - always - also)), ([], []), argv)
        equal(sorted(set(a[0] for a in asked) - seen), ["ls", "repo microagents"], "names alone, and none")
        equal(sorted(c for c in set(commands(h)) - set(told) if not c.startswith("fleet ")),
              ["completion", "mcp", "sh"], "each command is told of")


def nothing_heavy_is_loaded():
    """libcurl and libcrypto take ten times as long to load as the command; a sandbox of this machine needs neither."""
    def loads(h, *argv):
        done = subprocess.run([os.path.join(BUILD, "handrail")] + list(argv), env=dict(h.env, LD_DEBUG="files"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        equal("calling init: " in done.stderr and "libjson-c" in done.stderr, True, "the loader tells")
        return done.returncode, [n for n in ("libcurl", "libcrypto", "libssl") if n in done.stderr]

    with Host() as h:
        h.ok("up", "-q")
        for argv in (("version",), ("run", "true"), ("read", "/etc/passwd"), ("ps",)):
            equal(loads(h, *argv), (0, []), argv)
        equal(loads(h, "put", "/etc/passwd"), (0, []), "put")
        # one that needs it, as forms do
        equal(loads(h, "write", "f")[:2], (0, ["libcurl", "libcrypto", "libssl"]), "write")


def events_end_with_their_reader():
    with Host() as h:
        said = subprocess.Popen([os.path.join(BUILD, "handrail"), "events"], env=h.env, cwd=h.path("cwd"),
                                stdout=subprocess.PIPE)
        equal(b"watching" in said.stdout.readline(), True, "it is there")
        said.stdout.close()
        said.wait(timeout=PATIENCE)


def doctor():
    with Host() as h:
        equal([x["what"] for x in json.loads(h.ok("doctor", "--json")) if not x["ok"]], [], "all is well")
        equal("ok   handraild " in h.ok("doctor"), True, "for people")
        equal([x["ok"] for x in json.loads(h.ok("doctor", "--json", "cli"))], [True] * 3, "cli")
        h.env["HANDRAIL_SERVER"] = "/nonexistent/handraild"
        done = h("doctor", "--json")
        bad = [(x["what"], x["text"]) for x in json.loads(done.stdout) if not x["ok"]]
        equal((done.returncode, bad), (1, [("handraild", "handraild is not properly installed. Debian: apt-get install "
                                                         "handrail-runtime; or name it in HANDRAIL_SERVER.")]))
        path, h.env["PATH"] = h.env["PATH"], h.path("cwd")
        bad = [x["text"] for x in json.loads(h("doctor", "--json").stdout) if not x["ok"]]
        equal((len(bad) >= 3, [t for t in bad if "apt-get install" not in t]), (True, []), "what mends each")
        h.env["PATH"] = path
        h.env["DOCKER_HOST"] = "unix:///nonexistent/socket"
        done = h("doctor", "docker")
        equal((done.returncode, "Nobody answers at /nonexistent/socket." in done.stdout), (1, True), done.stdout)
        equal('"systemctl start docker"' in done.stdout, True, "how to fix that")


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """As much of an Engine's API as the images need."""
    daemon_threads = True

    def __init__(self, path):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def answer(self):
                self.server.asked.append(self.command + " " + self.path)
                status, body = self.server.route(self.command, self.path)
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.send_header("api-version", "1.41")
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_DELETE = answer

        self.asked = []
        super().__init__(path, Handler)

    def route(self, method, path):
        labels = {"org.openhands.runtime": "c", "org.openhands.version": "0.62.0"}
        if path == "/_ping":
            return 200, "OK"
        if path.endswith("/version"):
            return 200, {"ApiVersion": "1.41", "Version": "20.10"}
        if "/images/json" in path:
            return 200, [{"Id": "sha256:1", "RepoTags": ["r/x:one", "r/x:two"], "Size": 5000000, "Created": 0,
                          "Labels": labels}]
        if path.endswith("/images/r/x%3Aone/json"):
            return 200, {"Config": {"Labels": labels}}
        if path.endswith("/images/foreign/json"):
            return 200, {"Config": {"Labels": None}}
        if method == "DELETE":
            return 200, [{"Untagged": "r/x:one"}]
        return 404, {"message": "No such image: x"}


def images():
    with Host() as h, Engine(h.path("socket")) as e:
        h.env["DOCKER_HOST"] = "unix://" + h.path("socket")
        threading.Thread(target=e.serve_forever, daemon=True).start()
        listed = json.loads(h.ok("images", "--json"))
        equal(e.asked[0], "GET /_ping", "the version, for little")
        equal([(x["name"], x["version"], x["bytes"]) for x in listed],
              [("r/x:one", "0.62.0", 5000000), ("r/x:two", "0.62.0", 5000000)])
        equal(h.ok("image", "ls").splitlines()[1].split()[0::5], ["5", "r/x:one"], "for people")
        equal(json.loads(h.ok("image", "--json", "rm", "r/x:one")), {"removed": "r/x:one"})
        equal(e.asked[-1], "DELETE /v1.41/images/r/x%3Aone", "what was asked")
        h.fails(1, "foreign is not a runtime image", "image", "rm", "foreign")
        h.fails(3, "No such image: x", "image", "rm", "missing")
        equal([x for x in e.asked if x.startswith("DELETE")], ["DELETE /v1.41/images/r/x%3Aone"], "only that")
        equal([x["ok"] for x in json.loads(h("doctor", "--json", "docker").stdout)], [True, True, False, True],
              "an Engine, but no image is set")
        e.shutdown()


class Events:
    """handrail events, read line by line."""

    def __init__(self, h):
        self.p = h.popen("events", "--json")

    def next(self):
        timer = threading.Timer(PATIENCE, self.p.kill)
        timer.start()
        line = self.p.stdout.readline()
        timer.cancel()
        assert line, "it ended"
        return tuple(json.loads(line)[k] for k in ("sid", "event", "detail"))

    def end(self):
        self.p.terminate()
        self.p.communicate()


def events():
    with Host() as h:
        h.ok("up", "-q", "-n", "before")
        e = Events(h)
        try:
            equal(e.next(), ("", "watching", ""))
            h.ok("up", "-q", "-n", "one")
            equal(e.next(), ("one", "up", "local"))
            pid = h.record("one")["backend"]["pid"]
            os.kill(pid, signal.SIGKILL)
            equal(e.next(), ("one", "exited", ""))
            h.ok("down", "one")
            equal(e.next(), ("one", "down", ""))
            h.ok("up", "-q", "-r", "cli", "-n", "two")
            equal(e.next(), ("two", "up", "cli"))
            h.ok("down", "before")
            equal(sorted((e.next(), e.next())), [("before", "down", ""), ("before", "exited", "")])
        finally:
            e.end()
        h.end_orphans()


def on_a_terminal(h, *argv, columns=0):
    """What it writes to a terminal that is its stderr."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    p = subprocess.Popen([os.path.join(BUILD, "handrail")] + list(argv), env=h.env, cwd=h.path("cwd"),
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    said = b""
    while select.select([master], [], [], PATIENCE)[0]:
        try:
            said += os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            break
    os.close(master)
    equal(p.wait(PATIENCE), 0, said)
    return said.decode()


def progress():
    with Host() as h:
        h.ok("up", "-q")
        with open(h.path("cwd", "big"), "wb") as f:
            f.truncate(8 << 20)
        workspace = h.record()["backend"]["workspace"]
        said = on_a_terminal(h, "put", "big", workspace)
        equal(("\r\x1b[Kupload [" in said, said.endswith("\r\x1b[K")), (True, True), said)
        equal("download " in on_a_terminal(h, "get", workspace, "back"), True, "the other way")
        for columns in (1, 2, 20):  # no line reaches the last column, after which the terminal would start another
            said = on_a_terminal(h, "put", "big", workspace, columns=columns)
            equal(max(len(part) for part in said.split("\r\x1b[K")), columns - 1, said)
        equal(on_a_terminal(h, "put", "-q", "big", workspace), "", "--quiet")
        equal(h("put", "big", workspace).stderr, "", "no terminal")


def json_everywhere():
    with Host() as h:
        with open(h.path("cwd", "f"), "w") as f:
            f.write("x\n")
        up = json.loads(h.ok("up", "--json"))
        workspace = h.record()["backend"]["workspace"]
        for argv, want in ((("put", "--json", "f", workspace), {"from": "f", "to": workspace}),
                           (("get", "--json", workspace, "out"), {"from": workspace, "to": "out"}),
                           (("repo", "setup", "--json"), {"sid": "default", "status": "0"}),
                           (("ls", "--json"), ["f"])):
            equal(json.loads(h.ok(*argv)), want, argv)
        equal(json.loads(h.ok("read", "--json", "f"))["content"], "x\n", "read")
        equal(json.loads(h.ok("write", "--json", "g", input="y"))["observation"], "write", "write")
        line = h.ok("logs", "--json").splitlines()[0]
        equal(sorted(json.loads(line)), ["line"], "logs")
        equal(sorted(json.loads(h.ok("top", "--json"))), ["idle_time", "resources", "uptime"], "top")
        equal(h.ok("top").splitlines()[0].split()[0], "uptime", "for people")
        equal(json.loads(h.ok("ps", "--json"))[0]["url"], up["url"], "ps")
        equal(sorted(json.loads(h.ok("version", "--json"))), ["version"], "version")
        equal(json.loads(h.ok("down", "--json")), {"sid": "default", "state": "gone"}, "down")


def installed_completion():
    """Commands, options, names of sandboxes, and paths in them, which are nobody's friends."""
    with Host() as h:
        env = dict(h.env, PATH=BUILD + ":" + h.env["PATH"])

        def completed(*words):
            script = ". %s/src/cli/completion/handrail; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _handrail; " \
                     "printf '%%s\\n' \"${COMPREPLY[@]}\"" % SRC
            done = subprocess.run(["bash", "-c", script, "bash", "handrail"] + list(words), env=env, cwd=h.path("cwd"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            equal(done.stderr, "", words)
            return sorted(done.stdout.split("\n")[:-1])

        h.ok("up", "-q", "-n", "first")
        h.ok("up", "-q", "-n", "second", "-r", "cli")
        bad = "e$(touch ran)`touch ran`;touch ran;.txt"
        h.ok("run", "-n", "first", "mkdir -p etwas/tief eins; touch etwas/x1 etwas/x2 '%s'" % bad)
        for words, found in (
                (("do",), ["doctor", "down"]),
                (("repo", "c"), ["changes", "clone"]),
                (("repo", "clone", "--br"), ["--branch"]),
                (("down", ""), ["first", "second"]),
                (("down", "first", "s"), ["second"]),
                (("exec", "s"), ["second"]),
                (("exec", "first", "s"), [""]),
                (("-n", "se"), ["second"]),
                (("run", "-n", "fi"), ["first"]),
                (("run", "--t"), ["--timeout"]),
                (("--na",), ["--name"]),
                (("-n", "first", "read", "etwas/x"), ["etwas/x1", "etwas/x2"]),
                (("-n", "first", "ls", "et"), ["etwas/"]),
                (("read", "-n", "nobody", "x"), [""])):
            equal(completed(*words), found, words)
        # what bash puts on the line is that name and nothing that runs
        word = [w for w in completed("-n", "first", "read", "e") if "txt" in w]
        equal(len(word), 1, word)
        equal(subprocess.run(["bash", "-c", "printf %s " + word[0]], stdout=subprocess.PIPE, cwd=h.path("cwd"),
                             universal_newlines=True).stdout, bad, "quoted")
        equal(os.listdir(h.path("cwd")), [], "nothing ran")


ZSH = """
compadd() {  # what it is given, each on a line
    local last=$@[-1]
    if [[ $argv[-2] == -a ]]; then print -rl -- ${(P)last}; fi
}
_describe() { print -rl -- ${${(P)@[-1]}%%:*} }
_files() { }
. %s
words=("$@") CURRENT=$#
_handrail
"""
FISH = "%s; complete -C (string join ' ' -- $argv) | string replace -r '\\t.*' ''"


def other_shells():
    """Every command and option is offered; zsh and fish can read what is theirs, and as bash's, they know names of
    sandboxes and the paths in them."""
    with Host() as h:
        env = dict(h.env, PATH=BUILD + ":" + h.env["PATH"])
        for command in commands(h):
            words = command.split()
            offered = [line.split("\t")[0] for line in h.ok("completion", "words", *words).splitlines()]
            equal(words[-1] in offered, True, command)
            offered = [line.split("\t")[0] for line in h.ok("completion", "words", *words + ["--"]).splitlines()]
            equal(sorted(offered), sorted("--" + name for name, _, _ in options(h, command)), command)
        h.ok("up", "-q", "-n", "first")
        bad = "e$(touch ran)`touch ran`;touch ran;.txt"
        h.ok("run", "-n", "first", "mkdir -p etwas/tief eins; touch etwas/x1 etwas/x2 '%s'" % bad)
        for shell, script, form in (("zsh", ZSH, "_handrail"), ("fish", FISH, "handrail.fish")):
            if shutil.which(shell) is None:
                continue
            name = h.path("cwd", "..", shell)
            with open(name, "w") as f:
                f.write(h.ok("completion", shell))
            for read in (name, os.path.join(SRC, "src/cli/completion", form)):
                done = subprocess.run([shell, "-n", read], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                equal((done.returncode, done.stdout), (0, b""), read)
            with open(name + ".try", "w") as f:
                f.write(script % (name if shell == "zsh" else "source " + name))
            for line, found in ((("do",), ["doctor", "down"]), (("down", ""), ["first"]), (("-n", "fi"), ["first"]),
                                (("run", "--ti"), ["--timeout"]), (("-n", "first", "read", "etwas/x"),
                                                                  ["etwas/x1", "etwas/x2"]),
                                (("-n", "first", "ls", "et"), ["etwas/"])):
                done = subprocess.run([shell, name + ".try", "handrail"] + list(line), env=env, cwd=h.path("cwd"),
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
                # those of zsh are picked from by compadd
                equal((done.stderr, sorted(w for w in done.stdout.splitlines() if w.startswith(line[-1]))),
                      ("", found), (shell, line))
            done = subprocess.run([shell, name + ".try", "handrail", "-n", "first", "read", "e"], env=env,
                                  cwd=h.path("cwd"), stdout=subprocess.PIPE, universal_newlines=True)
            equal("touch" in done.stdout, True, done.stdout)
        equal(os.listdir(h.path("cwd")), [], "nothing ran")


def manual():
    """Every command and every option is in the manual, and nothing else is."""
    with open(os.path.join(SRC, "man/handrail.1"), encoding="utf-8") as f:
        page = f.read()
    part = page.split("The commands are:")[1].split(".Ss Back-ends")[0]
    with Host() as h:
        listed = re.findall(r"^\.It Cm ((?:repo |image |fleet |net |secret |snapshot )?[a-z]+)", part, re.M)
        equal(sorted(listed), sorted(commands(h)), "commands")
        for command in commands(h):
            for name, letter, _ in options(h, command):
                equal("Fl -" + name in page or bool(letter) and "Fl " + letter in page, True, command + " --" + name)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (every_option_alone, an_argument_too_many, wrong_values, guessed_words, words_of_docker,
                 variables_of_one_command, statuses, unfinished, answers_in_json, nothing_heavy_is_loaded,
                 events_end_with_their_reader, doctor, images, events, progress, json_everywhere,
                 installed_completion, other_shells, manual):
        tap.run(test.__name__.replace("_", " "), test)
    for shell in ("zsh", "fish"):
        if shutil.which(shell) is None:
            tap.skip("completion of " + shell, "there is no %s: install the package %s" % (shell, shell))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
