"""Controllers for where there is no Python, or another runtime: C, ONNX, npz."""

from empowerment.controller.export.exporting import FORMATS, export
from empowerment.controller.export.validation import Validation

__all__ = ["FORMATS", "Validation", "export"]
