"""The parts that pages are made of: text, tables, figures, and what is folded away."""

import base64
import html
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from empowerment.files import write_atomic

ASSETS = Path(__file__).parent / "assets"
"""Folder of the style and the scripts of pages."""


def page(title: str, lines: Iterable[str]) -> str:
    """Return a page that needs nothing but itself, and can get nothing else."""
    inside = "\n".join(line for line in lines if line)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 media-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{html.escape(title)}</title><style>
{(ASSETS / "page.css").read_text("utf-8")}</style></head><body>
<h1>{html.escape(title)}</h1>
{inside}
</body></html>
"""


def paragraphs(sentences: Sequence[str], kind: str = "") -> list[str]:
    """Return a paragraph of sentences, if there are any."""
    if not sentences:
        return []
    return [f"<p class='{kind}'>{html.escape(' '.join(sentences))}</p>"]


def figure_element(figure: Figure, title: str, caption: str, path: Path | None = None) -> str:
    """Return a figure as a part of a page, with its heading; write it to a file if there is one."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format="png")
    plt.close(figure)
    if path is not None:
        write_atomic(path, picture.getvalue())
    heading = html.escape(title)
    return (
        f"<h2>{heading}</h2><figure><img src='{inline(picture.getvalue(), 'image/png')}' "
        f"alt='{heading}'><figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def inline(data: bytes, kind: str) -> str:
    """Return a file as a data URL: nothing comes from the network."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def folded(title: str, inside: str) -> str:
    """Return a part of a page that is shown when its title is clicked on."""
    return f"<details><summary>{title}</summary>{inside}</details>"


def table(rows: dict[str, Any]) -> str:
    """Return a table with a name and a value in each row."""
    return columns({name: (value,) for name, value in rows.items()})


def columns(rows: Mapping[str, Sequence[Any]], heads: Sequence[str] = ()) -> str:
    """Return a table with a name and some values in each row."""

    def row(kind: str, cells: Sequence[Any]) -> str:
        return "".join(f"<{kind}>{html.escape(text(cell))}</{kind}>" for cell in cells)

    head = f"<tr><th></th>{row('th', heads)}</tr>" if heads else ""
    body = "".join(
        f"<tr>{row('th', (name,))}{row('td', values)}</tr>" for name, values in rows.items()
    )
    return f"<div class='table'><table>{head}{body}</table></div>"


def text(value: Any) -> str:
    """Return a value as it is shown in a table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def to_script(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the element of the page that it is in."""
    return json.dumps(data).replace("<", "\\u003c")
