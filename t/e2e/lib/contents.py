"""What recorded conversations say of files: made before a step, looked at after it, sent in parts
and found in archives (t/corpus/actions/README)."""

import base64
import hashlib
import io
import os
import shutil
import stat
import zipfile


def to_bytes(content, fill):
    """The bytes that a content object stands for; fill() replaces placeholders in texts."""
    if isinstance(content, str):
        return fill(content).encode("utf-8", "surrogatepass")
    if "text" in content:
        return fill(content["text"]).encode("utf-8", "surrogatepass")
    if "b64" in content:
        return base64.b64decode(content["b64"])
    if "repeat" in content:
        text = content["repeat"] * content["times"] + content.get("then", "")
        return fill(text).encode()
    if "numbered" in content:
        numbers = range(content["from"], content["to"] + 1)
        return "".join(content["numbered"].replace("{n}", str(n)) for n in numbers).encode()
    raise ValueError("content of an unknown form: %r" % content)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def make(root, files, fill):
    """Creates, changes and removes files below root."""
    for name, content in files.items():
        path = os.path.join(root, fill(name))
        if content is None:
            remove(path)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        is_object = isinstance(content, dict)
        if is_object and content.get("dir"):
            os.makedirs(path, exist_ok=True)
            mode = 0o755
        elif is_object and "symlink" in content:
            remove(path)
            os.symlink(fill(content["symlink"]), path)
            continue
        else:
            with open(path, "wb") as f:
                f.write(to_bytes(content, fill))
            mode = 0o644
        if is_object and "mode" in content:
            mode = int(content["mode"], 8)
        os.chmod(path, mode)
        if is_object and "mtime" in content:
            os.utime(path, (content["mtime"],) * 2)


def _look(path, want, fill):
    """What is wrong with one path; None: nothing."""
    if want is None:
        return "exists" if os.path.lexists(path) else None
    if not os.path.lexists(path):
        return "is missing"
    is_object = isinstance(want, dict)
    if is_object and "symlink" in want:
        got = os.readlink(path) if os.path.islink(path) else None
        return None if got == fill(want["symlink"]) else "links to %r" % got
    if is_object and "mode" in want:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode != int(want["mode"], 8):
            return "has mode %04o, not %s" % (mode, want["mode"])
    if is_object and want.get("dir"):
        return None if os.path.isdir(path) else "is no directory"
    if not os.path.isfile(path):
        return "is no file"
    with open(path, "rb") as f:
        data = f.read()
    if is_object and "sha256" in want:
        if len(data) == want["size"] and hashlib.sha256(data).hexdigest() == want["sha256"]:
            return None
        return "has %d other bytes" % len(data)
    expected = to_bytes(want, fill)
    return None if data == expected else "holds %r, not %r" % (data[:200], expected[:200])


def check(root, files, fill):
    """A list of differences between what is below root and what should be."""
    wrong = []
    for name, want in files.items():
        found = _look(os.path.join(root, fill(name)), want, fill)
        if found is not None:
            wrong.append("%s %s" % (fill(name), found))
    return wrong


def check_zip(data, entries, fill):
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.testzip() is not None:
                return ["the archive is damaged"]
            got = {info.filename: (archive.read(info), info.external_attr >> 16)
                   for info in archive.infolist()}
    except zipfile.BadZipFile as error:
        return ["no archive: %s: %r" % (error, data[:200])]
    wrong = []
    want = {fill(name): content for name, content in entries.items()}
    if set(got) != set(want):
        wrong.append("entries %r, not %r" % (sorted(got), sorted(want)))
    for name in set(got) & set(want):
        expected = to_bytes(want[name], fill)
        if got[name][0] != expected:
            wrong.append("entry %s holds %r, not %r" % (name, got[name][0][:200], expected[:200]))
        mode = want[name].get("mode") if isinstance(want[name], dict) else None
        if mode is not None and got[name][1] != int(mode, 8):
            wrong.append("entry %s has mode %o, not %s" % (name, got[name][1], mode))
    return wrong
