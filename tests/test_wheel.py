"""The package as others get it: a wheel with everything in it that is not code, which runs from where it is installed."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of the source, without the network."""
    pytest.importorskip("build")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "protogoal", source / "protogoal", ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / "protogoal").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}
    assert inside == kept


def test_the_wheel_runs_where_it_is_installed(wheel, tmp_path):
    there = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(there), str(wheel)], check=True, capture_output=True)
    code = "import protogoal.cli, sys; print(protogoal.__file__, file=sys.stderr); sys.exit(protogoal.cli.main(['envs', '--json']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(there)})
    assert done.returncode == 0, done.stderr
    assert str(there) in done.stderr
    assert {"taxi", "baba-umaze-medium"} <= {row["name"] for row in json.loads(done.stdout)}  # levels are data of the package
