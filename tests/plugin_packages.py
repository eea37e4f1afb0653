"""Packages with plug-ins, laid out in a folder as an installer would leave them."""

import shutil
import sys
import tomllib
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples" / "plugins"


def install(folder: Path, module: str, code: str, *, group: str, name: str, version: str = "1.2.0") -> str:
    """Install a package of one module whose `plugin` is a plug-in, and return the plug-in's name."""
    (folder / f"{module}.py").write_text(code)
    _forget(module)
    _describe(folder, module, version, {group: {name: f"{module}:plugin"}})
    return name


def install_example(folder: Path, example: str, *, version: str = "") -> str:
    """Install an example, and return the name of its plug-in."""
    project = tomllib.loads((EXAMPLES / example / "pyproject.toml").read_text())["project"]
    for module in project_modules(example):
        shutil.copy(module, folder)
        _forget(module.stem)
    _describe(folder, project["name"], version or project["version"], project["entry-points"])
    (names,) = project["entry-points"].values()
    (name,) = names
    return str(name)


def project_modules(example: str) -> list[Path]:
    """Return the modules of an example without its tests."""
    return [path for path in (EXAMPLES / example).glob("*.py") if not path.name.startswith("test_")]


def _forget(module: str) -> None:
    """Let the next import read the module of this folder, not that of another test's package with its name."""
    sys.modules.pop(module, None)


def _describe(folder: Path, package: str, version: str, groups: dict[str, dict[str, str]]) -> None:
    for old in folder.glob(f"{package.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in groups.items()
    )
    (info / "entry_points.txt").write_text(text)
