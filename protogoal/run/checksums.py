"""JSON files that know when they were changed: a checksum of their content stands in them.

config.json and a checkpoint's manifest.json decide what is run and from where. A digit that flips in them would go unnoticed
and give other numbers, so they carry a checksum; whoever edits one on purpose sets "checksum" to null. What is read is strict:
no number that is not finite, no nesting that is too deep.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

KEY = "checksum"


class Changed(ValueError):
    """The content is not what was written."""


def seal(record: Mapping[str, Any]) -> str:
    """The record as JSON, with the checksum of its content."""
    return json.dumps({**record, KEY: _checksum(record)}, indent=1)


def unseal(data: bytes) -> dict[str, Any]:
    """The record again; `Changed` where it is not what `seal` got, ValueError where it is no such file.

    Files without the key are those of versions that wrote none; the caller knows from which on they must have one.
    """
    record = parse(data)
    if not isinstance(record, dict):
        raise ValueError("it is no group of fields")
    said = record.get(KEY)
    if said is not None and said != _checksum(record):
        raise Changed('its content is not what was written: the checksum differs (set "checksum" to null if that was meant)')
    return record


def parse(data: bytes) -> Any:
    """JSON with finite numbers and a bounded depth; a ValueError in one line otherwise."""
    try:
        return json.loads(data, parse_constant=_not_finite, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checksum(record: Mapping[str, Any]) -> str:
    content = {key: value for key, value in record.items() if key != KEY}
    return hashlib.blake2b(json.dumps(content, sort_keys=True, allow_nan=False).encode(), digest_size=32).hexdigest()


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(text: str) -> float:
    raise ValueError(f"the number {text[:20]} is not finite")
