"""A program that is a back-end, for tests: sandboxes are directories of this machine. Its settings say what it can and
what it does wrong, at which operation."""

import base64
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import uuid

at = {"fds": {n: os.readlink("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd")
              if os.path.lexists("/proc/self/fd/" + n)}}  # before anything is opened
top = os.environ["PLAY_TOP"]


def path_of(ident):
    return os.path.join(top, "boxes", ident)


def say(ident, **what):
    sys.stdout.write(json.dumps(dict(what, id=ident)) + "\n")
    sys.stdout.flush()


def note(text):
    with open(os.path.join(top, "asked"), "a") as f:
        f.write(text + "\n")


def b64(data):
    return base64.b64encode(data).decode()


def boxes():
    os.makedirs(os.path.join(top, "boxes"), exist_ok=True)
    return [n for n in os.listdir(os.path.join(top, "boxes")) if not n.endswith(".json")]


def run(q):
    p = subprocess.Popen(["bash", "-l", "-c", q["command"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, cwd=q.get("cwd") or path_of(q["sandbox"]),
                         env=dict({"PATH": os.environ["PATH"], "HOME": top}, **q["env"]), start_new_session=True)
    threads = [threading.Thread(target=lambda f=f, n=n: [say(q["id"], **{n: b64(x)}) for x in
                                                         iter(lambda: f.read1(60000), b"")])
               for f, n in ((p.stdout, "out"), (p.stderr, "err"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    code = p.wait()
    return {"code": code if code >= 0 else 128 - code}


def launch(q):
    """A session of its own, so that it goes on when this program ends."""
    line = re.sub(r"\b4444\b", os.environ["PLAY_PORT"], q["command"])
    with open(os.path.join(top, "said"), "ab") as f:
        p = subprocess.Popen(["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                             start_new_session=True, env={"PATH": top + ":" + os.environ["PATH"], "HOME": top})
    return p.pid


def end_server(box):
    """As a sandbox's end does."""
    try:
        fd = os.pidfd_open(box.pop("server"))
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        select.select([fd], [], [])
        os.close(fd)
    except (KeyError, ProcessLookupError):
        pass


def wrong(q, fault):
    """What is done instead of an answer; True: nothing more is said."""
    do, ident = fault["do"], q["id"]
    if do == "die":
        sys.stderr.write(fault.get("words", "these are my last words \x1b[31m") + "\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "silent":
        if os.path.exists(os.path.join(top, "silent")):
            with open(os.path.join(top, "silent"), "w") as f:
                f.write(q["op"])
        for _ in sys.stdin:  # until nobody asks any more
            pass
        os._exit(0)
    elif do == "say":
        sys.stdout.write(fault["text"].replace("ID", str(ident)) + "\n")
    elif do == "endless":
        try:
            for _ in range(200):
                sys.stdout.write("x" * 65536)
        except BrokenPipeError:
            os._exit(1)
    elif do == "error":
        say(ident, error={"code": fault["code"], "message": fault["message"]})
    sys.stdout.flush()
    return True


def answer(q):
    op, ident = q["op"], q["id"]
    note(op)
    if op == "open":
        at.update(q["settings"])
    fault = at.get("fault", {})
    if fault.get("op") == op and not os.path.exists(os.path.join(top, "faulted")):
        if not fault.get("always"):
            open(os.path.join(top, "faulted"), "w").close()
        if not fault.get("after"):
            return wrong(q, fault)
    else:
        fault = {}
    ok = {}
    if op == "hello":
        ok = dict({"protocol": 1, "can": json.loads(os.environ.get("PLAY_CAN", "[]")), "title": "Play"},
                  **json.loads(os.environ.get("PLAY_HELLO", "{}")))
    elif op == "open":
        with open(os.path.join(top, "environment"), "w") as f:
            json.dump({"env": dict(os.environ), "argv": sys.argv, "credentials": q["credentials"], "fds": at["fds"]}, f)
        sys.stderr.write("a word with %s\n" % "".join(q["credentials"].values()))
        sys.stderr.flush()
    elif op == "create":
        name = "box" + uuid.uuid4().hex
        boxes()
        os.mkdir(path_of(name))
        with open(path_of(name) + ".json", "w") as f:
            json.dump({"labels": q["labels"], "state": "running"}, f)
        ok = {"id": name}
    elif op in ("look", "pause", "resume", "end", "keep", "stats", "launch", "publish"):
        if not os.path.exists(path_of(q["sandbox"])):
            return say(ident, error={"code": "gone", "message": "no such sandbox"})
        with open(path_of(q["sandbox"]) + ".json") as f:
            box = json.load(f)
        if op == "look":
            ok = {"state": box["state"]}
        elif op in ("pause", "resume", "launch"):
            box["state"] = "paused" if op == "pause" else "running"
            if op == "launch":
                box["server"] = launch(q)
            elif op == "pause":
                end_server(box)
            with open(path_of(q["sandbox"]) + ".json", "w") as f:
                json.dump(box, f)
        elif op == "publish":
            ok = {"url": os.environ["PLAY_URL"], "header": "x-play-box: " + q["sandbox"]}
            ok.update(at.get("publish", {}))
        elif op == "stats":
            ok = {"cpu_percent": 12.5, "mem_bytes": 256, "other": "x"}
        elif op == "end":
            end_server(box)
            subprocess.run(["rm", "-rf", path_of(q["sandbox"]), path_of(q["sandbox"]) + ".json"], check=True)
    elif op == "list":
        for n in boxes():
            with open(path_of(n) + ".json") as f:
                say(ident, sandbox=dict(json.load(f), id=n))
    elif op == "exec":
        ok = run(q)
    elif op == "get":
        try:
            with open(q["path"], "rb") as f:
                data = f.read()
        except FileNotFoundError:
            return say(ident, error={"code": "not-found", "message": "no file"})
        except OSError as e:
            return say(ident, error={"code": "failed", "message": str(e)})
        for i in range(0, len(data), 100000):
            say(ident, data=b64(data[i:i + 100000]))
    elif op == "put":
        data = b""
        while len(data) < q["size"]:
            data += base64.b64decode(json.loads(sys.stdin.readline())["data"])
        os.makedirs(os.path.dirname(q["path"]), exist_ok=True)
        with open(q["path"], "wb") as f:
            f.write(data)
    elif op == "shell":
        ok = {"argv": ["env", "IN=" + q["sandbox"]] + q["argv"]}
    if fault:
        return wrong(q, fault)
    return None if at.get("canceled") == ident else say(ident, ok=ok)


for one in iter(sys.stdin.readline, ""):
    request = json.loads(one)
    if "cancel" in request:
        note("cancel")
        say(request["cancel"], error={"code": "canceled", "message": "as was asked"})
        at["canceled"] = request["cancel"]
    elif request["op"] == "exec":
        threading.Thread(target=answer, args=(request,), daemon=True).start()
    else:
        answer(request)
