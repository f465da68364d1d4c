# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs nothing else: where the time of the steps went."""
from collections import Counter
from html import escape
from statistics import median

from lockstep.trace.steps import find_steps, largest_tensors, regular_steps, shares_of

COLOURS = {"compute": "#4c9f70", "transfer": "#d1495b", "late": "#edae49", "hidden": "#30638e"}
LABELS = {"compute": "compute", "transfer": "communication, exposed", "late": "waiting for the slowest rank",
          "hidden": "communication, hidden (line)"}
WIDTH, HEIGHT, MAX_BARS = 960, 220, 240
LANE = 34

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222;
       background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; } th { font-weight: 600; }
th.text, td.text { text-align: left; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.fact { border: 1px solid #ddd; border-radius: 6px; padding: .5rem .9rem; } .fact b { display: block; font-size: 1.3rem; }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .35rem 0 1rem; vertical-align: -1px; }
svg { max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.quiet { color: #777; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; } th, td, .fact { border-color: #444; } }
"""


def ms(microseconds):
    return f"{microseconds / 1000:,.3g}" if microseconds < 99_950 else f"{microseconds / 1000:,.0f}"


def size(num_bytes):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.3g} {name}"
    return f"{num_bytes} B"


def table(headings, rows, text_columns=(0,)):
    def cell(tag, column, value):
        kind = ' class="text"' if column in text_columns else ""
        return f"<{tag}{kind}>{escape(str(value))}</{tag}>"
    head = "".join(cell("th", column, value) for column, value in enumerate(headings))
    body = "".join("<tr>" + "".join(cell("td", column, value) for column, value in enumerate(row)) + "</tr>\n"
                   for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def _bars(steps):
    """Steps, or means of several where there are too many to draw."""
    width = -(-len(steps) // MAX_BARS)
    for first in range(0, len(steps), width):
        group = steps[first:first + width]
        values = {name: sum(step.mean(name) for step in group) / len(group) for name in COLOURS}
        yield group[0].number, values


def draw_steps(steps):
    bars = list(_bars(steps))
    lengths = sorted(sum(values[name] for name in ("compute", "transfer", "late")) for _, values in bars)
    top = min(lengths[-1], 2.5 * lengths[len(lengths) // 2]) or 1.0  # what is longer is cut off: it would hide the others
    each = (WIDTH - 60) / len(bars)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 30}" role="img" aria-label="time of each step">']
    for share in (0, 0.5, 1):
        y = HEIGHT - share * (HEIGHT - 15)
        parts.append(f'<line x1="55" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>'
                     f'<text x="50" y="{y + 4:.1f}" text-anchor="end">{ms(share * top)}</text>')
    line = []
    for index, (number, values) in enumerate(bars):
        x, y = 58 + index * each, float(HEIGHT)
        title = f"step {number}: " + ", ".join(f"{name} {ms(values[name])} ms" for name in COLOURS)
        parts.append(f"<g><title>{escape(title)}</title>")
        for name in ("compute", "transfer", "late"):
            height = min(values[name] / top * (HEIGHT - 15), y - 2)
            y -= height
            parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(each - 1, each * 0.8):.2f}" height="{height:.2f}" '
                         f'fill="{COLOURS[name]}"/>')
        parts.append("</g>")
        line.append(f"{x + each / 2:.2f},{max(2.0, HEIGHT - values['hidden'] / top * (HEIGHT - 15)):.2f}")
    parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{COLOURS["hidden"]}" stroke-width="1.5"/>')
    parts.append(f'<text x="58" y="{HEIGHT + 18}">step {bars[0][0]}</text>'
                 f'<text x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">step {steps[-1].number}</text></svg>')
    return "".join(parts)


def key():
    return '<p class="key">' + "".join(f'<span style="background:{COLOURS[name]}"></span>{label}'
                                       for name, label in LABELS.items()) + "</p>"


def draw_one(traces, step):
    """The buckets of one step, a lane per rank; the mark is where the rank has handed in its last tensor."""
    begin, end = step.begin, max(step.end, max(rank.done for rank in step.ranks.values()))
    scale = (WIDTH - 80) / ((end - begin) or 1.0)
    shown = [trace for trace in traces if trace.rank in step.ranks][:16]
    height = LANE * len(shown) + 24
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="one step">']
    for lane, trace in enumerate(shown):
        y = lane * LANE + 4
        parts.append(f'<text x="0" y="{y + 18}">rank {trace.rank}</text>'
                     f'<rect x="70" y="{y}" width="{WIDTH - 80}" height="{LANE - 8}" fill="{COLOURS["compute"]}" opacity=".3"/>')
        for span in trace.row("bucket"):
            if span.end > begin and span.begin < end:
                x, last = 70 + max(0.0, span.begin - begin) * scale, 70 + (min(span.end, end) - begin) * scale
                title = f"{span.name} ({size(span.num_bytes)}; {span.detail}): {ms(span.end - span.begin)} ms"
                parts.append(f'<rect x="{x:.2f}" y="{y + 4}" width="{max(0.7, last - x):.2f}" height="{LANE - 16}" '
                             f'fill="{COLOURS["hidden"]}" opacity=".85"><title>{escape(title)}</title></rect>')
        given = 70 + (step.ranks[trace.rank].last_given - begin) * scale
        parts.append(f'<line x1="{given:.2f}" x2="{given:.2f}" y1="{y - 2}" y2="{y + LANE - 6}" '
                     f'stroke="{COLOURS["transfer"]}" stroke-width="2"><title>all tensors handed in</title></line>')
    parts.append(f'<text x="70" y="{height - 4}">0 ms</text><text x="{WIDTH - 10}" y="{height - 4}" '
                 f'text-anchor="end">{ms(end - begin)} ms</text></svg>')
    return "".join(parts)


def facts(steps, traces):
    share, pauses = shares_of(steps), len(steps) - len(regular_steps(steps))
    names = Counter(step.slowest for step in steps)
    slowest, times = names.most_common(1)[0]
    shown = [("ranks", f"{len(traces)} on {len({trace.host for trace in traces})} host(s)"), ("steps", f"{len(steps):,}"),
             ("median step", f"{ms(median(step.mean('length') for step in steps))} ms"),
             ("computing", f"{share['compute']:.1f} %"), ("exposed: communication and waiting", f"{share['exposed']:.1f} %"),
             ("waiting for the slowest rank", f"{share['late']:.1f} %"),
             ("most often slowest", f"rank {slowest} ({100 * times / len(steps):.0f} %)")]
    if pauses:
        shown.append(("pauses, left out of the shares", str(pauses)))
    return '<div class="facts">' + "".join(f'<div class="fact"><b>{escape(value)}</b>{escape(name)}</div>'
                                           for name, value in shown) + "</div>"


def rank_rows(steps, traces):
    for trace in traces:
        taken = [step.ranks[trace.rank] for step in steps if trace.rank in step.ranks]
        if taken:
            means = [ms(sum(getattr(step, name) for step in taken) / len(taken))
                     for name in ("length", "compute", "transfer", "late", "hidden")]
            slowest = 100 * sum(step.slowest == trace.rank for step in steps) / len(steps)
            yield (trace.rank, trace.host, *means, f"{slowest:.0f} %", "" if trace.is_complete else "cut short")


def step_rows(steps):
    for step in steps:
        yield (step.number, *[ms(step.mean(name)) for name in ("length", "compute", "transfer", "late", "hidden")],
               step.slowest)


HEADINGS = ("step ms", "compute", "exposed comm.", "waiting", "hidden comm.")


def make_report(traces, title):
    """The HTML text; it names what is missing when there are no steps to be found."""
    steps = find_steps(traces)
    parts = ["<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
             f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"]
    if steps:
        typical = sorted(steps, key=lambda step: step.mean("length"))[len(steps) // 2]
        parts += [facts(steps, traces), "<h2>Each step</h2>", key(), draw_steps(steps),
                  '<p class="quiet">Milliseconds, mean over ranks. A step goes from its first tensor to the first of the next.'
                  " Exposed: all tensors are handed in, and the rank waits until they are back.</p>",
                  f"<h2>One step: number {typical.number}</h2>", draw_one(traces, typical),
                  '<p class="quiet">Buckets in blue; the red mark is where a rank has handed in its last tensor.</p>',
                  "<h2>Ranks</h2>", table(("rank", "host", *HEADINGS, "slowest", ""), rank_rows(steps, traces), (1, 8))]
    else:
        parts.append("<p>No tensor was reduced more than once: there are no steps to show.</p>")
    tensors = [(use.name, size(use.num_bytes), use.count, ms(use.mean_us)) for use in largest_tensors(traces)]
    parts += ["<h2>Largest tensors</h2>", table(("tensor", "size", "times", "ms until back"), tensors)]
    if steps:
        parts += ["<details><summary>All steps</summary>", table(("step", *HEADINGS, "slowest rank"), step_rows(steps), ()),
                  "</details>"]
    return "\n".join([*parts, "</body></html>\n"])
