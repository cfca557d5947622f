"""Line plots as SVG, for documents: one or several panels side by side, logarithmic axes, a line for each name."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 380, 280, 70, 58, 52, 60
COLOURS = ["#c0392b", "#cf7a1c", "#b8a01c", "#2f7d4f", "#2f9c95", "#2f5f9c", "#6a4a9c", "#22303f"]
STYLE = (".axis{stroke:#8795a6;fill:none}.grid{stroke:#e1e7ee;fill:none}text{font-size:12px;fill:#22303f}.small{font-size:11px;fill:#5c6b7c}"
         ".title{font-size:16px;font-weight:bold}.panel{font-size:13px;font-weight:bold}")


def powers(low, high):
    """Powers of ten around these."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0 ** i for i in range(first, max(last, first + 1) + 1)]


def label(value):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit * 0.999:
            return f"{value / unit:g} {name}"
    return f"{value * 1e9:g} ns"


class Panel:
    """`lines`: name -> {x: seconds}. Axes are logarithmic; the numbers below are those of the data."""

    def __init__(self, title, lines, scale=None):
        self.title, self.lines = title, {name: points for name, points in lines.items() if points}
        self.xs = sorted({x for points in self.lines.values() for x in points})
        values = scale or [y for points in self.lines.values() for y in points.values() if y > 0] or [1]
        self.ticks = powers(min(values), max(values))

    def values(self):
        return [y for points in self.lines.values() for y in points.values() if y > 0]

    def draw(self, left, names, x_name):
        def px(x):
            low, high = math.log2(self.xs[0]), math.log2(self.xs[-1])
            return left + (WIDTH * (math.log2(x) - low) / (high - low) if high > low else WIDTH / 2)

        def py(y):
            low, high = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
            return TOP + HEIGHT * (high - math.log10(y)) / (high - low)

        yield f'<text class="panel" x="{left}" y="{TOP - 8}">{escape(self.title)}</text>'
        for tick in self.ticks:
            yield f'<path class="grid" d="M{left},{py(tick):.1f} L{left + WIDTH},{py(tick):.1f}"/>'
            yield f'<text class="small" x="{left - 6}" y="{py(tick) + 4:.1f}" text-anchor="end">{label(tick)}</text>'
        for x in self.xs:
            yield f'<text class="small" x="{px(x):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{x}</text>'
        yield f'<text class="small" x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">{escape(x_name)}</text>'
        yield f'<path class="axis" d="M{left},{TOP} L{left},{TOP + HEIGHT} L{left + WIDTH},{TOP + HEIGHT}"/>'
        for name, points in self.lines.items():
            colour = COLOURS[names.index(name) % len(COLOURS)]
            path = " L".join(f"{px(x):.1f},{py(y):.1f}" for x, y in sorted(points.items()) if y > 0)
            yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"><title>{escape(name)}</title></path>'
            for x, y in sorted(points.items()):
                if y > 0:
                    yield f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"><title>{escape(name)}, {x}: {label(y)}</title></circle>'


def write(path, title, x_name, panels, note=""):
    """All panels have the same scale."""
    values = [y for _, lines in panels for points in lines.values() for y in points.values() if y > 0]
    panels = [Panel(name, lines, values) for name, lines in panels]
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    width = LEFT + len(panels) * (WIDTH + GAP) + 110
    height = TOP + HEIGHT + BOTTOM + (16 if note else 0)
    out = ['<?xml version="1.0" encoding="UTF-8"?>',
           f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">', f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
           '<rect width="100%" height="100%" fill="#ffffff"/>', f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>']
    for i, panel in enumerate(panels):
        out += panel.draw(LEFT + i * (WIDTH + GAP), names, x_name)
    for i, name in enumerate(names):
        y = TOP + 14 + 20 * i
        out.append(f'<path d="M{width - 140},{y - 4} l24,0" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2.5"/>'
                   f'<text x="{width - 110}" y="{y}">{escape(name)}</text>')
    if note:
        out.append(f'<text class="small" x="{LEFT}" y="{height - 8}">{escape(note)}</text>')
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out + ["</svg>"]) + "\n")
