#!/usr/bin/env python3
"""./quickstart with the programs of this build: the sandbox that it starts, and each line that it prints at its end."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.fleet import free_port  # noqa: E402
from lib.host import BUILD, SRC, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402


class Checkout(Host):
    """A checkout in which packages and build have nothing to do; what it installed is the build directory's."""

    def __init__(self, **env):
        super().__init__(HANDRAIL_WWWDIR=os.path.join(SRC, "www"), **env)
        for name in ("src", "t", "conf", "man", "bin", "build/root/bin", "build/root/sbin"):
            os.makedirs(self.path(name))
        shutil.copy(os.path.join(SRC, "quickstart"), self.top)
        for name in ("configure.ac", "Makefile.am", "configure", "build/Makefile"):
            self.put(name, "")
        self.put("build/options", "--prefix=%s\n" % self.path("build/root"))
        self.put("bin/make", "#!/bin/sh\n")
        self.put("bin/dpkg", "#!/bin/sh\nexit 1\n")  # of versions: none is too old
        self.put("bin/dpkg-query", "#!/bin/sh\nprintf 'ii '\n")
        for name in ("bin/handrail", "sbin/handrail-fleetd"):
            os.symlink(os.path.join(BUILD, os.path.basename(name)), self.path("build/root", name))
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        self.port = free_port()
        self.env["HANDRAIL_PORT"] = str(self.port)

    def put(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(f.name, 0o755)

    def quickstart(self, *words):
        """Its lines; it must succeed, and ask for nothing."""
        done = subprocess.run(["./quickstart", *words], cwd=self.top, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        equal(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def __exit__(self, *unused):
        try:
            self.quickstart("fleet", "stop")
        finally:
            super().__exit__()


def as_typed(c, line):
    """What a person sees who types this line of the output in the checkout."""
    done = subprocess.run(["bash", "-c", line], cwd=c.top, env=c.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    equal(done.returncode, 0, "%s\n%s" % (line, done.stdout))
    return done.stdout


def sandbox():
    """The closing lines are true: the page answers, and each command works as it stands there."""
    with Checkout() as c:
        lines = c.quickstart()
        page, path, run, ps, stop = [line.strip() for line in lines[-5:]]
        url = "http://127.0.0.1:%d" % c.port
        equal(page, url + "/handrail/  # its key: handrail url -n quickstart --json")
        equal("<title>" in as_typed(c, "curl -sS --noproxy '*' " + page.split()[0]), True, "a page")
        equal(json.loads(as_typed(c, path + "; " + page.split("its key: ")[1]))["server"], url)
        equal(as_typed(c, path + "; " + run).startswith("Hello from "), True)
        listed = [line.split() for line in as_typed(c, path + "; " + ps).splitlines()]
        boxed = "The sandbox is a box" in "\n".join(lines)
        equal(boxed, "WARNING: no box can be made here" not in "\n".join(lines), "it is the one or the other")
        equal([row[:3] for row in listed[1:]], [["quickstart", "box" if boxed else "local", "running"]])
        equal(listed[1][-1].startswith("unix:" if boxed else url), True, "the server's address")
        equal([line for line in lines if re.match(r"==> \d+ s: ", line)] != [], True, "progress, with seconds")
        equal(c.quickstart("status")[-5:], lines[-5:])
        equal(as_typed(c, stop.split("#")[0]), "The sandbox has ended.\n")
        equal(json.loads(c.ok("ps", "--json")), [])


def checked():
    """The sandbox is shown, though the proxy of the environment does not reach it. The build stays."""
    with Checkout(http_proxy="http://127.0.0.1:1") as c:
        c.put("configure", "#!/bin/sh\nexit 1\n")
        equal("Hello world" in "\n".join(c.quickstart("check")), True, "shown")


def main():
    tap = Tap()
    tap.run("sandbox", sandbox)
    tap.run("checked", checked)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
