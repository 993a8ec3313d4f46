r"""Hook of MkDocs: turn formulas into MathML, which browsers draw without a script.

`pymdownx.arithmatex` marks formulas as `\(...\)` and `\[...\]` for a script that would have to come
from the network. MathML is text of the page itself.
"""

import html
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return _FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    # The converter has no `aligned`, which is `align*` within a formula.
    latex = html.unescape(found["latex"]).replace("{aligned}", "{align*}")
    formula = convert(latex, display="block" if found["tag"] == "div" else "inline")
    try:
        ElementTree.fromstring(formula)
    except ElementTree.ParseError as error:
        raise ValueError(f"Expected a formula that can be converted; got {latex!r}.") from error
    # Browsers align the cells of a table by style alone.
    return re.sub(r'columnalign="(left|right)"', r'style="text-align: \1"', formula)
