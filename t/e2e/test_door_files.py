#!/usr/bin/env python3
"""The tools of the door for agents that show and change files: a file is what its content says, and a change touches
nothing but what it names (doc/agents.md, "Tools")."""

import base64
import os
import subprocess
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.metrics import samples  # noqa: E402
from lib.supervised import Server, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from test_door import call, text  # noqa: E402


def put(s, name, data):
    path = os.path.join(s.work_dir, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def get(path):
    with open(path, "rb") as f:
        return f.read()


def changed(s, before, after, **edit):
    """One edit of a file with these bytes, or its refusal (after None); then it is taken back."""
    path = put(s, "f", before)
    r = call(s, "edit", path=path, **edit)
    equal((r["isError"], get(path)), (after is None, before if after is None else after), (edit, r))
    if after is not None:
        equal(call(s, "undo", path=path)["isError"], False)
        equal(get(path), before, edit)
    return text(r)


def line_ends_stay():
    with Server() as s:
        for end in (b"\r\n", b"\r", b"\n"):
            t = end.join([b"a", b"b", b"c", b""])
            changed(s, t, t.replace(b"b", b"B"), old="b", new="B")
            changed(s, t, end.join([b"a", b"B", b"x", b"c", b""]), old="b", new="B\nx")
            changed(s, t, end.join([b"a", b"c", b""]), old="b\n", new="")
            changed(s, t, end.join([b"a", b"B", b"C", b""]), old="b\nc", new="B\nC")
            changed(s, t, end.join([b"a", b"b", b"x", b"y", b"c", b""]), after_line=2, new="x\ny")
            changed(s, t, end.join([b"x", b"a", b"b", b"c", b""]), after_line=0, new="x\n")
            changed(s, t, end.join([b"a", b"b", b"c", b"x", b""]), after_line=3, new="x")
            changed(s, t, end.join([b"a", b"b", b"x", b"c", b""]), after_line=2, new="x\r\n")
        mixed = b"a\r\nb\nc\r\nd\n"
        changed(s, mixed, b"a\r\nB\nC\r\nd\n", old="b\nc", new="B\nC")
        changed(s, mixed, b"a\r\nb\nX\nc\r\nd\n", old="b\nc", new="b\nX\nc")
        changed(s, mixed, b"a\r\nX\r\nb\nc\r\nd\n", after_line=1, new="X")
        changed(s, mixed, b"a\nb\nc\r\nd\n", old="a\r\n", new="a\n")
        changed(s, b"10%\r20%\rdone\nx\n", b"10%\r20%\rDONE\nx\n", old="done", new="DONE")
        s.stop()


def charsets_stay():
    with Server() as s:
        words = "Straße\r\n文字 naïve\r\nend"
        for charset, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
                              ("utf-32-le", b"\xff\xfe\0\0"), ("utf-8", b""), ("utf-16-le", b""), ("utf-16-be", b"")):
            before, after = (mark + t.encode(charset) for t in (words, words.replace("naïve", "näher\r\n語")))
            changed(s, before, after, old="naïve", new="näher\n語")
            equal("Straße" in text(call(s, "read", path=put(s, "r", before))), True, charset)
        russian = "# coding: cp1251\n" + "Привет, мир: это русский текст.\n" * 20 + "x = 1\n"
        before, after = (t.encode("cp1251") for t in (russian, russian.replace("x = 1", "ключ")))
        changed(s, before, after, old="x = 1", new="ключ")
        changed(s, before, None, old="x = 1", new="文")
        broken = "größer\n".encode() * 5 + b"\xff\xfe\xe9 x\n"
        changed(s, broken, broken.replace(b"x", "ß".encode()), old=" x", new=" ß")
        for word in ("漢", "ก", "한", "й"):
            long = (word * 30 + "\n") * 40
            changed(s, long.encode() + b"here", long.encode() + b"there", old="here", new="there")
            changed(s, b"x" + long.encode() + b"here", b"x" + long.encode() + b"there", old="here", new="there")
            equal(word in text(call(s, "read", path=put(s, "r", long.encode()))), True, word)
        s.stop()


def places():
    with Server() as s:
        for before, old in ((b"aaa\n", "aa"), (b"abababa", "aba"), (b"x\n\n\ny", "\n\n"), (b"a\na\na\n", "a\na"),
                            (b"\r\n\r\n\r\n", "\n\n"), ("ééé".encode(), "éé"), (b"a b a", "a"),
                            (b"a\r\nb\na\nb", "a\nb")):
            said = changed(s, before, None, old=old, new="z")
            equal("Multiple occurrences" in said, True, said)
        changed(s, b"    x = 1\n", b"    x = 2\n", old="    x = 1", new="    x = 2")
        for old in ("  x = 1\n", "x = 1  ", "\n\nx", " x", "X"):
            said = changed(s, b"if a:\n\tx = 1\n", None, old=old, new="x = 2")
            equal("did not appear" in said, True, said)
        # an error with which of several edits it was: the first line, and whole characters of at most 60 bytes
        for old, shown in (("y = 1", "y = 1"), ("y = 1\nx = 1", "y = 1..."), ("x" + "ß" * 40, "x%s..." % ("ß" * 29))):
            said = changed(s, b"if a:\n\tx = 1\n", None, old=old, new="x = 2")
            equal('"%s" did not appear in it' % shown in said, True, said)
        changed(s, b"a", b"a\nb", after_line=1, new="b")
        changed(s, b"a", b"a\nb\n", after_line=1, new="b\n")
        changed(s, b"a\r\nb", b"a\r\nb\r\nc", after_line=2, new="c")
        changed(s, b"a\n", b"a\n\nb\n", after_line=1, new="\nb")
        changed(s, b"a\nb\n", b"a\n\nb\n", after_line=1, new="")
        changed(s, b"", b"a\n", after_line=0, new="a")
        changed(s, b"", b"a", old="", new="a")
        changed(s, b"x", None, old="", new="a")
        changed(s, b"a\n", None, after_line=2, new="x")
        changed(s, b"a\n", None, after_line=-1, new="x")
        changed(s, b"a\n", None, old="a", new="a")
        changed(s, b"a\nb", b"", old="a\nb", new="")
        changed(s, b"\x7fELF\0\1\2a", None, old="a", new="b")
        s.stop()


def written():
    with Server() as s:
        for content in ("", "x", "x\n", "x\r\ny", "\n", "é\n\n"):
            path = put(s, "w", b"before\r\n")
            equal(text(call(s, "write", path=path, content=content)),
                  "Wrote %d bytes to %s." % (len(content.encode()), path))
            equal(get(path), content.encode())
            equal(call(s, "write", path="new/dir/%d" % len(content), content=content)["isError"], False)
            equal(get(os.path.join(s.work_dir, "new/dir/%d" % len(content))), content.encode())
        os.chmod(path, 0o751)
        call(s, "write", path=path, content="y")
        equal(os.stat(path).st_mode & 0o777, 0o751)
        equal(call(s, "write", path=s.work_dir, content="y")["isError"], True)
        s.stop()


def undone():
    with Server() as s:
        path = put(s, "u", b"one\r\ntwo")
        call(s, "edit", path=path, old="one", new="1")
        call(s, "edit", path=path, old="two", new="2")
        for change in (lambda: put(s, "u", b"theirs"), lambda: call(s, "run", command="echo >>%s" % path),
                       lambda: call(s, "write", path=path, content="mine")):
            change()
            now = get(path)
            r = call(s, "undo", path=path)
            equal((r["isError"], "changed since" in text(r), get(path)), (True, True, now), r)
        put(s, "u", b"1\r\n2")
        os.symlink("u", s.work_dir + "/link")
        equal(call(s, "undo", path=s.work_dir + "/./link")["isError"], False)
        equal(call(s, "undo", path=path)["isError"], False)
        equal(get(path), b"one\r\ntwo")
        equal("no edit" in text(call(s, "undo", path=path)), True)
        s.stop()


def counted():
    """As the actions of the same types are."""
    with Server() as s:
        path = put(s, "c", b"a\n")
        edit = {"old": "a", "new": "b"}
        for name, args in (("read", {}), ("edit", edit), ("write", {"content": ""}), ("edit", edit)):
            call(s, name, path=path, **args)
        told = samples(s.get("/metrics").body.decode())
        found = {tuple(v for k, v in labels): n for (name, labels), n in told.items()
                 if name == "handrail_actions_total"}
        equal(found, {("read", "ok"): 1, ("edit", "ok"): 1, ("edit", "error"): 1, ("write", "ok"): 1})
        s.stop()


def once():
    """A repetition of the same request is told what came of the first, and changes nothing."""
    with Server() as s:
        path = put(s, "o", b"a\n")
        for i in range(3):
            r = call(s, "edit", headers={"X_Request_ID": "the-same-edit"}, path=path, after_line=1, new="b")
            equal((r["isError"], "2\tb" in text(r), get(path)), (False, True, b"a\nb\n"), r)
        s.stop()


def png(width=2, height=2):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = (b"\0" + b"\x40\x80\xc0" * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////"
    "////////////////////////////////////////////////////////"
    "////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=") + b"\xff\xd9"
WEBP = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")


def shown():
    with Server() as s:
        for data, mime in ((png(), "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (WEBP, "image/webp")):
            for name in ("p.png", "p.txt", "p", "p.pdf"):
                r = call(s, "read", path=put(s, name, data))
                equal(len(r["content"]), 2, (mime, r))
                block = r["content"][1]
                equal((block["type"], block["mimeType"], base64.b64decode(block["data"])), ("image", mime, data))
            r = call(s, "read", path=put(s, "cut.png", data[:len(data) * 2 // 3]))
            equal((len(r["content"]), r["isError"], "damaged" in text(r)), (1, True, True), (mime, r))
        for name, data, word in (("e.png", b"", "is empty"), ("t.png", b"some text\n", "1\tsome text"),
                                 ("t.jpg", b"GIF is a format\n", "GIF is"), ("t.pdf", b"no PDF\n", "1\tno PDF"),
                                 ("big.png", png(9000, 1), "too large"),
                                 ("x.gif", b"\x7fELF\2\1\1\0" + b"\0" * 64, "ELF"),
                                 ("sig.png", b"\x89PNG\r\n\x1a\n", "damaged"), ("v.svg", b"<svg/>\n", "1\t<svg/>")):
            r = call(s, "read", path=put(s, name, data))
            equal((len(r["content"]), word in text(r)), (1, True), (name, r))
        large = b"\x00\x40\x00\x00teXt" + b"x" * (4 << 20) + b"\0\0\0\0"
        equal("too large" in text(call(s, "read", path=put(s, "large.png", png()[:-12] + large + png()[-12:]))), True)
        equal("a.txt" in text(call(s, "read", path=os.path.dirname(put(s, "dir/a.txt", b"")))), True)
        os.mkfifo(s.work_dir + "/fifo")
        equal("not a regular file" in text(call(s, "read", path="fifo")), True)
        equal("no such file" in text(call(s, "read", path="nowhere")), True)
        equal("processor" in text(call(s, "read", path="/proc/cpuinfo")), True)
        s.stop()


def pdf(word):
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
               b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
               None, b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    stream = b"BT /F 12 Tf 20 100 Td (%s) Tj ET" % word
    objects[3] = b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)
    out, offsets = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for i, o in enumerate(objects):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (i + 1, o)
    table = b"".join(b"%010d 00000 n \n" % n for n in offsets)
    out += b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\n" % table + b"startxref\n%d\n" % len(out)
    return out + b"%%EOF\n"


def documents():
    if subprocess.run(["which", "pdftohtml"], stdout=subprocess.DEVNULL).returncode != 0:
        raise Skip("needs pdftohtml: apt-get install poppler-utils")
    with Server() as s:
        for name in ("d.pdf", "d.bin"):
            equal("handsome words" in text(call(s, "read", path=put(s, name, pdf(b"handsome words")))), True, name)
        equal("without text" in text(call(s, "read", path=put(s, "d.pdf", pdf(b"")))), True)
        equal(call(s, "read", path=put(s, "d.pdf", b"%PDF-1.4\n\0\1\2garbage"))["isError"], True)
        s.stop()


def lines_of_a_file():
    with Server() as s:
        path = put(s, "l", b"one\r\ntwo\r\nthree")
        equal(text(call(s, "read", path=path)), "     1\tone\n     2\ttwo\n     3\tthree\n[lines end with CR LF]\n"
                                                "[the last line has no end]\n")
        equal(text(call(s, "read", path=path, first=2, last=2)), "     2\ttwo\n")
        equal(call(s, "read", path=path, first=4)["isError"], True)
        path = put(s, "l", b"x" * 100 + b"\n" + b"line\n" * 20000)
        said = text(call(s, "read", path=path))
        after = int(said.rsplit("first=", 1)[1].rstrip("]\n"))
        equal("%d of 20001 lines" % (after - 1) in said, True, said[-100:])
        equal(text(call(s, "read", path=path, first=after, last=after)), "%6d\tline\n" % after)
        equal("bytes more" in text(call(s, "read", path=put(s, "l", b"y" * 100000))), True)
        s.stop()


if __name__ == "__main__":
    sys.exit(run_tests([line_ends_stay, charsets_stay, places, written, undone, counted, once, shown, documents,
                        lines_of_a_file]))
