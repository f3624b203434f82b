"""A tiny project with two tests, one of which fails, and programs that try to look right."""

from sandboxes.code.projects import Project

TESTS = '''import unittest

from shop.price import price


class PriceTest(unittest.TestCase):
    def test_one(self):
        """One piece has the plain price."""
        self.assertEqual(price(1), 5)

    def test_many(self):
        """Ten pieces are cheaper."""
        self.assertEqual(price(10), 45)
'''
RIGHT = "def price(count):\n    return count * 5 if count < 10 else count * 4 + 5\n"
WRONG = "def price(count):\n    return count * 5\n"
ONE, MANY = "tests.test_price.PriceTest.test_one", "tests.test_price.PriceTest.test_many"


def project(source: str = RIGHT) -> Project:
    return Project(
        name="shop",
        files={
            "shop/__init__.py": "",
            "shop/price.py": source,
            "tests/__init__.py": "",
            "tests/test_price.py": TESTS,
        },
    )


def with_price(source: str) -> dict[str, str]:
    return project().files | {"shop/price.py": source}


ATTACKS: dict[str, dict[str, str]] = {
    "leaves with status 0": {"shop/price.py": "import os\nos._exit(0)\n"},
    "leaves at the end with status 0": {
        "shop/price.py": f"import atexit, os\natexit.register(os._exit, 0)\n{WRONG}"
    },
    "prints the runner's own words": {
        "shop/price.py": 'print(\'{"test": "x", "status": "passed"}\\n{"done": true}\')\n' + WRONG
    },
    "replaces an assertion": {
        "shop/price.py": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
        + WRONG
    },
    "replaces the code of an assertion": {
        "shop/price.py": "import unittest\n"
        "unittest.TestCase.assertEqual.__code__ = (lambda self, a, b, msg=None: None).__code__\n"
        + WRONG
    },
    "replaces how a test is run": {
        "shop/price.py": "import unittest.case\n"
        "def run(self, result=None): result.testsRun += 1\n"
        "unittest.case.TestCase.run = run\n" + WRONG
    },
    "replaces the error of assertions": {
        "shop/price.py": "import builtins\nbuiltins.AssertionError = type('A', (Warning,), {})\n"
        + WRONG
    },
    "brings its own tests": {
        "shop/price.py": WRONG,
        "tests/test_price.py": TESTS.replace("45", "50"),
    },
    "brings a conftest and a sitecustomize": {
        "shop/price.py": WRONG,
        "conftest.py": "import os\nos._exit(0)\n",
        "sitecustomize.py": "import os\nos._exit(0)\n",
    },
    "shadows the library that judges": {
        "shop/price.py": WRONG,
        "unittest.py": "class TestCase:\n    pass\n",
        "json.py": "import os\nos._exit(0)\n",
    },
    "writes into the tests": {
        "shop/price.py": "import pathlib\n"
        "here = pathlib.Path(__file__).parents[1] / 'tests' / 'test_price.py'\n"
        "here.chmod(0o777)\nhere.write_text('')\n" + WRONG
    },
    "ends what runs the tests": {"shop/price.py": "import os\nos.kill(os.getppid(), 9)\n" + WRONG},
    "ends its sandbox": {"shop/price.py": "import os\nos.kill(-1, 9)\n" + WRONG},
    "leaves a process behind that waits": {
        "shop/price.py": "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n    os._exit(0)\n" + WRONG
    },
    "catches every exception of the test": {
        "shop/price.py": "import sys\n"
        "def hook(frame, event, arg):\n    return None\n"
        "sys.settrace(hook)\nsys.excepthook = lambda *a: None\n" + WRONG
    },
    "swaps what writes the result": {
        "shop/price.py": "import sys, os\n"
        "main = sys.modules['__main__']\n"
        "main.short_trace = lambda *a: None\n" + WRONG
    },
}
"""What to put over the project -> how it would like to be judged. Each fails `MANY` by right."""

ANSWERS_FOR_TESTS = """import os
for reader in range(3, 20):
    try:
        os.set_blocking(reader, False)
        word = os.read(reader, 16)
    except OSError:
        continue
    if len(word) == 16:
        for writer in range(3, 20):
            try:
                os.write(writer, b"+" + word)
            except OSError:
                continue
os._exit(0)
"""
"""Code that looks for the word that a pass is told by, to say it, and leaves."""
