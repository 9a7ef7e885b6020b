"""Object stores and web servers as local files: the same releases, whole outputs, and what a broken connection does."""

import gzip
import io
import json
import random
import signal
import subprocess
import sys
import time
import zipfile
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from tests import stores
from tests.commands import run_here

import discreet as dc
from discreet.errors import DataError, ParameterError, TryAgainError
from discreet.events import stores as reading
from discreet.noise import seeded_source
from discreet.summaries import counters

pytestmark = pytest.mark.hosts
BUDGET = dc.Budget(1.0, 1e-6)
KINDS = ("s3", "gs", "abfs", "https")


def _table(rows=6000):
    draw = random.Random(5)
    pages = [f"/page/{draw.randrange(40)}?q={draw.randrange(3)}" for _ in range(rows)]
    return pa.table({"page": pages, "who": [f"u{draw.randrange(900)}" for _ in range(rows)]})


def _files():
    """One table, in every format that is read."""
    table, written = _table(), {}
    rows = list(zip(*(table.column(name).to_pylist() for name in ("page", "who")), strict=True))
    cells = {"csv": ",", "tsv": "\t"}
    for format, between in cells.items():
        lines = "".join(f"{between.join(row)}\n" for row in [("page", "who"), *rows])
        written[f"a.{format}"] = lines.encode()
    written["a.jsonl"] = "".join(json.dumps({"page": page, "who": who}) + "\n" for page, who in rows).encode()
    written["a.txt"] = "".join(f"{page}\n" for page, _ in rows).encode()
    log = '{} - - [15/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 5{}\n'
    written["common.log"] = "".join(log.format(who, page, "") for page, who in rows).encode()
    written["combined.log"] = "".join(log.format(who, page, ' "-" "-"') for page, who in rows).encode()
    written["baskets.txt"] = "".join(f"{page} {who}\n" for page, who in rows).encode()
    held = io.BytesIO()
    pa.parquet.write_table(table, held, row_group_size=2000)
    written["a.parquet"] = held.getvalue()
    held = io.BytesIO()
    pa.feather.write_feather(table, held)
    written["a.arrow"] = held.getvalue()
    written["packed.csv.gz"] = gzip.compress(written["a.csv"])
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", written["a.csv"])
    written["packed.zip"] = held.getvalue()
    return written


FILES = _files()


@pytest.fixture(autouse=True)
def one_seed(monkeypatch):
    """Noise is drawn in the order of hashes: with one seed of them a release follows from the seeded source."""
    monkeypatch.setattr(counters, "os", SimpleNamespace(urandom=bytes))


@pytest.fixture(scope="module", params=KINDS)
def store(request, tmp_path_factory):
    made = (
        stores.https(tmp_path_factory.mktemp("tls")) if request.param == "https" else getattr(stores, request.param)()
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "_BLOCK", 1 << 14)  # many requests for small files
        with made as opened:
            for name, data in FILES.items():
                opened.put(name, data)
            yield opened


@pytest.fixture(scope="module")
def bucket():
    with stores.s3() as opened:
        for name, data in FILES.items():
            opened.put(name, data)
        yield opened


def _asked(name):
    if name == "baskets.txt":
        return {"column": None, "format": "baskets"}
    format = name.removesuffix(".log") if name.endswith(".log") else None
    column = {"log": "path", "txt": None}.get(name.rpartition(".")[2], "page")
    return {"column": column, "format": format}


@pytest.mark.parametrize("name", FILES)
def test_a_release_is_that_of_the_local_file(store, tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    asked = _asked(name)
    who = {"log": "ip", "txt": None}.get(name.rpartition(".")[2], "who")
    for user in [None] if who is None or name == "baskets.txt" else [None, who]:
        found = []
        for path, endpoint in ((tmp_path / name, None), (f"{store.root}/{name}", store.endpoint)):
            data = dc.read(path, format=asked["format"], endpoint=endpoint)
            words = {"column": asked["column"], "user": user}
            release = dc.top_k(data, 10, BUDGET, source=seeded_source(7), **words)
            found.append((release.items, list(release.counts), release.threshold))
        assert found[0] == found[1]
        assert len(found[0][0])


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.jsonl"])
def test_every_question_is_asked_of_a_store(store, tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    asked = {
        "count": {"user": "who"},
        "distinct": {"column": "page"},
        "histogram": {"column": "page", "universe": ["/page/1?q=1", "/page/2?q=2"]},
    }
    for question, words in asked.items():
        values = []
        for path, endpoint in ((tmp_path / name, None), (f"{store.root}/{name}", store.endpoint)):
            data = dc.read(path, endpoint=endpoint)
            answer = getattr(dc, question)(data, dc.Budget(1.0), source=seeded_source(3), **words)
            values.append(list(answer.counts) if question == "histogram" else answer.value)
        assert values[0] == values[1]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_numbers_and_groups_are_those_of_the_local_file(store, tmp_path, format):
    table = _table(3000).append_column("n", pa.array([n % 9 for n in range(3000)]))
    local = tmp_path / f"numbers.{format}"
    if format == "csv":
        pa.csv.write_csv(table, local)
    else:
        pa.parquet.write_table(table, local, row_group_size=700)
    store.put(local.name, local.read_bytes())
    numbers = {"column": "n", "range": (0, 9)}
    asked = [(name, {**numbers, **more}) for name in ("sum", "mean", "variance") for more in ({}, {"user": "who"})]
    asked += [("quantiles", numbers), ("count", {"where": "n > 3"}), ("distinct", {"column": "who", "user": "who"})]
    asked += [("count", {"by": "n", "groups": ["1", "2"]}), ("mean", {**numbers, "by": "page", "user": "who"})]
    for question, words in asked:
        told = []
        for path, endpoint in ((local, None), (f"{store.root}/{local.name}", store.endpoint)):
            answer = getattr(dc, question)(dc.read(path, endpoint=endpoint), BUDGET, source=seeded_source(3), **words)
            told.append(repr(answer) if not hasattr(answer, "to_json") else json.loads(answer.to_json()))
        for each in told:
            if isinstance(each, dict):
                each.pop("time", None)
        assert told[0] == told[1], (question, words)


def test_patterns_list_a_store(bucket):
    where = {"endpoint": bucket.endpoint}
    for day in ("01", "02"):
        bucket.put(f"days/{day}/x.csv", b"page,who\n" + b"/a,u\n" * 40)
    bucket.put("days/.hidden/x.csv", b"page,who\n" + b"/b,u\n" * 400)
    both = dc.read(f"{bucket.root}/days/*/x.csv", **where)
    deep = dc.read(f"{bucket.root}/days/**/*.csv", **where)
    one = dc.read(f"{bucket.root}/days/0[!2]/?.csv", **where)
    counts = [dc.top_k(data, 5, dc.Budget(50.0, 1e-6), column="page").to_dict()["items"] for data in (both, deep, one)]
    assert [[(each["item"], round(each["count"] / 10)) for each in found] for found in counts] == [
        [("/a", 8)],
        [("/a", 8)],
        [("/a", 4)],
    ]


def test_what_is_wrong_is_said_without_credentials(bucket, tmp_path, monkeypatch):
    where = {"endpoint": bucket.endpoint}
    with pytest.raises(ParameterError, match=r"there is no file 's3://logs/none.csv'"):
        dc.count(dc.read("s3://logs/none.csv", **where), BUDGET)
    with pytest.raises(ParameterError, match=r"s3://logs/a.csv: a URL must not hold credentials") as refused:
        dc.count(dc.read("s3://id:key@logs/a.csv", **where), BUDGET)
    assert "key" not in str(refused.value).replace("AWS_SECRET_ACCESS_KEY", "").lower().replace("aws_access_key_id", "")
    with pytest.raises(ParameterError, match="a web server does not list its files"):
        dc.count(dc.read("https://localhost/*.csv?X-Amz-Signature=secret"), BUDGET)
    with pytest.raises(ParameterError, match=r"https://localhost:9/a.csv|no file") as refused:
        dc.count(dc.read("ftp://me:secret@localhost/a.csv"), BUDGET)
    assert "secret" not in str(refused.value)
    for url in ("https://localhost:9/a.csv?sig=secret", "https://me:secret@localhost:9/a.csv"):
        with pytest.raises((ParameterError, TryAgainError)) as refused:
            dc.count(dc.read(url), BUDGET)
        assert "secret" not in str(refused.value)
        assert "localhost:9/a.csv" in str(refused.value)


# ---- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["top.json", "top.csv", "top.parquet", "top.txt"])
def test_an_answer_is_written_to_a_store(store, name):
    words = ["top", f"{store.root}/a.csv", "--column", "page", "--epsilon", "1", "--delta", "1e-6", "--unit", "row"]
    if store.endpoint is None:
        refused = run_here(*words, "-o", f"{store.root}/{name}")
        assert refused.returncode == 2
        assert "takes no uploads" in refused.stderr
        return
    done = run_here(*words, "--endpoint", store.endpoint, "-o", f"{store.root}/out/{name}")
    assert done.returncode == 0, done.stderr
    assert store.get(f"out/{name}")
    assert not [each for each in store.names() if ".discreet-" in each]


def test_what_cannot_be_written_is_told_before_anything_is_charged(bucket, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    dc.Ledger(ledger).grant("visits", dc.Budget(2.0, 1e-5))
    words = ["count", f"{bucket.root}/a.csv", "--epsilon", "1", "--endpoint", bucket.endpoint, "--ledger", str(ledger)]
    words += ["--account", "visits"]
    done = run_here(*words, "-o", "s3://no-such-bucket/count.json")
    assert done.returncode == 2
    assert "no such file or bucket" in done.stderr
    assert dc.Ledger(ledger).account("visits").spent().epsilon == 0
    same = run_here(*words, "-o", f"{bucket.root}/a.csv", "--format", "csv")
    assert same.returncode == 2
    assert "reads or keeps" in same.stderr


def test_an_output_is_whole_or_not_there(store, monkeypatch):
    """Writing fails after the probe: the older file stays as it was."""
    if store.endpoint is None:
        pytest.skip("web servers are read only")
    url = reading.Url(reading.at_endpoint(f"{store.root}/kept.json", store.endpoint))
    with reading.StoredFile(url) as file:
        file.write(b"the older one")
    assert store.get("kept.json") == b"the older one"
    with reading.StoredFile(url) as file:
        pass  # a command that ends before it writes
    assert store.get("kept.json") == b"the older one"
    if file._place.system.type_name == "abfs":  # the copy is all that touches the name
        monkeypatch.setattr(reading.StoredFile, "_beside", lambda self, data: "logs/none")
        with reading.StoredFile(url) as file, pytest.raises(ParameterError):
            file.write(b"half")
        assert store.get("kept.json") == b"the older one"


_KILLED = """
import sys, time
from discreet.events import stores
put = stores.StoredFile._put
def slow(self, name, data):
    stream = self._place.system.open_output_stream(name)
    stream.write(data)
    print("written", flush=True)
    time.sleep(60)
with stores.StoredFile(stores.Url(sys.argv[1])) as file:
    stores.StoredFile._put = slow
    file.write(b"x" * 1000)
"""


def test_a_kill_while_it_is_written_leaves_the_older_one(store):
    if store.endpoint is None:
        pytest.skip("web servers are read only")
    store.put("killed.json", b"the older one")
    url = reading.at_endpoint(f"{store.root}/killed.json", store.endpoint)
    process = subprocess.Popen([sys.executable, "-c", _KILLED, url], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    time.sleep(0.2)
    assert store.get("killed.json") == b"the older one"


# ---- what breaks -----------------------------------------------------------------------------------------------------


class _Breaking:
    """Reads that fail: some, or all from one on."""

    def __init__(self, below, fails):
        self._below, self._fails, self.size, self.asked = below, fails, below.size, 0

    def fetch(self, start, size):
        self.asked += 1
        if self._fails(self.asked):
            raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 56")
        return self._below.fetch(start, size)

    def is_same(self):
        return self._below.is_same()

    def close(self):
        self._below.close()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow", "packed.csv.gz", "packed.zip"])
def test_a_dropped_connection_resumes_or_nothing_is_charged(bucket, tmp_path, monkeypatch, name):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", dc.Budget(4.0, 1e-5))
    opened = reading._OfStore
    monkeypatch.setattr(reading.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(reading, "_BLOCK", 1 << 13)
    release = []
    for fails in (lambda at: False, lambda at: at % 2, lambda at: at > 2):
        monkeypatch.setattr(reading, "_OfStore", lambda url, fails=fails: _Breaking(opened(url), fails))
        data = dc.read(f"{bucket.root}/{name}", endpoint=bucket.endpoint)
        if fails(1) or not fails(3):
            release.append(dc.top_k(data, 5, BUDGET, column="page", source=seeded_source(1)))
        else:
            with pytest.raises(TryAgainError, match="the connection broke"):
                dc.top_k(data, 5, BUDGET, column="page", ledger=ledger.account("visits"))
    assert list(release[0].counts) == list(release[1].counts)
    assert ledger.account("visits").spent().epsilon == 0


def test_a_file_that_is_replaced_while_it_is_read_is_refused(bucket, tmp_path, monkeypatch):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", dc.Budget(4.0, 1e-5))
    opened, changed = reading._OfStore.fetch, []

    def fetch(self, start, size):
        if not changed:
            changed.append(True)
            bucket.put("changes.csv", FILES["a.csv"].replace(b"/page/1", b"/page/9"))  # as long as before
        return opened(self, start, size)

    bucket.put("changes.csv", FILES["a.csv"])
    monkeypatch.setattr(reading._OfStore, "fetch", fetch)
    with pytest.raises(DataError, match="was replaced while it was being read; run the command again"):
        dc.top_k(dc.read(f"{bucket.root}/changes.csv", endpoint=bucket.endpoint), 5, BUDGET, column="page",
                 ledger=ledger.account("visits"))  # fmt: skip
    assert ledger.account("visits").spent().epsilon == 0


def test_a_web_server_that_breaks_off_or_knows_no_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr(reading.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(reading, "_BLOCK", 1 << 14)
    with stores.https(tmp_path) as store:
        for name in ("a.csv", "a.parquet"):
            store.put(name, FILES[name])

        def top(name):
            return dc.top_k(
                dc.read(f"{store.root}/{name}?sig=secret"), 5, BUDGET, column="page", source=seeded_source(2)
            )

        whole = list(top("a.csv").counts)
        store.server.breaks = 3
        assert list(top("a.csv").counts) == whole
        assert store.server.breaks == 0
        store.server.whole = True  # no ranges: it can be read once, in its order
        assert list(top("a.csv").counts) == whole
        with pytest.raises(DataError, match="server that sends no ranges") as refused:
            top("a.parquet")
        assert "secret" not in str(refused.value)
        store.server.breaks = 9
        with pytest.raises(TryAgainError, match="the connection broke"):
            top("a.csv")
        store.server.breaks = 0
        with pytest.raises(ParameterError, match=r"a\.tsv cannot be opened: there is no such file"):
            top("a.tsv")
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(TryAgainError):
            top("a.csv")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
