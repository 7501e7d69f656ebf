"""What Prometheus is told."""

import re

from .tap import equal

LINE = re.compile(r'^(handrail_[a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)+)\})? (-?[0-9.e+]+|[+-]Inf|NaN)$')


def samples(text):
    """{(name, labels): value}, with the form of the text checked: help and type before a metric's samples, each
    once, no sample twice, a line feed at the end."""
    found, types, helps = {}, {}, set()
    equal(text[-1], "\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            equal((name in types, kind in ("counter", "gauge", "histogram")), (False, True), line)
            types[name] = kind
        elif line.startswith("# HELP "):
            name = line.split(" ")[2]
            equal((name in helps, name in types, len(line.split(" ")) > 3), (False, False, True), line)
            helps.add(name)
        else:
            m = LINE.match(line)
            if m is None:
                raise AssertionError("not a sample: %r" % line)
            name = m.group(1)
            base = re.sub("_(bucket|sum|count)$", "", name)
            equal(name in types or types.get(base) == "histogram", True, "a type for " + line)
            key = (name, tuple(sorted(re.findall('([a-z]+)="([^"]*)"', m.group(2) or ""))))
            equal(key in found, False, "twice: " + line)
            found[key] = float(m.group(3))
    equal(helps, set(types), "what has a type has a help")
    return found
