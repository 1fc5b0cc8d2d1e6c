"""Large answers in gzip, to those who accept it."""

from __future__ import annotations

from flask import Flask
from flask_compress import Compress

SMALLEST = 4096
"""Bytes below which compressing costs more than it saves."""
LEVEL = 5
MEDIA_TYPES = ("application/json", "application/jsonl", "text/csv", "text/html", "text/plain",
               "image/svg+xml")  # fmt: skip
"""Not scripts and styles: they are sent from files, which the library would leave open."""
SUFFIX = ":gzip"
"""What the ETag of a compressed answer ends in: other bytes, another tag."""


def register(app: Flask) -> None:
    """Compress the large answers of `app`."""
    app.config |= {
        "COMPRESS_ALGORITHM": ["gzip"],
        "COMPRESS_ALGORITHM_STREAMING": ["gzip"],
        "COMPRESS_LEVEL": LEVEL,
        "COMPRESS_MIN_SIZE": SMALLEST,
        "COMPRESS_MIMETYPES": list(MEDIA_TYPES),
    }
    Compress(app)
