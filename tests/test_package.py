"""What is promised to whoever installs the package: a light import, a small public interface, types, one version."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import protogoal

ROOT = Path(__file__).parents[1]
HEAVY = ["torch", "ray", "dash", "plotly", "nle", "minihack", "stable_baselines3", "minigrid", "pygame"]


def loaded_by(code: str) -> set[str]:
    """Top-level packages in memory after running `code` in a new process."""
    words = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_else():
    assert not loaded_by("import protogoal") & {"numpy", "numba", "scipy", "gymnasium", "matplotlib", *HEAVY}


MAKE = "assert gymnasium.make('protogoal/Baba-v0', level='umaze-small').action_space.n == 5"


@pytest.mark.parametrize("code", [
    f"import gymnasium, protogoal\n{MAKE}",
    f"import protogoal, gymnasium\n{MAKE}",
    f"import protogoal\nfrom gymnasium.envs import registration\nimport gymnasium\n{MAKE}",
    f"import gymnasium\n{MAKE.replace('protogoal/', 'protogoal:protogoal/')}",
    f"import protogoal, gymnasium\n{MAKE.replace('protogoal/', 'protogoal:protogoal/')}",
    f"import protogoal, importlib.util\nassert importlib.util.find_spec('gymnasium')\nimport gymnasium\n{MAKE}",  # looked for first
])
def test_our_environments_are_registered_in_either_order_of_import(code):
    loaded_by(f"{code}\nimport sys\nassert not any(type(f).__module__ == 'protogoal' for f in sys.meta_path)")


def test_the_entry_point_for_gymnasiums_plugins_registers_our_environments():
    module, function = re.search(r'"gymnasium.envs"\]\n__root__ = "([\w.]+):(\w+)"', (ROOT / "pyproject.toml").read_text()).groups()
    loaded_by(f"import gymnasium\nfrom {module} import {function}\n{function}()\n{MAKE}")


def test_the_evaluator_needs_numpy_and_numba_only():
    everything = "from protogoal import *\nimport protogoal.goals"
    assert not loaded_by("import protogoal.goals") & {"gymnasium", "matplotlib", "tyro", "rich", *HEAVY}
    assert not loaded_by(everything) & set(HEAVY)


@pytest.mark.parametrize("code", [
    "import protogoal.cli, protogoal.presets, protogoal.config",
    "import protogoal.run.training, protogoal.run.tabular, protogoal.run.playing",
    "import protogoal.envs, protogoal.envs.taxi, protogoal.presets",
    "import protogoal.interop.goal_env",
    "from protogoal.cli import main\nmain(['envs', '--json'])",
])
def test_the_core_never_loads_what_is_an_extra(code):
    assert not loaded_by(code.replace("main(['envs', '--json'])", "import io, contextlib\n"
                                      "with contextlib.redirect_stdout(io.StringIO()): main(['envs', '--json'])")) & set(HEAVY)


def test_every_public_name_exists_has_words_and_is_described():
    words = protogoal.__doc__
    for name in protogoal.__all__:
        value = getattr(protogoal, name)
        assert name == "__version__" or f"`{name}`" in words, f"{name} is not in the package's docstring"
        if callable(value):
            assert value.__doc__, f"{name} has no docstring"
    assert len(protogoal.__all__) <= 24
    assert dir(protogoal) == sorted(protogoal.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        protogoal.nothing  # noqa: B018


def test_the_version_is_semantic_and_the_same_everywhere():
    version = protogoal.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f'\nversion = "{version}"\n' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1) == version
    done = subprocess.run([sys.executable, "-m", "protogoal.cli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"protogoal {version}\n"  # of the code that runs, whatever was installed last


def test_types_are_published():
    assert (ROOT / "protogoal" / "py.typed").exists()
    assert 'protogoal = ["py.typed"' in (ROOT / "pyproject.toml").read_text()
