"""Reports: landscapes, figures, video and the page, made from files; knows no particular system."""

from empowerment.report.figures import check_drawable, draw_landscape
from empowerment.report.landscape import Landscape, read_landscape, write_landscape
from empowerment.report.model import draw_model_evaluation
from empowerment.report.page import Section, write_report
from empowerment.report.video import VIDEO, read_video, write_video

__all__ = [
    "VIDEO",
    "Landscape",
    "Section",
    "check_drawable",
    "draw_landscape",
    "draw_model_evaluation",
    "read_landscape",
    "read_video",
    "write_landscape",
    "write_report",
    "write_video",
]
