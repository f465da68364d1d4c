# SPDX-License-Identifier: Apache-2.0
"""Draws what the benches measured: time by size, of Lockstep, MPI and memcpy; time of a training step, each way."""
from lockstep.launch.problem import Problem

INK, GRID = "#333333", "#dddddd"
COLOURS = {"lockstep": "#d1495b", "mpi": "#30638e", "memcpy": "#9a9a9a"}
SIZE_NAMES = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def size_name(size):
    for unit, name in SIZE_NAMES:
        if size >= unit:
            return f"{size // unit} {name}"
    return "0 B"


def sweep_of(report):
    """(title, rows of the first table with sizes)"""
    try:
        table = next(table for table in report["tables"] if "size_bytes" in table["rows"][0])
        header, row = report["header"], table["rows"][0]
        mpi = " ".join(header["mpi"].split(",")[0].split())
        return f"{row['type']} {table['name'].replace('_', '-')}, {header['ranks']} ranks, {mpi}", table["rows"]
    except (KeyError, StopIteration, IndexError, TypeError) as error:
        raise Problem(f"this is no report of bench_collectives with a table of sizes ({error!r})") from None


def draw_panel(axes, title, rows):
    sizes = [row["size_bytes"] for row in rows]
    for key, label, colour in (("mpi_us", "MPI", "mpi"), ("time_us", "Lockstep", "lockstep"),
                               ("memcpy_us", "memcpy", "memcpy")):
        if all(row.get(key) is not None for row in rows):
            axes.plot(sizes, [row[key] for row in rows], label=label, color=COLOURS[colour], marker="o", markersize=3,
                      linewidth=2 if colour == "lockstep" else 1.4)
    axes.set(xscale="log", yscale="log", title=title, xlabel="bytes per rank", ylabel="microseconds")
    axes.set_xticks(sizes[::3], [size_name(size) for size in sizes[::3]])
    axes.minorticks_off()
    axes.grid(color=GRID)
    axes.legend(frameon=False)


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise Problem("a picture needs matplotlib", "pip install matplotlib") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "lockstep", "text.color": INK, "axes.labelcolor": INK})
    from matplotlib import pyplot
    return pyplot


def _save(figure, path):
    figure.tight_layout()
    try:
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be written ({error})", "name a file that ends in .png or .svg") from None


def draw_reading(table, path):
    """A bar for each file: how many times as fast as its peer it is read."""
    figure, axes = _pyplot().subplots(figsize=(6.4, 0.8 + 0.26 * len(table)))
    places = range(len(table), 0, -1)
    axes.barh(places, [row["ratio"] for row in table], color=COLOURS["lockstep"], height=0.7)
    axes.plot([row["target"] for row in table], places, "|", color=INK, markersize=10, label="target")
    axes.set_yticks(places, [f"{row['file']}  |  {row['peer']}" for row in table])
    axes.set_xlabel("times as fast as the peer, one core")
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)


def draw_reports(reports, path):
    """One panel per report of bench_collectives, side by side."""
    figure, panels = _pyplot().subplots(1, len(reports), figsize=(5.2 * len(reports), 3.8), squeeze=False)
    for axes, report in zip(panels[0], reports):
        draw_panel(axes, *sweep_of(report))
    _save(figure, path)


WAYS = {"one": "#9a9a9a", "copies": "#30638e", "ranks": "#d1495b", "peer": "#edae49", "alone": "#4c9f70"}
WAY_NAMES = {"one": "1 process", "copies": "2 copies, apart", "ranks": "2 ranks", "peer": "tf.distribute, 2 workers",
             "alone": "1 rank"}


def draw_training(table, path):
    """Bars for each model: how long a step takes each way, relative to one process."""
    ways = [way for way in WAYS if all(way in row["ms"] for row in table)]
    figure, axes = _pyplot().subplots(figsize=(1.6 + 1.7 * len(table), 3.8))
    width = 0.8 / len(ways)
    for number, way in enumerate(ways):
        base = [row["ms"].get("one") or row["ms"][ways[0]] for row in table]
        axes.bar([place + number * width for place in range(len(table))],
                 [row["ms"][way] / first for row, first in zip(table, base)], width, color=WAYS[way], label=WAY_NAMES[way])
    middle = (len(ways) - 1) * width / 2
    axes.set_xticks([place + middle for place in range(len(table))],
                    [f"{row['model']}\n{row['batch']} per process" for row in table])
    axes.set_ylabel(f"time of a step, {WAY_NAMES['one' if 'one' in ways else ways[0]]} = 1")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)
