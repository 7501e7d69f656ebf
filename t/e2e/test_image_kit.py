#!/usr/bin/env python3
"""What images are made of: the kit as it is installed, the lock file, the shims behind the start command
of an unmodified client, and the scripts that run in an image. No engine is needed."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.tap import Skip, Tap, equal  # noqa: E402

SRC = os.environ.get("abs_top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = os.path.join(SRC, "runtime-image")


def sh(*argv, env=None, **more):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, env=env, **more)


class Place:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="handrail-kit-")
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def program(self, name, text):
        """A new file, in this directory: never through a link, such as those of a virtual environment."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        equal(os.path.realpath(os.path.dirname(path)), os.path.join(os.path.realpath(self.dir), os.path.dirname(name)),
              "a directory of its own")
        with open(path, "x") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path


def tree(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, top)] = (os.stat(path).st_mode & 0o777, f.read())
    return found


def kit_is_whole_and_the_same():
    with Place() as p:
        for name, mask in (("a", 0o022), ("b", 0o077)):
            made = sh("sh", "-c", "umask %03o; exec %s/mkkit %s %s" % (mask, RECIPE, SRC, p.path(name)))
            equal((made.returncode, made.stderr), (0, ""), "mkkit")
        a, b = tree(p.path("a")), tree(p.path("b"))
        equal(sorted(a), sorted(b), "files")
        equal(a == b, True, "the same bytes and modes whatever the umask")
        for name in ("Dockerfile.in", "deps.conf", "deps.lock", "install-deps.sh", "install-python.sh",
                     "runtime/configure.ac", "runtime/autogen.sh", "runtime/src/supervisor/main.c",
                     "runtime/t/local.mk",
                     "runtime/runtime-image/start.sh.in", "runtime/conf/nginx.conf.in"):
            equal(name in a, True, name)
        made = [n for n in a if n.endswith((".o", ".lo", ".la", "/Makefile.in", "/configure", "/config.h"))]
        equal(made, [], "products of a build")


def kit_can_be_built():
    """By the commands of the image, up to what the compiler would do: all that they need is in the kit."""
    if not shutil.which("autoreconf") or not shutil.which("libtoolize"):
        raise Skip("no autoreconf or libtoolize: install autoconf, automake and libtool")
    with Place() as p:
        made = sh(os.path.join(RECIPE, "mkkit"), SRC, p.path("kit"))
        equal((made.returncode, made.stderr), (0, ""), "mkkit")
        with open(p.path("kit", "Dockerfile.in")) as f:
            asked = re.search(r"\./configure ([^;]*);", f.read().replace("\\\n", " "))
        env = {n: v for n, v in os.environ.items() if not n.startswith(("MAKE", "MFLAGS"))}
        done = sh("sh", "-e", "-c", "./autogen.sh; ./configure %s; make -n all install-strip DESTDIR=%s"
                  % (asked.group(1), p.path("dest")), env=env, cwd=p.path("kit", "runtime"))
        equal(done.returncode, 0, done.stderr[-2000:])
        for name in ("handraild", "handrail-worker", "handrail-session"):
            equal(re.search(r"-o %s .*\n" % name, done.stdout) is not None, True, "links " + name)


def lock_file_fits_the_recipe():
    recipe = sh(os.path.join(RECIPE, "recipe"))
    equal(recipe.returncode, 0, recipe.stderr)
    with open(os.path.join(RECIPE, "deps.lock")) as f:
        lines = f.read().splitlines()
    want = "template sha256:" + hashlib.sha256(recipe.stdout.encode()).hexdigest()
    equal(lines[-1], want, "the last line of deps.lock; \"make deps-lock\" brings it up to date")
    equal(lines[:-1], sorted(lines[:-1]), "order")
    asked = set()
    with open(os.path.join(RECIPE, "deps.conf")) as f:
        for line in f:
            words = line.split()
            if words[:1] == ["apt"]:
                asked.update(words[2:])
    equal({line.split()[2].split("=")[0] for line in lines[:-1]}, asked, "packages")


def image_has_what_configure_needs():
    """A library that the programs of a sandbox come to need is asked for in the image, too."""
    with open(os.path.join(SRC, "configure.ac")) as f:
        needs = re.findall(r"^HR_NEED\(\[\w+\], \[[^]]*\], \[([^]]*)\]\)", f.read(), re.M)
    equal(len(needs) > 5, True, "found in configure.ac")
    with open(os.path.join(RECIPE, "deps.conf")) as f:
        asked = {word for line in f if line.startswith("apt build ") for word in line.split()[2:]}
    equal([n for n in needs if n not in asked], [], "missing from the apt lines of deps.conf (see the others there)")


class Shims(Place):
    """The start command's parts below a prefix, with a server that tells what it was given."""

    def __enter__(self):
        super().__enter__()
        done = sh(os.path.join(RECIPE, "install-shims.sh"), self.dir)
        equal((done.returncode, done.stderr), (0, ""), "install-shims.sh")
        self.program("sbin/handraild",
                     '#!/bin/sh\nprintf "%s\\n" "PATH=$PATH" "SHIM=${HANDRAIL_SHIM_PATH-none}" "$@"\n')
        return self

    def start(self, *argv, **env):
        whole = {"PATH": "/usr/bin:/bin"}
        whole.update(env)
        return sh(self.path("micromamba/bin/micromamba"), *argv, env=whole)


CLIENT = ("run", "-n", "openhands", "poetry", "run", "python", "-u", "-m", "openhands.runtime.action_execution_server")
ARGS = ("30131", "--working-dir", "/work space", "--plugins", "agent_skills", "jupyter", "vscode", "--username",
        "openhands", "--user-id", "1000", "--no-enable-browser")


def start_command_with_key():
    with Shims() as p:
        done = p.start(*CLIENT, *ARGS, SESSION_API_KEY="k")
        equal(done.stdout.splitlines(), ["PATH=/usr/bin:/bin", "SHIM=none", "--listen", "0.0.0.0"] + list(ARGS),
              "what handraild sees" + done.stderr)


def start_command_without_key():
    with Shims() as p:
        done = p.start(*CLIENT, *ARGS, HANDRAIL_LISTEN="127.0.0.1")
        equal(done.stdout.splitlines()[2:],
              ["--listen", "127.0.0.1"] + list(ARGS) + ["--allow-unauthenticated"], "what handraild sees")


def the_viewers_address():
    """Clients look for it there in a container; a container may say otherwise."""
    with Shims() as p:
        os.unlink(p.path("sbin/handraild"))
        p.program("sbin/handraild", '#!/bin/sh\nprintf "%s\\n" "$HANDRAIL_VIEWER_URL_FILE"\n')
        for env, want in (({}, "/tmp/oh-server-url"), ({"HANDRAIL_VIEWER_URL_FILE": "/run/v"}, "/run/v"),
                          ({"HANDRAIL_VIEWER_URL_FILE": ""}, "")):
            equal(p.start(*CLIENT, *ARGS, **env).stdout, want + "\n", env)


def directory_of_downloads():
    """It is there from the start on where there is a browser, as with the original."""
    with Shims() as p:
        def made(name, *args):
            work = p.path(name)
            args = [arg.replace("DIR", work) for arg in args]
            done = p.start(*CLIENT, "30131", *args, HANDRAIL_BROWSER_CHROMIUM="/bin/true")
            equal((done.returncode, done.stderr, done.stdout.splitlines()[4:]),
                  (0, "", ["30131"] + args + ["--allow-unauthenticated"]))
            return os.listdir(work) if os.path.isdir(work) else None

        equal(made("a", "--working-dir", "DIR"), [".downloads"])
        equal(made("a", "--working-dir", "DIR"), [".downloads"], "once more")
        equal(made("b c", "--working-dir=DIR", "--plugins", "vscode"), [".downloads"])
        equal(made("d", "--working-dir", "DIR", "--no-enable-browser"), None)


def start_command_by_each_way():
    """That of every client is known as a whole; another one goes from stand-in to stand-in."""
    with Shims() as p:
        for env in ({}, {"HANDRAIL_SHIM_PATH": "/bin"}):
            short = p.start(*CLIENT, *ARGS, **env)
            long = p.start(*CLIENT[:-2], "-B", *CLIENT[-2:], *ARGS, **env)
            equal((short.returncode, short.stdout), (0, long.stdout), "%r: %s" % (env, short.stderr + long.stderr))
            again = p.start("run", "poetry", "run", "micromamba", *CLIENT, *ARGS, **env)
            equal((again.returncode, again.stdout), (0, long.stdout), "%r: %s" % (env, again.stderr))
        one = p.start("run", " ".join(CLIENT[3:]), *ARGS)
        equal((one.returncode, one.stdout), (127, ""), "words that are one")


def other_python():
    with Shims() as p:
        done = p.start(*CLIENT[:-3], "-c", "import os; print(os.environ['PATH'])")
        equal(done.stdout, "/usr/bin:/bin\n", "the image's own Python, with the PATH as it was")
        done = p.start("run", "-n", "x", "python", "-m", "json.tool", "--help")
        equal((done.returncode, "json.tool" in done.stdout), (0, True), "another module")


def agent_server(p, *argv, name="libexec/handrail/agent-server", **env):
    return sh(p.path(name), *argv, env=dict({"PATH": "/usr/bin:/bin"}, **env))


def entry_of_openhands_v1():
    """The arguments and variables of the original's server become handraild's."""
    with Shims() as p:
        os.unlink(p.path("sbin/handraild"))
        p.program("sbin/handraild", '#!/bin/sh\nprintf "%s\\n" "$@"; env | grep -e KEY -e ^HANDRAIL_ -e ^OH_ | sort\n')
        account = ["--username", "openhands", "--user-id", "10001"] if os.geteuid() == 0 else []
        usual = ["--working-dir", "/workspace", "--plugins", "agent-server"]
        python = "HANDRAIL_AGENT_SERVER_PYTHON=" + p.path("agent-server/bin/python")
        done = agent_server(p, "--host", "0.0.0.0", "--port", "60000", SESSION_API_KEY="old", OH_SESSION_API_KEYS_0="k")
        lines = done.stdout.splitlines()
        secret = [line for line in lines if line.startswith("OH_SECRET_KEY=")]
        equal([line for line in lines if line not in secret],
              ["--listen", "0.0.0.0", "60000", *usual, *account, python, "HANDRAIL_OPENHANDS_V1=true",
               "SESSION_API_KEY=k"], done.stderr)
        equal(len(secret[0]), len("OH_SECRET_KEY=") + 64)
        again = agent_server(p, SESSION_API_KEY="k").stdout.splitlines()
        equal((again[:3], [x for x in again if "SECRET" in x]), (["--listen", "0.0.0.0", "8000"], secret), "the same")
        given = agent_server(p, "--port=1", SESSION_API_KEY="k", OH_SECRET_KEY="s", OH_X="y").stdout.splitlines()
        equal((given[2], "OH_SECRET_KEY=s" in given, "OH_X=y" in given), ("1", True, True))
        done = agent_server(p, "--import-modules", "a,b", "--extra-python-path=/c", OH_EXTRA_PYTHON_PATH="/d")
        lines = done.stdout.splitlines()
        equal(lines[:2] + lines[7:], ["--listen", "127.0.0.1", "--allow-unauthenticated", *account,
                                      "HANDRAIL_AGENT_SERVER_MODULES=a,b", python, "HANDRAIL_OPENHANDS_V1=true",
                                      "OH_EXTRA_PYTHON_PATH=/c:/d"])
        for argv in (["--reload"], ["--check-browser", "x"], ["word"], ["--port"]):
            done = agent_server(p, *argv)
            equal((done.returncode, "is not supported by this image" in done.stderr), (2, True), argv)
        p.program("agent-server/bin/python", '#!/bin/sh\nprintf "%s\\n" python "$@"\n')
        os.symlink(p.path("libexec/handrail/agent-server"), p.path("python"))
        equal(agent_server(p, "-m", "json.tool", name="python").stdout.split(), ["python", "-m", "json.tool"])
        done = agent_server(p, "-m", "openhands.agent_server", "--port", "5", name="python")
        equal(done.stdout.split()[:3], ["--listen", "127.0.0.1", "5"])


def no_python():
    with Shims() as p:
        os.mkdir(p.path("empty"))
        for name in ("sh", "cat", "env"):
            os.symlink("/bin/" + name, p.path("empty", name))
        done = p.start(*CLIENT[:-2], "thing.py", PATH=p.path("empty"))
        equal((done.returncode, done.stderr), (127, "python: there is no Python in this image\n"), "no Python")


def shims_refuse():
    with Shims() as p:
        for argv, text in ((("install", "x"), "only \"micromamba run\""), (("run",), "run what?"),
                           (("run", "-n"), "-n needs a value"), (("run", "poetry", "install"), "only \"poetry run")):
            done = p.start(*argv)
            equal((done.returncode, text in done.stderr), (2, True), "%r: %s" % (argv, done.stderr))


def distributions():
    """The package manager that is there decides what is installed; only the set agent has tmux."""
    for manager, packages in (("apt-get", "libfcgi-dev"), ("apk", "fcgi-dev"), ("dnf", "fcgi-devel"),
                              ("microdnf", "fcgi-devel")):
        with Place() as p:
            os.mkdir(p.path("bin"))
            for name in ("sed", "tr", "dirname", "sh"):
                os.symlink(shutil.which(name), p.path("bin", name))
            p.program("bin/" + manager, "#!/bin/sh\nexit 99\n")
            done = sh("/bin/sh", os.path.join(RECIPE, "install-deps.sh"), "build", "run", "--with-browser",
                      env={"PATH": p.path("bin"), "HANDRAIL_DRY_RUN": "1"})
            words = done.stdout.split()
            equal((done.returncode, words[:1], packages in words, "nginx" in words), (0, [manager], True, True),
                  done.stdout + done.stderr)
            more = sh("/bin/sh", os.path.join(RECIPE, "install-deps.sh"), "build", "run", "agent",
                      env={"PATH": p.path("bin"), "HANDRAIL_DRY_RUN": "1"}).stdout.split()
            equal(("tmux" in words, "tmux" in more, [w for w in more if "==" in w]), (False, True, []))


WHEEL = {"probe_x.py": "here = 1\n",
         "probe_x-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: probe-x\nVersion: 1\n",
         "probe_x-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         "probe_x-1.dist-info/RECORD": ""}


def default_python():
    """It is at a path of its own, pip may write to it, and it sees what the distribution has."""
    python = shutil.which("python3", path="/usr/bin")
    if not python or sh(python, "-c", "import ensurepip, ipykernel").returncode != 0:
        raise Skip("no Python that can do it: install python3-venv and python3-ipykernel")
    with Place() as p:
        env = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "HOME": p.path("home")}
        for time in ("made", "found"):
            done = sh("/bin/sh", os.path.join(RECIPE, "install-python.sh"), p.path("a/env"), env=env)
            equal((done.returncode, done.stderr), (0, ""), time)
        wheel = p.path("probe_x-1-py3-none-any.whl")
        with zipfile.ZipFile(wheel, "w") as z:
            for name, text in WHEEL.items():
                z.writestr(name, text)
        env["PATH"] = p.path("a/env/bin") + ":" + env["PATH"]
        done = sh("pip", "install", wheel, env=env)
        equal(("Successfully installed probe-x-1" in done.stdout, done.returncode), (True, 0), done.stderr)
        done = sh("python", "-c", "import sys, ipykernel, probe_x; print(probe_x.here, sys.executable)", env=env)
        equal(done.stdout, "1 %s\n" % p.path("a/env/bin/python"), done.stderr)
        os.unlink(p.path("a/env/bin/python"))  # a link to the distribution's
        p.program("a/env/bin/python", "#!/bin/sh\nexit 1\n")
        os.unlink(p.path("a/env/bin/pip"))
        p.program("a/env/bin/pip", "#!/bin/sh\necho \"$@\"\n")
        done = sh("/bin/sh", os.path.join(RECIPE, "install-python.sh"), p.path("a/env"), env=env)
        equal((done.stdout, "has no ipykernel" in done.stderr), ("install --no-cache-dir ipykernel\n", True),
              "one that is not the distribution's")


def accounts_of_the_payload():
    """Its start adds what is missing in /etc, line by line, and nothing that is no account."""
    with open(os.path.join(SRC, "packaging", "payload-start.sh.in")) as f:
        text = f.read()
    with Place() as p:
        # with no program on the PATH, and for a user that is not root
        script = text.replace("/etc/", p.path("etc/")).replace('[ "$UID" != 0 ] || ', "PATH=/nowhere; ")
        os.mkdir(p.path("etc"))

        def start(*argv):
            return sh("/bin/bash", "-uc", script + "\necho \"${LD_LIBRARY_PATH-none}\"", "start", *argv,
                      env={"PATH": "/usr/bin", "LD_LIBRARY_PATH": ""})

        def etc(name):
            with open(p.path("etc", name)) as f:
                return f.read()

        for argv in (("--username", "agent", "--user-id", "1001"), ("--user-id=1001", "--username=agent"),
                     ("3000", "--username", "root"), ("--username",)):
            done = start(*argv)
            equal((done.returncode, done.stdout, done.stderr), (0, "none\n", ""), repr(argv))
        agent = "agent:x:1001:0::/home/agent:@prefix@/bin/bash\n"
        root = "root:x:0:0:root:/root:@prefix@/bin/bash\n"
        nobody = "nobody:x:65534:65534:nobody:/:@prefix@/bin/bash\n"
        equal((etc("passwd"), etc("group")), (root + nobody + agent, "root:x:0:\nnogroup:x:65534:\n"))
        for name in ("a:b", "-x", "a\nroot2:x:0:0::/:/bin/sh", "a b", "../x", "a/b", ""):
            equal(start("--username", name, "--user-id", "1001").returncode, 0, name)
        for number in ("x", "0:0", "-1", "1/", ""):
            equal(start("--username", "other", "--user-id", number).returncode, 0, number)
        equal(etc("passwd"), root + nobody + agent, "what is no account")
        with open(p.path("etc/passwd"), "w") as f:
            f.write("root:x:0:0:::\nwww-data:x:33:33:::")
        start("--username", "agent")
        equal(etc("passwd").splitlines(),
              ["root:x:0:0:::", "www-data:x:33:33:::", agent.replace("1001", "1000").strip()])
        with open(p.path("etc/passwd"), "w") as f:
            f.write("root:x:0:0:::\nnginx:x:33:33:::\nagent:x:7:7:::")
        start("--username", "agent")
        equal(etc("passwd").splitlines()[2:], ["agent:x:7:7:::"], "the last one, without an end")


def no_distribution():
    with Place() as p:
        os.makedirs(p.path("bin"))
        os.makedirs(p.path("root/etc"))
        for name in ("sed", "tr", "dirname", "sh"):
            os.symlink(shutil.which(name), p.path("bin", name))
        with open(p.path("root/etc/os-release"), "w") as f:
            f.write('PRETTY_NAME="Plan 9"\n')
        env = {"PATH": p.path("bin"), "HANDRAIL_ROOT": p.path("root")}
        done = sh("/bin/sh", os.path.join(RECIPE, "install-deps.sh"), "build", env=env)
        equal((done.returncode, done.stderr), (1, "unsupported base image (no apt, apk or dnf): Plan 9\n"), "script")
        os.makedirs(p.path("root/tmp"))
        done = sh("/bin/sh", os.path.join(RECIPE, "preflight.sh"), "base", env=env)
        equal(done.returncode, 1, "preflight")
        equal("lacks package manager: unsupported base image (no apt, apk or dnf)" in done.stdout, True, done.stdout)


def preflight_of_a_runtime():
    with Shims() as p:
        env = {"PATH": os.environ["PATH"], "HANDRAIL_PREFIX": p.dir}
        done = sh("/bin/sh", p.path("libexec/handrail/preflight"), "runtime", env=env)
        lines = done.stdout.splitlines()
        for want in ("ok handraild", "ok start command", "ok bash"):
            equal(want in lines, True, done.stdout)
        os.unlink(p.path("sbin/handraild"))
        done = sh("/bin/sh", p.path("libexec/handrail/preflight"), "runtime", env=env)
        equal((done.returncode, "lacks handraild: " in done.stdout), (1, True), done.stdout)


def main():
    tap = Tap()
    for test in (kit_is_whole_and_the_same, kit_can_be_built, lock_file_fits_the_recipe,
                 image_has_what_configure_needs, start_command_with_key, start_command_without_key, the_viewers_address,
                 directory_of_downloads,
                 start_command_by_each_way, other_python, entry_of_openhands_v1, no_python, shims_refuse,
                 distributions, default_python,
                 accounts_of_the_payload, no_distribution, preflight_of_a_runtime):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


sys.exit(main())
