"""Files of stores and web servers, by stand-ins in this process: what is asked of them, and what becomes of answers.

`make hosts` asks real servers the same (tests/hosts/test_stores.py).
"""

import email.message
import http.client
import io
import os
import re
import urllib.request
import urllib.response
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pytest
from tests.commands import run_here

import discreet as dc
from discreet.errors import DataError, DiscreetError, ParameterError, TryAgainError
from discreet.events import stores
from discreet.events.files import Files
from discreet.events.inputs import expand, size_of_input
from discreet.events.one_pass import one_pass
from discreet.events.stores import RemoteFile, StoredFile, Url, at_endpoint
from discreet.noise import seeded_source

BUDGET = dc.Budget(50.0, 1e-6)
ROWS = b"page,who\n" + b"".join(b"/%d,u%d\n" % (n % 7, n) for n in range(4000))


@pytest.fixture(autouse=True)
def at_once(monkeypatch, tmp_path):
    """Nobody waits, many requests for small files, no credentials but those of the test."""
    monkeypatch.setattr(stores.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(stores, "_BLOCK", 1 << 12)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_")) or "proxy" in name]:
        monkeypatch.delenv(name)


def is_told(error):
    """Whether a traceback has the words of another error, which may quote what was sent."""
    return error.__cause__ is not None or (error.__context__ is not None and not error.__suppress_context__)


# ---- a web server ----------------------------------------------------------------------------------------------------


class Web:
    """Files of https://h.example, and what was asked for."""

    def __init__(self):
        self.files, self.asked, self.logins = {"a.csv": ROWS}, [], []
        self.tag, self.date, self.ranges, self.length = '"one"', "Sun, 15 Nov 2026 10:00:00 GMT", True, True
        self.breaks, self.status, self.redirects, self.at = 0, None, {}, lambda number: None

    def answer(self, request):
        self.asked.append(request.get_header("Range"))
        self.logins.append((request.host, request.get_header("Authorization")))
        self.at(len(self.asked))
        name = request.selector.rpartition("/")[2].partition("?")[0]
        if request.full_url in self.redirects:
            return self.made(302, {"Location": self.redirects[request.full_url]})
        if self.status is not None or name not in self.files:
            return self.made(self.status or 404)
        data, named = self.files[name], {"ETag": self.tag, "Last-Modified": self.date}
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", request.get_header("Range") or "")
        if span is None or not self.ranges:
            return self.made(200, named | ({"Content-Length": str(len(data))} if self.length else {}), data)
        first, last = int(span[1]), min(int(span[2]), len(data) - 1)
        named |= {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self.made(206, named, data[first : last + 1])

    def made(self, status, headers=None, data=b""):
        told = email.message.Message()
        for name, value in (headers or {}).items():
            if value is not None:
                told[name] = value
        held = io.BytesIO(data)
        if self.breaks and len(data) > 1:
            self.breaks -= 1
            held = Broken(data[: len(data) // 2], whole=self.ranges)
        made = urllib.response.addinfourl(held, told, "https://h.example/", status)
        made.msg = "said"
        return made


class Broken(io.BytesIO):
    """An answer that ends before its end, as http.client tells it."""

    def __init__(self, data, whole):
        super().__init__(data)
        self.whole = whole

    def read(self, size=-1):
        if self.whole:
            raise http.client.IncompleteRead(super().read())
        return super().read(size)


@pytest.fixture
def web(monkeypatch):
    server = Web()

    class Handler(urllib.request.HTTPSHandler):
        def https_open(self, request):
            return server.answer(request)

    monkeypatch.setattr(urllib.request, "HTTPSHandler", Handler)
    return server


def top(url, **how):
    release = dc.top_k(dc.read(url, **how), 5, BUDGET, column="page", source=seeded_source(3))
    return release.to_dict()["items"]


def whole(url):
    with RemoteFile(url) as file:
        return b"".join(iter(lambda: file.read(999), b""))


def test_a_file_of_the_web_is_the_file(web, tmp_path):
    (tmp_path / "a.csv").write_bytes(ROWS)
    assert top("https://h.example/logs/a.csv") == top(tmp_path / "a.csv")
    assert len(web.asked) > len(ROWS) // (1 << 12)  # in ranges
    web.ranges = False  # where there are none, from its beginning to its end
    assert top("https://h.example/logs/a.csv") == top(tmp_path / "a.csv")


def test_what_came_of_a_broken_answer_is_not_asked_for_again(web):
    web.breaks = 3
    assert whole("https://h.example/a.csv") == ROWS
    assert not web.breaks
    again = [int(said.partition("=")[2].partition("-")[0]) for said in web.asked[1:]]
    assert {first for first in again if first % (1 << 12)} >= {1 << 11}


def test_a_connection_that_does_not_come_back_is_tried_a_few_times(web):
    with RemoteFile("https://h.example/a.csv?sig=secret") as file:
        web.status = 500
        web.asked.clear()
        with pytest.raises(TryAgainError, match="the connection broke and did not come back; try again") as failed:
            file.at(0, 10)
        assert len(web.asked) == 5
        assert "secret" not in str(failed.value)
        web.status = 403  # it does not help to ask again
        web.asked.clear()
        with pytest.raises(TryAgainError):
            file.at(0, 10)
        assert len(web.asked) == 1


def test_a_server_without_ranges_that_ends_early_is_not_a_whole_file(web):
    web.ranges, web.breaks = False, 1
    with pytest.raises(TryAgainError, match="the connection broke"):
        whole("https://h.example/a.csv")
    web.length, web.breaks = False, 0  # it does not say how long the file is: it ends where it ends
    assert whole("https://h.example/a.csv") == ROWS


@pytest.mark.parametrize(
    ("tag", "later"),
    [('"one"', {"tag": '"two"'}), ('W/"one"', {"date": "later"}), (None, {"date": "later"}), ('"one"', {"ranges": 0})],
)
def test_a_file_that_another_took_the_place_of_is_refused(web, tag, later):
    web.tag = tag
    with RemoteFile("https://h.example/a.csv") as file:
        vars(web).update(later)
        with pytest.raises(DataError, match="was replaced while it was being read; run the command again"):
            file.read(10)


def test_a_weak_tag_tells_nothing(web):
    """Servers give one file several: gzipped or not, from another machine."""
    web.tag = 'W/"one"'
    with RemoteFile("https://h.example/a.csv") as file:
        web.tag = 'W/"two"'
        assert file.read(10) == ROWS[:10]


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ParameterError, r"access denied; credentials come from ~/\.netrc, or a signed URL"),
        (403, ParameterError, "access denied"),
        (404, ParameterError, "there is no such file or bucket"),
        (503, TryAgainError, "unexpected answer; try again later"),
    ],
)
def test_what_a_server_refuses_is_said_without_the_signature(web, status, kind, words):
    web.status = status
    with pytest.raises(kind, match=f"https://h.example/a.csv cannot be opened: .*{words}") as refused:
        top("https://h.example/a.csv?sig=secret")
    assert "secret" not in str(refused.value)
    assert not is_told(refused.value)


def test_a_redirect_is_followed_as_long_as_nobody_reads_along(web, tmp_path):
    (tmp_path / "home" / ".netrc").write_text("machine h.example login me password secret\n")
    (tmp_path / "home" / ".netrc").chmod(0o600)
    web.redirects["https://h.example/moved.csv"] = "https://other.example/a.csv"
    assert whole("https://h.example/moved.csv") == ROWS
    told = dict(web.logins)
    assert told["h.example"] == "Basic bWU6c2VjcmV0"
    assert told["other.example"] is None  # what was meant for one host is not for another
    web.redirects["https://h.example/open.csv?sig=secret"] = "http://other.example/a.csv"
    with pytest.raises(ParameterError, match=r"h\.example/open\.csv redirects to a URL that is not https") as refused:
        whole("https://h.example/open.csv?sig=secret")
    assert "secret" not in str(refused.value)


def test_a_port_belongs_to_a_host(web, tmp_path):
    (tmp_path / "home" / ".netrc").write_text("machine h.example login me password secret\n")
    (tmp_path / "home" / ".netrc").chmod(0o600)
    whole("https://h.example:8443/a.csv")
    whole("https://none.example/a.csv")
    assert dict(web.logins) == {
        "h.example:8443": "Basic bWU6c2VjcmV0",
        "none.example": None,
    }


def test_a_file_that_can_be_sought_in(web):
    with RemoteFile("https://h.example/a.csv") as file:
        assert file.seekable()
        assert file.size == len(ROWS) == size_of_input("https://h.example/a.csv")
        for whence, offset, at in [
            (os.SEEK_SET, 5000, 5000), (os.SEEK_CUR, 10, 5020), (os.SEEK_END, -10, len(ROWS) - 10),
        ]:  # fmt: skip
            assert file.seek(offset, whence) == at
            assert file.tell() == at
            assert file.read(10) == ROWS[at : at + 10]
        assert file.read(1) == b""
        assert file.at(3, 4) == ROWS[3:7]
        assert file.at(3, 0) == b""
    web.ranges = False
    with RemoteFile("https://h.example/a.csv") as file:
        assert not file.seekable()
        assert file.size is None
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0)


def test_a_table_needs_ranges(web):
    held = io.BytesIO()
    pa.parquet.write_table(pa.table({"page": ["/1"] * 900}), held)
    web.files["a.parquet"] = held.getvalue()
    assert [each["item"] for each in top("https://h.example/a.parquet")] == ["/1"]
    web.ranges = False
    with pytest.raises(DataError, match="must be a plain file, not from a server that sends no ranges"):
        top("https://h.example/a.parquet")


def test_blocks_are_fetched_ahead_and_forgotten(web):
    web.files["a.csv"] = bytes(range(256)) * 4096
    with RemoteFile("https://h.example/a.csv") as file:
        for start in range(0, 1 << 20, 5000):
            assert file.read(5000) == web.files["a.csv"][start : start + 5000]
        assert file.count == 1 << 20  # each byte once
    assert len(web.asked) == 1 + 256


# ---- an object store -------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder in place of every store; with how it was opened."""
    root, asked = tmp_path / "store", []
    system = pa.fs.SubTreeFileSystem(str(root), pa.fs.LocalFileSystem())
    found = SimpleNamespace(root=root, asked=asked, system=system, denied=None, type_name="local")
    names = ("get_file_info", "open_input_file", "open_output_stream", "delete_file", "copy_file")

    class System:
        def __getattr__(self, name):
            if name == "type_name":
                return found.type_name
            assert name in names
            if found.denied is not None and name.startswith(found.denied[0]):
                raise OSError(found.denied[1])
            return getattr(found.system, name)

    def opened(kind):
        def of(*given, **how):
            asked.append((kind, given, how))
            return System()

        return of

    for kind in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem"):
        monkeypatch.setattr(pa.fs, kind, opened(kind))
    monkeypatch.setattr(pa.fs, "resolve_s3_region", lambda bucket: f"region of {bucket}")
    stores._system.cache_clear()
    stores._sizes.clear()
    yield found
    stores._system.cache_clear()
    stores._sizes.clear()


def put(store, name, data=ROWS):
    path = store.root / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def names(store):
    return sorted(str(path.relative_to(store.root)) for path in store.root.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["s3", "gs", "abfs", "abfss"])
def test_a_file_of_a_store_is_the_file(store, tmp_path, kind):
    put(store, "a.csv")
    place = "logs@account.dfs.core.windows.net" if kind.startswith("abfs") else "logs"
    assert top(f"{kind}://{place}/a.csv") == top(store.root / "logs" / "a.csv")


PATTERNS = {
    "*.csv": ["a.csv", "b.csv"],
    "?.csv": ["a.csv", "b.csv"],
    "[!a].csv": ["b.csv"],
    "[ab].csv": ["a.csv", "b.csv"],
    "*/x.csv": ["01/x.csv", "02/x.csv"],
    "**/*.csv": ["01/02/x.csv", "01/x.csv", "02/x.csv", "a.csv", "b.csv"],
    ".*.csv": [".hidden.csv"],
    "a.*": ["a.csv"],
    "[*.csv": [],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_those_of_files(store, tmp_path, monkeypatch, pattern):
    for name in ("b.csv", "a.csv", ".hidden.csv", "01/x.csv", "02/x.csv", "01/02/x.csv", ".kept/x.csv", "axcsv"):
        put(store, name)
    if not PATTERNS[pattern]:
        with pytest.raises(ParameterError, match="there is no file"):
            expand(f"s3://logs/{pattern}")
        return
    found = expand(f"s3://logs/{pattern}")
    assert found == [f"s3://logs/{name}" for name in PATTERNS[pattern]]
    monkeypatch.chdir(store.root / "logs")
    assert expand(pattern) == PATTERNS[pattern]
    assert [size_of_input(url) for url in found] == [len(ROWS)] * len(found)


def test_files_of_a_pattern_are_in_the_store_that_was_named(store):
    put(store, "a.csv")
    url = at_endpoint("s3://logs/*.csv", "http://m.example:9000/")
    assert expand(url) == [at_endpoint("s3://logs/a.csv", "http://m.example:9000")]
    kind, _, how = store.asked[0]
    assert (kind, how["scheme"], how["endpoint_override"]) == ("S3FileSystem", "http", "m.example:9000")


def test_a_folder_is_no_file(store):
    put(store, "days/a.csv")
    for url in ("s3://logs/days", "s3://logs/days/"):
        with pytest.raises(ParameterError, match=r"is a directory; a pattern such as 's3://logs/days/\*'"):
            expand(url)
    with pytest.raises(ParameterError, match=r"there is no file 's3://logs/none\.csv'"):
        expand("s3://logs/none.csv")


OPENED = {
    "s3://logs/a.csv": ("S3FileSystem", (), {"region": "region of logs", "anonymous": False}),
    "s3://anonymous@logs/a.csv": ("S3FileSystem", (), {"region": "region of logs", "anonymous": True}),
    "gs://logs/a.csv": ("GcsFileSystem", (), {"anonymous": False}),
    "gs://anonymous@logs/a.csv": ("GcsFileSystem", (), {"anonymous": True}),
    "abfs://logs@account.dfs.core.windows.net/a.csv": ("AzureFileSystem", ("account",), {}),
}


@pytest.mark.parametrize("url", OPENED)
def test_who_asks_a_store(store, url):
    put(store, "a.csv")
    assert whole(url) == ROWS
    kind, given, how = OPENED[url]
    (opened,) = store.asked
    assert opened[:2] == (kind, given)
    assert {name: opened[2].get(name) for name in how} == how
    assert not {"access_key", "secret_key"} & {*opened[2]}


def test_the_region_that_was_set_is_asked(store, monkeypatch):
    put(store, "a.csv")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-2")
    whole("s3://logs/a.csv")
    monkeypatch.setenv("AWS_REGION", "eu-1")
    stores._system.cache_clear()
    whole("s3://logs/a.csv")
    assert [how["region"] for _, _, how in store.asked] == ["eu-2", "eu-1"]


AZURE = {
    "a name": ({"AZURE_STORAGE_ACCOUNT_NAME": "mine"}, "mine", {}),
    "a key": ({"AZURE_STORAGE_ACCOUNT_NAME": "mine", "AZURE_STORAGE_ACCOUNT_KEY": "k"}, "mine", {"account_key": "k"}),
    "a token": ({"AZURE_STORAGE_ACCOUNT_NAME": "mine", "AZURE_STORAGE_SAS_TOKEN": "t"}, "mine", {"sas_token": "t"}),
    "a string": ({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=his;AccountKey=a=="}, "his", {"account_key": "a=="}),
    "a string with a token": (
        {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=his;SharedAccessSignature=s=1"}, "his", {"sas_token": "s=1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", AZURE)
def test_an_account_of_azure_is_found_where_its_tools_look(store, monkeypatch, what):
    put(store, "a.csv")
    said, name, how = AZURE[what]
    for each, value in said.items():
        monkeypatch.setenv(each, value)
    assert whole("abfs://logs/a.csv") == ROWS
    assert store.asked == [("AzureFileSystem", (name,), how)]


def test_a_url_holds_no_key(store):
    for url in ("s3://me:secret@logs/a.csv", "gs://me@logs/a.csv", "abfs://me:secret@account.example/a.csv"):
        with pytest.raises(ParameterError, match="must not hold credentials; they come from") as refused:
            whole(url)
        assert "secret" not in str(refused.value)
    with pytest.raises(ParameterError, match="names no container"):
        whole("abfs:///a.csv")
    assert not store.asked


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject", ParameterError, "access denied; .*AWS_ACCESS_KEY_ID"),
        ("the key SECRET is not known: error 403", ParameterError, "access denied"),
        ("AWS Error NO_SUCH_BUCKET", ParameterError, "there is no such file or bucket"),
        ("curlCode: 28, Timeout was reached", TryAgainError, "unexpected answer; try again later"),
    ],
)
def test_what_a_store_refuses_is_said_in_words_of_our_own(store, said, kind, words):
    put(store, "a.csv")
    store.denied = ("open_input", said)
    with pytest.raises(kind, match=f"s3://logs/a.csv cannot be opened: .*{words}") as refused:
        whole("s3://logs/a.csv")
    assert said not in str(refused.value)
    assert not is_told(refused.value)
    store.denied = ("get_file_info", said)
    with pytest.raises(kind, match=r"s3://logs/\*.csv cannot be listed"):
        expand("s3://logs/*.csv")


def test_a_file_of_a_store_that_is_replaced_is_refused_before_anything_is_charged(store, tmp_path):
    put(store, "a.csv")
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", BUDGET)
    opened = store.system.open_input_file
    replaced = []

    class Once:
        def __getattr__(self, name):
            return getattr(pa.fs.SubTreeFileSystem(str(store.root), pa.fs.LocalFileSystem()), name)

        def open_input_file(self, path):
            if replaced:
                put(store, "a.csv", ROWS + b"/9,u\n")
            replaced.append(path)
            return opened(path)

    store.system = Once()
    with pytest.raises(DataError, match="was replaced while it was being read; run the command again"):
        dc.top_k(dc.read("s3://logs/a.csv"), 5, BUDGET, column="page", ledger=ledger.account("visits"))
    assert ledger.account("visits").spent().epsilon == 0
    (store.root / "logs" / "a.csv").unlink()
    put(store, "b.csv")
    with RemoteFile("s3://logs/b.csv") as file:
        (store.root / "logs" / "b.csv").unlink()
        with pytest.raises(DataError, match="was replaced"):
            file.check_not_replaced()


# ---- what is written -------------------------------------------------------------------------------------------------


def test_an_answer_is_written_whole(store):
    put(store, "a.csv")
    words = ["top", "s3://logs/a.csv", "--column", "page", "--epsilon", "1", "--delta", "1e-6", "--unit", "row"]
    done = run_here(*words, "-o", "s3://logs/out.json")
    assert done.returncode == 0, done.stderr
    assert b'"items"' in (store.root / "logs" / "out.json").read_bytes()
    assert names(store) == ["logs/a.csv", "logs/out.json"]
    with StoredFile(Url("s3://logs/more.bin")) as file:
        file.fill(lambda held: held.write(b"all of it"))
        assert names(store) == ["logs/a.csv", "logs/more.bin", "logs/out.json"]
    assert (store.root / "logs" / "more.bin").read_bytes() == b"all of it"


def test_whether_it_can_be_written_is_tried_before_anything_is_charged(store, tmp_path):
    put(store, "a.csv")
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", BUDGET)
    words = ["count", "s3://logs/a.csv", "--epsilon", "1", "--ledger", tmp_path / "ledger.sqlite"]
    words += ["--account", "visits", "-o", "s3://logs/out.json"]
    store.denied = ("open_output", "AccessDenied: you may not")
    done = run_here(*words)
    assert done.returncode == 2
    assert "s3://logs/out.json cannot be written: access denied" in done.stderr
    assert ledger.account("visits").spent().epsilon == 0
    assert names(store) == ["logs/a.csv"]


def test_an_older_file_stays_until_the_new_one_is_there(store):
    """Azure shows a blob as soon as one is begun: it is written beside, copied, and removed; also where that fails."""
    put(store, "kept.json", b"the older one")
    store.type_name = "abfs"
    with StoredFile(Url("abfs://logs@account.example/kept.json")) as file:
        pass  # a command that ends before it writes
    assert (store.root / "logs" / "kept.json").read_bytes() == b"the older one"
    store.denied = ("copy_file", "timeout")
    with pytest.raises(TryAgainError, match="cannot be written"):
        file.write(b"half")
    assert (store.root / "logs" / "kept.json").read_bytes() == b"the older one"
    assert names(store) == ["logs/kept.json"]
    store.denied = None
    file.write(b"the new one")
    assert (store.root / "logs" / "kept.json").read_bytes() == b"the new one"
    assert names(store) == ["logs/kept.json"]


def test_anyone_who_may_write_may_not_always_remove(store):
    (store.root / "logs").mkdir(parents=True)
    store.denied = ("delete_file", "AccessDenied")
    StoredFile(Url("s3://logs/out.json")).write(b"x")
    assert (store.root / "logs" / "out.json").read_bytes() == b"x"
    left = [name for name in names(store) if name != "logs/out.json"]
    assert [(store.root / name).read_bytes() for name in left] == [b"\n"]  # nothing of what is published
    with pytest.raises(ParameterError, match="there is no file"):
        expand("s3://logs/*.tmp")  # no pattern finds it


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://h.example/out.json?sig=secret", "is on a web server, which takes no uploads; name a local file"),
        ("s3://logs/", "names no file"),
        ("s3://logs/folder/", "names no file"),
        ("s3://me:secret@logs/a.json", "must not hold credentials"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_refused(store, url, words):
    with pytest.raises(DiscreetError, match=words) as refused:
        StoredFile(Url(url))
    assert "secret" not in str(refused.value)
    assert not store.root.exists()


def test_names_beside_an_output_are_in_its_store():
    url = Url(at_endpoint("s3://logs/days/out.json", "https://m.example"))
    assert (url.suffix, url.stem, url.is_file()) == (".json", "out", False)
    assert str(url) == "s3://logs/days/out.json"
    assert str.__eq__(url.with_name("plot.svg"), at_endpoint("s3://logs/days/plot.svg", "https://m.example"))


def test_a_file_of_several_counts_is_one_file_to_its_end(store):
    """Also where it is read once for all of them."""
    put(store, "a.csv")
    files = Files("s3://logs/a.csv")
    system, opened = pa.fs.SubTreeFileSystem(str(store.root), pa.fs.LocalFileSystem()), []

    class Once:
        def __getattr__(self, name):
            return getattr(system, name)

        def open_input_file(self, path):
            if opened:
                put(store, "a.csv", ROWS + b"/9,u\n")
            opened.append(path)
            return system.open_input_file(path)

    counts = [partial(list, files.rows(name)) for name in ("page", "who")]
    store.system = Once()
    with pytest.raises(DataError, match="was replaced while it was being read"):
        one_pass(files, counts)
