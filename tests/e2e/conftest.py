"""Stops at once, with one line, when there is no binary to test."""
import os

import pytest

import helpers


def pytest_sessionstart(session):
    if not os.access(helpers.CORDON, os.X_OK):
        pytest.exit(f"{helpers.CORDON} is not there: run make first, or set CORDON_BIN", returncode=2)


@pytest.fixture
def mark():
    """A word for the processes of this test, none of which may be alive 200 ms after it."""
    word = helpers.mark()
    yield word
    helpers.wait_for(lambda: not helpers.marked(word), 0.2)
