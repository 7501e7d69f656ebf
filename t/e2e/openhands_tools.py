#!/usr/bin/env python3
"""The workspace and the tools of handrail_env.openhands with the SDK of OpenHands V1, by hand, in the build directory:

    python3.12 -m venv V && V/bin/pip install openhands-sdk openhands-tools ../contrib/python
    V/bin/python ../t/e2e/openhands_tools.py [--docker] [CASE]

With --docker the sandboxes are containers, of an image that is made of this machine's programs. A scripted model takes
the place of a real one. The cases "like_..." do the same with the SDK's own executors on this machine and compare the
observations."""

import json
import os
import re
import stat
import sys
import tempfile
import threading

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OPENHANDS_SUPPRESS_BANNER="1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import dockerhost  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SRC, "contrib", "python"))
try:
    from openhands.sdk import Agent, Conversation, LocalWorkspace, Message, TextContent, Tool
    from openhands.sdk.event import ObservationEvent
    from openhands.sdk.llm import MessageToolCall
    from openhands.sdk.testing import TestLLM
    from openhands.tools.file_editor.definition import FileEditorAction
    from openhands.tools.file_editor.impl import FileEditorExecutor as SdkEditor
    from openhands.tools.terminal.definition import TerminalAction
    from openhands.tools.terminal.impl import TerminalExecutor as SdkTerminal
    from handrail_env.client import HandrailError, handrail
    from handrail_env.openhands import FileEditorExecutor, HandrailWorkspace, TerminalExecutor
except ModuleNotFoundError as e:
    skip_all("needs the packages openhands-sdk and openhands-tools (%s): see the beginning of this file" % e)

TOOLS = ["terminal", "file_editor", "grep", "glob"]
SECRET = "s3cret-'$(id)\\n\"-value"


def scripted(*steps, tools=TOOLS, **more):
    """An agent whose model makes these calls, (tool, arguments), and then finishes."""
    said = [Message(role="assistant", content=[TextContent(text="")], tool_calls=[MessageToolCall(
        id="call_%d" % i, name=tool, arguments=json.dumps(arguments), origin="completion")])
        for i, (tool, arguments) in enumerate([*steps, ("finish", {"message": "done"})])]
    return Agent(llm=TestLLM.from_messages(said), tools=[Tool(name=name) for name in tools], **more)


def talk(agent, workspace, **more):
    """The conversation's status, and the observations of the tools."""
    seen = []
    c = Conversation(agent=agent, workspace=workspace, visualizer=None, callbacks=[seen.append], **more)
    try:
        c.send_message("go")
        c.run()
        status = c.state.execution_status.value
    finally:
        c.close()
    return status, [e.observation for e in seen if isinstance(e, ObservationEvent)]


def conversation(w):
    path = w.directory + "/new.txt"
    edit = lambda command, **more: ("file_editor", dict(more, command=command, path=path))  # noqa: E731
    status, seen = talk(scripted(
        ("terminal", {"command": "cd /tmp && A=kept"}), ("terminal", {"command": "echo $A; pwd; false"}),
        edit("create", file_text="one\ntwo\n"), edit("str_replace", old_str="two", new_str="2"), edit("view"),
        edit("undo_edit"), edit("create", file_text="x"), ("grep", {"pattern": "T[WX]O"}),
        ("glob", {"pattern": "*.txt"})), w)
    equal(status, "finished")
    equal([(o.exit_code, o.text, o.metadata.working_dir) for o in seen[:2]],
          [(0, "", "/tmp"), (1, "kept\n/tmp", "/tmp")])
    equal([o.is_error for o in seen[2:7]], [False, False, False, False, True], [o.text for o in seen[2:7]])
    equal("     2\t2\n" in seen[4].text and "     2\ttwo\n" in seen[5].text, True, seen[4:6])
    equal((seen[7].matches, seen[8].files), ([path], [path]))
    equal(w.box.read(path), b"one\ntwo\n")


def soft_timeouts(w):
    """A command that still runs: waiting, input, a refused command, keys, and no output."""
    t = TerminalExecutor(w)
    run = lambda command, **more: t(TerminalAction(command=command, **more))  # noqa: E731
    o = run("echo first; read x; echo got $x", timeout=1)
    equal((o.exit_code, o.timeout, o.text, "timed out after 1.0 seconds" in o.metadata.suffix),
          (-1, True, "first", True))
    o = run("echo other")
    equal((o.exit_code, o.is_error, "is NOT executed" in o.metadata.suffix), (-1, True, True))
    equal(run("", timeout=0).exit_code, -1)
    o = run("word", is_input=True)
    equal((o.exit_code, o.text.endswith("got word")), (0, True), o.text)
    equal(run("sleep 600").metadata.suffix.startswith("\n[The command has no new output after 2 seconds."), True)
    o = run("C-c", is_input=True)
    equal((o.exit_code, "CTRL+C was sent" in o.metadata.suffix), (130, True), o.metadata)
    for more in ({}, {"is_input": True}):
        equal((run("" if not more else "x", **more).is_error), True)
    stop = threading.Timer(1, t.interrupt)
    stop.start()
    equal(run("sleep 600", timeout=60).exit_code, 130, "interrupted by another thread")
    run("A=1; cd /")
    o = run("echo ${A-unset}", reset=True)
    equal((o.command, o.text.endswith("\n\nunset"), o.metadata.working_dir),
          ("[RESET] echo ${A-unset}", True, w.directory))
    equal(run('["ls"]').is_error, True)
    names = [s["name"] for s in json.loads(w.box.ask("GET", "/handrail/v1/sessions")[1])["sessions"]]
    equal(names, ["default", t.session])
    t.close()
    t.close()


def long_outputs(w):
    t = TerminalExecutor(w)
    o = t(TerminalAction(command="head -c 100000 /dev/zero | tr '\\0' x"))
    equal((10000 < len(o.text) <= 30000, o.exit_code), (True, 0), len(o.text))
    text = "".join(c.text for c in o.to_llm_content)
    equal((len(text) <= 30000, text.endswith("[Command finished with exit code 0]")), (True, True))
    w.box.write("big", b"y" * 11 * (1 << 20))
    equal(FileEditorExecutor(w)(FileEditorAction(command="view", path=w.directory + "/big")).is_error, True)
    w.box.write("big.png", b"y" * 11 * (1 << 20))
    equal(FileEditorExecutor(w)(FileEditorAction(command="view", path=w.directory + "/big.png")).is_error, True)
    w.box.write("i.png", b"\x89PNG")
    o = FileEditorExecutor(w)(FileEditorAction(command="view", path=w.directory + "/i.png"))
    equal(o.content[1].image_urls, ["data:image/png;base64,iVBORw=="])
    t.close()


def secrets(w):
    """A secret reaches the commands that name it, and neither the model, nor files, nor the shell's recorded output."""
    with tempfile.TemporaryDirectory() as kept:
        status, seen = talk(scripted(("terminal", {"command": "echo plain ${TOKEN-unset} >&2; printf %s \"$TOKEN\""}),
                                     ("terminal", {"command": "printf %s \"$TOKEN\" | md5sum; history | tail -n 3"})),
                            w, secrets={"TOKEN": SECRET}, persistence_dir=kept)
        equal(status, "finished")
        for folder, _, files in os.walk(kept):
            for name in files:
                with open(os.path.join(folder, name)) as f:
                    text = f.read()
                equal((SECRET in text, json.dumps(SECRET)[1:-1] in text, "in-the-env" in text),
                      (False, False, False), name)
    equal((SECRET in seen[0].text, "<secret-hidden>" in seen[0].text), (False, True), seen[0].text)
    import hashlib
    equal(hashlib.md5(SECRET.encode()).hexdigest() in seen[1].text, True, "it arrived whole")
    equal("handrail-input" in seen[1].text, False, seen[1].text)
    if w.runtime == "box":  # nobody else has its /tmp
        equal(w.execute_command("ls /tmp").stdout, "")
    equal(w.execute_command("echo $OF_UP").stdout if w.runtime == "box" else "in-the-env\n", "in-the-env\n")


def workspace(w):
    equal((os.listdir(w.working_dir), stat.S_IMODE(os.stat(w.working_dir).st_mode)), ([], 0o700))
    r = w.execute_command("pwd; echo err >&2; exit 3")
    equal((r.exit_code, r.stdout, r.stderr, r.timeout_occurred), (3, w.directory + "\n", "err\n", False))
    equal(w.execute_command("pwd", cwd="/tmp").stdout, "/tmp\n")
    equal(w.execute_command("true", cwd="/nowhere").exit_code, 1)
    r = w.execute_command("sleep 600", timeout=0.5)
    equal((r.exit_code, r.timeout_occurred), (-1, True))
    with tempfile.TemporaryDirectory() as local:
        path = os.path.join(local, "file")
        with open(path, "wb") as f:
            f.write(bytes(range(256)) * 5000)
        os.chmod(path, 0o750)
        r = w.file_upload(path, "new/d\u00fcr/f & g")
        equal((r.success, r.file_size), (True, 256 * 5000), r)
        equal(w.execute_command("stat -c %a new/*/*").stdout, "750\n")
        r = w.file_download(w.directory + "/new/d\u00fcr/f & g", os.path.join(local, "down", "file"))
        with open(path, "rb") as one, open(os.path.join(local, "down", "file"), "rb") as other:
            equal((r.success, r.file_size, one.read() == other.read()), (True, 256 * 5000, True), r)
        for r in (w.file_upload(path + "-none", "x"), w.file_download("none", path), w.file_download("new", path)):
            equal((r.success, r.error is not None), (False, True), r)
    equal(w.execute_command("mkdir g && cd g && git init -q . && echo a >f && git add f && git -c user.name=a "
                            "-c user.email=a@b commit -qm a && echo more >>f").exit_code, 0)
    equal([(c.status.value, str(c.path)) for c in w.git_changes("g")], [("UPDATED", "f")])
    equal(w.git_diff("g/f").modified, "a\nmore")


def lifecycle(w):
    """An agent whose tools would work on this machine is refused, and so is a workspace that is not started."""
    def refused(kind, text, agent, workspace):
        try:
            talk(agent, workspace)
        except kind as e:
            equal(text in str(e), True, str(e))
        else:
            raise AssertionError("not refused")
    agent = scripted(("terminal", {"command": "pwd"}))
    refused(HandrailError, "not started", agent, HandrailWorkspace())
    from openhands.tools.apply_patch import ApplyPatchTool
    more = scripted(tools=TOOLS + [ApplyPatchTool.name])
    refused(ValueError, ApplyPatchTool.name, more, w)
    equal(talk(more, w.model_copy(update={"outside": [ApplyPatchTool.name]}))[0], "finished")
    status, seen = talk(agent, w.working_dir)  # in the way of a sub-agent
    equal((status, seen[0].text), ("finished", w.directory))
    with tempfile.TemporaryDirectory() as here:
        agent = scripted(("file_editor", {"command": "create", "path": here + "/f", "file_text": "x"}),
                         tools=["file_editor"])
        equal((talk(agent, LocalWorkspace(working_dir=here))[0], os.listdir(here)),
              ("finished", ["f"]), "the SDK's own")
    name, private = w.box.name, w.working_dir
    w.pause() if w.runtime != "local" else None
    w.resume() if w.runtime != "local" else None
    equal(w.execute_command("echo on").stdout, "on\n")
    w.stop()
    w.stop()
    equal(os.path.exists(private), False)
    refused(HandrailError, "not started", scripted(), w)
    with w:
        equal((w.execute_command("echo again").stdout, w.box.name != name), ("again\n", True))


def over_mcp(w):
    """The other way: the sandbox's own tools by `handrail mcp`."""
    server = {"command": os.environ["HANDRAIL"], "args": ["mcp", "--up", "-n", "agents", "-r", w.runtime],
              "env": dict(os.environ)}
    status, seen = talk(scripted(("run", {"command": "cd /tmp; A=1"}), ("run", {"command": "echo $A $PWD"}),
                                 ("write", {"path": "/tmp/handrail-over-mcp", "content": "x"}),
                                 ("read", {"path": "/tmp/handrail-over-mcp"}),
                                 ("run", {"command": "rm /tmp/handrail-over-mcp"}),
                                 tools=[], mcp_config={"sandbox": server}), w.working_dir)
    equal((status, "1 /tmp" in seen[1].text, [o.is_error for o in seen]), ("finished", True, [False] * 6),
          [o.text for o in seen])
    handrail("down", "-q", "agents")


def missing_program(w):
    """A search that cannot be done is an error, not an empty list; in a container, whose programs can be removed."""
    equal(w.execute_command("rm /usr/bin/xargs").exit_code, 0)
    _, seen = talk(scripted(("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})), w)
    equal([(o.is_error, o.text) for o in seen[:2]], [(True, "xargs is not installed in the sandbox")] * 2)


def shown(o, *directories):
    """An observation as both executors make it: without the names of directories, and without the end of lines."""
    text = o.text
    for d in directories:
        text = text.replace(d, "DIR")
    text = re.sub("\x1b\\[\\?2004[hl]", "", text)  # the SDK's terminal shows them
    text = re.sub(r"absolute path(, starting with `/`)?\.", "absolute path.", text)
    text = re.sub(r"\n *\d+\t\n?(?=\Z|Review)", "\n", text)  # the line after the last line feed, which handrail numbers
    return text.rstrip("\n"), o.is_error


def like_sdk_editor(w):
    ours, theirs = FileEditorExecutor(w), None
    with tempfile.TemporaryDirectory() as there:
        theirs = SdkEditor(workspace_root=there)
        files = {"tabs.py": "def f():\n\tpass\n", "twice": "a\nb\na\n", "end": "no line feed", "empty": "",
                 "d/one": "1",
                 ".hidden": "h", "latin": "caf\xe9 au lait, d\xe9j\xe0 vu\n".encode("latin-1"),
                 "many": "".join("line %d\n" % i for i in range(1, 201))}
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            w.box.write(name, data)
            os.makedirs(os.path.dirname(os.path.join(there, name)), exist_ok=True)
            with open(os.path.join(there, name), "wb") as f:
                f.write(data)
        steps = [("view", "."), ("view", "d"), ("view", "none"), ("view", "tabs.py"), ("view", "empty"),
                 ("view", "latin"),
                 ("view", "many", [50, 60]), ("view", "many", [190, -1]), ("view", "many", [199, 300]),
                 ("view", "many", [0, 5]), ("view", "many", [9, 5]), ("view", "many", [1]), ("view", "d", [1, 2]),
                 ("create", "new", "one\ntwo"), ("view", "new"), ("create", "new", "again"), ("create", "d", "x"),
                 ("create", "void", ""), ("create", "none", None), ("str_replace", "new", "two", "2"),
                 ("str_replace", "new", "two", "2"), ("str_replace", "twice", "a", "c"),
                 ("str_replace", "twice", "b\na", "z"),
                 ("str_replace", "twice", "z", "z"), ("str_replace", "twice", None, "z"),
                 ("str_replace", "twice", "", "z"),
                 ("str_replace", "none", "a", "b"), ("str_replace", "d", "a", "b"),
                 ("str_replace", "many", "line 77\n", ""),
                 ("str_replace", "tabs.py", "\tpass", "\treturn 1"), ("str_replace", "latin", "lait", "th\xe9"),
                 ("insert", "new", 0, "top"), ("insert", "new", 3, "last\nof all"), ("insert", "new", 99, "x"),
                 ("insert", "new", None, "x"), ("insert", "new", 1, None), ("insert", "empty", 0, "first"),
                 ("insert", "many", 100, "middle"), ("insert", "none", 0, "x"), ("view", "new"), ("undo_edit", "new"),
                 ("undo_edit", "new"), ("undo_edit", "new"), ("undo_edit", "new"), ("undo_edit", "new"),
                 ("undo_edit", "twice"),
                 ("undo_edit", "end"), ("undo_edit", "none"), ("view", "twice")]
        names = {"view": ["view_range"], "create": ["file_text"], "str_replace": ["old_str", "new_str"],
                 "insert": ["insert_line", "new_str"], "undo_edit": []}
        differ = []
        for command, name, *args in steps:
            more = dict(zip(names[command], args))
            got = [executor(FileEditorAction(command=command, path=d if name == "." else d + "/" + name, **more))
                   for executor, d in ((ours, w.directory), (theirs, there))]
            a, b = (shown(o, w.directory, there) for o in got)
            if a != b:
                differ.append((command, name, args, a, b))
        for name in [*files, "new", "void"]:
            with open(os.path.join(there, name), "rb") as f:
                if w.box.read(name) != f.read():
                    differ.append(("bytes of", name))
        print("# %d steps of the editor and %d files" % (len(steps), len(files) + 2))
        equal("\n".join(map(repr, differ)), "")


def like_sdk_terminal(w):
    ours, total = TerminalExecutor(w), 0
    with tempfile.TemporaryDirectory() as there:
        theirs = SdkTerminal(working_dir=there, no_change_timeout_seconds=2, terminal_type="subprocess")
        # a command with "goes on" still runs when the limit of no_change_timeout_seconds reports it; the others end by
        # themselves, and have no such limit: a program that starts slowly would be reported in its place
        steps = [("pwd",), ("",), ("x", "input"), ("echo 'hello world'",), ("nonexistent_command",), ("false",),
                 ("echo one && echo two && echo three",), ("export V='a b'",), ("echo $V",), ("cd /tmp",), ("pwd",),
                 ("(exit 7)",), ("ls /nowhere",), ("for i in 1 2 3; do\n  echo $i\ndone",),
                 ("printf 'no end'",), ("echo \"quo'te\" 'and \"more\"' \\$V",),
                 ("f() { echo in f; }",), ("echo '  indented'; printf 'a\\tb\\n'",), ("echo caf\xe9 \u4e16\u754c",),
                 ("read -p 'name: ' n && echo \"Hello $n\"", "goes on"), ("John", "input"), ("cat", "goes on"),
                 ("line 1", "input", "goes on"), ("C-d", "input"),
                 ("while true; do echo looping; sleep 600; done", "goes on"), ("echo no",), ("", "goes on"),
                 ("C-c", "input"),
                 ("sleep 600", 2.0), ("C-c", "input"), ("echo after",), ("python3 -c 'print(\"x\" * 5000)'",),
                 ("seq 500",),
                 ("", "reset"), ("echo ${V-unset}",), ("pwd",), ("echo z", "reset"), ("[\"ls\", \"-l\"]",),
                 ("[ 1 = 1 ] && echo t",)]
        differ = []
        for command, *how in steps:
            more = {"is_input": True} if "input" in how else {"reset": True} if "reset" in how else {}
            if "goes on" not in how:
                more["timeout"] = how[0] if how and isinstance(how[0], float) else PATIENCE
            action = TerminalAction(command=command, **more)
            a, b = ours(action), theirs(action)
            pair = []
            for o in (a, b):
                text, error = shown(o, w.directory, there)
                if more.get("reset"):
                    text = text.rpartition("\n\n")[2] if command else ""
                if '["' in command:
                    text = ""
                suffix = o.metadata.suffix.replace(w.directory, "DIR")
                at = (o.metadata.working_dir or "").replace(w.directory, "DIR").replace(there, "DIR")
                text = text.strip().removeprefix(command + "\n").expandtabs()  # an echo of commands, or of input
                pair.append((text, error, o.exit_code, o.metadata.prefix, suffix, at))
            total += 1
            if pair[0] != pair[1]:
                differ.append((command, how, *pair))
        theirs.close()
    ours.close()
    print("# %d steps of the terminal" % total)
    equal("\n".join(map(repr, differ)), "")


def run_all(kinds, host, cases):
    tap = Tap()
    for kind in kinds:
        for case in (conversation, soft_timeouts, long_outputs, secrets, workspace, lifecycle, over_mcp,
                     missing_program, like_sdk_editor, like_sdk_terminal):
            if cases and case.__name__ not in cases or kind != "local" and "like" in case.__name__ or \
                    kind != "docker" and case is missing_program:
                continue

            def in_one():
                with host(RUNTIME=kind) as h:
                    before = dict(os.environ)
                    os.environ.update(h.env, HANDRAIL=os.path.join(BUILD, "handrail"))
                    try:
                        with HandrailWorkspace(runtime=kind, env={"OF_UP": "in-the-env"},
                                               no_change_timeout_seconds=2) as w:
                            case(w)
                        equal(json.loads(h.ok("ps", "--json")), [])
                    except HandrailError as e:
                        if kind == "box" and "no box can be made" in str(e):
                            raise Skip(str(e)) from None
                        raise
                    finally:
                        os.environ.clear()
                        os.environ.update(before)
            tap.run("%s, %s" % (case.__name__, kind), in_one)
    return tap.done()


def main():
    cases = [name for name in sys.argv[1:] if name != "--docker"]
    if "--docker" not in sys.argv[1:]:
        return run_all(("local", "box"), Host, cases)
    dockerhost.find_engine()
    dockerhost.PROGRAMS += ["md5sum", "xargs"]
    with tempfile.TemporaryDirectory() as top:
        dockerhost.make_image(top)
    try:
        return run_all(("docker",), dockerhost.DockerHost, cases)
    finally:
        dockerhost.docker("rmi", "-f", dockerhost.IMAGE)


if __name__ == "__main__":
    sys.exit(main())
