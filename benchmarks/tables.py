"""Tables of results: as JSON in docs/results, and as Markdown in docs/results.md."""

import json
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent.parent / "docs"

Table = list[dict[str, object]]


def write_table(name: str, rows: Table, *, by: tuple[str, ...] = (), store: bool = True) -> None:
    """Store a table, and insert it into docs/results.md between the marks of its name.

    Args:
        name: Name of the table.
        rows: The results.
        by: Columns that identify a row: stored rows with other values in them are kept.
        store: Whether to store it, and not only to show these rows.
    """
    if not store:
        print(f"{name}\n{_markdown(rows)}\n", flush=True)
        return
    path = _DOCS / "results" / f"{name}.json"
    if by and path.exists():
        new = {tuple(row[key] for key in by): row for row in rows}
        old = {tuple(row[key] for key in by): row for row in json.loads(path.read_text("utf-8"))}
        merged: dict[Any, dict[str, object]] = {**old, **new}
        rows = [merged[key] for key in sorted(merged)]
    print(f"{name}\n{_markdown(rows)}\n", flush=True)
    path.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    page = _DOCS / "results.md"
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n\n{_markdown(rows)}\n\n{end}{after}", encoding="utf-8")


def beside(figures: dict[str, Any], name: str, digits: int) -> str:
    """Format a figure of the mean action, sampled, random and, where evaluated, zero actions."""
    others = [figures[actor][name] for actor in ("sampled", "uniform", "zero") if actor in figures]
    return " / ".join(f"{value:.{digits}f}" for value in (figures[name], *others))


def _markdown(rows: Table) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines)
