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


# (title, what is drawn, which way is 1, how the batch is named, {way: (name, colour)})
APART = ("each process its own rows", "time of a step", "one", "{} per process",
         {"one": ("1 process", "#9a9a9a"), "copies": ("2 copies, apart", "#30638e"), "ranks": ("Lockstep, 2 ranks", "#d1495b"),
          "peer": ("tf.distribute, 2 workers", "#edae49"), "alone": ("1 rank", "#4c9f70")})
TOGETHER = ("the same global batch", "times as fast", "whole", "{} in all",
            {"whole": ("1 process, 1 core", "#9a9a9a"), "cores": ("1 process, 2 cores", "#30638e"),
             "ranks": ("Lockstep, 2 ranks", "#d1495b"), "peer": ("tf.distribute, 2 workers", "#edae49"),
             "horovod": ("Horovod, 2 processes", "#4c9f70")})


def _present(table, ways):
    return [way for way in ways if all(way in row["ms"] for row in table)]


def draw_training_panel(axes, table, view):
    title, label, base, batch_name, ways = view
    shown = _present(table, ways)
    base = base if base in shown else shown[0]
    factor, is_speed = (2, True) if view is TOGETHER else (1, False)
    width = 0.8 / len(shown)
    for number, way in enumerate(shown):
        ratios = [row["ms"][way] / row["ms"][base] for row in table]
        axes.bar([place + number * width for place in range(len(table))],
                 [1 / ratio if is_speed else ratio for ratio in ratios], width, color=ways[way][1], label=ways[way][0])
    middle = (len(shown) - 1) * width / 2
    axes.set_xticks([place + middle for place in range(len(table))],
                    [f"{row['model']}\n{batch_name.format(factor * row['batch'])}" for row in table])
    axes.set(title=title, ylabel=f"{label}, {ways[base][0]} = 1")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)


def draw_training(table, path):
    """Bars for each model: the speed-up at the same global batch, and what a step costs where each process has its rows."""
    views = [view for view in (TOGETHER, APART) if len(_present(table, view[4])) > 1] or [APART]
    figure, panels = _pyplot().subplots(1, len(views), figsize=((1.6 + 1.7 * len(table)) * len(views), 4.4), squeeze=False)
    for axes, view in zip(panels[0], views):
        draw_training_panel(axes, table, view)
    _save(figure, path)
