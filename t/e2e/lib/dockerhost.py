"""A Docker Engine for tests and benchmarks, an image made of what this machine has, so that no network is
needed, and a user of both; the containers share the host's network."""

import json
import os
import shutil
import subprocess
import sys

from .host import BUILD, SRC, Host
from .tap import equal, skip_all

STARTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docker-engine")
IMAGE = "handrail-test:%d" % os.getpid()
PROGRAMS = ("bash sh cat chmod chown cp date dd dirname env getent git grep head id ln ls mkdir mktemp mv nginx nproc "
            "od ps pwd rm sed sleep stat tail test timeout touch tr true wc").split()


def engine_answers():
    return shutil.which("docker") and docker("version", stdin=subprocess.DEVNULL).returncode == 0


def find_engine():
    """An Engine in DOCKER_HOST, or this program again below one of its own."""
    if os.environ.get("DOCKER_HOST") and engine_answers():
        return
    if os.environ.get("HANDRAIL_OWN_ENGINE"):
        skip_all("the Docker Engine that was started does not answer")
    if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
        skip_all("no Docker Engine: set DOCKER_HOST, or as root install docker.io")
    os.environ["HANDRAIL_OWN_ENGINE"] = "1"
    done = subprocess.run([STARTER, sys.executable, os.path.abspath(sys.argv[0])] + sys.argv[1:],
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 77:
        skip_all("no Docker Engine: " + done.stderr.strip())
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)


def docker(*argv, **more):
    return subprocess.run(("docker",) + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def libraries(path):
    text = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout
    return [w for w in text.split() if w.startswith("/")]


def copy_into(root, path):
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


def make_image(top, more=None, owned=None):
    """A root file system of the programs under test and what they need from this machine, more texts by
    path, and the owners of directories that are not root's."""
    root = os.path.join(top, "root")
    for d in ("tmp", "run", "proc", "dev", "sys", "root", "etc", "var/log/nginx", "var/lib/nginx", "openhands/sbin",
              "openhands/libexec/handrail", "openhands/conf", "usr/bin"):
        os.makedirs(os.path.join(root, d))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    for link, to in (("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        os.makedirs(os.path.join(root, to), exist_ok=True)
        os.symlink(to, os.path.join(root, link))
    os.symlink("bin", os.path.join(root, "usr/sbin"))
    for name in PROGRAMS:
        path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        assert path, name + " is not on this machine"
        shutil.copy2(os.path.realpath(path), os.path.join(root, "usr/bin", name))
        for lib in libraries(path):
            copy_into(root, lib)
    for name, to in (("handraild", "openhands/sbin"), ("handrail-worker", "openhands/libexec/handrail"),
                     ("handrail-session", "openhands/libexec/handrail"),
                     ("handrail-charset.so", "openhands/libexec/handrail"),
                     ("handrail-kind.so", "openhands/libexec/handrail"),
                     ("handrail-zip.so", "openhands/libexec/handrail"),
                     ("handrail-line.so", "openhands/libexec/handrail"),
                     ("handrail-envd", "openhands/libexec/handrail"),
                     ("handrail-git", "openhands/libexec/handrail"),
                     ("handrail-agent-server", "openhands/libexec/handrail"),
                     ("handrail-jupyter", "openhands/libexec/handrail"),
                     ("handrail-bound", "openhands/libexec/handrail"),
                     ("handrail-bash-events", "openhands/libexec/handrail"),
                     ("handrail-office", "openhands/libexec/handrail")):
        real = os.path.join(BUILD, ".libs", name)
        path = real if os.path.exists(real) else os.path.join(BUILD, name)
        if name == "handrail-office" and not os.path.exists(path):
            continue  # configured without it
        shutil.copy2(path, os.path.join(root, to, name))
        for lib in libraries(path):
            copy_into(root, lib)
    shutil.copytree(os.path.join(SRC, "conf"), os.path.join(root, "openhands/conf"), dirs_exist_ok=True)
    nss = "/lib/x86_64-linux-gnu/libnss_files.so.2"
    if os.path.exists(nss):
        copy_into(root, nss)
    for magic in ("/usr/lib/file/magic.mgc",):
        if os.path.exists(magic):
            copy_into(root, magic)
    locale = "/usr/lib/locale/C.utf8"  # without it each worker says that it is missing
    if os.path.isdir(locale):
        shutil.copytree(locale, root + locale)
    with open(os.path.join(root, "etc/passwd"), "w") as f:
        f.write("root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n")
    with open(os.path.join(root, "etc/group"), "w") as f:
        f.write("root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n")
    for path, text in (more or {}).items():
        with open(root + path, "w") as f:
            f.write(text)
    for path, uid in (owned or {}).items():
        os.makedirs(os.path.join(root, path), exist_ok=True)
        os.chown(os.path.join(root, path), uid, uid)
    subprocess.run([os.path.join(SRC, "runtime-image/install-shims.sh"), os.path.join(root, "openhands")], check=True)
    for folder, _, names in os.walk(os.path.join(root, "openhands")):
        for name in names:  # the shims name the prefix they were installed to
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                text = f.read()
            if not os.path.islink(path) and text.startswith(b"#!") and root.encode() in text:
                with open(path, "wb") as f:
                    f.write(text.replace(root.encode(), b""))
    tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    done = docker("import", "--change", "ENV SU_TO_USER=false HANDRAIL_LIBEXECDIR=/openhands/libexec/handrail "
                  "HANDRAIL_DATADIR=/openhands/conf LC_ALL=C.UTF-8", "--change",
                  "ENV PATH=/usr/bin", "-", IMAGE, stdin=tar.stdout)
    tar.stdout.close()
    tar.wait()
    equal(done.returncode, 0, done.stderr)


class DockerHost(Host):
    def __init__(self, **env):
        super().__init__(RUNTIME="docker", SANDBOX_RUNTIME_CONTAINER_IMAGE=IMAGE, SANDBOX_USE_HOST_NETWORK="true",
                         SANDBOX_RUNTIME_BINDING_ADDRESS="127.0.0.1", RUN_AS_OPENHANDS="false",
                         DOCKER_HOST=os.environ["DOCKER_HOST"])
        # names of containers are shared with whoever else uses this Engine
        self.name = "t%d" % os.getpid()
        self.env.update(env)

    def __call__(self, command, *argv, **more):
        if command not in ("ps", "image", "images", "pool", "--help") and "--all" not in argv:
            argv = ("-n", self.name) + argv
        return super().__call__(command, *argv, **more)

    def inspect(self):
        return json.loads(docker("inspect", "openhands-runtime-" + self.name).stdout)[0]
