"""Where bytes come from: files, globs and standard input, compressed or not, in order."""

from __future__ import annotations

import codecs
import io
import os
import select
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from discreet._later import pa
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    from discreet.events.databases import DatabaseTable
    from discreet.events.stores import RemoteFile


S = TypeVar("S")
T = TypeVar("T")

STDIN = "-"
_REMOTE = ("s3", "gs", "abfs", "abfss", "https")  # events/stores.py
DATABASE = "postgresql"  # events/databases.py
BLOCK_BYTES = 1 << 20  # that stay in a cache
LONGEST_RECORD = 1 << 26
_LISTEN_MILLISECONDS = 500
_NAMED = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .arrows .ipc .feather",
    "jsonl": ".jsonl .ndjson .json",
    "text": ".txt .log",
    "combined": "",
    "common": "",
    "baskets": "",
}
FORMATS = tuple(_NAMED)
_SUFFIXES = {suffix: format for format, suffixes in _NAMED.items() for suffix in suffixes.split()}
ARROW_FILE_MAGIC = b"ARROW1\x00\x00"
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"PK\x03\x04": "zip"}
_COMPRESSED = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".zip": "zip"}
# Refused by their names: their bytes would be taken for very odd lines.
_UNKNOWN = ".xz .lzma .lz4 .br .sz .snappy .z .7z .tar .tgz .tbz2 .xlsx .xls .ods .docx .orc .avro"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF_8 = "utf-8"
_WIDE = ("utf-16", "utf-16-le", "utf-16-be")


def encoding_named(name: str) -> str:
    """The usual name of an encoding that text may be in: UTF-8, UTF-16, or one in which every byte is a character.

    In others (Shift JIS, ISO 2022) a byte of one row may change what the next row is.
    """
    with suppress(LookupError, ValueError):
        found = codecs.lookup(name).name
        if found in (UTF_8, *_WIDE):
            return found
        each = [bytes([byte]) for byte in range(256)]
        alone = [byte.decode(found, "replace") for byte in each]
        pairs = b"".join(one + other for one in each for other in each)
        if (
            b"".join(each[:128]).decode(found) == b"".join(each[:128]).decode("ascii")
            and {*map(len, alone)} == {1}
            and pairs.decode(found, "replace") == "".join(one + other for one in alone for other in alone)
        ):
            return found
    raise ParameterError(
        f"encoding must be utf-8, utf-16 or a single-byte one (latin-1, cp1252, iso-8859-15, koi8-r, ...), "
        f"not {name!r}; convert the file to UTF-8 first"
    )


def scheme_of(path: str) -> str | None:
    """The kind of store, or "postgresql", that a URL is of; None for a file of this machine."""
    scheme, mark, _ = path.partition("://")
    scheme = DATABASE if scheme == "postgres" else scheme
    return scheme if mark and scheme in (*_REMOTE, DATABASE) else None


def shown(path: str) -> str:
    """A path or a URL as messages have it: without a password, and without what signs it."""
    scheme, mark, rest = path.partition("://")
    if not mark or "/" in scheme:
        return path
    place, slash, name = rest.partition("/")
    if scheme in ("postgres", DATABASE):
        name, _, table = name.partition("#")
        name = name.partition("?")[0] + (f"#{table}" if table else "")
    elif scheme == "https":
        name = name.partition("?")[0].partition("#")[0]
    else:
        name = name.partition("?endpoint=")[0]
    user, at, host = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0] + at if scheme.startswith('abfs') else ''}{host}{slash}{name}"


def size_of_input(path: str) -> int | None:
    """How many bytes an input has, where that is known before it is read."""
    if scheme_of(path) not in (None, DATABASE):
        from discreet.events.stores import size_of

        return size_of(path)
    return os.stat(path).st_size if path != STDIN and os.path.isfile(path) else None


def open_input(path: str, encoding: str | None = None) -> ByteSource | DatabaseTable:
    """A file, or a table of a database, opened."""
    if scheme_of(path) != DATABASE:
        return ByteSource(path, encoding)
    from discreet.events.databases import DatabaseTable

    return DatabaseTable(path)


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that paths and glob patterns stand for, patterns sorted; "-" is standard input."""
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files: list[str] = []
    for path in (os.fspath(path) for path in paths):
        found = [path]
        if path != STDIN and not os.path.exists(path) and (scheme := scheme_of(path)) != DATABASE:
            if scheme is not None:
                from discreet.events.stores import expand_remote

                found = expand_remote(path)
            else:
                import glob

                found = sorted(glob.glob(path, recursive=True))
        if not found:
            known = f"; URLs are {', '.join(f'{each}://' for each in (*_REMOTE, DATABASE))}"
            unknown = "://" in path and scheme_of(path) is None
            raise ParameterError(f"there is no file {shown(path)!r}{known if unknown else ''}")
        files += found
    if not files:
        raise ParameterError("no file given; name at least one")
    for path in files:
        if path != STDIN and os.path.isdir(path):
            raise ParameterError(
                f"{path!r} is a directory; a pattern such as {os.path.join(path, '*')!r} names its files"
            )
    if files.count(STDIN) > 1:
        raise ParameterError("standard input ('-') can be read only once")
    return files


def format_named(path: str) -> tuple[str | None, str | None]:
    """The format and the compression that a name tells by its endings; None where it does not."""
    root, suffix = os.path.splitext((path if "://" not in path else shown(path)).lower())
    if suffix in _UNKNOWN.split():
        raise ParameterError(f"{path} ends in {suffix}, which cannot be read; decompress or convert it")
    compression = _COMPRESSED.get(suffix)
    if compression is not None:
        suffix = os.path.splitext(root)[1]
        if suffix in _UNKNOWN.split():
            raise ParameterError(f"{path} ends in {suffix}, which cannot be read; unpack it")
    return _SUFFIXES.get(suffix), compression


class _Reader(io.RawIOBase):
    """Reads exactly what is asked for, up to the end; can look ahead; counts what it took from below."""

    def __init__(self, below: Any) -> None:
        self._below = below
        self._ahead = b""
        self.count = 0

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay unread."""
        if len(self._ahead) < size:
            self._ahead += self._fetch(size - len(self._ahead))
        return self._ahead[:size]

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            raise io.UnsupportedOperation("reading everything at once")
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        return taken + self._fetch(size - len(taken)) if len(taken) < size else taken

    def read_into(self, room: memoryview) -> int:
        """The same, written where there is room for it; how many bytes there were."""
        done = min(len(room), len(self._ahead))
        room[:done], self._ahead = self._ahead[:done], self._ahead[done:]
        while done < len(room):
            left = room[done:]
            if hasattr(self._below, "readinto"):
                count = int(self._below.readinto(left) or 0)
            else:
                piece = self._below.read(len(left)) or b""
                if len(piece) > len(left):  # as decoded text may be
                    piece, self._ahead = piece[: len(left)], piece[len(left) :]
                left[: len(piece)], count = piece, len(piece)
            if not count:
                break
            done += count
            self.count += count
        return done

    def _fetch(self, size: int) -> bytes:
        pieces = []
        # Never more than a block at once: a damaged file may ask for more bytes than there is memory.
        while size > 0 and (piece := self._below.read(min(size, BLOCK_BYTES))):
            pieces.append(piece)
            size -= len(piece)
            self.count += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _Awaited:
    """A pipe or a terminal, which may be silent for long.

    A signal that comes just before the read begins, or to another thread, does not end it: Python hears of it when the
    read returns. So the waiting is done in short pieces.
    """

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._silence = select.poll()
        self._silence.register(file, select.POLLIN)

    def read(self, size: int) -> bytes | None:
        while not self._silence.poll(_LISTEN_MILLISECONDS):
            pass
        return self._file.read(size)


class _Utf8:
    """Another encoding as UTF-8, a piece at a time.

    A surrogate of UTF-16 that is alone, and a byte that is no character, are written as bytes that are not UTF-8: the
    row is bad, like any other that cannot be decoded, and those around it are as they were.
    """

    def __init__(self, below: _Reader, encoding: str) -> None:
        self._below = below
        wrong = "surrogatepass" if encoding in _WIDE else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(wrong)

    def read(self, size: int) -> bytes:
        while data := self._below.read(size):
            text = self._decoder.decode(data)
            if text:
                return text.encode("utf-8", "surrogatepass")
        return self._decoder.decode(b"", True).encode("utf-8", "surrogatepass")


class ByteSource:
    """One input, opened: its decompressed bytes, in order, without a byte order mark of UTF-8.

    Args:
        path: A file, or the URL of one; "-" is standard input.
        encoding: What text is written in (`encoding_named`); None for UTF-8, or UTF-16 with a byte order mark.

    Attributes:
        name: What messages call it.
        format: What its name says, or None.
        size: How many (compressed) bytes there are in all, where that is known.
    """

    def __init__(self, path: str, encoding: str | None = None) -> None:
        self.name = "standard input" if path == STDIN else shown(path)
        self._path = path
        self.format, compression = format_named(path)
        self.remote: RemoteFile | None = None
        self._file: Any = None
        try:
            if scheme_of(path) is not None:
                from discreet.events.stores import RemoteFile

                self._file = self.remote = RemoteFile(path)
            else:
                self._file = (
                    open(0, "rb", buffering=0, closefd=False) if path == STDIN else open(path, "rb", buffering=0)  # noqa: SIM115
                )
        except OSError as error:
            raise ParameterError(f"{self.name} cannot be opened: {error.strerror}") from error
        if self.remote is not None:
            self.size: int | None = self.remote.size
        else:
            status = os.fstat(self._file.fileno())
            self.size = status.st_size if stat.S_ISREG(status.st_mode) else None
        awaited = self.size is None and self.remote is None
        self._raw = self._reader = _Reader(_Awaited(self._file) if awaited else self._file)
        self.compression: str | None = None
        try:
            head = self.peek(4)
            self.compression = next((c for magic, c in _COMPRESSIONS.items() if head.startswith(magic)), None)
            if self.compression is None:
                if compression is not None and len(head) < 4:
                    raise DataError(f"{self.name} cannot be read: its {compression} stream is damaged or truncated")
            elif self.compression == "zip":
                self._reader = _Reader(self._unzipped())
            else:
                below = pa.CompressedInputStream(pa.PythonFile(self._raw, mode="r"), self.compression)
                self._reader = _Reader(below)
            head = head if self._reader is self._raw else self.peek(4)
            if encoding in (None, "utf-16"):
                if encoding is None and head in _UTF_32:
                    raise DataError(f"{self.name} is UTF-32; convert it to UTF-8 first")
                without_mark = None if encoding is None else "utf-16-le"
                encoding = "utf-16" if head[:2] in UTF_16 else without_mark
            if encoding not in (None, UTF_8):
                self._reader = _Reader(_Utf8(self._reader, str(encoding)))
                head = self.peek(4)
            if head.startswith(codecs.BOM_UTF8):  # a byte order mark
                self.read(3)
        except BaseException:
            self.close()
            raise

    def _unzipped(self) -> Any:
        """The one file that an archive holds. Its name tells the format where that of the archive does not."""
        if self.size is None:
            raise DataError(f"{self.name}: a zip archive must be a plain file, not a pipe; unpack it first")
        reason = "it is not a whole zip archive, or it is encrypted or packed in a way that is not known"
        import zipfile

        try:
            archive = zipfile.ZipFile(self._file)
            files = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(files) == 1 and files[0].compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                if self.format is None and os.path.splitext(files[0].filename)[1]:
                    self.format = format_named(files[0].filename)[0]
                return archive.open(files[0])
            if len(files) != 1:
                reason = f"it is an archive of {len(files)} files, and can be read only if there is one"
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            pass
        raise DataError(f"{self.name} cannot be read: {reason}")

    @property
    def bytes_read(self) -> int:
        """How many (compressed) bytes were taken so far."""
        return self._raw.count

    def peek(self, size: int) -> bytes:
        """The next decompressed bytes, which stay unread."""
        return self._guarded(self._reader.peek, size)

    def read(self, size: int) -> bytes:
        """Exactly `size` decompressed bytes, fewer only at the end."""
        return self._guarded(self._reader.read, size)

    def read_into(self, room: Any) -> int:
        """The same, written to a buffer that is filled except for the end; how many bytes there were."""
        return self._guarded(self._reader.read_into, memoryview(room))

    def sequential(self) -> _Reader:
        """The decompressed bytes as a file object without seeking."""
        return self._reader

    def seekable(self) -> Any:
        """The file itself, for formats that are read from their end."""
        self._check_plain()
        self._file.seek(0)
        return self._file if self._path == STDIN or self.remote is not None else self._path

    def check_not_replaced(self) -> None:
        """Anyone who has opened `seekable` by its name has opened this file, and not one that was put in its place."""
        if self.remote is not None:
            return self.remote.check_not_replaced()
        try:
            same = self._path == STDIN or os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except OSError:
            same = False
        if not same:
            raise DataError(f"{self.name} was replaced while it was being read; run the command again")

    def descriptor(self) -> int:
        """That of the file, for formats that are read from their end."""
        self._check_plain()
        return int(self._file.fileno())

    def _check_plain(self) -> None:
        if self.compression is not None or self.size is None:
            other = "a pipe" if self.remote is None else "from a server that sends no ranges"
            raise DataError(f"{self.name}: this format must be a plain file, not {other}")

    def tail(self, size: int) -> bytes:
        """The last bytes of a seekable file, fewer only if it is shorter."""
        end = self.size or 0
        if self.remote is not None:
            return self.remote.at(max(0, end - size), min(size, end))
        return os.pread(self._file.fileno(), min(size, end), max(0, end - size))

    def advance_to(self, share: float) -> None:
        """Count this share of a seekable file as read."""
        self._raw.count = int(share * (self.size or 0))

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._file.close()

    def _guarded(self, take: Callable[[S], T], what: S) -> T:
        try:
            return take(what)
        except OSError as error:
            # pyarrow reports a broken compressed stream as an OSError without a number.
            reason = error.strerror if error.errno is not None else f"it is not a whole {self.compression} stream"
        except UnicodeDecodeError:
            reason = "it ends in the middle of a character of UTF-16"
        except _broken_streams():
            reason = f"it is not a whole {self.compression} stream"
        raise DataError(f"{self.name} cannot be read: {reason}")


def _broken_streams() -> tuple[type[Exception], ...]:
    """What is raised by those who decompress, which are loaded for it."""
    import zipfile
    import zlib

    return EOFError, pa.ArrowException, zipfile.BadZipFile, zlib.error
