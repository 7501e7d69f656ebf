#!/usr/bin/env python3
"""t/mutate: which places of a source it changes and to what, how verdicts are read, which tests a folder has."""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from lib.tap import Tap, equal  # noqa: E402

loader = importlib.machinery.SourceFileLoader("mutate", os.path.join(TOP, "t", "mutate"))
sys.dont_write_bytecode = True
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)

SOURCE = """/* a < b
 * c == 1 */
#define N 7
static const char *const words[] = {"x < 1", "true"};

int
f(int a, struct g *g)
{
\thr_log(g, "%d", a + 1);
\thr_log(g, "%d",
\t    a + 2);
\thr_assert(a > 0);
\tif (a < 3 && !g->done)
\t\treturn 0;
\tif (strcmp(g->name, "a < b") == 0)
\t\treturn -1;
\tg->count += 10; // 4
\treturn a == '1' ? true : g->list[2];
}
"""


def places():
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(SOURCE)
        f.flush()
        found = [(number + 1, old.strip(), new.strip()) for number, _, old, new in mutate.places(f.name)]
    equal(found, [(13, "if (a < 3 && !g->done)", "if (!(a < 3 && !g->done))"), (13, "<", "<="), (13, "3", "4"),
                  (13, "&&", "||"), (13, "!", ""), (14, "return 0;", "return -1;"),
                  (15, "if (strcmp(g->name, _______) == 0)", "if (!(strcmp(g->name, _______) == 0))"),
                  (15, "==", "!="), (15, "0", "1"), (16, "return -1;", "return 0;"), (17, "+=", "-="), (17, "10", "11"),
                  (18, "==", "!="), (18, "true", "false")])


def a_line_with_strings():
    """The condition of a line is changed as it stands there."""
    with tempfile.TemporaryDirectory() as top:
        class Copy:
            pass
        tree = Copy()
        tree.top = top
        with open(os.path.join(top, "f.c"), "w", encoding="utf-8") as f:
            f.write(SOURCE)
        place = next(p for p in mutate.places(os.path.join(top, "f.c")) if p[0] == 14)
        m = mutate.Mutant(tree, "f.c", place)
        equal(m.after, '\tif (!(strcmp(g->name, "a < b") == 0))')
        m.write(m.after)
        with open(os.path.join(top, "f.c"), encoding="utf-8") as f:
            equal(f.read(), SOURCE.replace(m.before, m.after))
        m.restore()
        with open(os.path.join(top, "f.c"), encoding="utf-8") as f:
            equal(f.read(), SOURCE)


def tests_of_folders():
    """Every test that the table names is there, and every folder of src has some."""
    for folder, names in mutate.E2E:
        equal(os.path.exists(os.path.join(TOP, folder)), True, folder)
        for name in names.split():
            equal(os.path.exists(os.path.join(TOP, "t/e2e/test_%s.py" % name)), True, name)
    equal(mutate.end_to_end("src/host/e2b/api.c"), ["t/e2e/test_clouds_e2b.py", "t/e2e/test_clouds_replay.py"])
    equal(mutate.end_to_end("src/box/forward.c"), ["t/e2e/test_box_url.py"])
    for name in os.listdir(os.path.join(TOP, "src")):
        if os.path.isdir(os.path.join(TOP, "src", name)) and name != "plugins":
            equal(len(mutate.end_to_end("src/%s/x.c" % name)) > 0, True, name)


def verdicts():
    """Each entry of the log has one."""
    for key, verdict in mutate.logged().items():
        equal(verdict.split(":")[0] in ("equivalent", "test added"), True, key)


def entries_to_try_again():
    """Without a text those without a verdict, with one those that have it."""
    known = {"src/a.c: x => y": "", "src/b.c: x => y": "equivalent: why", "src/a.c: z => 1": "test added: test_a"}
    equal(mutate.to_try_again(known, ""), {"src/a.c: x => y"})
    equal(mutate.to_try_again(known, "src/a.c"), {"src/a.c: x => y", "src/a.c: z => 1"})


def main():
    tap = Tap()
    for test in (places, a_line_with_strings, tests_of_folders, verdicts, entries_to_try_again):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
