"""Another account of the machine looks at files: which of them it can read."""

import json
import os
import stat

UID = 54321  # of no account: neither a user's nor nginx's


def _walk(top):
    """The files below top that anybody may open, by their modes; all that is there, for who may not change accounts."""
    st = os.lstat(top)
    if stat.S_ISDIR(st.st_mode):
        names = os.listdir(top) if st.st_mode & stat.S_IXOTH else []
        return [path for name in names for path in _walk(os.path.join(top, name))]
    return [top] if stat.S_ISREG(st.st_mode) and st.st_mode & stat.S_IROTH else []


def _files(top):
    """The same, by trying it."""
    found = []
    for directory, _, names in os.walk(top):
        for path in (os.path.join(directory, name) for name in names):
            if stat.S_ISREG(os.lstat(path).st_mode) and os.access(path, os.R_OK):
                found.append(path)
    return found


def _look(tops, secrets):
    found = []
    for top in tops:
        for path in _walk(top) if os.getuid() != UID else _files(top):
            with open(path, "rb") as f:
                text = path.encode() + b"\n" + f.read()
            found.append((path, [s for s in secrets if s.encode() in text]))
    return found


def readable(tops, secrets):
    """[(path, [secrets in it])] of each file below tops that another account can read. With root it is another
    account that looks, else the modes are."""
    if os.getuid() != 0:
        return _look(tops, secrets)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(UID, UID, UID)
            os.setresuid(UID, UID, UID)
            with os.fdopen(into, "w") as f:
                json.dump(_look(tops, secrets), f)
            status = 0
        finally:
            os._exit(status)
    os.close(into)
    with os.fdopen(out) as f:
        text = f.read()
    if os.waitpid(child, 0)[1] != 0:
        raise AssertionError("the other account could not look")
    return json.loads(text)
