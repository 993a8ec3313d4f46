"""Export of controllers to C, ONNX and npz."""

from empowerment.controller.export.exporting import FORMATS, export
from empowerment.controller.export.validation import Validation

__all__ = ["FORMATS", "Validation", "export"]
