"""The command ``restpoint``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from restpoint.errors import DataError, RestpointError

# What the shell calls a process that Ctrl-C ended.
INTERRUPTED = 130

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, help="Restpoint at the command line."
)
reproduce = typer.Typer(
    rich_markup_mode=None, help="Run the paper's experiments beside what it prints."
)
app.add_typer(reproduce, name="reproduce")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command()
def info(as_json: AsJson = False) -> None:
    """Versions, threads, and how tensors are read."""
    from restpoint.info import info as collected

    found = collected()
    typer.echo(json.dumps(found, indent=1) if as_json else str(found))


Seed = Annotated[int, typer.Option(help="Names the instances.")]
Workers = Annotated[int, typer.Option(help="Processes, one thread each.")]
Out = Annotated[Path, typer.Option(help="Folder for CSV, JSON, LaTeX and figure.")]
Instances = Annotated[int, typer.Option(help="Instances of each size.")]
Sizes = Annotated[str, typer.Option(help="Which n, separated by commas.")]
REPRODUCED = Path("reproduced")


@reproduce.command()
def table1(
    instances: Instances = 100,
    sizes: Sizes = "8,12,20,30",
    seed: Seed = 0,
    workers: Workers = 1,
    out: Out = REPRODUCED,
    as_json: AsJson = False,
) -> None:
    """Sparse tensor PCA: the paper's Table 1 (section 6.1). Ctrl-C keeps what is done."""
    from restpoint.reproduce import table1, table1_report

    numbers = _sizes(sizes)
    runs = table1.run(numbers, instances, seed=seed, workers=workers)
    _reproduced(table1_report, runs, len(numbers) * instances, seed, out=out, as_json=as_json)


@reproduce.command()
def table2(
    instances: Instances = 40,
    sizes: Sizes = "50,100,200",
    seed: Seed = 0,
    workers: Workers = 1,
    out: Out = REPRODUCED,
    as_json: AsJson = False,
) -> None:
    """Zero-variance discriminant analysis: the paper's Table 2 (section 6.2). Ctrl-C keeps what is done."""
    from restpoint.reproduce import table2, table2_report

    numbers = _sizes(sizes)
    runs = table2.run(numbers, instances, seed=seed, workers=workers)
    _reproduced(table2_report, runs, len(numbers) * instances, seed, out=out, as_json=as_json)


@reproduce.command()
def figure1(
    instances: Annotated[int, typer.Option(help="Random problems.")] = 180,
    seed: Seed = 0,
    out: Out = REPRODUCED,
    as_json: AsJson = False,
) -> None:
    """Three measures of stationarity and what holds between them: the paper's Figure 1. Ctrl-C keeps what is done."""
    from restpoint.reproduce import figure1, figure1_report

    runs = figure1.run(instances, seed=seed)
    _reproduced(figure1_report, runs, instances, seed, out=out, as_json=as_json)


@reproduce.command()
def rates(
    most: Annotated[int, typer.Option(help="Iterations of the longest run.")] = 1000,
    out: Out = REPRODUCED,
    as_json: AsJson = False,
) -> None:
    """How iterations grow as eps falls, beside the theorems. Ctrl-C keeps what is done."""
    from restpoint.reproduce import rates, rates_report

    runs, total = rates.run(most), len(rates.CASES)
    _reproduced(rates_report, runs, total, most, of="cases", out=out, as_json=as_json)


def _reproduced(
    report: Any,
    runs: Any,
    total: int,
    named: int,
    *,
    of: str = "instances",
    out: Path,
    as_json: bool,
) -> None:
    """Take the runs of an experiment, then write its files and print its page; a part of them after Ctrl-C.

    ``named`` is the number by which the experiment can be had again: its seed, or its longest run.
    """
    from restpoint.reproduce import files

    files.folder(out)
    rows: list[Any] = []
    done, interrupted = 0, False
    with _progress(of, total) as advance:
        try:
            for found in runs:
                rows += found
                done += 1
                advance()
        except KeyboardInterrupt:
            interrupted = True
            runs.close()
    if rows:
        paths = report.write(out, rows, named)
        page = files.as_json(report.content(rows, named)) if as_json else report.page(rows) + "\n"
        typer.echo(page)
        typer.echo("written: " + ", ".join(map(str, paths)), err=True)
    if interrupted:
        typer.echo(f"restpoint: interrupted after {done} of {total} {of}", err=True)
        raise typer.Exit(INTERRUPTED)


def _sizes(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError as error:
        raise DataError(
            f"sizes must be whole numbers separated by commas such as 8,12, got {words!r}"
        ) from error


@contextmanager
def _progress(label: str, total: int) -> Iterator[Any]:
    """A bar on standard error, if that is a terminal; yields the function that moves it on."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def main() -> None:
    """Errors of ours, and words that the command does not know, end as one line and status 2."""
    words = sys.argv[1:] or ["--help"]
    try:
        status = app(words, prog_name="restpoint", standalone_mode=False)
    except (RestpointError, _UsageError) as error:
        said = error.format_message() if isinstance(error, _UsageError) else str(error)
        typer.echo("restpoint: " + " ".join(said.split()), err=True)
        status = 2
    raise SystemExit(status)


# The ancestor of BadParameter is that of every complaint about the command line.
_UsageError: Any = typer.BadParameter.__base__

if __name__ == "__main__":
    main()
