"""One recorded conversation, played to a server (t/corpus/actions/README)."""

import base64
import json
import os
import sys
import time
import urllib.parse
import uuid

from . import contents, shells

# What a server must be able to do for an action or a path; anything else needs no more than that
# requests are answered.
ACTIONS = {"read": "files", "write": "files", "edit": "files"}
PATHS = {"/upload_file": "transfer", "/download_files": "transfer", "/update_mcp_server": "mcp"}
FEATURES = set(ACTIONS.values()) | set(PATHS.values())


def action_of(step):
    """The type of the action that a step asks for; None where it asks for none."""
    request = step["request"]
    body = request.get("json")
    if request["path"] != "/execute_action" or not isinstance(body, dict):
        return None
    act = body.get("action")
    return act.get("action") if isinstance(act, dict) else None


def needs(scenario):
    """The features that a scenario asks of the server. A request that is refused for what is wrong
    with it needs none."""
    found = set()
    for step in scenario["steps"]:
        act, want = action_of(step), step["response"]
        if isinstance(act, str) and "has the wrong arguments" not in json.dumps(want):
            found.add(ACTIONS.get(act))
        if want["status"] < 400 or want["status"] == 500 or "multipart" in step["request"]:
            found.add(PATHS.get(step["request"]["path"]))
    return found - {None}


def uses_shell(scenario):
    return any(step["request"]["path"] == "/execute_action" for step in scenario["steps"])


class Player:
    """Plays scenarios to one server. answers: which of two answers is right where a step has both:
    "improved", "response", or "any"."""

    def __init__(self, shell, compare, answers="improved"):
        self.shell, self.compare, self.answers = shell, compare, answers
        self.old = []

    def play(self, scenario):
        """A list of what is wrong (empty: nothing)."""
        name = scenario["name"]
        root = os.path.join(self.shell.work_dir, name)
        plain = {"@ROOT@": root, "@WORKDIR@": self.shell.work_dir, "@NAME@": name,
                 "@KEY@": self.shell.key or ""}

        def fill(text):
            for token, value in plain.items():
                text = text.replace(token, value)
            return text

        contents.remove(root)
        os.mkdir(root)
        os.chmod(root, 0o755)
        contents.make(root, scenario.get("files", {}), fill)
        if uses_shell(scenario):
            problem = self._to_prompt(root)
            if problem:
                return [problem]
        for path in self.old:
            contents.remove(path)
        self.old = [root]
        wrong = []
        for number, step in enumerate(scenario["steps"], 1):
            contents.make(root, step.get("files", {}), fill)
            if "sleep_s" in step:
                time.sleep(step["sleep_s"])  # the conversation itself asks for it
            wrong = self._step(step, fill)
            wrong += contents.check(root, step.get("files_after", {}), fill)
            if wrong:
                return ["step %d: %s" % (number, line) for line in wrong]
        return wrong

    def _to_prompt(self, root):
        o = None
        for _ in range(4):
            o = self.shell.run("cd '%s'" % root, timeout=20)
            if o.working_dir == root:
                return None
            for key in ("C-c", "C-d", "C-c"):
                self.shell.run(key, is_input=True, timeout=20)
        return "the shell does not come to its prompt: %r" % o

    def _step(self, step, fill):
        method, target, headers, body = self._request(step["request"], fill)
        began = time.monotonic()
        answer = self.shell.server.request(method, target, body, headers, 180)
        seconds = time.monotonic() - began
        allowed = [self._of_this_python(step)]
        if "improved" in step:
            allowed = {"improved": [step["improved"]], "response": allowed,
                       "any": [step["improved"]] + allowed}[self.answers]
        if "raced" in step:
            allowed.append(step["raced"])
        wrong = []
        for want in allowed:
            wrong = self._answer(answer, want, fill)
            if not wrong:
                break
        if seconds < step.get("min_s", 0):
            wrong.append("after %.2f s, not after %s at least" % (seconds, step["min_s"]))
        if seconds > step.get("max_s", float("inf")) * shells.slack():
            wrong.append("after %.2f s, not %s at most" % (seconds, step["max_s"]))
        return wrong

    @staticmethod
    def _of_this_python(step):
        """The recorded answer, with the output of this machine's Python where that of Python 3.11 differs."""
        recorded = step["response"]
        if sys.version_info < (3, 13) or "python_3_13" not in step:
            return recorded
        return dict(recorded, json=dict(recorded["json"], content=step["python_3_13"]))

    def _request(self, request, fill):
        target = urllib.parse.quote(request["path"])
        query = request.get("query")
        if isinstance(query, dict):
            target += "?" + urllib.parse.urlencode({k: fill(str(v)) for k, v in query.items()})
        elif query is not None:
            target += "?" + fill(query)
        headers, body = {}, None
        if "json" in request:
            text = json.dumps(request["json"], ensure_ascii=bool(request.get("ascii")))
            body = fill(text).encode("utf-8")
            headers["Content-Type"] = "application/json"
        elif "body_b64" in request:
            body = base64.b64decode(request["body_b64"])
        elif "body_text" in request:
            body = fill(request["body_text"]).encode("utf-8")
        elif "multipart" in request:
            body, headers["Content-Type"] = self._multipart(request["multipart"], fill)
        if self.shell.key and not request.get("no_key"):
            headers["X-Session-API-Key"] = self.shell.key
        for name, value in request.get("headers", {}).items():
            for old in [have for have in headers if have.lower() == name.lower()]:
                del headers[old]
            headers[name] = fill(value)
        return request["method"], target, headers, body

    def _multipart(self, parts, fill):
        boundary = uuid.uuid4().hex
        body = b""
        for part in parts:
            head = 'Content-Disposition: form-data; name="%s"' % _quoted(part["name"])
            if "filename" in part:
                head += '; filename="%s"' % _quoted(fill(part["filename"]))
            if "content_type" in part:
                head += "\r\nContent-Type: " + part["content_type"]
            body += b"--%s\r\n%s\r\n\r\n" % (boundary.encode(), head.encode("utf-8"))
            content = {key: value for key, value in part.items()
                       if key not in ("name", "filename", "content_type")}
            body += contents.to_bytes(content, fill) + b"\r\n"
        return body + b"--%s--\r\n" % boundary.encode(), "multipart/form-data; boundary=" + boundary

    def _answer(self, answer, want, fill):
        headers = {name.lower(): value for name, value in answer.headers.items()}
        wrong = []
        if answer.status != want["status"]:
            wrong.append("status %d, not %d: %r" % (answer.status, want["status"],
                                                    answer.body[:500]))
        listed = dict(want.get("headers", {}))
        if "content_type" in want:
            listed["content-type"] = want["content_type"]
        for name, value in listed.items():
            got = headers.get(name.lower())
            same = got is None if value is None else \
                got is not None and self.compare.text(got, fill(value))
            if not same:
                wrong.append("header %s: %r, not %r" % (name, got, value))
        if wrong:
            return wrong
        if "json" in want:
            return self.compare.json_text(answer.body, fill_value(want["json"], fill))
        if "text" in want:
            got = answer.body.decode("utf-8", "replace")
            if not self.compare.text(got, fill(want["text"])):
                return ["body: %r, not %r" % (got, want["text"])]
        if "zip" in want:
            return contents.check_zip(answer.body, want["zip"]["entries"], fill)
        return []


def fill_value(value, fill):
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, list):
        return [fill_value(element, fill) for element in value]
    if isinstance(value, dict):
        return {fill(key): fill_value(element, fill) for key, element in value.items()}
    return value


def _quoted(name):
    return name.replace('"', "%22")
