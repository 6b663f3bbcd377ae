"""Build the sdist and the wheel, install every way a user may, and check that the installed package works.

Run by ``make packages``; exits non-zero at the first failure.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECK = """
import pathlib, privfit as pf
assert pf.gaussian(1.0).delta(0.0) > 0.38
from privfit.mechanisms import Box, Gaussian
import privfit.estimators, privfit.accounting, privfit.estimators.losses
home = pathlib.Path(pf.__file__).parent
assert (home / "py.typed").exists()
assert len(pf.load_adult()) == 48842
"""


def run(*command: object, cwd: Path) -> None:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"failed: {' '.join(str(c) for c in command[:6])}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )


def check_install(folder: Path, *pip_arguments: object) -> None:
    """Install into a directory of its own that sees this environment's dependencies, and import."""
    environment = folder / "env"
    run(sys.executable, "-m", "venv", "--clear", environment, cwd=folder)
    python = environment / "bin" / "python"
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    # setuptools and wheel for the editable builds, and the dependencies, come from the test environment
    site = next((environment / "lib").glob("python*/site-packages"))
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        *pip_arguments,
        cwd=folder,
    )
    (site / "dependencies.pth").write_text(packages + "\n")
    run(python, "-c", CHECK, cwd=folder)


def main() -> None:
    """Wheel, sdist, regular, editable and strict editable installs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source"
        run("git", "clone", "--quiet", ROOT, source, cwd=folder)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", source, cwd=folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        names = zipfile.ZipFile(wheel).namelist()
        wanted = [
            "privfit/__init__.py",
            "privfit/py.typed",
            "privfit/data/adult.csv.gz",
            "privfit/estimators/losses/base.py",
        ]
        missing = [w for w in wanted if w not in names]
        if missing:
            sys.exit(f"the wheel lacks {missing}")
        check_install(folder, wheel)
        check_install(folder, sdist)
        check_install(folder, source)
        check_install(folder, "-e", source)
        check_install(folder, "--config-settings", "editable_mode=strict", "-e", source)
    print("wheel, sdist, regular, editable and strict editable installs work")


if __name__ == "__main__":
    main()
