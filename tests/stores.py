"""Object stores of the tests' own, each started when it is asked for: S3 (moto), GCS and Azure (emulators), https."""

import http.server
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from tests.ports import free_port

FOLDER = "logs"  # the bucket
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # public: the emulator's
)


def wait_for(port):
    for _ in range(300):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the server did not start")


class Store:
    """A store: URLs of its files, and files put into it."""

    def __init__(self, root, endpoint, system):
        self.root, self.endpoint, self.system = root, endpoint, system

    def put(self, name, data):
        with self.system.open_output_stream(f"{FOLDER}/{name}", compression=None) as stream:
            stream.write(data)

    def get(self, name):
        with self.system.open_input_file(f"{FOLDER}/{name}") as file:
            return file.read()

    def names(self):
        from pyarrow import fs

        found = self.system.get_file_info(fs.FileSelector(FOLDER, recursive=True))
        return sorted(each.path for each in found if each.type == fs.FileType.File)


@contextmanager
def s3():
    import logging

    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        os.environ |= {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret-key", "AWS_REGION": "us-east-1"}
        os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
        system = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
        system.create_dir(FOLDER)
        yield Store(f"s3://{FOLDER}", endpoint, system)
    finally:
        server.stop()


@contextmanager
def gs():
    from pyarrow import fs

    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen([*command, "--in-memory", "--default-bucket", FOLDER], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        system = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=f"127.0.0.1:{port}")
        yield Store(f"gs://anonymous@{FOLDER}", f"http://127.0.0.1:{port}", system)
    finally:
        server.terminate()
        server.wait()


def azurite_program():
    here = os.environ.get("AZURITE") or shutil.which("azurite-blob") or "build/azurite/node_modules/.bin/azurite-blob"
    return here if os.path.exists(here) else None


@contextmanager
def abfs():
    from pyarrow import fs

    program = azurite_program()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("azurite is not installed: `make hosts` installs it")
        pytest.skip("azurite is not installed")
    port = free_port()
    command = [
        program,
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        str(port),
        "--inMemoryPersistence",
        "--silent",
        "--disableTelemetry",
    ]
    server = subprocess.Popen([*command, "--skipApiVersionCheck"], stdout=subprocess.DEVNULL)
    try:
        wait_for(port)
        os.environ |= {"AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1", "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
        where = {"blob_storage_authority": f"127.0.0.1:{port}", "blob_storage_scheme": "http"}
        where |= {"dfs_storage_authority": f"127.0.0.1:{port}", "dfs_storage_scheme": "http"}
        system = fs.AzureFileSystem("devstoreaccount1", account_key=AZURITE_KEY, **where)
        system.create_dir(FOLDER)
        yield Store(f"abfs://{FOLDER}", f"http://127.0.0.1:{port}", system)
    finally:
        server.terminate()
        server.wait()


class _Ranges(http.server.BaseHTTPRequestHandler):
    """Serves what was put, in ranges; `server.breaks` answers end in the middle, and `server.whole` has no ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        data = self.server.files.get(self.path.partition("?")[0])
        if data is None:
            self.send_error(404)
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if asked and not self.server.whole:
            first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            data = data[first : last + 1]
        else:
            self.send_response(200)
        self.send_header("ETag", f'"{self.server.version}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if len(data) > 1 and self.server.breaks > 0:
            self.server.breaks -= 1
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class WebServer(Store):
    def __init__(self, root, server):
        super().__init__(root, None, None)
        self.server = server

    def put(self, name, data):
        self.server.files[f"/{name}"] = data
        self.server.version += 1


@contextmanager
def https(folder):
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ranges)
    server.files, server.version, server.breaks, server.whole = {}, 0, 0, False
    server.handle_error = lambda *_: None
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["SSL_CERT_FILE"] = str(folder / "authority.pem")
    try:
        yield WebServer(f"https://localhost:{server.server_address[1]}", server)
    finally:
        server.shutdown()
        server.server_close()
        os.environ.pop("SSL_CERT_FILE", None)
