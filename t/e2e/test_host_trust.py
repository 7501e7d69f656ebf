#!/usr/bin/env python3
"""Files of somebody else's: what others can write is neither believed nor run by handrail. The other
is another user where the tests are root's, else whoever may write where everybody may."""

import contextlib
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, Host  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

OTHER = 54321  # has no account
OBJECT = os.path.join(BUILD, "t/host/.libs/libhandrail-backend-example.so")
TIMEOUT = '"timeout":77'


def put(path, text, mode=0o644, owner=None):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    if owner is not None:
        os.chown(path, owner, owner)


def need_root():
    if os.geteuid() != 0:
        raise Skip("files of another user are made by root only: run the tests as root")


@contextlib.contextmanager
def in_cwd(h, name, text, mode=0o644, owner=None, dir_mode=0o755, dir_owner=None):
    """A file of the current directory, with both as said; gone afterwards."""
    cwd = h.path("cwd")
    put(h.path("cwd", name), text, mode, owner)
    os.chmod(cwd, dir_mode)
    if dir_owner is not None:
        os.chown(cwd, dir_owner, dir_owner)
    try:
        yield
    finally:
        os.chown(cwd, os.geteuid(), os.getegid())
        os.chmod(cwd, 0o755)
        os.unlink(h.path("cwd", name))


FILES = ((".env", "SANDBOX_TIMEOUT=77\n"), ("config.toml", "[core]\n[sandbox]\ntimeout = 77\n"))


def left_out(h, name, why):
    done = h("config")
    equal((done.returncode, TIMEOUT in done.stdout.replace(" ", "")), (0, False), done.stdout)
    equal("%s is not trusted: %s" % (name, why) in done.stderr, True, done.stderr)
    done = h("config", "-c", name)
    equal((done.returncode, done.stdout, "%s is not trusted: %s" % (name, why) in done.stderr),
          (1, "", True), done.stderr)


def settings():
    with Host() as h:
        for name, text in FILES:
            with in_cwd(h, name, text):
                equal(TIMEOUT in h.ok("config").replace(" ", ""), True, "one's own %s" % name)
            with in_cwd(h, name, text, mode=0o666):
                left_out(h, name, "others may write it (mode 0666)")
            with in_cwd(h, name, text, dir_mode=0o1777):
                left_out(h, name, "others may write its directory (mode 1777)")


def settings_of_another_user():
    need_root()
    with Host() as h:
        for name, text in FILES:
            with in_cwd(h, name, text, owner=OTHER):
                left_out(h, name, "it belongs to user %d" % OTHER)
            with in_cwd(h, name, text, dir_owner=OTHER):
                left_out(h, name, "its directory belongs to user %d" % OTHER)
            # a link of theirs to a file of root's, and one of root's to a file of theirs
            os.mkdir(h.path("theirs"))
            put(h.path("theirs", "f"), text, owner=OTHER)
            put(h.path("own"), text)
            for target, owner, why in (("theirs/f", 0, "it belongs to"), ("own", OTHER, "it is a link of")):
                os.symlink(h.path(target), h.path("cwd", name))
                os.lchown(h.path("cwd", name), owner, owner)
                left_out(h, name, "%s user %d" % (why, OTHER))
                os.unlink(h.path("cwd", name))
            shutil.rmtree(h.path("theirs"))


def nothing_above_is_read():
    """Whoever may write /tmp/.env would own whoever works below /tmp."""
    with Host() as h:
        put(h.path(".env"), "RUNTIME=%s\nSANDBOX_TIMEOUT=77\n" % OBJECT)
        put(h.path("config.toml"), "[core]\n[sandbox]\ntimeout = 77\n")
        done = h("config")
        equal((done.returncode, TIMEOUT in done.stdout.replace(" ", ""), OBJECT in done.stdout, done.stderr),
              (0, False, False, ""), done.stdout)


def an_object_that_a_file_names():
    with Host() as h:
        del h.env["RUNTIME"]
        for name, text in ((".env", "RUNTIME=%s\n" % OBJECT), ("config.toml", '[core]\nruntime = "%s"\n' % OBJECT)):
            with in_cwd(h, name, text):
                h.fails(1, "core.runtime is the file %s: a shared object is taken from the command line only" %
                        OBJECT, "up")
                # the command line comes last
                h.ok("up", "-r", "cli")
                h.ok("down")
        h.env["RUNTIME"] = OBJECT
        h.fails(1, 'use "-r %s"' % OBJECT, "up")


def objects():
    with Host() as h:
        os.mkdir(h.path("lib"))
        for name in ("mine.so", "libhandrail-backend-mine.so"):
            shutil.copy(OBJECT, h.path("lib", name))
        h.env["OH_RUNTIME_PLUGIN_PATH"] = h.path("lib")
        ways = (h.path("lib", "mine.so"), "../lib/mine.so", "mine")

        def up(way):
            done = h("up", "-r", way, "--run", "x")
            h("down", "-r", way, "-q")
            return done

        for way in ways:
            equal("is not trusted" in up(way).stderr, False, up(way).stderr)
            equal(up(way).returncode, 7, "the example's only answer: %s" % up(way).stderr)
        os.chmod(h.path("lib"), 0o777)
        for way in ways:
            done = up(way)
            equal((done.returncode, "is not trusted: others may write its directory (mode 0777)" in done.stderr),
                  (1, True), done.stderr)
        os.chmod(h.path("lib"), 0o755)
        if os.geteuid() == 0:
            for name in os.listdir(h.path("lib")):
                os.chown(h.path("lib", name), OTHER, OTHER)
            for way in ways:
                done = up(way)
                equal((done.returncode, "is not trusted: it belongs to user %d" % OTHER in done.stderr),
                      (1, True), done.stderr)
        # of our own modules, too
        os.chmod(h.path("lib"), 0o777)
        shutil.copy(os.path.join(BUILD, "handrail-cli.so"), h.path("lib"))
        h.env["HANDRAIL_LIBEXECDIR"] = h.path("lib")
        h.fails(1, "handrail-cli.so is not trusted: others may write its directory", "up", "-r", "cli")
        h.env["HANDRAIL_LIBEXECDIR"] = BUILD


def records():
    """Where sandboxes are recorded: a record names a process to be ended, and holds a key."""
    with Host() as h:
        os.mkdir(h.path("state"))
        for mode, owner, why in ((0o1777, os.geteuid(), "others may write it (mode 1777)"),
                                 (0o755, OTHER, "it belongs to user %d" % OTHER)):
            if owner == OTHER and os.geteuid() != 0:
                continue
            put(h.path("state", "x.json"), '{"sid":"x","runtime":"local","backend":{}}')
            os.chmod(h.path("state"), mode)
            os.chown(h.path("state"), owner, -1)
            for words in (("ls",), ("up", "-n", "x"), ("run", "-n", "x", "true"), ("down", "-n", "x"),
                          ("down", "--all"), ("up", "-n", "y"), ("pool", "1"), ("doctor",)):
                done = h(*words)
                equal((done.returncode != 0, "state is not trusted: %s" % why in done.stderr + done.stdout),
                      (True, True), "%r %s%s" % (words, done.stdout, done.stderr))
            equal(os.listdir(h.path("state")), ["x.json"], "nothing is made there")
        shutil.rmtree(h.path("state"))


def listed():
    """What is found is named, and so is why something cannot be used."""
    with Host() as h:
        for name in ("good", "others", "empty"):
            os.mkdir(h.path(name), 0o755)
        shutil.copy(OBJECT, h.path("good", "libhandrail-backend-example.so"))
        shutil.copy(OBJECT, h.path("others", "libhandrail-backend-planted.so"))
        os.chmod(h.path("others", "libhandrail-backend-planted.so"), 0o666)
        with open(h.path("good", "libhandrail-backend-broken.so"), "w") as f:
            f.write("no object")
        h.env["OH_RUNTIME_PLUGIN_PATH"] = ":".join(h.path(n) for n in ("good", "others", "empty", "nowhere"))
        h.env["DOCKER_HOST"] = "unix://" + h.path("nobody")
        found = {x["what"]: x for x in json.loads(h.ok("backends", "--json"))}
        equal([found[n]["ok"] for n in ("cli", "local", "example")], [True] * 3, found)
        for name, why in (("docker", "Nobody answers at"), ("eventstream", "Nobody answers at"), ("e2b", "E2B_API_KEY"),
                          ("remote", "API key is required"), ("kubernetes", "There is no")):
            equal((found[name]["ok"], why in found[name]["text"]), (False, True), found[name])
        h.env["E2B_API_KEY"] = "key"
        equal([r["ok"] for r in json.loads(h.ok("backends", "-j")) if r["what"] == "e2b"], [True], "with its key")
        equal(found["example"]["text"], h.path("good", "libhandrail-backend-example.so"))
        for name, why in (("broken", "libhandrail-backend-broken.so"), ("planted", "libhandrail-backend-planted.so")):
            equal((found[name]["ok"], why in found[name]["text"]), (False, True), found[name])
        equal("ok   example" in h.ok("backends"), True, "for people")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (settings, settings_of_another_user, nothing_above_is_read, an_object_that_a_file_names, objects,
                 records, listed):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
