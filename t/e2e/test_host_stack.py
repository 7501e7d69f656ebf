#!/usr/bin/env python3
"""Exports of snapshots whose files lie in layers: the image has each layer, and an import of it has the files that an
overlay of the layers shows. The kernel makes the layers, with whiteouts and opaque directories. As root each case is
done twice, by root and by another account."""

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import BUILD  # noqa: E402
from lib.hostbox import run, stored  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from test_host_layer import blob, parts  # noqa: E402

# Mounts an overlay of the directories, the lowest one first, on the first one; the last one takes the changes of the
# commands, which are read from standard input. Without commands it prints what the overlay shows.
VIEW = r"""
import hashlib, json, os, subprocess, sys
place, *layers = sys.argv[1:]
os.makedirs(place, exist_ok=True)
work = layers[-1] + ".work"
os.makedirs(work, exist_ok=True)
more = "userxattr" if os.environ["PLAIN"] else "index=off,redirect_dir=off,metacopy=off"
if len(layers) == 1:
    place = layers[0]
else:
    subprocess.run(["mount", "-t", "overlay", "x", "-o", "lowerdir=%s,upperdir=%s,workdir=%s,%s" % (
        ":".join(reversed(layers[:-1])), layers[-1], work, more), place], check=True)
os.chdir(place)
commands = sys.stdin.read()
if commands:
    subprocess.run(["bash", "-ec", commands], check=True)
    sys.exit()
seen, files = {}, {}
for top, folders, names in os.walk("."):
    for name in folders + names:
        path = os.path.join(top, name)
        st = os.lstat(path)
        about = [oct(st.st_mode), st.st_uid, st.st_gid, int(st.st_mtime)]
        if os.path.islink(path):
            about.append(os.readlink(path))
        elif os.path.isfile(path):
            with open(path, "rb") as f:
                about.append(hashlib.sha256(f.read()).hexdigest())
        about += sorted([n, repr(os.getxattr(path, n, follow_symlinks=False))]
                        for n in os.listxattr(path, follow_symlinks=False)
                        if n.startswith("user.") and not n.startswith("user.overlay."))
        files[path] = about
        if name in names and st.st_nlink > 1:
            seen.setdefault(st.st_ino, []).append(path)
print(json.dumps([sorted(files.items()), sorted(sorted(v) for v in seen.values() if len(v) > 1)]))
"""
XATTR = "python3 -c 'import os, sys; os.setxattr(sys.argv[1], \"user.\" + sys.argv[2], b\"x\")' "

# the changes of each layer, the lowest one first
STEPS = [
    "mkdir -p d/e gone/deep full two more tree/a/b; echo 1 >d/f; echo 2 >gone/deep/f; echo 3 >full/old; "
    "echo 4 >f2d; mkdir d2f; echo 5 >d2f/x; echo one >two/a; ln two/a two/b; ln two/a two/c; ln -s d/f link; "
    "mkfifo pipe; echo 6 >again; echo 7 >tree/a/b/c; echo 8 >more/x; chmod 1777 d; " + XATTR + "d low; " +
    XATTR + "d/f low; touch -d @1000000000 d/f d/e; mkdir m; echo 9 >m/x; echo 10 >m/y",
    "rm again; rm -r gone; rm -r full; mkdir full; echo new >full/new; rm f2d; mkdir f2d; echo in >f2d/in; rm -r d2f; "
    "echo file >d2f; chmod 700 d; echo more >>two/a; rm more/x; rmdir more; rm -r tree/a; rm link; mkdir link; "
    "echo .>link/x; mkdir -p own/s; echo 1 >own/s/x; " + XATTR + "d high; touch -d @1000000001 d; rm m/x",
    "", "",  # two layers with one digest
    "echo back >again; rm -r f2d; ln -s d f2d; rm d2f; mkdir -p d2f/y; rm full/new; echo newer >full/newer; "
    "ln two/b two/d; echo c >two/c; mkdir -p gone/deep; chmod 751 gone; mkdir -p tree/a/b; rm -r link; ln -s / link; "
    "rm own/s/x; echo z >m/z",
    "rm again f2d link pipe; mkfifo again; echo low >d/e/top; rm -r tree m; mkdir m; echo last >m/last; rm two/d; "
    "touch -d @1000000002 m d/e .",
]


def words(h, *argv):
    own = [] if h.uid == 0 else ["-U", "-r"]
    return ["unshare", "-m"] + own + list(argv)


def view(h, commands, *layers):
    env = dict(h.env, PLAIN="" if h.uid == 0 else "y", PATH="/usr/bin:/bin", LC_ALL="C.UTF-8")
    done = subprocess.run(words(h, "python3", "-c", VIEW, h.path("cwd", "view"), *layers), input=commands,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd=h.path("cwd"),
                          env=env, **h.change)
    equal((done.returncode, done.stderr), (0, ""), commands)
    return None if commands else json.loads(done.stdout)


def stack(h, steps, whole, tag):
    """Makes a snapshot of that many layers. Returns the directory of its top, and those of its layers."""
    for names in (["state"], ["state", "snapshots"], ["state", "stack"]):
        if not os.path.isdir(h.path(*names)):
            h.directory(*names)
    snapshot = h.directory("state", "snapshots", tag)
    record = {"tag": tag, "sandbox": "one", "created": 1000000000, "still": True, "files": 1, "bytes": 1}
    if whole:
        record["root"] = h.directory("cwd", tag + ".root")
    h.file(json.dumps(record), "state", "snapshots", tag, "snapshot.json")
    below, layers = [record["root"]] if whole else [], []
    if whole:
        view(h, steps[0], *below)
        steps = steps[1:]
    for i, step in enumerate(steps[:-1]):
        h.directory("state", "stack", "%s%d" % (tag, i))
        layers.append(h.directory("state", "stack", "%s%d" % (tag, i), "files"))
        if step:
            view(h, step, *below, *layers)
    place = ["layers", "root", "upper"] if whole else ["root"]
    for i in range(len(place) + 1):
        h.directory("state", "snapshots", tag, "storage", *place[:i])
    top = os.path.join(snapshot, "storage", *place)
    view(h, steps[-1], *below, *layers, top)
    return below, layers, top


def export(h, tag, layers):
    argv = [os.path.join(BUILD, "handrail-layer"), "--export", h.path("state", "snapshots", tag)]
    done = subprocess.run(argv + [w for path in layers for w in ("--layer", path)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=h.env, cwd=h.path("cwd"), **h.change)
    equal((done.returncode, done.stderr), (0, b""))
    with open(h.path("cwd", tag + ".tar"), "wb") as f:
        f.write(done.stdout)
    return h.path("cwd", tag + ".tar")


def names_of(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [m.name for m in tar.getmembers()]


def compare(h, steps, whole, tag="s"):
    """An import has the files that the overlay of the layers shows. Returns the layers of the image."""
    below, layers, top = stack(h, steps, whole, tag)
    # an overlay whose changes nobody makes leaves the layers as they are
    expected = view(h, "", *below, *layers, top)
    file = export(h, tag, layers)
    files = parts(file)
    image = json.loads(blob(files, json.loads(files["index.json"])["manifests"][0]))
    config = json.loads(blob(files, image["config"]))
    equal(config["rootfs"]["diff_ids"], [d["digest"] for d in image["layers"]])
    equal((len(image["layers"]), len(config["history"])), (len(layers) + 1,) * 2)
    equal(json.loads(files["manifest.json"])[0]["Layers"], ["blobs/sha256/" + d["digest"][7:] for d in image["layers"]])
    h.ok("snapshot", "import", file, "back")
    storage = h.path("state", "snapshots", "back", "storage")
    equal(sorted(os.listdir(os.path.dirname(storage))), ["snapshot.json", "storage"])
    if whole:
        found = view(h, "", *below, os.path.join(storage, "layers", "root", "upper"))
    else:
        found = view(h, "", os.path.join(storage, "root"))
    for one, other in zip(*[f[0] for f in (expected, found)]):
        equal(one, other)
    equal(found, expected)
    record, = [s for s in json.loads(h.ok("snapshot", "ls", "--json")) if s["tag"] == "back"]
    equal((record["files"] >= len(expected[0]), record.get("root"), record["created"]),
          (True, below[0] if whole else None, 1000000000))
    h.ok("snapshot", "rm", "back")
    return [names_of(blob(files, d)) for d in image["layers"]]


def programs(h):
    """The lowest layer of a box with the host's programs is a plain directory, and the others lie on it."""
    names = compare(h, STEPS, False)
    equal([".wh.gone" in n for n in names], [False, True, False, False, False, False])
    equal(["full/.wh..wh..opq" in n for n in names], [False, True, False, False, False, False])
    equal([n == [] for n in names], [False, False, True, True, False, False])
    equal([".wh.again" in names[1], "again" in names[4], "again" in names[5]], [True] * 3)


def root(h):
    """All layers of a box with a root directory have whiteouts for what lies below."""
    names = compare(h, STEPS, True)
    equal([".wh.gone" in n for n in names], [True, False, False, False, False])
    equal([(n, "own/.wh..wh..opq" in names[0]) for n in names[3] if n.startswith("own/s/")], [("own/s/.wh.x", True)])
    equal([n for layer in names for n in layer if "d/e/top" in n], ["d/e/top"])


def missing(h):
    """A snapshot may have no top, as right after its files became a layer; the changes of /usr lie over the layers."""
    below, layers, top = stack(h, ["mkdir usr; " + STEPS[0], *STEPS[1:3]], False, "s")
    os.rmdir(top)
    for names in (["layers"], ["layers", "usr"], ["layers", "usr", "upper"], ["layers", "usr", "upper", "bin"]):
        h.directory("state", "snapshots", "s", "storage", *names)
    h.file("own", "state", "snapshots", "s", "storage", "layers", "usr", "upper", "bin", "own")
    files = parts(export(h, "s", layers))
    image = json.loads(blob(files, json.loads(files["index.json"])["manifests"][0]))
    names = [names_of(blob(files, d)) for d in image["layers"]]
    equal((names[-1], ["usr" in n for n in names]), (["usr", "usr/bin", "usr/bin/own"], [False, False, True]))
    h.ok("snapshot", "import", "s.tar", "back")
    found = view(h, "", h.path("state", "snapshots", "back", "storage", "root"))
    expected = view(h, "", *below, *layers, h.directory("cwd", "none"))
    equal([p for p in found[0]], [p for p in expected[0] if p[0] != "./usr"])
    h.fails(3, "no snapshot", "snapshot", "export", "none", "x.tar")
    equal(stored(h), ["back", "s"])


def change(r):
    """A few random changes of a small tree, in which each name is sooner or later all that a name can be."""
    lines = []
    for _ in range(12):
        path = "/".join(r.choice("abc") for _ in range(r.randint(1, 3)))
        lines.append(r.choice([
            "rm -rf %s", "rm -rf %s; mkdir %s", "test -d %s || echo {n} >%s", "rm -rf %s; echo {n} >%s", "mkdir %s",
            "ln -sfn /{n} %s", "chmod {m} %s", "test -f %s && ln -f %s a/{n}", "mv %s b/{n}",
            "mkdir %s && echo {n} >%s/x", "test -d %s && touch -d @{n}00000000 %s",
            "test ! -L %s && " + XATTR + "%s k"]).format(
                n=r.randint(1, 9), m=r.choice(["755", "700", "1711"])).replace("%s", path))
    return "".join("{ %s; } 2>/dev/null || true\n" % line for line in lines)


def chance(h, seeds=range(1, 5)):
    """Random changes in eight layers, with a seed that the name of the snapshot shows."""
    for seed in seeds:
        r = random.Random(seed)
        compare(h, ["mkdir a b c; " + change(r)] + [change(r) for _ in range(8)], seed % 2 == 0, "t%d" % seed)


def joined(h, seeds=range(1, 5)):
    """One layer that was made of several hides and shows what they do, above others and alone."""
    for seed in seeds:
        r = random.Random(seed)
        below, layers, top = stack(h, ["mkdir a b c; " + change(r)] + [change(r) for _ in range(8)], seed % 2 == 0,
                                   "j%d" % seed)
        layers.append(top)
        for first in (0, r.randint(1, 6)):
            made = h.directory("state", "joined%d" % first)
            done = subprocess.run([os.path.join(BUILD, "handrail-box"), "--join", made, *reversed(layers[first:])],
                                  stderr=subprocess.PIPE, cwd="/", env=h.env, **h.change)
            equal((done.returncode, done.stderr, os.listdir(made)), (0, b"", ["files"]))
            expected = view(h, "", *below, *layers, h.directory("cwd", "none%d" % first))
            found = view(h, "", *below, *layers[:first], os.path.join(made, "files"), h.path("cwd", "none%d" % first))
            for one, other in zip(*[f[0] for f in (expected, found)]):
                equal(one, other, (seed, first))
            equal(found, expected, (seed, first))
            shutil.rmtree(h.path("cwd", "none%d" % first))
            shutil.rmtree(made)


def refused(h):
    """A layer that is missing, or a link, and wrong arguments are errors."""
    _, layers, _ = stack(h, STEPS[:2], False, "s")
    os.symlink(layers[0], h.path("cwd", "link"))
    program = [os.path.join(BUILD, "handrail-layer"), "--export", h.path("state", "snapshots", "s")]
    for argv, status, why in ((["--layer", "none"], 125, b"none: No such file"),
                              (["--layer", "link"], 125, b"open link"), (["--layer"], 2, b"usage"),
                              (["x", "y"], 2, b"usage"), (["--layer", layers[0]] * 56, 125, b"more than 55 layers")):
        done = subprocess.run(program + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=h.env,
                              cwd=h.path("cwd"), **h.change)
        equal((done.returncode, done.stdout, why in done.stderr), (status, b"", True), (argv, done.stderr))


def with_overlays(case):
    """An ordinary user can mount overlays where user namespaces can."""
    def done(h):
        probe = subprocess.run(words(h, "mount", "-t", "tmpfs", "x", h.path("cwd")), stderr=subprocess.PIPE,
                               universal_newlines=True, cwd="/", **h.change)
        if probe.returncode:
            raise Skip("no overlay can be mounted here: " + probe.stderr.strip())
        case(h)
    done.__name__, done.__doc__ = case.__name__, case.__doc__
    return done


CASES = [with_overlays(case) for case in (programs, root, missing, chance, joined, refused)]


if __name__ == "__main__":
    sys.exit(run(CASES))
