"""Named configurations, domain-agent: what `protogoal train` takes."""

from __future__ import annotations

from typing import Any

from protogoal.config import TabularConfig

TABULAR: dict[str, Any] = {
    "taxi-protogoal": TabularConfig(agent="protogoal"),
    "taxi-qlearning": TabularConfig(agent="qlearning"),
}

PRESETS: dict[str, Any] = {**TABULAR}
