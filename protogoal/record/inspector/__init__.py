"""The live page: `protogoal inspect DIR…`. Needs the extra `inspect` (Dash and Plotly); everything is served locally.

Reads the runs' stores and nothing else. On another host than loopback it asks for a token.
"""

from __future__ import annotations

from pathlib import Path


def inspect(run_dirs: list[Path], host: str = "127.0.0.1", port: int = 8050, token: str | None = None) -> None:
    """Serve the page until Ctrl-C; a ValueError says in one line what is wrong."""
    try:
        from protogoal.record.inspector.serve import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dash", "plotly", "flask", "werkzeug"):
            raise
        raise ValueError("the inspector needs Dash: pip install 'protogoal[inspect]'") from None
    serve(run_dirs, host, port, token)
