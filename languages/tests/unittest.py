"""Runs test files with unittest and reports each test as a line of JSON. Arguments: the report, then the files."""
import importlib.util
import json
import os
import sys
import time
import traceback
import unittest

report, files = sys.argv[1], sys.argv[2:]
out = open(report, "w", encoding="utf-8")


def tell(**row):
    out.write(json.dumps(row) + "\n")
    out.flush()


class Report(unittest.TextTestResult):
    """Parts of a test (subTest) that fail are tests of their own; those that pass are counted with it."""

    def startTest(self, test):
        self.began, self.broken = time.monotonic(), False
        super().startTest(test)

    def row(self, test, status, message=""):
        tell(name=test.id(), status=status, message=message, wall_ms=(time.monotonic() - self.began) * 1000)

    def failure(self, test, error):
        self.broken = True
        if not hasattr(self, "began"):
            self.began = time.monotonic()
        self.row(test, "failed", "".join(traceback.format_exception_only(error[0], error[1])).strip() + self.place(error[2]))

    @staticmethod
    def place(trace):
        frames = [f for f in traceback.extract_tb(trace) if "/unittest/" not in f.filename]
        return f" ({os.path.basename(frames[-1].filename)} line {frames[-1].lineno})" if frames else ""

    def addSuccess(self, test):
        super().addSuccess(test)
        if not self.broken:
            self.row(test, "passed")

    def addError(self, test, err):
        super().addError(test, err)
        self.failure(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failure(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failure(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if not hasattr(self, "began"):
            self.began = time.monotonic()
        self.row(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.row(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.row(test, "failed", "succeeded, but was expected to fail")


def load(suite, path):
    """False when the file cannot be imported, which is told as a failed test of its name."""
    name = os.path.splitext(path)[0].replace("/", ".")
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
        return True
    except BaseException as error:
        traceback.print_exc()
        tell(name=path, status="failed", message="".join(traceback.format_exception_only(type(error), error)).strip())
        return False


sys.argv = sys.argv[:1]
sys.path[0] = os.getcwd()
suite = unittest.TestSuite()
loaded = [load(suite, path) for path in files]
result = unittest.TextTestRunner(resultclass=Report).run(suite)
sys.exit(0 if all(loaded) and result.wasSuccessful() else 1)
