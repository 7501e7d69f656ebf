#!/usr/bin/env python3
"""The functions that agents find in the kernel: each recorded call, the documents, and the import
by way of a real kernel."""

import contextlib
import email
import http.server
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import BUILDDIR, SRCDIR, Server, find_program, need_entrance, need_root  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402
from lib import process  # noqa: E402

PACKAGE = os.path.join(SRCDIR, "conf", "plugins", "agent_skills", "python")
CORPUS = os.path.join(SRCDIR, "t", "corpus", "skills", "file_ops.jsonl")
PYTHON = "/usr/bin/python3"
sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)


def fresh():
    """The module as a new kernel has it."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("handrail_skills", "openhands")]:
        del sys.modules[name]
    return importlib.import_module("openhands.runtime.plugins.agent_skills.agentskills")


def printed(function, *args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        equal(function(*args), None, "what it returns")
    return out.getvalue()


@contextlib.contextmanager
def directory():
    top, before = os.path.realpath(tempfile.mkdtemp(prefix="e2e-skills-")), os.getcwd()
    os.chdir(top)
    try:
        yield top
    finally:
        os.chdir(before)
        shutil.rmtree(top)


def content(what):
    if isinstance(what, str):
        return what
    if "numbered" in what:
        return "".join(what["numbered"].replace("{n}", str(n))
                       for n in range(what["from"], what["to"] + 1))
    return what["repeat"] * what["times"] + what["then"]


def recorded(case):
    with directory() as top:
        for name, what in case["files"].items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(name, "w", newline="") as f:
                f.write(content(what))
        module = fresh()
        for step in case["steps"]:
            args = [a.replace("@ROOT@", top) if isinstance(a, str) else a for a in step["args"]]
            got, want = printed(getattr(module, step["call"]), *args), step["stdout"]
            want = want.replace("@ROOT@", top)
            if case.get("unordered"):
                got, want = sorted(got.split("\n")), sorted(want.split("\n"))
            equal(got, want, "%s%r" % (step["call"], args))


def docx():
    text = ('<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            '<w:body><w:p><w:r><w:t>Hello, </w:t></w:r><w:r><w:t>this</w:t><w:tab/><w:t>is</w:t>'
            '</w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr>'
            '</w:tbl><w:p/><w:p><w:r><w:t>two</w:t></w:r></w:p></w:body></w:document>')
    with directory():
        with zipfile.ZipFile("a.docx", "w") as z:
            z.writestr("word/document.xml", text)
        equal(printed(fresh().parse_docx, "a.docx"),
              "[Reading DOCX file from a.docx]\n@@ Page 1 @@\nHello, this\tis\n\n@@ Page 2 @@\n\n\n"
              "@@ Page 3 @@\ntwo\n\n\n")


def slide(*shapes):
    text = "".join("<p:sp><p:txBody>%s</p:txBody></p:sp>" % "".join(
        "<a:p><a:r><a:t>%s</a:t></a:r></a:p>" % line if line else "<a:p/>" for line in shape)
        for shape in shapes)
    return ('<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
            'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><p:cSld><p:spTree>'
            '%s</p:spTree></p:cSld></p:sld>' % text)


def pptx():
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with directory():
        with zipfile.ZipFile("a.pptx", "w") as z:
            z.writestr("ppt/presentation.xml",
                       '<p:presentation xmlns:r="%s" xmlns:p="http://schemas.openxmlformats.org/'
                       'presentationml/2006/main"><p:sldIdLst><p:sldId id="1" r:id="b"/>'
                       '<p:sldId id="2" r:id="a"/></p:sldIdLst></p:presentation>' % relations)
            z.writestr("ppt/_rels/presentation.xml.rels",
                       '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
                       'relationships"><Relationship Id="a" Target="slides/slide1.xml"/>'
                       '<Relationship Id="b" Target="/ppt/slides/slide2.xml"/></Relationships>')
            z.writestr("ppt/slides/slide1.xml", slide(["second"]))
            z.writestr("ppt/slides/slide2.xml", slide(["Hello", "there"], [""]))
        equal(printed(fresh().parse_pptx, "a.pptx"),
              "[Reading PowerPoint file from a.pptx]\n@@ Slide 1 @@\nHello\nthere\n\n"
              "@@ Slide 2 @@\nsecond\n")
        with open("b.pptx", "w") as f:
            f.write("no archive")
        equal(printed(fresh().parse_pptx, "b.pptx"),
              "[Reading PowerPoint file from b.pptx]\n"
              "Error reading PowerPoint file: File is not a zip file\n")


def a_pdf(*texts):
    """The least that is a PDF file: a page for each text, set in Helvetica."""
    n = len(texts)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               "<< /Type /Pages /Count %d /Kids [%s] >>" % (
                   n, " ".join("%d 0 R" % (4 + i) for i in range(n))),
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents %d 0 R "
                "/Resources << /Font << /F 3 0 R >> >> >>" % (4 + n + i) for i in range(n)]
    for text in texts:
        stream = "BT /F 12 Tf 10 50 Td (%s) Tj ET" % text
        objects.append("<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    data, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(data))
        data += ("%d 0 obj\n%s\nendobj\n" % (number, text)).encode()
    table = "xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += "".join("%010d 00000 n \n" % place for place in places)
    return data + ("%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        table, len(objects) + 1, len(data))).encode()


def pdf():
    with directory():
        with open("a.pdf", "wb") as f:
            f.write(a_pdf("Hello there", "two"))
        if not any(importlib.util.find_spec(name) for name in ("pypdf", "PyPDF2")):
            equal(printed(fresh().parse_pdf, "a.pdf"),
                  "[Reading PDF file from a.pdf]\nERROR: there is no reader of PDF files: "
                  "apt-get install python3-pypdf\n")
            raise Skip("there is no pypdf: apt-get install python3-pypdf")
        equal(printed(fresh().parse_pdf, "a.pdf"),
              "[Reading PDF file from a.pdf]\n@@ Page 1 @@\nHello there\n\n@@ Page 2 @@\ntwo\n")


def latex():
    try:
        import pylatexenc  # noqa: F401
    except ImportError:
        with directory():
            open("a.tex", "w").close()
            equal(printed(fresh().parse_latex, "a.tex"),
                  "[Reading LaTex file from a.tex]\nERROR: there is no reader of LaTeX files: "
                  "apt-get install python3-pylatexenc\n")
        raise Skip("there is no pylatexenc: apt-get install python3-pylatexenc")
    with directory():
        with open("a.tex", "w") as f:
            f.write("\\documentclass{article}\n\\begin{document}\nHello \\& \\textbf{you}.\n"
                    "\\end{document}\n")
        equal(printed(fresh().parse_latex, "a.tex"),
              "[Reading LaTex file from a.tex]\nHello & you.\n")


def a_pipe_is_not_waited_for():
    with directory():
        os.mkfifo("pipe")
        os.symlink("nowhere", "broken")
        equal(printed(fresh().search_dir, "x"), 'No matches found for "x" in ./\n')


# ---- the editor ----

@contextlib.contextmanager
def variables(**values):
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def an_editor():
    """A function that calls file_editor and takes its answer apart: a list of pairs."""
    if not os.access(os.path.join(BUILDDIR, "handrail-editor"), os.X_OK):
        raise Skip("handrail-editor is not built")
    with directory() as top, variables(SKILLS_LIBEXECDIR=BUILDDIR,
                                       SKILLS_UNDODIR=os.path.join(top, "undo")):
        def call(*args, **kw):
            first, middle, last = fresh().file_editor(*args, **kw).split("\n")
            found = re.fullmatch("<(oh_aci_output_[0-9a-f]{32})>", first)
            equal(found is not None and last == "</%s>" % found.group(1), True, (first, last))
            return json.loads(middle, object_pairs_hook=list), middle
        yield top, call


KEYS = ["output", "error", "path", "prev_exist", "old_content", "new_content",
        "formatted_output_and_error"]


def steps_of_an_edit():
    with an_editor() as (top, call):
        def step(command, want, **kw):
            pairs, _ = call(command, path, **kw)
            got = dict(pairs)
            equal([k for k, _ in pairs], KEYS)
            equal((got["path"], got["error"], got["formatted_output_and_error"]),
                  (path, None, got["output"]))
            equal([got[k] for k in KEYS[3:6]], want, command)
            return got["output"]
        path = os.path.join(top, "a.txt")
        equal(step("create", [False, None, "one\ntwo\n"], file_text="one\ntwo\n"),
              "File created successfully at: " + path)
        equal("     2\ttwo" in step("view", [True, None, None]), True)
        equal("New Line 2" in step("str_replace", [True, "one\ntwo\n", "one\nNew Line 2\n"],
                                   old_str="two", new_str="New Line 2"), True)
        step("insert", [True, "one\nNew Line 2\n", "one\nx\nNew Line 2\n"], insert_line=1, new_str="x")
        equal("Last edit to %s undone successfully." % path in
              step("undo_edit", [True, "one\nx\nNew Line 2\n", "one\nNew Line 2\n"]), True)
        step("undo_edit", [True, "one\nNew Line 2\n", "one\ntwo\n"])
        with open(path) as f:
            equal(f.read(), "one\ntwo\n")


def charsets_are_kept():
    with an_editor() as (top, call):
        path = os.path.join(top, "a.txt")
        text = "# -*- coding: cp1251 -*-\n# Это комментарий на русском языке, и довольно длинный\nx = 1\n"
        with open(path, "wb") as f:
            f.write(text.encode("cp1251"))
        got = dict(call("str_replace", path, old_str="x = 1", new_str="x = 2")[0])
        equal((got["old_content"], got["new_content"]), (text, text.replace("1\n", "2\n")))
        with open(path, "rb") as f:
            equal(f.read(), text.replace("x = 1", "x = 2").encode("cp1251"))


def mistakes_of_an_edit():
    with an_editor() as (top, call):
        open("a.txt", "w").close()
        for args, text in (
                (("view", os.path.join(top, "none")), "does not exist"),
                (("create", os.path.join(top, "none")),
                 "Parameter `file_text` is required for command: create."),
                (("undo_edit", top + "/.."), "is a directory"),
                (("jump", os.path.join(top, "a.txt")), "Unrecognized command jump"),
                (("view", "undo"), "starting with `/`.")):
            pairs, middle = call(*args)
            got = dict(pairs)
            equal([k for k, _ in pairs], KEYS[:2] + KEYS[6:], args)
            equal((got["output"], text in got["error"], got["formatted_output_and_error"]),
                  (None, True, "ERROR:\n" + got["error"]), got)
            equal(middle.startswith('{"output": null,"error": "'), True, middle)
            equal(', "formatted_output_and_error": ' in middle, True, middle)
        os.mkdir("there")
        equal(dict(call("view", "there")[0])["error"].endswith("starting with `/`."), True,
              "no path is suggested")


def an_editor_that_is_missing():
    with directory() as top, variables(SKILLS_LIBEXECDIR=top):
        try:
            fresh().file_editor("view", "/")
        except FileNotFoundError as error:
            equal("handrail-editor" in str(error), True, error)
        else:
            raise AssertionError("no error")


# ---- what a model says ----

class Model(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), body))
        answer = self.server.answers[self.path]
        self.send_response(200 if answer is not None else 500)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *what):
        pass


@contextlib.contextmanager
def a_model(**answers):
    server = http.server.HTTPServer(("127.0.0.1", 0), Model)
    server.asked, server.answers = [], {"/v1/chat/completions": None, "/v1/audio/transcriptions": None}
    server.answers.update({"/v1/" + k.replace("_", "/"): v for k, v in answers.items()})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with directory(), variables(OPENAI_API_KEY="k9", OPENAI_MODEL="m", MAX_TOKEN="7",
                                    OPENAI_BASE_URL="http://127.0.0.1:%d/v1" % server.server_port):
            yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SAYS = {"choices": [{"message": {"content": "a red dot"}}]}


def not_without_a_key():
    with variables(OPENAI_API_KEY="", SANDBOX_ENV_OPENAI_API_KEY=""):
        equal([n for n in fresh().__all__ if n in ("parse_audio", "parse_image", "parse_video")], [])
    with variables(OPENAI_API_KEY="", SANDBOX_ENV_OPENAI_API_KEY="k"):
        equal({"parse_audio", "parse_image", "parse_video"} <= set(fresh().__all__), True)


def a_picture():
    with a_model(chat_completions=SAYS) as m:
        with open("a.png", "wb") as f:
            f.write(b"picture")
        equal(printed(fresh().parse_image, "a.png"), "[Reading image file from a.png]\na red dot\n")
        path, headers, body = m.asked[0]
        body = json.loads(body)
        equal((path, headers["Authorization"], body["model"], body["max_tokens"]),
              ("/v1/chat/completions", "Bearer k9", "m", 7))
        equal(body["messages"][0]["content"][0]["text"], "Describe this image as detail as possible.")
        equal(body["messages"][0]["content"][1]["image_url"]["url"],
              "data:image/png;base64,cGljdHVyZQ==")
        m.answers["/v1/chat/completions"] = None
        equal(printed(fresh().parse_image, "a.png"), "[Reading image file from a.png]\n"
              "Error with the request: HTTP Error 500: Internal Server Error\n")


def a_sound():
    with a_model(audio_transcriptions={"text": "hello there"}) as m:
        with open("a.wav", "wb") as f:
            f.write(b"sound")
        equal(printed(fresh().parse_audio, "a.wav"),
              "[Transcribing audio file from a.wav]\nhello there\n")
        path, headers, body = m.asked[0]
        message = email.message_from_bytes(
            b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
        parts = {p.get_param("name", header="content-disposition"): p for p in message.get_payload()}
        equal((path, parts["model"].get_payload().strip(), parts["file"].get_filename(),
               parts["file"].get_payload(decode=True).rstrip(b"\r\n")),
              ("/v1/audio/transcriptions", "whisper-1", "a.wav", b"sound"))
        equal(printed(fresh().parse_audio, "none.wav"),
              "[Transcribing audio file from none.wav]\nError transcribing audio file: [Errno 2] No "
              "such file or directory: 'none.wav'\n")


def a_video():
    if shutil.which("ffmpeg") is None:
        raise Skip("there is no ffmpeg: apt-get install ffmpeg")
    with a_model(chat_completions=SAYS) as m:
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=red:s=16x16:r=10:d=2.5",
                        "a.mkv"], check=True, stdin=subprocess.DEVNULL)
        want = "[Processing video file from a.mkv with frame interval 10]\nTotally 3 would be analyze...\n\n"
        for n in (0, 10, 20):
            want += ("Process the a.mkv, current No. %d frame...\nFrame %d's content: a red dot\n\n"
                     % (n, n // 10))
        equal(printed(fresh().parse_video, "a.mkv", "Say", 10), want)
        equal(len(m.asked), 3)


def need_kernel():
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        raise Skip("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if find_program("nginx") is None or subprocess.run(
            [PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("needs nginx and python3-ipykernel")
    process.become_subreaper()


def ask_cell(s, code):
    a = s.request("POST", "/execute_action", json.dumps({"action": {
        "action": "run_ipython", "args": {"code": code, "include_extra": False}}}),
        {"Content-Type": "application/json"}, 60)
    return a.json()["content"]


def edits_with_the_rights_of_the_user():
    """test_ipython_file_editor_permissions_as_openhands, with another name."""
    need_kernel()
    need_root()
    need_entrance()
    with Server(args=["--plugins", "agent_skills", "jupyter"], name="nobody", ready=None,
                env={"RUNTIME_USERNAME": "nobody"}) as s:
        s.env["USER"] = "root"
        s.start()
        with tempfile.TemporaryDirectory() as secret:  # as /root is: nobody else may enter
            with open(os.path.join(secret, "test.txt"), "w") as f:
                f.write("secret")
            for call in ("'view', %r" % os.path.join(secret, "test.txt"),
                         "'str_replace', %r, old_str='secret', new_str='x'" % os.path.join(secret, "test.txt"),
                         "'create', %r, file_text='x'" % os.path.join(secret, "new.txt")):
                text = ask_cell(s, "print(file_editor(%s))" % call)
                equal(("Permission denied" in text, "secret" in text.replace(secret, "")
                       .replace("old_str='secret'", "")), (True, False), text)
            equal(os.listdir(secret), ["test.txt"])
        path = os.path.join(s.work_dir, "test.txt")
        for call, want in (("'create', %r, file_text='Line 1\\nLine 2\\nLine 3'", "File created successfully"),
                           ("'view', %r", "Line 3"),
                           ("'str_replace', %r, old_str='Line 2', new_str='New Line 2'", "New Line 2"),
                           ("'undo_edit', %r", "undone successfully"), ("'undo_edit', %r", "Last edit to"),
                           ("'undo_edit', %r", "No edit history")):
            text = ask_cell(s, "print(file_editor(%s))" % (call % path))
            equal(want in text, True, text)
        equal(os.stat(path).st_uid, int(s.run("id -u")))


def undo_outlives_a_killed_server():
    need_kernel()
    with Server(args=["--plugins", "agent_skills", "jupyter"]) as s:
        path = os.path.join(s.work_dir, "a.txt")
        for call in ("'create', %r, file_text='old'", "'str_replace', %r, old_str='old', new_str='new'"):
            ask_cell(s, "print(file_editor(%s))" % (call % path))
        s.kill_and_start()
        text = ask_cell(s, "print(file_editor('undo_edit', %r))" % path)
        equal("undone successfully" in text, True, text)
        with open(path) as f:
            equal(f.read(), "old")


def in_the_kernel():
    need_kernel()
    with Server(args=["--plugins", "agent_skills", "jupyter"]) as s:
        def cell(code):
            return ask_cell(s, code)
        s.run("printf 'one\\ntwo\\n' >a.txt")
        equal(cell("open_file('a.txt')"),
              "[File: %s/a.txt (2 lines total)]\n(this is the beginning of the file)\n1|one\n2|two\n"
              "(this is the end of the file)" % s.work_dir)
        equal(cell("import agentskills; agentskills.goto_line(2)").split("\n")[2:4],
              ["1|one", "2|two"], "the same state under each name")
        equal(s.get("/ready").json()["components"]["plugins"]["agent_skills"], {"state": "ready"})
        cell("import os; os._exit(1)")
        equal(cell("search_file('two', 'a.txt')").split("\n")[1], "Line 2: two", "a new kernel")


def main():
    tap = Tap()
    with open(CORPUS) as f:
        for line in f:
            case = json.loads(line)
            tap.run(case["name"], recorded, case)
    for test in (docx, pptx, pdf, latex, a_pipe_is_not_waited_for, steps_of_an_edit, charsets_are_kept,
                 mistakes_of_an_edit, an_editor_that_is_missing, not_without_a_key, a_picture, a_sound,
                 a_video, in_the_kernel, undo_outlives_a_killed_server,
                 edits_with_the_rights_of_the_user):
        tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__" and os.access(PYTHON, os.X_OK) and not os.path.samefile(PYTHON, sys.executable):
    os.execv(PYTHON, [PYTHON] + sys.argv)  # the one that Debian's packages are for

if __name__ == "__main__":
    sys.exit(main())
