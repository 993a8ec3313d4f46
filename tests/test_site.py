"""The site of the documentation: formulas are drawn by the browser itself, without a network."""

import html
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every page of the built site."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True)
    assert not list(site.glob("*.py"))
    return {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html")}


def test_no_formula_is_left_as_latex(pages: dict[str, str]):
    assert len(pages) > 10
    for name, page in pages.items():
        text = re.sub(r"<(code|pre|script)\b.*?</\1>", "", page, flags=re.DOTALL)
        shown = html.unescape(re.sub(r"<[^>]*>", "", text))
        assert "arithmatex" not in text, name
        assert re.findall(r"\\[(\[]|\$\$?\\|\\[a-z]{3,}", shown) == [], name


def test_formulas_are_whole(pages: dict[str, str]):
    formulas = re.findall(r"<math\b.*?</math>", "".join(pages.values()), re.DOTALL)
    assert len(formulas) > 150
    for formula in formulas:
        tree = ElementTree.fromstring(formula)
        assert "".join(tree.itertext()).strip()
        assert "merror" not in formula


def test_a_formula_keeps_its_symbols(pages: dict[str, str]):
    shown = re.findall(r"<math\b.*?</math>", pages["paper/index.html"], re.DOTALL)
    words = {html.unescape(re.sub(r"<[^>]*>|\s", "", each)) for each in shown}
    assert "p(z\N{PRIME}\N{DIVIDES}z,u)" in words


def test_the_site_needs_no_network_for_formulas(pages: dict[str, str]):
    for name, page in pages.items():
        assert not re.findall(r"(?i)mathjax|katex", page), name
