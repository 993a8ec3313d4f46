"""Reports: tables and figures, made from what is on disk."""

from empowerment.report.figures import check_drawable, draw_landscape
from empowerment.report.model import draw_model_evaluation
from empowerment.report.page import FILM, write_report
from empowerment.report.tables import (
    Landscape,
    check_writable,
    read_landscape,
    read_states,
    to_csv,
    write_columns,
    write_landscape,
)
from empowerment.report.video import read_film, write_film

__all__ = [
    "FILM",
    "Landscape",
    "check_drawable",
    "check_writable",
    "draw_landscape",
    "draw_model_evaluation",
    "read_film",
    "read_landscape",
    "read_states",
    "to_csv",
    "write_columns",
    "write_film",
    "write_landscape",
    "write_report",
]
