"""Figure of the predictions of a model."""

from pathlib import Path

import matplotlib.pyplot as plt

from empowerment.model import ModelEvaluation


def draw_model_evaluation(evaluation: ModelEvaluation, path: Path) -> None:
    """Draw prediction errors by horizon beside trivial predictors, and interval coverage."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, (errors, cover) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    labels = {"persistence": "persistence", "linear": "linear model", "model": "learnt model"}
    for name, label in labels.items():
        errors.plot(evaluation.horizons, getattr(evaluation, name), marker="o", label=label)
    errors.set_yscale("log")
    errors.set_xlabel("steps ahead")
    errors.set_ylabel("mean square error / variance")
    errors.legend(fontsize=8)
    cover.plot(evaluation.horizons, evaluation.coverage, marker="o", color="C2")
    cover.axhspan(0.85, 0.95, color="0.9")
    cover.axhline(0.9, color="0.6", linewidth=1)
    cover.set_ylim(0, 1)
    cover.set_xlabel("steps ahead")
    cover.set_ylabel("share within 90 % intervals")
    figure.savefig(path, dpi=150)
    plt.close(figure)
