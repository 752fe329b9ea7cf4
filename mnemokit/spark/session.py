"""The Spark session that a user brings: its Python, its settings, and its errors in one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from mnemokit import errors

_OWN_ERROR = re.compile(r"mnemokit\.errors\.(\w+): (.+)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def use_this_python(spark: SparkSession) -> None:
    """Let executors run the Python that runs here, unless the user has said which one they run.

    Spark's own choice is ``python3``, which in a virtual environment is another one, without mnemokit.
    """
    if os.environ.get("PYSPARK_PYTHON") or spark.conf.get("spark.pyspark.python", None):
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark.sparkContext.pythonExec = sys.executable


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Generator[None]:
    """Set these for the block, and put back what there was."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


@contextmanager
def in_one_line(where: str) -> Generator[None]:
    """Turn what Spark raises into one error of mnemokit's family, Spark's own behind it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translated(error, where) from error


def _translated(error: Exception, where: str) -> errors.MnemokitError:
    text = str(error)
    own = _OWN_ERROR.search(text)
    kind = getattr(errors, own[1], None) if own else None
    if own and isinstance(kind, type) and issubclass(kind, errors.MnemokitError):
        return kind(own[2])
    missing = _MISSING.search(text)
    if missing:
        return errors.MissingExtra(
            f"the Python of the Spark executors has no module {missing[1]}; pip install 'mnemokit[spark]' there, "
            "or set PYSPARK_PYTHON to a Python that has it before the session is made"
        )
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, AnalysisException):
        hint = "; Spark has no nanoseconds: write instants in microseconds" if "NANOS" in first else ""
        return errors.InvalidInput(f"{where}: {first}{hint}")
    return errors.MnemokitError(f"{where}: the Spark job failed ({first}); see Spark's own error above for the cause")
