"""Files in object stores and on web servers: `s3://`, `gs://`, `abfs://` and `https://`, read in ranges of bytes.

    s3://bucket/logs/*.parquet    gs://bucket/logs/a.csv    abfs://container@account.dfs.core.windows.net/a.csv

The stores are those of pyarrow (docs/adr/0014-object-stores.md), credentials are found as everywhere (environment,
configuration files, the machine's role), and no message has any. A range that was not read is asked for again; where
that does not help, or the file was replaced meanwhile, nothing has been charged: a release pays when all is read.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from http.client import HTTPException
from pathlib import PurePosixPath
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener

from discreet._data_class import dataclass
from discreet.errors import DataError, DiscreetError, ParameterError, TryAgainError
from discreet.events.inputs import DATABASE, scheme_of, shown

_ENDPOINT = "?endpoint="  # ends a URL, where one was given; no key of ours has it inside
_BLOCK = 1 << 22  # bytes of a request: what a store sends in about the time that it takes to begin
_AHEAD = 4  # requests at a time, where a file is read in its order
_HELD = 2 * _AHEAD + 2  # blocks in memory
_TRIES = 5
_SECONDS = 20.0  # for an answer
_DENIED = re.compile(
    r"denied|forbidden|unauth|authenticat|credential|permission|signature|invalid_access|(status|error|^) ?40[13]"
)
_NOT_THERE = re.compile(r"no_such|no such|not_found|not found|notfound|does not exist|(status|error|^) ?40[04]")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws, or the role of the machine",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or the machine's account",
    "abfs": "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, `az login`, or the "
    "identity of the machine",
    "https": "~/.netrc, or a signed URL",
}


def at_endpoint(url: str, endpoint: str | None) -> str:
    """The URL of a file of a store that is not where such stores usually are: MinIO, an emulator."""
    scheme = scheme_of(url)
    if endpoint is None or scheme in (None, DATABASE):
        return url
    if scheme == "https":
        raise ParameterError("endpoint works with s3://, gs:// and abfs://; an https:// URL needs none")
    if not re.fullmatch(r"https?://[^/?#@\s]+/?", endpoint):
        raise ParameterError("endpoint must be a URL without a path: https://minio.example.org:9000")
    return url + _ENDPOINT + endpoint.rstrip("/")


class Url(str):
    """Where an answer goes, with what paths have of a name. Shown without credentials."""

    def __str__(self) -> str:
        return shown(self)

    @property
    def _file(self) -> PurePosixPath:
        return PurePosixPath(self.partition(_ENDPOINT)[0])

    @property
    def suffix(self) -> str:
        return self._file.suffix

    @property
    def stem(self) -> str:
        return self._file.stem

    def with_name(self, name: str) -> Url:
        url, mark, endpoint = self.partition(_ENDPOINT)
        return Url(f"{url.rpartition('/')[0]}/{name}{mark}{endpoint}")

    def is_file(self) -> bool:
        """None of this machine."""
        return False


# ---- where things are ------------------------------------------------------------------------------------------------


@contextmanager
def _told(url: str, doing: str) -> Iterator[None]:
    """What a store refuses, in our words: its own may quote what it was sent."""
    try:
        yield
        return
    except DiscreetError:
        raise
    except (OSError, ValueError) as error:
        said = str(error).lower()
    if _DENIED.search(said):
        why = f"access denied; credentials come from {_CREDENTIALS[_kind(url)]}"
        raise ParameterError(f"{shown(url)} cannot be {doing}: {why}") from None
    if _NOT_THERE.search(said):
        raise ParameterError(f"{shown(url)} cannot be {doing}: there is no such file or bucket") from None
    raise TryAgainError(
        f"{shown(url)} cannot be {doing}: the store gave an unexpected answer; try again later"
    ) from None


def _kind(url: str) -> str:
    return str(scheme_of(url)).replace("abfss", "abfs")


@dataclass(frozen=True)
class _Place:
    """A file of a store: the file system, and the path in it."""

    system: Any
    path: str

    def parent(self) -> str:
        return self.path.rpartition("/")[0]


def _place(url: str) -> _Place:
    plain, _, endpoint = url.partition(_ENDPOINT)
    root, _, path = plain.partition("://")[2].partition("/")
    user, at, bucket = root.rpartition("@")
    azure, account = _kind(url) == "abfs", ""
    if at and user != "anonymous":
        if not azure or ":" in user:
            raise ParameterError(
                f"{shown(url)}: a URL must not hold credentials; they come from {_CREDENTIALS[_kind(url)]}"
            )
        account, bucket = bucket.partition(".")[0], user
    if not bucket:
        raise ParameterError(f"{shown(url)} names no {'container' if azure else 'bucket'}")
    with _told(url, "reached"):
        system = _system(_kind(url), bucket, account, endpoint, user == "anonymous")
    return _Place(system, f"{bucket}/{path}")


@lru_cache(maxsize=64)
def _system(scheme: str, bucket: str, account: str, endpoint: str, anonymous: bool) -> Any:
    from pyarrow import fs

    kind, _, host = endpoint.partition("://")
    where = {"scheme": kind, "endpoint_override": host} if endpoint else {}
    if scheme == "s3":
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if region is None and not endpoint and "AWS_ENDPOINT_URL" not in os.environ:
            with suppress(OSError):  # then that of the configuration
                region = fs.resolve_s3_region(bucket)
        return fs.S3FileSystem(region=region, anonymous=anonymous, connect_timeout=5, request_timeout=_SECONDS, **where)
    if scheme == "gs":
        from datetime import timedelta

        return fs.GcsFileSystem(anonymous=anonymous, retry_time_limit=timedelta(seconds=_SECONDS), **where)
    return _azure(account, kind, host, anonymous)


def _azure(account: str, kind: str, host: str, anonymous: bool) -> Any:
    """What the environment says of an account, by the names that Azure's own tools use."""
    from pyarrow import fs

    pairs = (each.partition("=") for each in os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";"))
    said = {name: value for name, _, value in pairs}
    where = {"blob_storage_authority": host, "blob_storage_scheme": kind, "dfs_storage_authority": host} if host else {}
    if where:
        where["dfs_storage_scheme"] = kind
    name = account or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME") or said.get("AccountName")
    if not name:
        raise ParameterError(
            "no Azure account named; write abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/FILE, or set "
            "AZURE_STORAGE_ACCOUNT_NAME"
        )
    key = os.environ.get("AZURE_STORAGE_ACCOUNT_KEY") or said.get("AccountKey")
    token = os.environ.get("AZURE_STORAGE_SAS_TOKEN") or said.get("SharedAccessSignature")
    with_key = {"account_key": key} if key else {"sas_token": token} if token else {}
    return fs.AzureFileSystem(name, **({} if anonymous else with_key), **where)


def expand_remote(url: str) -> list[str]:
    """The files that a URL stands for: itself, or those of a store that a pattern matches, sorted."""
    if scheme_of(url) == "https":
        if re.search(r"[*\[]", shown(url)):
            raise ParameterError(f"{shown(url)}: a web server does not list its files; name each of them")
        return [url]
    from pyarrow import fs

    place = _place(url)
    if not re.search(r"[*?\[]", place.path):
        with _told(url, "read"):
            found = place.system.get_file_info(place.path)
        if found.type == fs.FileType.Directory:
            pattern = f"{shown(url).rstrip('/')}/*"
            raise ParameterError(f"{shown(url)!r} is a directory; a pattern such as {pattern!r} names its files")
        _sizes[url] = found.size
        return [url] if found.type == fs.FileType.File else []
    fixed = re.split(r"[*?\[]", place.path)[0].rpartition("/")[0]
    deep = "/" in place.path[len(fixed) + 1 :]
    with _told(url, "listed"):
        listed = place.system.get_file_info(fs.FileSelector(fixed, recursive=deep, allow_not_found=True))
    matches = re.compile(_pattern(place.path)).fullmatch
    head, _, endpoint = url.partition(_ENDPOINT)
    root = head[: len(head) - len(place.path.partition("/")[2])]
    end = f"{_ENDPOINT}{endpoint}" if endpoint else ""
    files = (each for each in listed if each.type == fs.FileType.File and matches(each.path))
    sizes = {f"{root}{each.path.partition('/')[2]}{end}": each.size for each in files}
    _sizes.update(sizes)
    return sorted(sizes)


def _pattern(path: str) -> str:
    """As patterns of local files: `*` within a name, `**` any folders, hidden names by their dot alone."""
    translated = ""
    for place, part in enumerate(path.split("/")):
        if part == "**":
            translated += r"(?:/[^/.][^/]*)*"
            continue
        hidden = "" if part.startswith(".") or not re.match(r"[*?\[]", part) else r"(?!\.)"
        inside = re.sub(r"\*|\?|\[!?[^\]]+\]|.", lambda found: _character(found[0]), part)
        translated += ("/" if place else "") + hidden + inside
    return translated


def _character(found: str) -> str:
    if found.startswith("[") and len(found) > 2:
        return "[" + found[1:].replace("\\", r"\\").replace("!", "^", 1)
    return {"*": "[^/]*", "?": "[^/]"}.get(found) or re.escape(found)


_sizes: dict[str, int] = {}  # of files that were listed: for progress, which nothing else depends on


def size_of(url: str) -> int | None:
    """How many bytes a file has, where that is told."""
    if url in _sizes:
        return _sizes[url]
    with closing(RemoteFile(url)) as file:
        return file.size


# ---- reading ---------------------------------------------------------------------------------------------------------


class _OfStore:
    """A file of a store, as ranges."""

    def __init__(self, url: str) -> None:
        self._place = _place(url)
        self._file = self._place.system.open_input_file(self._place.path)
        self.size: int | None = self._file.size()
        self._version = self._version_of(self._file)

    @staticmethod
    def _version_of(file: Any) -> Any:
        """What tells this file from one that was put in its place."""
        told = {str(name).lower(): value for name, value in (file.metadata() or {}).items()}
        return file.size(), told.get("etag") or told.get("generation") or told.get("last-modified")

    def fetch(self, start: int, size: int) -> bytes:
        return bytes(self._file.read_at(size, start))

    def is_same(self) -> bool:
        with self._place.system.open_input_file(self._place.path) as file:
            return bool(self._version_of(file) == self._version)

    def close(self) -> None:
        self._file.close()


class _OfServer:
    """A file of a web server, as ranges; where it has none of them, from its beginning to its end, once."""

    size: int | None
    _whole: Any

    def __init__(self, url: str) -> None:
        self._url, self.size, self._whole, self._left = url, None, None, 0
        answer = self._asked("bytes=0-0")
        told = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range") or "")
        self._version = self._version_of(answer)
        if answer.status == 206 and told:
            self.size = int(told[1])
            answer.close()
        else:
            self._whole, self._left = answer, int(answer.headers.get("Content-Length") or 0)

    def _asked(self, range: str | None) -> Any:
        request = Request(self._url, headers={"Accept-Encoding": "identity"})
        if range is not None:
            request.add_header("Range", range)
        if (login := _login(str(request.host))) is not None:
            request.add_unredirected_header("Authorization", login)
        return build_opener(_StaysSecret).open(request, timeout=_SECONDS)

    def fetch(self, start: int, size: int) -> bytes:
        if self._whole is not None:
            data = bytes(self._whole.read(size))
            self._left -= len(data)
            if not data and self._left > 0:  # which http.client takes for the end
                raise OSError("the connection ended before the file did")
            return data
        with self._asked(f"bytes={start}-{start + size - 1}") as answer:
            if answer.status != 206 or self._version_of(answer) != self._version:
                raise _ReplacedError
            return bytes(answer.read())

    @staticmethod
    def _version_of(answer: Any) -> str | None:
        tag = answer.headers.get("ETag") or ""
        return tag if tag.startswith('"') else answer.headers.get("Last-Modified")

    def is_same(self) -> bool:
        return True  # every answer was of this version

    def close(self) -> None:
        if self._whole is not None:
            self._whole.close()


class _ReplacedError(Exception):
    """Another file has the name."""


class _StaysSecret(HTTPRedirectHandler):
    """Follows a server that sends elsewhere, as long as nobody on the way can read along."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if scheme_of(newurl) != "https":
            raise ParameterError(f"{shown(req.full_url)} redirects to a URL that is not https://")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _login(host: str) -> str | None:
    """What ~/.netrc says for a host, as for curl and others."""
    import base64
    import netrc

    with suppress(OSError, netrc.NetrcParseError):
        found = netrc.netrc().authenticators(host.partition(":")[0])
        if found is not None:
            return "Basic " + base64.b64encode(f"{found[0]}:{found[2]}".encode()).decode()
    return None


class RemoteFile(io.RawIOBase):
    """A file of a store or a web server as a file that can be sought in; blocks of it are fetched by threads.

    Where blocks are read one after the other, the next ones are fetched before they are asked for. A request that fails
    is made again, a few times; then, or if the file was replaced, an error says so.

    Attributes:
        size: In bytes; None where the server does not say, and the file can be read in its order only.
        count: How many bytes were fetched.
    """

    def __init__(self, url: str) -> None:
        self._url, self._position, self._last, self.count = url, 0, -2, 0
        self._blocks: dict[int, Future[bytes]] = {}
        with _told(url, "opened"):
            self._below: Any = _OfServer(url) if scheme_of(url) == "https" else _OfStore(url)
        self.size: int | None = self._below.size
        self._threads = ThreadPoolExecutor(_AHEAD, "fetch")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if self.size is None:
            raise io.UnsupportedOperation("the server sends this file in its order only")
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        return self._position

    def readinto(self, room: Any) -> int:
        into, done = memoryview(room).cast("B"), 0
        if self.size is None:
            data = self._tried(self._position, len(into))
            into[: len(data)], done = data, len(data)
        else:
            while done < len(into) and self._position + done < self.size:  # formats count on all that they ask for
                number, inside = divmod(self._position + done, _BLOCK)
                data = self._block(number)[inside : inside + len(into) - done]
                into[done : done + len(data)] = data
                done += len(data)
        self._position += done
        return done

    def at(self, start: int, size: int) -> bytes:
        """The bytes from a place on."""
        return self._tried(start, size) if size else b""

    def _block(self, number: int) -> bytes:
        coming = number + 1 + _AHEAD if number in (self._last, self._last + 1) else number + 1
        self._last = number
        for each in range(number, min(coming, -(-(self.size or 0) // _BLOCK))):
            if each not in self._blocks:
                size = min(_BLOCK, (self.size or 0) - each * _BLOCK)
                self._blocks[each] = self._threads.submit(self._tried, each * _BLOCK, size)
        found = self._blocks[number]
        while len(self._blocks) > _HELD:
            self._blocks.pop(next(each for each in self._blocks if each != number)).cancel()
        return found.result()

    def _tried(self, start: int, size: int) -> bytes:
        """A range of the file. What comes in part is asked for again, from where it ended."""
        data: bytes = b""
        for attempt in range(_TRIES):
            try:
                data += self._below.fetch(start + len(data), size - len(data))
                if len(data) == size or self.size is None:
                    self.count += len(data)
                    return data
            except _ReplacedError:
                raise self._replaced() from None
            except (OSError, ValueError, HTTPException) as error:
                said = str(error).lower()
                if self.size is None or _DENIED.search(said) or _NOT_THERE.search(said):
                    break
                data += getattr(error, "partial", b"")  # the connection ended inside of an answer
            time.sleep(0.2 * 2**attempt)
        self.check_not_replaced()
        raise TryAgainError(f"{shown(self._url)}: the connection broke and did not come back; try again later")

    def check_not_replaced(self) -> None:
        """That it is still the file that was opened: what was read of it is one file."""
        same = True  # where nobody knows it is the connection
        with suppress(OSError):
            try:
                same = self._below.is_same()
            except FileNotFoundError:
                same = False
        if not same:
            raise self._replaced()

    def _replaced(self) -> DataError:
        return DataError(f"{shown(self._url)} was replaced while it was being read; run the command again")

    def close(self) -> None:
        if not self.closed and hasattr(self, "_threads"):
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._blocks.clear()
            self._below.close()
        super().close()


# ---- writing ---------------------------------------------------------------------------------------------------------


class StoredFile:
    """A file of a store that appears when it is complete, as `storage.AtomicFile` of a disk.

    Stores show an object when all of it is there. That one can be written is tried when this is made, before a budget
    is spent, with a blank one beside it that is removed at once.
    """

    def __init__(self, path: Url) -> None:
        self.path = path
        if scheme_of(path) == "https":
            raise ParameterError(
                f"the output {shown(path)} is on a web server, which takes no uploads; name a "
                f"local file or an object store"
            )
        self._place = _place(path)
        if not self._place.path.rpartition("/")[2]:
            raise ParameterError(f"the output {shown(path)} names no file")
        with _told(path, "written"):
            self._remove(self._beside(b"\n"))

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def _beside(self, data: bytes) -> str:
        """An object under a name that no pattern matches."""
        name = f"{self._place.parent()}/.discreet-{os.urandom(8).hex()}.tmp"
        self._put(name, data)
        return name

    def _put(self, name: str, data: bytes) -> None:
        with self._place.system.open_output_stream(name, compression=None) as stream:
            stream.write(data)

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # who may write may not always remove: what stays is blank, or what is published
            self._place.system.delete_file(name)

    def write(self, data: bytes) -> None:
        """Write all of it at once."""
        with _told(self.path, "written"):
            if self._place.system.type_name != "abfs":
                self._put(self._place.path, data)
                return
            # Azure shows an empty blob as soon as one is begun. A copy appears at once.
            whole = self._beside(data)
            try:
                self._place.system.copy_file(whole, self._place.path)
            finally:
                self._remove(whole)

    def fill(self, write: Callable[[Any], object]) -> None:
        """Let somebody write it to a file in memory, and then all of it at once."""
        held = io.BytesIO()
        write(held)
        self.write(held.getvalue())
