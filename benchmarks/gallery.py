"""Films and figures of docs/gallery.md, by `make gallery`, from the controllers of the package."""

import argparse
from pathlib import Path

from empowerment.gallery import EXHIBITS, Exhibit, find_exhibit
from empowerment.gallery.playing import Played, play_exhibit
from empowerment.report import write_video

PAGE = Path(__file__).parent.parent / "docs" / "gallery.md"
FILMS = PAGE.parent / "figures" / "gallery"

_BEGIN, _END = "<!-- gallery: begin -->", "<!-- gallery: end -->"
_NUM_EPISODES = 20
_SECONDS = 8.0
"""Duration of a film."""


def describe(exhibit: Exhibit, played: Played) -> str:
    """Return the section of the page about a controller."""
    return "\n".join(
        [
            f"## {exhibit.title}",
            "",
            f"![Film: {exhibit.film}](figures/gallery/{exhibit.name}.gif)",
            "",
            f"`empower demo {exhibit.name}`, trained by `{exhibit.command}`.",
            "",
            f"- This controller, {_NUM_EPISODES} episodes in `{exhibit.environment}`:",
            *(f"  {sentence}" for sentence in played.sentences),
            f"- Over seeds: {exhibit.result}",
            f"  [The table](results.md#{exhibit.section}).",
            "",
        ]
    )


def main() -> None:
    """Film every controller, and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    FILMS.mkdir(parents=True, exist_ok=True)
    sections = []
    for name in EXHIBITS:
        exhibit = find_exhibit(name)
        played = play_exhibit(exhibit, episodes=_NUM_EPISODES, film=True)
        assert played.frames is not None, "every environment of the gallery can be seen"
        path = FILMS / f"{name}.gif"
        write_video(played.frames[: round(_SECONDS * played.fps)], path, fps=played.fps)
        sections.append(describe(exhibit, played))
        print(f"{sections[-1]}\n{path}: {path.stat().st_size / 1e3:.0f} kB\n", flush=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    middle = "\n".join(sections)
    PAGE.write_text(f"{before}{_BEGIN}\n\n{middle}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
