"""What is published: the source archive of this folder, and the wheel made of that, installed into an empty folder and imported from there."""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

import tally_sdk as sdk

ROOT = Path(__file__).resolve().parent.parent
BUILD = "import setuptools.build_meta as backend, sys; getattr(backend, 'build_' + sys.argv[1])(sys.argv[2])"
CHECK = "import tally_sdk as sdk; print(sdk.__file__, sdk.__version__, sdk.admin.api_keys.list.__name__)"


def _can_build() -> bool:
    if os.environ.get("CI") == "true":
        return True
    if any(importlib.util.find_spec(name) is None for name in ("setuptools", "pip")):
        return False
    # what pyproject.toml asks for
    return tuple(int(part) for part in importlib.metadata.version("setuptools").split(".")[:1]) >= (77,)


@unittest.skipUnless(_can_build(), "NOT RUN: this Python has no pip, or no setuptools 77 or later")
class Wheel(unittest.TestCase):
    def test_is_built_installed_and_imported(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, built, target = Path(folder) / "source", Path(folder) / "built", Path(folder) / "target"
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
            self._run(["-c", BUILD, "sdist", str(built)], source)
            (archive,) = built.iterdir()
            self.assertEqual(archive.name, f"tally_index-{sdk.__version__}.tar.gz")
            with tarfile.open(archive) as files:
                files.extractall(folder)
            unpacked = Path(folder) / f"tally_index-{sdk.__version__}"
            self.assertEqual([path.name for path in unpacked.iterdir() if path.name in ("tests", "examples", "build")], [])
            self._run(["-c", BUILD, "wheel", str(built)], unpacked)
            (wheel,) = built.glob("*.whl")
            self.assertEqual(wheel.name, f"tally_index-{sdk.__version__}-py3-none-any.whl")
            names = zipfile.ZipFile(wheel).namelist()
            self.assertIn("tally_sdk/py.typed", names)
            self.assertIn("tally_sdk/admin/api_keys.py", names)
            self.assertEqual([name for name in names if name.startswith(("tests", "examples"))], [])
            metadata = zipfile.ZipFile(wheel).read(f"tally_index-{sdk.__version__}.dist-info/METADATA").decode()
            self.assertIn("Requires-Python: >=3.9\n", metadata)
            self.assertIn("License-Expression: Apache-2.0\n", metadata)
            self.assertNotIn("Requires-Dist", metadata)
            if os.environ.get("CI") == "true" or importlib.util.find_spec("twine") is not None:
                self._run(["-m", "twine", "check", "--strict", str(archive), str(wheel)], Path(folder))
            install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target), str(wheel)]
            self._run(install, Path(folder))
            shown = self._run(["-c", CHECK], Path(folder), PYTHONPATH=str(target))
            self.assertEqual(shown.split(), [str(target / "tally_sdk" / "__init__.py"), sdk.__version__, "list"])

    def _run(self, arguments: "list[str]", folder: Path, **env: str) -> str:
        ended = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=500, check=False
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout


if __name__ == "__main__":
    unittest.main()
