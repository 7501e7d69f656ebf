#!/usr/bin/env python3
"""The functions that agents find in the kernel: each recorded call, the documents, and the import
by way of a real kernel."""

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import BUILDDIR, SRCDIR, Server, find_program  # noqa: E402
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


def in_the_kernel():
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        raise Skip("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if find_program("nginx") is None or subprocess.run(
            [PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("needs nginx and python3-ipykernel")
    process.become_subreaper()
    with Server(args=["--plugins", "agent_skills", "jupyter"]) as s:
        def cell(code):
            a = s.request("POST", "/execute_action", json.dumps({"action": {
                "action": "run_ipython", "args": {"code": code, "include_extra": False}}}),
                {"Content-Type": "application/json"}, 60)
            return a.json()["content"]
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
    for test in (docx, pptx, latex, a_pipe_is_not_waited_for, in_the_kernel):
        tap.run(test.__name__, test)
    return tap.done()


if __name__ == "__main__" and os.access(PYTHON, os.X_OK) and not os.path.samefile(PYTHON, sys.executable):
    os.execv(PYTHON, [PYTHON] + sys.argv)  # the one that Debian's packages are for

if __name__ == "__main__":
    sys.exit(main())
