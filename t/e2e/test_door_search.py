#!/usr/bin/env python3
"""The tools of the door for agents that look for files and in files: what they leave out they say, and what is named is
found (doc/agents.md, "Tools")."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import Server, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_door import call, structured, text  # noqa: E402


def put(s, name, data=b"needle\n"):
    path = os.path.join(s.work_dir, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def lines(s, data, pattern, **args):
    """The numbers of the lines that match."""
    path = put(s, "f", data)
    found = structured(call(s, "grep", path=path, pattern=pattern, **args))
    equal(found["complete"], True, (pattern, found))
    return [m["line"] for m in found["matches"]]


def line_by_line():
    with Server() as s:
        code = b"import os\n\n\n\ndef a():\n    pass\n\n  def b():\n\tdef c():\n"
        equal(lines(s, code, r"^\s*def "), [5, 8, 9])
        equal(lines(s, code, r"^\s*$"), [2, 3, 4, 7])
        equal(lines(s, code, r"os\s+def"), [])
        equal(lines(s, code, r"[^x]pass"), [6])
        equal(lines(s, code, r"\A\s*def"), [5, 8, 9])
        equal(lines(s, code, r"a\(\):\z"), [5])
        equal(lines(s, code, r"(?s)def.*"), [5, 8, 9])
        equal(lines(s, b"# c\n" * 30000 + b"a x\n", r"^[^#]*x"), [30001])
        equal(lines(s, b"a\nb", "b"), [2])
        equal(lines(s, b"\n\n", "^$"), [1, 2])
        equal(lines(s, b"", "^"), [])
        equal("\\n is in none" in text(call(s, "grep", path=put(s, "f", b"a\nb\n"), pattern=r"a\nb")), True)
        s.stop()


def line_ends():
    with Server() as s:
        dos = b"one\r\ntwo \r\nthree\r\n\r\nlast"
        equal(lines(s, dos, "one$"), [1])
        equal(lines(s, dos, r"^\w+$"), [1, 3, 5])
        equal(lines(s, dos, r"\s$"), [2])
        equal(lines(s, dos, "^$"), [4])
        equal(lines(s, dos, r"ee.$"), [])
        equal(lines(s, dos, r"\r"), [1, 2, 3, 4])
        equal(lines(s, dos, r"one\r$"), [1])
        equal(lines(s, dos, "one\r", literal=True), [1])
        equal(lines(s, b"a\rb x\rc", "x$"), [2])
        equal("1:one\n" in text(call(s, "grep", path=put(s, "f", dos), pattern="one")), True)
        for charset, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
            equal(lines(s, mark + "import é\r\nimport x\r\n".encode(charset), "^import .$"), [1, 2], charset)
        equal("binary" in text(call(s, "grep", path=put(s, "f", b"x\0y"), pattern="x")), True)
        s.stop()


def long_lines():
    with Server() as s:
        for word in ("needle", "nädel", "針針針"):
            for before, after in ((0, 5000), (5000, 5000), (5000, 0), (350, 0), (40, 390)):
                r = call(s, "grep", path=put(s, "f", ("é" * before + word + "é" * after + "\n").encode()), pattern=word)
                shown = structured(r)["matches"][0]["text"]
                equal((word in shown, len(shown.encode()) < 420, shown.startswith("[...]"), "\ufffd" in shown),
                      (True, True, before > 90, False), (before, after, shown))
                equal(shown in text(r), True)
        s.stop()


def sizes_of_the_kernel():
    with Server() as s:
        equal(structured(call(s, "grep", path="/proc/self/status", pattern="^Name:"))["total"], 1)
        s.stop()


def glob(s, pattern, **args):
    r = structured(call(s, "glob", pattern=pattern, path=args.pop("path", s.work_dir), **args))
    equal((r["total"], r["complete"]), (len(r["paths"]), True))
    return r["paths"]


def patterns():
    with Server() as s:
        for name in ("src/a.ts", "src/b.tsx", "src/sub/c.ts", "src/sub/deep/d.ts", "x.ts", "größe.txt", "文字.md",
                     "ä/b.c", "lib/a1.js", "lib/b2.js", ".env", ".github/ci.yml", "sub/.env", ".hidden/x.ts",
                     "a[1].c", "{b}.c"):
            put(s, name)
        for pattern, want in (
                ("src/*.ts", ["src/a.ts"]), ("./src/*.ts", ["src/a.ts"]), ("././src//./*.ts", ["src/a.ts"]),
                (s.work_dir + "/src/*.ts", ["src/a.ts"]), (s.work_dir + "/x.ts", ["x.ts"]), ("/x.*", ["x.ts"]),
                (s.work_dir + "/*.ts", ["x.ts"]), ("/src/*.ts", ["src/a.ts"]),
                ("src/../lib/*1.js", ["src/../lib/a1.js"]),
                ("{src,{lib,ä}}/*.{js,c}", ["lib/a1.js", "lib/b2.js", "ä/b.c"]), ("src/a.{t{s,x},js}", ["src/a.ts"]),
                ("{src/{a,b},x}.{ts,tsx}", ["src/a.ts", "src/b.tsx", "x.ts"]), ("{b}.c", ["{b}.c"]),
                ("a\\[1].c", ["a[1].c"]),
                ("gr??e.txt", ["größe.txt"]), ("gr[ö-ü]ße.txt", ["größe.txt"]), ("gr[!a-z]?e.txt", ["größe.txt"]),
                ("??.md", ["文字.md"]), ("?/b.c", ["ä/b.c"]), ("*?文?*", []), ("???.md", []), ("**??.md", ["文字.md"]),
                ("lib/[[:alpha:]][[:digit:]].js", ["lib/a1.js", "lib/b2.js"]), ("src/sub", ["src/sub/"]),
                ("src/sub/", ["src/sub/"]), ("src/**/*.ts", ["src/a.ts", "src/sub/c.ts", "src/sub/deep/d.ts"]),
                ("nowhere/*.ts", []), ("*.tsx", ["src/b.tsx"]), ("sub/**/d.ts", [])):
            equal(glob(s, pattern), want, pattern)
        equal(glob(s, "../*.ts", path=s.work_dir + "/src/sub"), ["../a.ts"])
        other = put(s, "../elsewhere/y.conf")
        real = os.path.dirname(other.replace("work/../", ""))
        equal(glob(s, real + "/*.conf"), [real + "/y.conf"])
        equal(glob(s, real + "/y.conf", path=s.work_dir + "/src"), [real + "/y.conf"])
        r = structured(call(s, "grep", pattern="needle", glob="./src/*.ts", path=s.work_dir))
        equal([m["path"] for m in r["matches"]], ["src/a.ts"])
        r = structured(call(s, "grep", pattern="needle", glob=s.work_dir + "/{src,lib}/a*.{ts,js}", path=s.work_dir))
        equal([m["path"] for m in r["matches"]], ["lib/a1.js", "src/a.ts"])
        s.stop()


def named():
    """What a pattern names is found, hidden or ignored as it may be."""
    with Server() as s:
        for name in (".env", "sub/.env", ".github/ci.yml", ".github/.x.yml", "build/out.o", "build/sub/out2.o",
                     "keep.c", "node/m/index.js"):
            put(s, name)
        put(s, ".gitignore", b".env\n/build/\n*.o\nnode/\n")
        for pattern, want in ((".env", [".env"]), ("sub/.env", ["sub/.env"]), (".github/ci.yml", [".github/ci.yml"]),
                              (".github/*.yml", [".github/ci.yml"]), ("**/.github/*", [".github/ci.yml"]),
                              ("build/out.o", ["build/out.o"]), ("build/*", ["build/out.o"]), ("*.o", []),
                              ("node/m/*.js", ["node/m/index.js"]), ("*", ["keep.c"]), ("**/*", ["keep.c"]),
                              (".gitignore", [".gitignore"]), (".*", [".gitignore"]), (".git*", [".gitignore"])):
            equal(glob(s, pattern), want, pattern)
        for g, want in ((".env", [".env"]), ("build/out.o", ["build/out.o"]), (".github/*", [".github/ci.yml"]),
                        ("node/**", ["node/m/index.js"]), ("*.o", [])):
            r = structured(call(s, "grep", pattern="needle", glob=g, path=s.work_dir))
            equal([m["path"] for m in r["matches"]], want, g)
        said = text(call(s, "glob", pattern="*.o", path=s.work_dir))
        equal(("Nothing found" in said, "ignored names were left out" in said), (True, True), said)
        s.stop()


def rules_above():
    with Server() as s:
        call(s, "run", command="git init -q . && git init -q other && git init -q main && cd main && git -c "
                               "user.name=x -c user.email=x@x commit -q --allow-empty -m x && "
                               "git worktree add -q ../tree && cd ..")
        for name in ("pkg/a.c", "pkg/a.gen", "pkg/sub/b.c", "pkg/sub/b.tmp", "pkg/sub/b.log", "pkg/sub/keep.log",
                     "pkg/sub/x.local", "out/c.c", "out/sub/d.c", "other/b.tmp", "other/e.c",
                     "tree/f.c", "tree/f.local", "tree/f.work"):
            put(s, name)
        put(s, ".gitignore", b"\xef\xbb\xbf*.tmp\r\n*.log\r\n/out/\r\n/sub/b.c\r\npkg/*.gen\r\n")
        put(s, "pkg/.gitignore", b"!keep.log\n")
        put(s, ".git/info/exclude", b"*.local\n")
        put(s, "main/.git/info/exclude", b"*.work\n")
        sub = s.work_dir + "/pkg/sub"

        def found(path):
            paths = structured(call(s, "list", path=path))["paths"]
            equal(glob(s, "*", path=path), [p for p in paths if not p.endswith("/")])
            r = structured(call(s, "grep", pattern="needle", path=path))
            equal([m["path"] for m in r["matches"] if "/" not in m["path"]], [p for p in paths if not p.endswith("/")])
            return paths

        equal(found(sub), ["b.c", "keep.log"])
        equal(structured(call(s, "list", path=sub, ignored=True))["total"], 5)
        equal(structured(call(s, "list", path=s.work_dir + "/pkg"))["paths"], ["a.c", "sub/"])
        equal(structured(call(s, "glob", pattern="**/*.c", path=s.work_dir))["paths"],
              ["other/e.c", "pkg/a.c", "pkg/sub/b.c", "tree/f.c"])
        equal(found(s.work_dir + "/out/sub"), ["d.c"], "who names an ignored directory wants to see it")
        equal(found(s.work_dir + "/other"), ["b.tmp", "e.c"], "a repository in another one has rules of its own")
        equal(structured(call(s, "glob", pattern="**/*.tmp", path=s.work_dir))["paths"], ["other/b.tmp"])
        equal(found(s.work_dir + "/tree"), ["f.c", "f.local"], "a work tree shares them with its repository")
        # git's settings
        put(s, ".git/config", b'[user]\n\tname = x\n[core]\n\texcludesFile = "%s" ; mine\n' % put(
            s, "../all", b"b.*\n").encode())
        equal(found(sub), ["keep.log"])
        s.stop()


def git_settings():
    """core.excludesFile of the shell's account."""
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)
        with Server(env={"HOME": home, "XDG_CONFIG_HOME": ""}) as s:
            for name in ("a.mine", "a.yours", "a.c"):
                put(s, "r/" + name)
            top = s.work_dir + "/r"
            call(s, "run", command="git init -q " + top)
            equal(glob(s, "*", path=top), ["a.c", "a.mine", "a.yours"])
            os.makedirs(home + "/.config/git")
            with open(home + "/.config/git/ignore", "w") as f:
                f.write("*.mine\n")
            equal(glob(s, "*", path=top), ["a.c", "a.yours"])
            with open(home + "/.gitconfig", "w") as f:
                f.write("[core] excludesfile = ~/my\\ list # here\n")
            with open(home + "/my list", "w") as f:
                f.write("*.yours\n")
            equal(glob(s, "*", path=top), ["a.c", "a.mine"])
            os.rename(home + "/my list", home + "/real")
            os.symlink("real", home + "/my list")
            equal(glob(s, "*", path=top), ["a.c", "a.mine"])
            s.stop()


if __name__ == "__main__":
    sys.exit(run_tests([line_by_line, line_ends, long_lines, sizes_of_the_kernel, patterns, named, rules_above,
                        git_settings]))
