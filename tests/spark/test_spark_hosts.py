"""Spark beside other servers: a ledger in PostgreSQL from the driver, and tables of Delta and Iceberg."""

import warnings

import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise import seeded_source

pytestmark = pytest.mark.hosts
BUDGET = dc.Budget(2.0, 1e-6)
ROWS = pa.table({"page": [f"/p{n % 7}" for n in range(4000)], "who": [n % 90 for n in range(4000)]})


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(ROWS)


def test_the_driver_charges_a_ledger_in_postgresql(frame, postgres, tmp_path, monkeypatch):
    """Charged once, before noise; repeated by its charge id; refused when the budget is spent."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "seen"))
    ledger = dc.Ledger(postgres.database())
    ledger.grant("pages", dc.Budget(4.5, 1e-5))
    pays = {"ledger": ledger.account("pages"), "column": "page", "user": "who"}
    first = dc.top_k(frame, 3, BUDGET, charge_id="monday", **pays)
    again = dc.top_k(frame, 3, BUDGET, charge_id="monday", **pays)
    assert again.to_json() == first.to_json()
    dc.count(frame, dc.Budget(2.0), ledger=ledger.account("pages"), user="who", charge_id="tuesday")
    with pytest.raises(dc.BudgetExceededError):
        dc.top_k(frame, 3, BUDGET, **pays)
    kinds = [event.kind for event in ledger.history("pages")]
    assert kinds == ["grant", "charge", "release", "charge", "release"]
    assert ledger.verify() == 5


def delta(folder):
    """A table with two versions, of which rows were deleted and added; how a worker reads it."""
    import deltalake

    path = str(folder / "delta")
    deltalake.write_deltalake(path, ROWS.slice(0, 3000))
    deltalake.write_deltalake(path, pa.table({"page": ["/gone"] * 500, "who": [1] * 500}), mode="append")
    deltalake.DeltaTable(path).delete("page = '/gone'")
    deltalake.write_deltalake(path, ROWS.slice(3000), mode="append")

    def batches():
        import deltalake

        return deltalake.DeltaTable(path).to_pyarrow_dataset().to_batches(columns=["page", "who"])

    return deltalake.DeltaTable(path), batches


def iceberg(folder):
    """The same, in Iceberg."""
    from pyiceberg.catalog import load_catalog

    where = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    catalog = load_catalog("local", **where)
    catalog.create_namespace("site")
    table = catalog.create_table("site.visits", ROWS.schema)
    table.append(ROWS.slice(0, 3000))
    table.append(pa.table({"page": ["/gone"] * 500, "who": [1] * 500}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.delete("page = '/gone'")
    table.append(ROWS.slice(3000))
    latest = table.metadata_location

    def batches():
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(latest).scan(selected_fields=("page", "who")).to_arrow_batch_reader()

    return table, batches


@pytest.mark.parametrize("kind", [delta, iceberg])
def test_tables_by_their_own_readers(spark, kind, tmp_path):
    """Spark reads the table through a source of rows, as it does with the connectors' jars; one machine reads it
    through `to_pyarrow_dataset` or `to_arrow`. The releases are those of the plain rows, bit for bit."""
    table, batches = kind(tmp_path)

    def source():
        """Made here, so that workers get the class itself and not the name of a module of tests."""
        from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

        class Rows(DataSourceReader):
            def partitions(self):
                return [InputPartition(0)]

            def read(self, partition):
                import pyarrow as pa

                schema = pa.schema([("page", pa.string()), ("who", pa.int64())])
                for batch in batches():
                    yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

        class Lake(DataSource):
            @classmethod
            def name(cls):
                return f"lake_{kind.__name__}"

            def schema(self):
                return "page string, who long"

            def reader(self, schema):
                return Rows()

        return Lake

    spark.dataSource.register(source())
    lake = spark.read.format(f"lake_{kind.__name__}").load()
    listed = {"column": "page", "universe": ["/p0", "/p1", "/gone"], "user": "who", "max_items": 3}
    for ask, words in ((dc.histogram, listed), (dc.count, {"where": "page <> '/p1'"}), (dc.top_k, {"column": "who"})):
        one, two, three = (
            ask(data, **({"k": 5} if ask is dc.top_k else {}), budget=BUDGET, source=seeded_source(3), **words)
            for data in (lake, table, ROWS)
        )
        if ask is dc.count:
            assert one.value == two.value == three.value
        elif ask is dc.histogram:
            assert one.counts.tolist() == two.counts.tolist() == three.counts.tolist()
        else:
            assert len(one.items) == len(two.items) == 5
