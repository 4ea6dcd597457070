"""Cleaning: one module per danger, each a pure function, and the order in which they run.

`clean_bytes`, `clean_text` and `clean_json` do a whole result, `StreamCleaner` does output while it arrives. What is
dangerous is shown or redacted and counted, not silently deleted: a person and the model read the same text.
"""

from toolcage.cleaning.pipeline import REDACTABLE, Cleaned, clean_bytes, clean_text, neutralise
from toolcage.cleaning.stream import StreamCleaner
from toolcage.cleaning.structured import CleanedJSON, clean_json

__all__ = [
    "REDACTABLE", "Cleaned", "CleanedJSON", "StreamCleaner", "clean_bytes", "clean_json", "clean_text", "neutralise",
]  # fmt: skip
