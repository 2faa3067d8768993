"""Benchmarks as SVG. `draw` is the chart of cold.py: the bar is p50, the whisker goes on to p90, the dot is p99 (at the edge
when beyond it). `draw_campaign` is that of `cordon bench`, also as a command: chart.py RESULT.json CHART.svg."""
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW, HEAD = 860, 190, 90, 22, 34
COLOURS = {"cordon": "#0b7a75", "bubblewrap": "#7a6f9b", "plain": "#a9a9a9"}
OTHER = "#c08457"


def text(x, y, words, size=12, anchor="start", weight="normal", fill="#24292f"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{fill}">{escape(words)}</text>')


def bar(row, y, scale):
    """One runner: its name, bar, whisker and figures."""
    colour = next((value for name, value in COLOURS.items() if row["name"].startswith(name)), OTHER)
    p50, p90, p99 = (LEFT + min(row[key] * scale, WIDTH - LEFT - RIGHT) for key in ("p50_ms", "p90_ms", "p99_ms"))
    middle = y + ROW / 2 - 3
    return [text(LEFT - 8, middle + 4, row["name"], anchor="end"),
            f'<rect x="{LEFT}" y="{y}" width="{p50 - LEFT:.1f}" height="{ROW - 7}" rx="2" fill="{colour}"/>',
            f'<path d="M{p50:.1f} {middle}H{p90:.1f}m0-4v8" stroke="{colour}" fill="none" stroke-width="1.5"/>',
            f'<circle cx="{p99:.1f}" cy="{middle}" r="2" fill="{colour}"/>',
            text(WIDTH - 8, middle + 4, f"{row['p50_ms']:.2f} ms", anchor="end", weight="bold")]


def draw(rows, title):
    groups = {}
    for row in rows:
        groups.setdefault(row["workload"], []).append(row)
    parts = [text(12, 24, title, size=15, weight="bold"),
             text(WIDTH - 8, 24, "bar p50 · whisker p90 · dot p99", anchor="end", fill="#57606a")]
    y = 44
    for workload, members in groups.items():
        longest = max(row["p90_ms"] for row in members)
        scale = (WIDTH - LEFT - RIGHT) / (longest * 1.1)
        parts.append(text(12, y + 18, workload, size=13, weight="bold"))
        y += HEAD - 6
        for row in members:
            parts += bar(row, y, scale)
            y += ROW
        y += 8
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" height="{y + 8}" '
            f'font-family="system-ui, sans-serif">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n')


# The chart of `cordon bench`: two logarithmic axes that all workloads share, so that lengths compare across them.
PAGE, NAMES, LINE, BAR = 1000, 150, 19, 12
LATENCY, RATE = (NAMES + 10, 560), (640, PAGE - 75)  # from x to x
GRID, FAINT, INK = "#e4e7eb", "#57606a", "#24292f"
FILLS = {"cordon warm": "#0b7a75", "cordon cold": "#6dbdb6", "bubblewrap": "#7a6f9b", "plain subprocess": "#a9a9a9"}


class LogAxis:
    """Places values between two marks of the row …, 0.3, 1, 3, 10, …"""

    def __init__(self, values, span):
        values = [value for value in values if value] or [1]
        self.low = math.floor(2 * math.log10(min(values)))
        self.high = max(self.low + 2, math.ceil(2 * math.log10(max(values))))
        self.span = span

    @staticmethod
    def mark(step):
        return 10.0 ** (step // 2) * (3 if step % 2 else 1)

    def at(self, value):
        left, right = self.span
        share = (2 * math.log10(value) - self.low) / (self.high - self.low)
        return left + (right - left) * min(1, max(0, share))

    def grid(self, top, bottom, unit):
        parts = []
        for step in range(self.low, self.high + 1):
            x = self.at(self.mark(step))
            parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{GRID}"/>')
            parts.append(text(x, top - 6, f"{self.mark(step):g}{unit if step == self.high else ''}", size=11,
                              anchor="middle", fill=FAINT))
        return parts


def figure(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def latency_bar(row, y, axis):
    if not row["p50_ms"]:
        return [text(axis.span[0] + 4, y + 10, "not measured", size=11, fill=FAINT)]
    left, p50, p99 = axis.span[0], axis.at(row["p50_ms"]), axis.at(row["p99_ms"])
    colour, middle = FILLS.get(row["name"], OTHER), y + BAR / 2
    parts = [f'<rect x="{left}" y="{y}" width="{p50 - left:.1f}" height="{BAR}" rx="2" fill="{colour}"/>',
             f'<path d="M{p50:.1f} {middle}H{p99:.1f}m0-3v6" stroke="{colour}" fill="none" stroke-width="1.5"/>']
    end = p99
    if row.get("gap_p50_ms"):
        gap = axis.at(row["gap_p50_ms"])
        end = max(end, gap + 3)
        parts.append(f'<circle cx="{gap:.1f}" cy="{middle}" r="3" fill="#fff" stroke="{INK}" stroke-width="1.2"/>')
    return parts + [text(end + 6, y + 10, f"{figure(row['p50_ms'])} ms", size=11, weight="bold")]


def rate_bar(row, y, axis, key):
    if not row.get(key):
        return []
    left, x = axis.span[0], axis.at(row[key])
    return [f'<rect x="{left}" y="{y}" width="{max(1, x - left):.1f}" height="{BAR}" rx="2" '
            f'fill="{FILLS.get(row["name"], OTHER)}"/>',
            text(x + 6, y + 10, f"{figure(row[key])}/s", size=11, weight="bold")]


def legend(y, gap_ms):
    parts, x = [], 12
    for name, colour in [*FILLS.items(), ("other runners", OTHER)]:
        parts += [f'<rect x="{x}" y="{y - 10}" width="12" height="12" rx="2" fill="{colour}"/>', text(x + 17, y, name)]
        x += 34 + 7 * len(name)
    parts += [f'<path d="M{x} {y - 4}h16m0-3v6" stroke="{INK}" fill="none" stroke-width="1.5"/>', text(x + 21, y, "p99")]
    if gap_ms:
        parts += [f'<circle cx="{x + 64}" cy="{y - 4}" r="3" fill="#fff" stroke="{INK}" stroke-width="1.2"/>',
                  text(x + 72, y, f"p50 with {gap_ms} ms between runs")]
    return parts


def facts_line(machine):
    memory = machine["memory_bytes"] / (1 << 30)
    return (f"{machine['cores']} cores ({machine['cpu']}), {memory:.0f} GiB, Linux {machine['kernel']}, "
            f"cgroup {machine['cgroup']}, as {machine['user']}, Cordon {machine['cordon']}, {machine['date']}")


def draw_campaign(result):
    rows, facts = result["rows"], result["machine"]
    workers = max(result["settings"]["workers"], default=8)
    key = f"rate_{workers}"
    groups = {}
    for row in rows:
        groups.setdefault(row["workload"], []).append(row)
    top = 122
    bottom = top + sum(LINE * len(members) + 30 for members in groups.values())
    latency = LogAxis([row[name] for row in rows for name in ("p50_ms", "p99_ms", "gap_p50_ms")], LATENCY)
    rate = LogAxis([row.get(key) for row in rows], RATE)
    parts = [text(12, 26, "One run, and many at once", size=17, weight="bold"), text(12, 46, facts_line(facts), fill=FAINT),
             *legend(70, result["settings"]["gap_ms"]),
             text(LATENCY[0], 94, "Time of one run, back to back, p50", weight="bold"),
             text(RATE[0], 94, f"Runs per second, {workers} at once", weight="bold"),
             *latency.grid(top, bottom, " ms"), *rate.grid(top, bottom, "/s")]
    y = top
    for workload, members in groups.items():
        parts.append(text(12, y + 20, workload, size=13, weight="bold"))
        y += 26
        for row in members:
            parts += [text(NAMES, y + 10, row["name"], anchor="end"), *latency_bar(row, y, latency),
                      *rate_bar(row, y, rate, key)]
            y += LINE
        y += 4
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PAGE} {y + 16}" width="{PAGE}" height="{y + 16}" '
            f'font-family="system-ui, sans-serif">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n')


def main():
    """chart.py RESULT.json CHART.svg"""
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw_campaign(result))


if __name__ == "__main__":
    main()
