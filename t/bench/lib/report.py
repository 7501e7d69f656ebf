"""Results: kept as records, shown as tables, judged against the aims."""

import json
import statistics
import sys


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    if len(values) < 2:
        return (values * 3)[:3]
    return statistics.quantiles(values, n=4, method="inclusive")


def ratio(value, floor):
    return value / floor if value is not None and floor else None


def ratios(rounds, floors, key="p50"):
    """The median over the rounds of value / sum of floors, each within its own round."""
    found = []
    for i, one in enumerate(rounds):
        parts = [f[i] for f in floors if i < len(f)]
        if one and all(parts) and len(parts) == len(floors) and one.get(key):
            below = sum(p[key] for p in parts)
            if below:
                found.append(one[key] / below)
    return median(found)


def number(value, digits=3):
    """About so many digits, never an exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    whole = len(str(int(abs(value))))
    return "%.*f" % (max(0, digits - whole), value)


class Report:
    def __init__(self, out=sys.stdout, json_file=None):
        self.out, self.json_file = out, json_file
        self.failed = []
        self.aims = []

    def text(self, line=""):
        print(line, file=self.out, flush=True)

    def record(self, **fields):
        if self.json_file:
            self.json_file.write(json.dumps(fields, sort_keys=True) + "\n")
            self.json_file.flush()

    def section(self, title, *notes):
        self.text()
        self.text(title)
        for note in notes:
            self.text("  " + note)

    def failure(self, what, error):
        self.failed.append(what)
        self.text("  FAILED  %s: %s" % (what, error))
        self.record(section="failure", row=what, error=str(error))

    def table(self, head, rows):
        """The first column is text, the others stand to the right."""
        rows = [[str(c) for c in row] for row in rows]
        widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
        for row in [head] + rows:
            self.text("  " + "  ".join(
                [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]))

    def aim(self, name, value, limit, at_least=False, unit=""):
        """One promise of the project: met where value <= limit (at_least: >=)."""
        met = None if value is None else (value >= limit if at_least else value <= limit)
        self.aims.append((name, value, limit, at_least, unit, met))
        self.record(section="aim", row=name, value=value, limit=limit, at_least=at_least,
                    unit=unit, met=met)

    def summary(self):
        self.section("Aims")
        words = {True: "met", False: "NOT MET", None: "not measured"}
        self.table(["", "measured", "aim", ""],
                   [[name, number(value) + unit, "%s %g%s" % (">=" if least else "<=", limit, unit),
                     words[met]] for name, value, limit, least, unit, met in self.aims])
        for what in self.failed:
            self.text("  failed: " + what)
