"""Horizontal bars as SVG: the bar is p50, the whisker goes on to p90, the dot is p99 (at the edge when beyond it)."""
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
