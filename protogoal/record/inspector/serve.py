"""The web server of the page: who may ask, what may be asked, and the clips.

Loopback only, unless another host is named; then every request needs a token, given once in the address and kept in a
cookie. The Host header of loopback requests is checked, so that a foreign page cannot reach this one through a name
that points here. Nothing is written, no file is named by the browser.
"""

from __future__ import annotations

import hmac
import inspect as introspection
import logging
import secrets
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import flask
from dash import Dash
from werkzeug.serving import BaseWSGIServer, make_server

from protogoal.record import queries
from protogoal.record.inspector import behaviour, goals, overview, pictures
from protogoal.record.inspector.layout import layout, page
from protogoal.record.inspector.plotly_js import plotly_script
from protogoal.record.inspector.runs import Runs

COOKIE = "protogoal_token"
KEPT = {"Cache-Control": "private, max-age=3600"}  # of what never changes
LOOPBACK_NAMES = {"127.0.0.1", "localhost", "[::1]"}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def make_app(run_dirs: list[Path], token: str | None = None) -> Dash:
    """The page over the given runs. Without a token it answers to loopback names only."""
    runs = Runs(run_dirs)
    settings: dict[str, Any] = {"title": "protogoal inspector", "update_title": "", "add_log_handler": False, "compress": False}
    if "enable_mcp" in introspection.signature(Dash.__init__).parameters:
        settings["enable_mcp"] = False
    app = Dash(__name__, assets_folder=str(Path(__file__).parent / "assets"), index_string=page(), **settings)
    app.layout = layout(runs)
    for part in (overview, goals, pictures, behaviour):
        part.register(app, runs)
    _add_clips(app.server, runs)
    _add_plotly(app.server)
    _guard(app, token)
    return app


def make_http_server(app: Dash, host: str, port: int) -> BaseWSGIServer:
    """A threaded server that listens; port 0 takes a free one."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host.strip("[]"), port))
    except OSError as error:
        raise ValueError(f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port") from None
    except OverflowError:
        raise ValueError(f"port {port} does not exist; allowed are 0 to 65535") from None
    return make_server(host.strip("[]"), port, app.server, threaded=True)


def serve(run_dirs: list[Path], host: str = "127.0.0.1", port: int = 8050, token: str | None = None) -> None:
    """Serve until Ctrl-C."""
    if not is_loopback(host) and token is None:
        token = secrets.token_urlsafe(16)
    if token is not None and not token:
        raise ValueError("the token is empty; leave it out to have one made")
    server = make_http_server(make_app(run_dirs, token), host, port)
    address = f"http://{host}:{server.server_port}/" + (f"?token={token}" if token else "")
    print(f"protogoal inspector: {address}  (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _guard(app: Dash, token: str | None) -> None:
    hashes = " ".join(app.csp_hashes())
    policy = "; ".join((
        "default-src 'self'", f"script-src 'self' {hashes}", "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:", "object-src 'none'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'"))

    @app.server.before_request
    def admit() -> flask.typing.ResponseReturnValue | None:
        if token is None:
            name = flask.request.host.rpartition(":")[0] or flask.request.host
            if name not in LOOPBACK_NAMES and flask.request.host not in LOOPBACK_NAMES:
                return "this page answers to 127.0.0.1 and localhost only", 403
            return None
        if hmac.compare_digest(flask.request.cookies.get(COOKIE, "").encode(), token.encode()):
            return None
        if hmac.compare_digest(flask.request.args.get("token", "").encode(), token.encode()):
            answer = flask.redirect("/")
            answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            return answer
        return "this page needs its token: open the address that protogoal inspect printed", 403

    @app.server.after_request
    def harden(answer: flask.Response) -> flask.Response:
        answer.headers["Content-Security-Policy"] = policy
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer


def _add_plotly(server: flask.Flask) -> None:
    """plotly.js under an address of its own: the page asks for it at once."""
    source = plotly_script()

    @server.route("/plotly.js")
    def script_of_plotly() -> flask.Response:
        return flask.Response(source, mimetype="text/javascript", headers=KEPT)


def _add_clips(server: flask.Flask, runs: Runs) -> None:
    @server.route("/clip/<int:run>/<int:clip>.gif")
    def clip_picture(run: int, clip: int) -> flask.Response:
        gif = runs.ask(run, lambda reader: queries.clip_gif(reader, clip), None)
        if gif is None:
            flask.abort(404)
        return flask.Response(gif, mimetype="image/gif", headers=KEPT)
