"""Runs a streaming release until it kills itself: state and release are on disk, Spark knows nothing of it yet.

Called by test_spark_streaming.py with the folder, in a process group of its own.
"""

import os
import signal
import sys
from pathlib import Path


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    import discreet as dc
    from discreet.engines.spark_streaming import Ticks

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )

    def deliver(release, batch_id):
        with open(folder / "seen", "ab") as seen:
            seen.write(b"%d " % batch_id + release.to_payload() + b"\n")
        if batch_id == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    account = dc.Ledger(folder / "ledger.sqlite").account("rows")
    ticks = Ticks(
        dc.continual.HeavyHitters(8, dc.Budget(400.0, 1e-2), 16, ledger=account), "value", folder / "state", deliver
    )
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    query = stream.writeStream.foreachBatch(ticks).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
