"""What the driver says where Spark's workers have the wrong Python. No Spark is needed here."""

import traceback

import pytest

from discreet.engines._spark_jobs import collected
from discreet.errors import DiscreetError

FAR = "\n".join(f"\tat org.apache.spark.util.SparkThreadUtils.line{number}" for number in range(200))


class Frame:
    """A data frame whose job fails with these words."""

    def __init__(self, said):
        self._said = said

    def toArrow(self):  # noqa: N802
        raise RuntimeError(f"An error occurred while calling o144.getResult.\n{FAR}\n{self._said}\n{FAR}")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            "run Python 3.12:",
        ),
        ('java.io.IOException: Cannot run program "python9": error=2, No such file or directory', "find no Python:"),
        ("ModuleNotFoundError: No module named 'discreet'", "run a Python without discreet:"),
        ("ModuleNotFoundError: No module named 'pyarrow.compute'", "run a Python without pyarrow:"),
    ],
)
def test_a_wrong_python_is_one_line(said, words):
    with pytest.raises(DiscreetError, match=words) as raised:
        collected(Frame(said))
    assert "PYSPARK_PYTHON" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert FAR not in "".join(traceback.format_exception(raised.value))


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="out of memory"):
        collected(Frame("java.lang.OutOfMemoryError: out of memory"))
