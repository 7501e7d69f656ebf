#!/usr/bin/env python3
"""./quickstart where everything is built: the port, what it starts, and what it prints at the end."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lib import process  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "quickstart")
DEFAULT = 3000
HANDRAIL = """#!/bin/sh
echo "$*" >>%(top)s/calls
case $1 in
doctor)
    [ -e %(top)s/boxless ] || exit 0
    printf 'ok   bash             /usr/bin/bash\nBAD  box              the kernel refuses it\n'
    exit 1
    ;;
up) for word; do case $word in *.port=*) echo "${word#*=}" >%(top)s/port ;; esac; done ;;
url)
    for word; do
        case $word in *.port=*)
            [ ! -e %(top)s/late ] || [ "${word#*=}" != "$(cat %(top)s/late)" ] || { echo "it is taken" >&2; exit 1; }
            echo "${word#*=}" >%(top)s/port
            ;;
        esac
    done
    port=$(cat %(top)s/port) || exit 3
    [ ! -e %(top)s/ended ] || { echo "handrail: it does not answer" >&2; exit "$(cat %(top)s/ended)"; }
    printf '{"server":"http://127.0.0.1:%%s","key":"k3y","vscode":null}\\n' "$port"
    ;;
run) echo "Hello $*" ;;
fleet) if [ "$3" = init ]; then echo fleet-key; else echo running; fi ;;
down) ;;
rm)
    [ ! -e %(top)s/busy ] || { echo "handrail: it is busy" >&2; exit 1; }
    rm %(top)s/port || exit 3
    ;;
*) exit 1 ;;
esac
"""
CURL = """#!/bin/sh
[ ! -e %(top)s/dead ]
"""
# Notes whether its ports can be had by others, reports that it is ready and stays.
FLEETD = """#!%(python)s
import os, signal, socket, sys

def free(option):
    host, port = sys.argv[sys.argv.index(option) + 1].split(":")
    with socket.socket() as s:
        try:
            s.bind((host, int(port)))
        except OSError:
            return "%%s reserved" %% option
        return "%%s free" %% option

with open("%(top)s/ports", "w") as f:
    f.write("\\n".join(free(option) for option in ("--listen", "--console")))
with open("%(top)s/words", "w") as f:
    f.write(" ".join(sys.argv[1:]))
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.sendto(b"READY=1", "\\0" + os.environ["NOTIFY_SOCKET"][1:])
signal.pause()
"""


class Checkout:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="unit-quickstart-")
        os.chmod(self.top, 0o755)
        for name in ("src", "t", "conf", "man", "bin", "build/root/bin", "build/root/sbin"):
            os.makedirs(os.path.join(self.top, name))
        shutil.copy(SCRIPT, self.top)
        for name in ("configure.ac", "Makefile.am", "configure", "build/Makefile"):
            self.put(name, "")
        self.put("build/options", "--prefix=%s/build/root\n" % self.top)
        self.put("bin/make", "#!/bin/sh\n")
        self.put("bin/dpkg", "#!/bin/sh\nexit 1\n")  # of versions: none is too old
        self.put("bin/dpkg-query", "#!/bin/sh\nprintf 'ii '\n")
        self.put("bin/curl", CURL % {"top": self.top})
        self.put("build/root/bin/handrail", HANDRAIL % {"top": self.top})
        self.put("build/root/sbin/handrail-fleetd",
                 FLEETD % {"top": self.top, "python": os.path.realpath(sys.executable)})

    def read(self, name):
        with open(os.path.join(self.top, name)) as f:
            return f.read()

    def put(self, name, text):
        with open(os.path.join(self.top, name), "w") as f:
            f.write(text)
        os.chmod(f.name, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.kill_fleet()
        self("fleet", "stop")
        shutil.rmtree(self.top)

    def kill_fleet(self):
        if os.path.exists(os.path.join(self.top, "build/fleet/pid")):
            pid = int(self.read("build/fleet/pid"))
            os.kill(pid, signal.SIGKILL)
            equal(process.wait_gone(pid, 60), True, "a process that was killed ends")

    def __call__(self, *words, **env):
        """Its status, its lines and what handrail was called with."""
        self.put("calls", "")
        done = subprocess.run(["./quickstart", *words], cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, env=dict(
                                  {k: v for k, v in os.environ.items() if k != "HANDRAIL_PORT"},
                                  PATH=os.path.join(self.top, "bin") + ":" + os.environ["PATH"], **env))
        return (done.returncode, done.stdout.splitlines(),
                [c for c in self.read("calls").splitlines() if c[:3] != "url" or "port=" in c])


@contextlib.contextmanager
def taken(port=0):
    """A port that somebody has: the test, or whoever had it before. Several runs of this test have it together:
    one that relied on another's would lose it when that one ends."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, port != 0)
        try:
            s.bind(("127.0.0.1", port))
            port = s.getsockname()[1]
        except OSError:
            pass
        yield port


def next_words(c, port):
    return ["  http://127.0.0.1:%d/handrail/  # its key: handrail url -n quickstart --json" % port,
            "  export PATH=%s/build/root/bin:$PATH" % c.top,
            "  handrail run -n quickstart 'echo \"Hello from $(whoami) in $PWD\"'",
            "  handrail ps                  # doc/tutorial.md continues from here",
            '  ./quickstart stop            # ends it, as "handrail rm quickstart" does']


def started():
    with Checkout() as c:
        with taken() as port:
            pass
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, lines[-5:]), (0, next_words(c, port)), lines)
        equal([line for line in lines if "{" in line or "k3y" in line], [], "neither JSON nor a key")
        equal(calls[:3], ["doctor box", "up -r box -n quickstart -s box.port=%d" % port,
                          "url -n quickstart -r box -s box.port=%d --json" % port], "as a person would type it")
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, lines[-5:], "It is running already." in lines), (0, next_words(c, port), True), lines)
        equal([w for w in calls if w.startswith("up")], [], "once")
        equal((c("status")[0], c("status")[1][-5:]), (0, next_words(c, port)), "status")
        equal(c("stop"), (0, ["The sandbox has ended."], ["rm -q quickstart"]))
        equal(c("stop")[:2], (0, ["The sandbox was not running."]))
        equal(c("status")[:2], (1, ["No sandbox is running."]))


def new_packages():
    """After new packages configure runs again, and what is built stays; other options build it again."""
    with Checkout() as c:
        note = "#!/bin/sh\necho %%s \"$@\" >>%s/calls\n" % c.top
        c.put("bin/make", note % "make")
        c.put("configure", note % "configure" + ": >Makefile\n")
        c.put("build/new-packages", "")
        built = ["make -C %s/build -j%s" % (c.top, subprocess.check_output(["nproc"], text=True).strip()),
                 "make -C %s/build install" % c.top]
        configured = ["configure --prefix=%s/build/root" % c.top]

        def calls():
            return [line for line in c()[2] if line.startswith(("make", "configure"))]
        equal(calls(), configured + built)
        equal(calls(), built)
        c.put("build/options", "--prefix=/other\n")
        equal(calls(), configured + ["make -C %s/build clean" % c.top] + built)


def no_box():
    """Where the machine allows none, a sandbox that nothing isolates comes with a warning and the reason."""
    with Checkout() as c:
        c.put("boxless", "")
        with taken() as port:
            pass
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, lines[-5:]), (0, next_words(c, port)), lines)
        equal(calls[:2], ["doctor box", "up -r local -n quickstart -s local.port=%d" % port])
        warned = [n for n, line in enumerate(lines) if line.startswith("WARNING: no box can be made here")]
        equal(lines[warned[0] + 1:warned[0] + 3],
              ['"handrail doctor box" says why:', "  BAD  box              the kernel refuses it"], lines)


def port_that_is_taken():
    with Checkout() as c:
        with taken() as port:
            status, lines, calls = c(HANDRAIL_PORT=str(port))
            said = "quickstart: HANDRAIL_PORT cannot be used: port %d: Address already in use" % port
            equal((status, lines[-1], calls), (1, said, []), lines)
        for word in ("http", "65536"):
            said = 'quickstart: HANDRAIL_PORT cannot be used: "%s" is not a number from 0 to 65535' % word
            status, lines, calls = c(HANDRAIL_PORT=word)
            equal((status, lines[-1], calls), (1, said, []), lines)
        with taken(DEFAULT):
            status, lines, calls = c()
        port = int(c.read("port"))
        note = "Port %d was taken, so this is port %d. HANDRAIL_PORT chooses another." % (DEFAULT, port)
        equal((status, port == DEFAULT, lines.count(note), note in lines[-8:], lines[-5:]),
              (0, False, 2, True, next_words(c, port)), lines)


def port_that_is_taken_late():
    """Another program takes the default port while the box starts."""
    with Checkout() as c:
        with taken() as port:
            pass
        c.put("late", str(port))
        c.put("quickstart", c.read("quickstart").replace("start quickstart 3000", "start quickstart %d" % port))
        status, lines, calls = c()
        equal(status, 0, lines)
        told = [line for line in lines if line.startswith("Port %d was taken, so this is port " % port)]
        equal(len(told), 2, lines)
        equal("box.port=" + told[0].split(".")[0].split()[-1] in calls[-2].split(), True, calls)


def ended_server():
    """The record of a sandbox outlives its server, as after a reboot."""
    with Checkout() as c:
        with taken() as port:
            pass
        c(HANDRAIL_PORT=str(port))
        c.put("dead", "")
        equal(c("status")[:2], (1, ["No sandbox is running."]))
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, calls[1:2]), (1, ["up -r box -n quickstart -s box.port=%d" % port]), lines)


def lost_server():
    """handrail says itself that it cannot reach the server, as after a reboot. Another fault of it is told."""
    with Checkout() as c:
        with taken() as port:
            pass
        c(HANDRAIL_PORT=str(port))
        c.put("ended", "5")
        equal(c("status")[:2], (1, ["No sandbox is running."]))
        status, lines, calls = c(HANDRAIL_PORT=str(port))
        equal((status, calls[1:2]), (1, ["up -r box -n quickstart -s box.port=%d" % port]), lines)
        c.put("ended", "1")
        equal(c("status")[:2], (1, ["quickstart: cannot ask for the sandbox quickstart: handrail: it does not answer"]))


def stop_that_fails():
    with Checkout() as c:
        c.put("busy", "")
        said = ["quickstart: the sandbox quickstart cannot be ended: handrail: it is busy"]
        equal(c("stop"), (1, said, ["rm -q quickstart"]))
        os.unlink(os.path.join(c.top, "busy"))
        c.put("port", "1")
        equal(c("stop")[:2], (0, ["The sandbox has ended."]))
        os.unlink(os.path.join(c.top, "build/root/bin/handrail"))
        equal(c("stop")[:2], (0, ["The sandbox was not running."]), "nothing is built")
        equal(c("status")[:2], (1, ["No sandbox is running."]), "nothing is built")


def fleet():
    """Both ports are reserved until the service has them."""
    with Checkout() as c:
        with taken() as port:
            pass
        status, lines, _ = c("fleet", HANDRAIL_PORT=str(port), HANDRAIL_FLEET_KIND="local")
        equal(c.read("ports"), "--listen reserved\n--console reserved", lines)
        words = ["  " + c.read("build/fleet/console").strip(),
                 "  export PATH=%s/build/root/bin:$PATH SANDBOX_API_KEY=$(cat %s/build/fleet/key) "
                 "SANDBOX_REMOTE_RUNTIME_API_URL=http://127.0.0.1:%d" % (c.top, c.top, port),
                 "  handrail up -r remote -s sandbox.runtime_container_image=none:1",
                 "  handrail fleet ps", "  ./quickstart fleet stop"]
        equal((status, lines[-5:]), (0, words), lines)
        status, lines, calls = c("fleet")
        equal((status, "It is running already." in lines, lines[-5:], calls), (0, True, words, []))
        c.kill_fleet()
        os.makedirs(os.path.join(c.top, "build/fleet/place/fleet/sandboxes"), exist_ok=True)
        equal(c("fleet", "stop")[:2], (0, ["The fleet was killed before; its sandboxes have ended."]))
        equal(os.path.exists(os.path.join(c.top, "build/fleet")), False, "its records")
        equal(c("fleet", "stop")[:2], (0, ["The fleet was not running."]))


def fleet_without_an_image():
    """The kind that was asked for is not replaced by another one."""
    with Checkout() as c:
        status, lines, _ = c("fleet", HANDRAIL_FLEET_KIND="docker")
        said = "quickstart: no runtime image can be built (all of it in %s/build/fleet-image.log)" % c.top
        equal((status, lines[-1], os.path.exists(os.path.join(c.top, "ports"))), (1, said, False), lines)


def fleet_for_e2b():
    """Without an Engine: boxes, and the kind local only where there are none."""
    for kind, more in (("box", ["--e2b-internet"]), ("local", [])):
        with Checkout() as c:
            if kind == "local":
                c.put("boxless", "")
            status, lines, _ = c("fleet", "--e2b", HANDRAIL_PORT="0")
            words = c.read("words").split()
            equal((status, words[words.index("--kind") + 1:]), (0, [kind] + more), lines)
            url = c.read("build/fleet/url").strip()
            equal("  export E2B_API_KEY=e2b_$(sed s/^hrk_// %s/build/fleet/key) E2B_API_URL=%s E2B_SANDBOX_URL=%s" % (
                c.top, url, url) in lines, True, lines)


def main():
    tap = Tap()
    for test in (started, new_packages, no_box, port_that_is_taken, port_that_is_taken_late, ended_server, lost_server,
                 stop_that_fails, fleet, fleet_without_an_image, fleet_for_e2b):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
