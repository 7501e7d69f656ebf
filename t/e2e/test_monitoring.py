#!/usr/bin/env python3
"""Dashboard and alert rules (conf/monitoring), and what doc/operators.md says of metrics: each metric, label and value
of a label that is named there is one that a server or a fleet really tells. promtool reads the rules where it is
installed."""

import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE, SRC  # noqa: E402
from lib.supervised import Server, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

SAMPLE = re.compile(r'^(handrail_[a-z_]+)(?:\{(.*)\})? \S+$')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
# what Prometheus itself adds
ADDED = {"job", "instance"}
# values that there are only once something has happened, or never in a test
RARE = {"outcome": {"failed"}, "path": {"cold", "warm"}}
RULES = os.path.join(SRC, "conf/monitoring/handrail.rules.yml")
DASHBOARD = os.path.join(SRC, "conf/monitoring/handrail-dashboard.json")


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def told(text):
    """{metric: {label: values}}"""
    found = {}
    for line in text.splitlines():
        kind = re.match(r"# TYPE (handrail_\w+) ", line)
        sample = SAMPLE.match(line)
        if kind:
            found.setdefault(kind.group(1), {})
        elif sample:
            labels = found.setdefault(sample.group(1), {})
            for name, value in LABEL.findall(sample.group(2) or ""):
                labels.setdefault(name, set()).add(value)
        elif not line.startswith("# HELP "):
            raise AssertionError("not a sample: %r" % line)
    return found


def named(text):
    """(metric, its selectors) wherever a metric's name stands; a name that ends in an underscore is a family's, and one
    before a dot or a hyphen a file's."""
    for name, selector in re.findall(r"\b(handrail_[a-z_]*[a-z])\b(?![.\-])(?:\{([^{}]*)\})?", text):
        yield name, re.findall(r'(\w+)(?:\s*(!?=~?)\s*\\?"([^"\\]*)\\?")?', selector)


@functools.lru_cache(None)
def all_told():
    with Server(args=["--plugins", "agent_skills", "jupyter"]) as s:
        s.run("echo output")
        s.run("(exit 3)")
        found = told(s.get("/metrics").body.decode())
    with Fleet() as f:
        found.update(told(f.call("GET", "/metrics")[1].decode()))
    return found


def names_exist():
    have = all_told()
    equal(len(have) > 30, True, sorted(have))
    wrong = []
    for path in sorted(glob.glob(os.path.join(SRC, "conf/monitoring/*"))) + [os.path.join(SRC, "doc/operators.md")]:
        seen = 0
        for name, selectors in named(text_of(path)):
            seen += 1
            if name not in have:
                wrong.append("%s: there is no metric %s" % (os.path.basename(path), name))
                continue
            for label, how, value in selectors:
                if label in ADDED:
                    continue
                values = have[name].get(label, set())
                if not values:
                    wrong.append("%s: %s has no label %s" % (os.path.basename(path), name, label))
                elif how in ("=", "!=") and value not in values | RARE.get(label, set()):
                    wrong.append("%s: %s is never %s=%s" % (os.path.basename(path), name, label, value))
        equal(seen > 5, True, "metrics are named in " + path)
    equal(wrong, [])


def grouped_labels():
    """What expressions group by, and what texts and legends show."""
    have = all_told()
    wrong = []
    expressions = re.findall(r"^ +expr: (.*)$", text_of(RULES), re.M)
    for panel in json.loads(text_of(DASHBOARD))["panels"]:
        for target in panel.get("targets", ()):
            expressions.append(target["expr"])
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - ADDED - {"le"}
            known = {label for name, _ in named(target["expr"]) for label in have.get(name, {})}
            wrong += ["the legend of %r: %s" % (panel["title"], label) for label in sorted(labels - known)]
    for expression in expressions:
        known = {label for name, _ in named(expression) for label in have.get(name, {})} | ADDED
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
            wrong += ["%s: %s" % (expression, label) for label in re.findall(r"\w+", group) if label not in known]
    equal((len(expressions) > 30, wrong), (True, []))


def dashboard_is_whole():
    board = json.loads(text_of(DASHBOARD))
    ids = [panel["id"] for panel in board["panels"]]
    equal(len(set(ids)), len(ids), "each panel has an id of its own")
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    equal(len(set(places)), len(places), "and a place")
    equal([p["title"] for p in board["panels"] if p["type"] != "row" and not p.get("targets")], [], "shows something")


def rules_are_read():
    promtool = shutil.which("promtool")
    if promtool is None:
        raise Skip("there is no promtool: apt-get install prometheus")
    done = subprocess.run([promtool, "check", "rules", RULES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE)
    equal((done.returncode, b"SUCCESS" in done.stdout), (0, True), done.stdout)


TESTS = [names_exist, grouped_labels, dashboard_is_whole, rules_are_read]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
