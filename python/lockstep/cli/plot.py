# SPDX-License-Identifier: Apache-2.0
"""Draws reports of bench_collectives: time by size, of Lockstep, MPI and memcpy."""
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


def draw_reports(reports, path):
    """One panel per report, side by side."""
    try:
        import matplotlib
    except ImportError:
        raise Problem("a picture needs matplotlib", "pip install matplotlib") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "lockstep", "text.color": INK, "axes.labelcolor": INK})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(reports), figsize=(5.2 * len(reports), 3.8), squeeze=False)
    for axes, report in zip(panels[0], reports):
        draw_panel(axes, *sweep_of(report))
    figure.tight_layout()
    try:
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be written ({error})", "name a file that ends in .png or .svg") from None
