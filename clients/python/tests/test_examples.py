"""Each example runs as a user runs it, and says which variable is missing."""

import ast
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Dict, Optional

import tally_sdk as sdk

from .world import HERE, World

ROOT = HERE.parent
EXAMPLES = ROOT / "examples"
MISSING = "ValueError: SERVICE_API_KEY environment variable not set"


def _notebook() -> str:
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


# how each example is started, as code of a program
STARTS = {
    "script": "import runpy, sys; sys.argv = ['x', 'cat']; runpy.run_path('{}', run_name='__main__')".format(EXAMPLES / "script.py"),
    "ci": "import runpy, sys; sys.argv = ['x', 'photos', 'a']; runpy.run_path('{}', run_name='__main__')".format(EXAMPLES / "ci.py"),
    "container": "import runpy, sys; sys.argv = ['x', 'photos']; runpy.run_path('{}', run_name='__main__')".format(
        EXAMPLES / "container" / "main.py"
    ),
    "notebook": _notebook(),
    "serverless": f"import sys; sys.path.insert(0, '{EXAMPLES}'); import serverless\n"
    "print(serverless.handler({'words': 'cat'}, None), serverless.handler({'words': 'cat'}, None) != None)",
}


class Examples(World):
    def run_example(self, name: str, env: Dict[str, str]) -> "subprocess.CompletedProcess[str]":
        clean = {variable: "" for variable in ("SERVICE_API_KEY", "SERVICE_REGISTRY_URL")}
        return self.python(STARTS[name], env={**clean, **env})

    def test_each_names_the_missing_variable(self) -> None:
        for name in STARTS:
            with self.subTest(name):
                ended = self.run_example(name, {})
                self.assertEqual((ended.returncode, ended.stderr.strip().split("\n")[-1]), (1, MISSING))
        self.assertEqual(self.registry.received, [])

    def test_each_does_its_work_with_a_key(self) -> None:
        _, secret = self.registry.add_key("example")
        env = {"SERVICE_API_KEY": secret + "\n", "SERVICE_REGISTRY_URL": self.registry.url}
        expected = {
            "script": (0, "photos 2026/cat-0.jpg 12\n"),
            # the registry of the tests does not know whether the two agree
            "ci": (1, "a: It is not there.\n"),
            "container": (0, "job-0mk3x1a2b-0123456789ab running\n"),
            "notebook": (0, "5 objects\n"),
            "serverless": (0, "{'keys': ['2026/cat-0.jpg', "),
        }
        self.assertEqual(expected.keys(), STARTS.keys())
        for name, (code, beginning) in expected.items():
            with self.subTest(name):
                self.registry.received.clear()
                ended = self.run_example(name, env)
                self.assertEqual(ended.returncode, code, ended.stderr)
                self.assertTrue(ended.stdout.startswith(beginning), ended.stdout)
                self.assertEqual(self.registry.paths().count("GET /v1/session"), 1)
                self.assertNotIn(secret, ended.stdout + ended.stderr)
        # none of them stores the key
        self.assertEqual([*self.home.iterdir()], [])

    def test_are_all_tested(self) -> None:
        names = {path.stem for path in EXAMPLES.iterdir() if not path.name.startswith("__")}
        self.assertEqual(names, STARTS.keys())


# not in the package that is published
GUIDES = [*(ROOT.parent.parent / "docs" / "guides").glob("python.md"), *(ROOT.parent.parent / "docs" / "guides").glob("api-keys.md")]


class GuideBlocks(World):
    """What docs/guides/python.md prints, at the registry of the tests in place of the catalog's address."""

    def test_each_runs(self) -> None:
        for page in GUIDES[:1]:
            blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
            login, create, program = (block.replace("https://catalog.example.com", self.registry.url) for block in blocks)
            browser = {"BROWSER": f"{sys.executable} {HERE / 'browser.py'} %s", "BROWSER_LOG": str(self.home / "browser.log")}
            said = self.ran(login, browser)
            self.assertEqual(said.split("\n")[0], self.registry.url)
            self.assertIn("photos 2026/cat-0.jpg 12\n", said)
            # the first block ends with a logout
            self.assertFalse(self.stored.exists())
            self.log_in()
            self.assertRegex(self.ran(create), r"^k\w+ qk_\S+ \d{4}-\d\d-\d\d ")
            _, secret = self.registry.add_key("example")
            asked = "\nprint(sdk.whoami().kind)"
            env = {"SERVICE_API_KEY": secret, "SERVICE_REGISTRY_URL": self.registry.url}
            self.assertEqual(self.ran(program + asked, env), "api_key\n")

    def ran(self, code: str, env: Optional[Dict[str, str]] = None) -> str:
        ended = self.python(code, env=env)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout


class Readme(unittest.TestCase):
    def test_the_calls_of_its_table_exist(self) -> None:
        for page in GUIDES[:1]:
            rows = re.findall(r"^\| (`\w[\w.]*\(.*?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
            calls = [call for row in rows for call in re.findall(r"`([\w.]+)\(", row)]
            self.assertGreater(len(calls), 20)
            for call in calls:
                self._resolve("sdk." + call)

    def test_its_blocks_are_programs_that_use_what_the_package_has(self) -> None:
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        for page in GUIDES:
            blocks += re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        self.assertGreater(len(blocks), 3 if GUIDES else 0)
        for block in blocks:
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Attribute) and _dotted(node).startswith("sdk."):
                    self._resolve(_dotted(node))

    def _resolve(self, dotted: str) -> None:
        value: object = sdk
        for name in dotted.split(".")[1:]:
            self.assertTrue(hasattr(value, name), dotted)
            value = getattr(value, name)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


if __name__ == "__main__":
    unittest.main()
