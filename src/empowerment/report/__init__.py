"""Reports: landscapes, figures, video and the page, made from files; knows no particular system."""

from empowerment.report.comparison import (
    Compared as Compared,
    write_comparison as write_comparison,
)
from empowerment.report.figures import (
    check_drawable as check_drawable,
    draw_landscape as draw_landscape,
)
from empowerment.report.landscape import (
    Landscape as Landscape,
    write_landscape as write_landscape,
)
from empowerment.report.live import (
    LIVE as LIVE,
    Live as Live,
    Parameters as Parameters,
    StoredLive as StoredLive,
    write_stored_live as write_stored_live,
)
from empowerment.report.metrics import (
    METRICS as METRICS,
    MOST_METRICS as MOST_METRICS,
    Metrics as Metrics,
    parse_metrics as parse_metrics,
    read_metrics as read_metrics,
)
from empowerment.report.model import draw_model_evaluation as draw_model_evaluation
from empowerment.report.page import (
    Section as Section,
    read_evaluation as read_evaluation,
    write_report as write_report,
)
from empowerment.report.replay import (
    ACTORS as ACTORS,
    MOST_COLUMNS as MOST_COLUMNS,
    REPLAY as REPLAY,
    StoredEpisode as StoredEpisode,
    StoredReplay as StoredReplay,
    film_of as film_of,
    rounded as rounded,
    write_stored_replay as write_stored_replay,
)
from empowerment.report.run_figures import (
    ROUNDS as ROUNDS,
    Comparisons as Comparisons,
    read_rounds as read_rounds,
)
from empowerment.report.video import (
    VIDEO as VIDEO,
    write_film as write_film,
    write_video as write_video,
)
from empowerment.report.watch import (
    Training as Training,
    write_watch as write_watch,
)
