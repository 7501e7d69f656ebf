"""A workspace and tools for agents of OpenHands V1 (PyPI "openhands-sdk" and "openhands-tools", Python 3.12 or later).
The agent, its model's key and its conversation stay in this process. The tools terminal, file_editor, grep and glob
work in a sandbox if the conversation's workspace is a HandrailWorkspace, and else as the SDK made them:

    with HandrailWorkspace(runtime="box") as workspace:
        Conversation(agent=agent, workspace=workspace)"""

import base64
import contextlib
import json
import logging
import mimetypes
import posixpath
import re
import tempfile
import threading
import uuid
import weakref
from pathlib import Path
from urllib.parse import urlencode

try:
    from openhands.sdk import ImageContent, LocalWorkspace, TextContent
    from openhands.sdk.git.models import GitChange, GitDiff
    from openhands.sdk.tool import ToolAnnotations, ToolExecutor, register_tool
    from openhands.sdk.utils import maybe_truncate
    from openhands.sdk.workspace.models import CommandResult, FileOperationResult
    from openhands.tools.file_editor import definition as editor
    from openhands.tools.glob import definition as globbing
    from openhands.tools.grep import definition as grepping
    from openhands.tools.terminal import definition as terminal
    from openhands.tools.terminal.constants import MAX_CMD_OUTPUT_SIZE
    from openhands.tools.terminal.metadata import CmdOutputMetadata
    from pydantic import Field, PrivateAttr
except (ImportError, SyntaxError) as e:
    raise ImportError("handrail_env.openhands needs Python 3.12 or later and the SDK of OpenHands V1: "
                      "pip install openhands-sdk openhands-tools (%s)" % e) from e

from .client import NOT_RUN, HandrailError, Sandbox, _afterwards, assignments, handrail

INSIDE = {"terminal", "file_editor", "grep", "glob", "task_tracker", "task_tool_set", "finish", "FinishTool", "think",
          "ThinkTool", "switch_llm"}  # tools that do nothing on this machine but keep notes of the conversation
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
IMAGE_MAX = 10 << 20
FOUND_MAX = 100
SEARCH_SECONDS = 30
STARTED = weakref.WeakValueDictionary()  # workspaces by their directory on this machine


class HandrailWorkspace(LocalWorkspace):
    """A sandbox. `working_dir` is an empty private directory of this machine, since the SDK looks for hooks, skills and
    agents there; `directory` is the sandbox's."""

    runtime: str | None = None
    name: str | None = None
    settings: list[str] = []
    options: list[str] = []
    plugins: list[str] = []
    env: dict[str, str] = Field(default={}, exclude=True, repr=False)  # never in the conversation's file
    directory: str | None = None
    no_change_timeout_seconds: int = Field(default=30, ge=1)  # a command that prints nothing for so long is reported
    outside: list[str] = []  # names of further tools that may work on this machine
    _box: Sandbox | None = PrivateAttr(default=None)
    _private: tempfile.TemporaryDirectory | None = PrivateAttr(default=None)

    def __init__(self, *, working_dir=None, **fields):
        private = None if working_dir else tempfile.TemporaryDirectory(prefix="handrail-openhands-")
        super().__init__(working_dir=working_dir or private.name, **fields)
        self._private = private

    @property
    def box(self):
        if self._box is None:
            raise HandrailError("the workspace is not started: use \"with HandrailWorkspace(...)\" or its start()")
        return self._box

    def start(self):
        if self._box is None:
            server = {"NO_CHANGE_TIMEOUT_SECONDS": str(self.no_change_timeout_seconds), "HANDRAIL_OPENHANDS_V1": "true"}
            box = Sandbox.up(self.runtime, self.name, self.settings, self.env, self.plugins, self.options,
                             server=server)
            try:
                self.directory = box.path(self.directory) if self.directory else box.directory
                box.execute(["mkdir", "-p", "--", self.directory])
            except BaseException:
                _afterwards(False, box.down)
                raise
            self._box = box
            STARTED[self.working_dir] = self
        return self

    def stop(self):
        box, self._box = self._box, None
        if self._private:
            self._private.cleanup()
        if box:
            box.down()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        _afterwards(kind is None, self.stop)

    def pause(self):
        handrail("pause", "-q", self.box.name, program=self.box.program)

    def resume(self):
        handrail("resume", "-q", self.box.name, program=self.box.program)

    def path(self, path):
        return posixpath.join(self.directory, str(path)) if path else self.directory

    def execute_command(self, command, cwd=None, timeout=30.0):
        try:
            done = self.box.execute(["bash", "-c", command], cwd=self.path(cwd), timeout=timeout)
        except TimeoutError as e:
            return CommandResult(command=command, exit_code=-1, stdout="", stderr=str(e), timeout_occurred=True)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as e:  # concerns cwd
            return CommandResult(command=command, exit_code=1, stdout="", stderr=str(e), timeout_occurred=False)
        return CommandResult(command=command, exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr,
                             timeout_occurred=False)

    def _copied(self, source, target, copy):
        result = dict(source_path=str(source), destination_path=str(target))
        try:
            return FileOperationResult(success=True, file_size=copy(), **result)
        except (HandrailError, OSError) as e:
            return FileOperationResult(success=False, error=str(e), **result)

    def file_upload(self, source_path, destination_path):
        def copy():
            data, target = Path(source_path).read_bytes(), self.path(destination_path)
            self.box.write(target, data)
            self.box.execute(["chmod", "%o" % (Path(source_path).stat().st_mode & 0o777), "--", target])
            return len(data)
        return self._copied(source_path, destination_path, copy)

    def file_download(self, source_path, destination_path):
        def copy():
            data = self.box.read(self.path(source_path))
            Path(destination_path).parent.mkdir(parents=True, exist_ok=True)
            return Path(destination_path).write_bytes(data)
        return self._copied(source_path, destination_path, copy)

    def git_changes(self, path):
        return [GitChange.model_validate(c) for c in self._git("changes", path)]

    def git_diff(self, path):
        return GitDiff.model_validate(self._git("diff", path))

    def _git(self, what, path):
        status, body = self.box.ask("GET", "/api/git/%s?%s" % (what, urlencode({"path": self.path(path)})))
        if status != 200:
            raise HandrailError("git %s of %s: status %d" % (what, path, status))
        return json.loads(body)


class TerminalExecutor(ToolExecutor):
    """Runs commands in a shell of the sandbox that nothing else uses."""

    is_pooled = False  # TerminalTool then sends one command at a time

    def __init__(self, workspace, env=None):
        self.workspace, self.env, self.session, self.lock = workspace, dict(env or {}), None, threading.Lock()

    def _shell(self):
        with self.lock:
            if self.session is None:
                name = "agent-" + uuid.uuid4().hex[:16]
                self.workspace.box.call("/handrail/v1/create", {"name": name, "working_dir": self.workspace.directory})
                self.session = name
                self._export(self.env)
            return self.session

    def _run(self, command, is_input=False, timeout=None, **args):
        more = {} if timeout is None else {"timeout": max(timeout, 0.01)}  # the server knows no limit of 0
        return self.workspace.box.act("run", dict(args, command=command, is_input=is_input,
                                                  blocking=timeout is not None), self.session, exact=True, **more)

    def _export(self, variables):
        """Passes variables in a file, so that neither a command line nor the shell's recorded output has them."""
        text = assignments({k: v for k, v in variables.items() if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", k)})
        if text:
            with self.workspace.box.inputs(text) as [name]:
                self._run(" . " + name, timeout=30, hidden=True)

    def __call__(self, action, conversation=None):
        command, said = action.command.strip(), None
        if action.reset and action.is_input:
            raise ValueError("a reset takes no input: is_input must be false")
        literal = None if action.is_input else terminal.looks_like_python_literal_argument(action.command)
        if literal:
            return self._error(action, "The command is a %s and not a command of the shell: write the data or the "
                               "program to a file with file_editor, or use a here-document." % literal)
        if action.reset:
            said = "The shell has been reset: its variables and its directory are those of the start."
            self.close()
        self._shell()
        if action.reset and not command:
            return terminal.TerminalObservation.from_text(said, command="[RESET]", exit_code=0)
        registry = conversation.state.secret_registry if conversation else None
        if registry and command and not action.is_input:
            self._export(registry.get_secrets_as_env_vars(command))
        o = self._run(command, action.is_input, action.timeout)
        text = o["content"].removesuffix("\n")
        if registry:
            text = registry.mask_secrets_in_output(text)
        if o["observation"] != "run":
            return self._error(action, text.removeprefix("ERROR: "))
        metadata = CmdOutputMetadata.model_validate(o["extras"]["metadata"])
        if metadata.exit_code == -1 and not metadata.suffix:
            return self._error(action, text.removeprefix("ERROR: "))
        metadata.suffix = metadata.suffix.replace("execute_bash", "terminal")
        return terminal.TerminalObservation.from_text(
            maybe_truncate(said + "\n\n" + text if said else text, MAX_CMD_OUTPUT_SIZE),
            command=("[RESET] " if said else "") + command,
            exit_code=metadata.exit_code, metadata=metadata, timeout=metadata.exit_code == -1,
            is_error=metadata.suffix.startswith(NOT_RUN))

    @staticmethod
    def _error(action, text):
        return terminal.TerminalObservation.from_text(text, is_error=True, command=action.command)

    def interrupt(self):
        if self.session:
            with contextlib.suppress(HandrailError, OSError):
                self.workspace.box.call("/handrail/v1/signal?session=" + self.session, {"signal": "INT"})

    def close(self):
        session, self.session = self.session, None
        if session:
            with contextlib.suppress(HandrailError, OSError):
                self.workspace.box.call("/handrail/v1/kill?session=" + session, {})


class FileEditorExecutor(ToolExecutor):
    def __init__(self, workspace):
        self.workspace = workspace

    def __call__(self, action, conversation=None):
        if action.command == "view" and action.path.lower().endswith(IMAGES) and action.path.startswith("/"):
            with contextlib.suppress(OSError):  # the editor says what is wrong with the path
                return self._image(action)
        if action.view_range and action.command == "view":
            args = {"path": action.path, "impl_source": "oh_aci", "view_range": action.view_range}
            o = self.workspace.box.act("read", args)
        else:
            o = self.workspace.box.act("edit", action.model_dump(exclude_none=True, include={
                "command", "path", "file_text", "old_str", "new_str", "insert_line"}))
        text = o["content"]
        if o["observation"] not in ("edit", "read") or text.startswith("ERROR:\n"):
            return self._error(action, text.removeprefix("ERROR:\n"))
        more = {}
        if action.command != "view":
            more = {k: o["extras"].get(k) for k in ("old_content", "new_content")}
        if action.command == "create":
            more = {"new_content": action.file_text}
        return editor.FileEditorObservation.from_text(text, command=action.command, path=action.path,
                                                      prev_exist=action.command != "create", **more)

    def _image(self, action):
        data = self.workspace.box.read(action.path, IMAGE_MAX)
        if len(data) > IMAGE_MAX:
            return self._error(action, "%s: the image is larger than %d MB" % (action.path, IMAGE_MAX >> 20))
        kind = mimetypes.guess_type(action.path)[0] or "image/png"
        url = "data:%s;base64,%s" % (kind, base64.b64encode(data).decode())
        return editor.FileEditorObservation(command="view", path=action.path, content=[
            TextContent(text="The image %s:" % action.path), ImageContent(image_urls=[url])])

    @staticmethod
    def _error(action, text):
        return editor.FileEditorObservation.from_text(text, is_error=True, command=action.command, path=action.path)


def alternatives(pattern):
    """"*.{c,h}" as ["*.c", "*.h"]."""
    m = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if not m:
        return [pattern]
    return [p for one in m[1].split(",") for p in alternatives(pattern[:m.start()] + one + pattern[m.end():])]


class SearchExecutor(ToolExecutor):
    """Lists files that a script of the sandbox's bash finds, the newest first."""

    def __init__(self, workspace):
        self.workspace = workspace

    def search(self, observation, where, script, words, pattern, field, **more):
        more.update({"pattern": pattern, "search_path": where})
        script = ('for p in xargs stat; do command -v $p >/dev/null || '
                  '{ echo "$p is not installed in the sandbox" >&2; exit 1; }; done; '
                  'cd -- "$1" 2>/dev/null || exit 3; shift; { ' + script +
                  '; } | xargs -0r stat -L --printf "%Y\\t%n\\0" -- 2>/dev/null; exit 0')
        try:
            done = self.workspace.box.execute(["bash", "-c", script, "bash", where, *words], timeout=SEARCH_SECONDS)
            error = done.stderr.strip()
            if done.exit_code != 0:
                error = "%s is not a directory" % where if done.exit_code == 3 else error or "The search failed."
        except TimeoutError:
            error = "The search took more than %d seconds: name a smaller directory." % SEARCH_SECONDS
        if error:
            return observation.from_text(error, is_error=True, **{field: []}, **more)
        dated = (line.partition("\t") for line in done.stdout.split("\0")[:-1])
        dated = sorted(dated, key=lambda d: -float(d[0]))
        files = [posixpath.join(where, name.removeprefix("./")) for _, _, name in dated]
        text = "%s in %s: %d files" % (pattern, where, len(files)) + "".join("\n" + f for f in files[:FOUND_MAX])
        if len(files) > FOUND_MAX:
            text += "\n[These are the first %d; use a narrower pattern or path.]" % FOUND_MAX
        return observation.from_text(text if files else "%s in %s: no files" % (pattern, where),
                                     truncated=len(files) > FOUND_MAX, **{field: files[:FOUND_MAX]}, **more)


class GrepExecutor(SearchExecutor):
    def __call__(self, action, conversation=None):
        words = ["--include=" + p for p in alternatives(action.include)] if action.include else ["--exclude=.*"]
        return self.search(grepping.GrepObservation, self.workspace.path(action.path),
                           'grep -rsIliZP --exclude-dir=".?*" "$@" .', [*words, "-e", action.pattern], action.pattern,
                           "matches", include_pattern=action.include)


class GlobExecutor(SearchExecutor):
    def __call__(self, action, conversation=None):
        where, pattern = action.path, action.pattern
        if not action.path and pattern.startswith("/"):
            parts = pattern.split("/")
            first = next((i for i, part in enumerate(parts) if re.search(r"[*?[{]", part)), len(parts))
            where, pattern = "/".join(parts[:first]) or "/", "/".join(parts[first:]) or "**/*"
        words = [p if "**" in p else "**/" + p for p in alternatives(pattern)]
        return self.search(globbing.GlobObservation, self.workspace.path(where),
                           'shopt -s globstar nullglob; IFS=; for p; do for f in $p; do '
                           '[ -f "$f" ] && printf "%s\\0" "$f"; done; done', words, action.pattern, "files")


def resolved(tool, action, observation, description, executor, conv_state, params):
    """The SDK's own tool, or one whose executor drives the sandbox. A sub-agent's workspace has nothing in common with
    that of its parent but the directory."""
    workspace = conv_state.workspace
    if not isinstance(workspace, HandrailWorkspace):
        workspace = STARTED.get(workspace.working_dir)
        if workspace is None:
            return tool.create(conv_state, **params)
    workspace.box  # raises if it is not started
    others = {t.name for t in conv_state.agent.tools} - INSIDE - set(workspace.outside)
    if others:
        raise ValueError("these tools of the agent would work on this machine and not in the sandbox: %s; leave them "
                         "out, or allow them by HandrailWorkspace(outside=[...])" % ", ".join(sorted(others)))
    reads = tool in (grepping.GrepTool, globbing.GlobTool)
    return [tool(action_type=action, observation_type=observation, executor=executor(workspace, **params),
                 description="%s\n\nThe working directory is %s." % (description, workspace.directory),
                 annotations=ToolAnnotations(title=tool.name, readOnlyHint=reads, destructiveHint=not reads,
                                             idempotentHint=reads, openWorldHint=tool is terminal.TerminalTool))]


class HandrailTerminalTool(terminal.TerminalTool):
    name = terminal.TerminalTool.name

    @classmethod
    def create(cls, conv_state, **params):
        return resolved(terminal.TerminalTool, terminal.TerminalAction, terminal.TerminalObservation,
                        terminal.UNIX_TOOL_DESCRIPTION, TerminalExecutor, conv_state, params)


class HandrailFileEditorTool(editor.FileEditorTool):
    name = editor.FileEditorTool.name

    @classmethod
    def create(cls, conv_state, **params):
        return resolved(editor.FileEditorTool, editor.FileEditorAction, editor.FileEditorObservation,
                        editor.TOOL_DESCRIPTION, FileEditorExecutor, conv_state, params)


class HandrailGrepTool(grepping.GrepTool):
    name = grepping.GrepTool.name

    @classmethod
    def create(cls, conv_state, **params):
        return resolved(grepping.GrepTool, grepping.GrepAction, grepping.GrepObservation, grepping.TOOL_DESCRIPTION,
                        GrepExecutor, conv_state, params)


class HandrailGlobTool(globbing.GlobTool):
    name = globbing.GlobTool.name

    @classmethod
    def create(cls, conv_state, **params):
        return resolved(globbing.GlobTool, globbing.GlobAction, globbing.GlobObservation, globbing.TOOL_DESCRIPTION,
                        GlobExecutor, conv_state, params)


def _register():
    log = logging.getLogger("openhands.sdk.tool.registry")
    before, log.disabled = log.disabled, True  # that the names are taken is meant so
    for tool in (HandrailTerminalTool, HandrailFileEditorTool, HandrailGrepTool, HandrailGlobTool):
        register_tool(tool.name, tool)
    log.disabled = before


_register()
