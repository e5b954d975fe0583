"""Who may ask the page, and for what: hosts, tokens, paths, and runs that cannot be read."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from protogoal.record.inspector import inspect
from protogoal.record.inspector.runs import Runs
from protogoal.record.run_facts import run_facts
from protogoal.record.store import StoreReader

serving = pytest.importorskip("protogoal.record.inspector.serve", reason="the inspector needs the extra `inspect`")
plotly_js = pytest.importorskip("protogoal.record.inspector.plotly_js")


@pytest.fixture(scope="module")
def client(runs):
    return serving.make_app([runs["taxi"], runs["qlearning"]]).server.test_client()


@pytest.fixture(scope="module")
def guarded(runs):
    return serving.make_app([runs["taxi"]], token="a-secret").server


def clip_of(run: Path) -> int:
    with StoreReader(run) as reader:
        return int(reader.rows("SELECT max(id) FROM clips")[0][0])


def test_the_page_answers_to_loopback_names(client):
    for host in ("127.0.0.1:8050", "localhost:8050", "localhost", "[::1]:8050"):
        assert client.get("/", headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:8050", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0:8050"])
def test_a_foreign_name_that_points_here_is_turned_away(client, host):
    for path in ("/", "/_dash-layout", "/clip/0/1.gif", "/assets/page.css"):
        assert client.get(path, headers={"Host": host}).status_code == 403


def test_without_the_token_nothing_is_told(guarded):
    client = guarded.test_client()
    for path in ("/", "/_dash-layout", "/_dash-dependencies", "/clip/0/1.gif", "/assets/page.js", "/?token=wrong", "/?token="):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert b"taxi" not in answer.data
    assert client.post("/_dash-update-component", json={}).status_code == 403
    client.set_cookie(serving.COOKIE, "wrong")
    assert client.get("/").status_code == 403


def test_with_the_token_the_address_forgets_it_and_a_cookie_keeps_it(guarded):
    client = guarded.test_client()
    answer = client.get("/?token=a-secret")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/").status_code == 200
    elsewhere = {"Host": "somewhere.example:8050", "Cookie": f"{serving.COOKIE}=a-secret"}
    assert guarded.test_client(use_cookies=False).get("/_dash-layout", headers=elsewhere).status_code == 200


def test_a_clip_is_read_from_the_given_runs_alone(client, runs):
    clip = clip_of(runs["taxi"])
    answer = client.get(f"/clip/0/{clip}.gif")
    assert answer.data.startswith(b"GIF8")
    assert answer.mimetype == "image/gif"
    for path in ("/clip/7/1.gif", "/clip/-1/1.gif", f"/clip/0/{clip + 10**6}.gif", "/clip/0/../../config.json", "/clip/0/run.db",
                 "/clip/%2e%2e/run.db", "/assets/../serve.py", "/assets/%2e%2e/serve.py", "/assets//etc/passwd", "/run.db",
                 "/config.json", "/_dash-component-suites/protogoal/record/store.py", "/_dash-component-suites/dash/../../os.py"):
        assert client.get(path).status_code in (400, 404, 500) or client.get(path).mimetype == "text/html", path
        assert b"SQLite" not in client.get(path).data
        assert b"import" not in client.get(path).data[:200]


def test_every_answer_forbids_foreign_scripts(client):
    for path in ("/", "/_dash-layout", "/assets/page.css"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe-eval" not in policy
        assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]


MODULES = "".join(f"var {name}=W((e,t)=>{{t.exports={what}}});" for name, what in (
    ("a", "b()"), ("b", '{moduleType:"trace",name:"bar"}'), ("c", "d()"), ("d", '{moduleType:"trace",name:"heatmap"}'))
) + "var f=W((e,t)=>{g.register([a(),c()])});"


def test_only_the_plots_that_are_drawn_are_started():
    assert plotly_js.with_kinds_alone(MODULES) == MODULES.replace("[a(),c()]", "[c()]")


@pytest.mark.parametrize("script", ["", MODULES.replace("heatmap", "map"), MODULES + MODULES, MODULES.replace("register", "add")])
def test_a_plotly_that_is_built_otherwise_is_served_whole(script):
    assert plotly_js.with_kinds_alone(script) == script


def test_the_installed_plotly_is_served_with_heat_maps_alone(client):
    script = client.get("/plotly.js").data.decode()
    (registered,) = plotly_js.REGISTER.findall(script)
    assert registered.count("()") == len(plotly_js.KINDS)


def test_a_callback_cannot_name_another_run(runs):
    listed = Runs([runs["taxi"]])
    for index in (1, -1, 10**6):
        with pytest.raises(ValueError, match="there is no run"):
            listed.open(index)


@pytest.mark.parametrize(("host", "expected"), [
    ("127.0.0.1", True), ("127.8.8.8", True), ("localhost", True), ("::1", True), ("[::1]", True), ("0.0.0.0", False),
    ("192.168.1.5", False), ("example.org", False), ("::", False), ("localhost.example.org", False)])
def test_loopback_is_known_by_its_number(host, expected):
    assert serving.is_loopback(host) is expected


def test_a_run_whose_writer_was_killed_is_shown(tmp_path):
    code = ("import os, sys; from pathlib import Path; from protogoal.record.store import Store; "
            "run = Store.create(Path(sys.argv[1]) / 'run.db'); run.metrics(7, {'loss': 1.0}); run.flush(); "
            "run.metrics(8, {'loss': 1.0}); os.kill(os.getpid(), 9)")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    listed = Runs([tmp_path])
    assert listed.pulse() == [1]
    with listed.open(0) as reader:
        assert run_facts(reader).step == 7


def test_what_is_no_run_is_one_line(tmp_path, runs):
    with pytest.raises(ValueError, match="is not a directory"):
        inspect([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match="does not exist: not a run directory"):
        inspect([runs["taxi"], tmp_path])
    with pytest.raises(ValueError, match="at least one"):
        inspect([])
    with pytest.raises(ValueError, match="token is empty"):
        inspect([runs["taxi"]], token="")


def test_a_port_in_use_is_one_line(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1 port {port}"):
            inspect([runs["taxi"]], port=port)
    with pytest.raises(ValueError, match="does not exist"):
        serving.make_http_server(serving.make_app([runs["taxi"]]), "127.0.0.1", 70_000)


def test_another_host_gets_a_token_of_its_own_and_ctrl_c_ends_it(runs):
    code = ("import sys; from pathlib import Path; from protogoal.record.inspector import inspect; "
            "inspect([Path(sys.argv[1])], host='0.0.0.0', port=0)")
    process = subprocess.Popen([sys.executable, "-c", code, str(runs["taxi"])], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        address = next(word for word in said.split() if word.startswith("http"))
        base, _, token = address.partition("?token=")
        assert len(token) > 16
        base = base.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(base)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"protogoal inspector" in opener.open(f"{base}?token={token}").read()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
