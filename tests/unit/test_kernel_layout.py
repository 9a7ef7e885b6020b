"""Which folders of kernels use which, and that the Parquet decoder stays behind its fence."""

import re
from pathlib import Path

import pytest

CPP = Path(__file__).parents[2] / "cpp"
KERNELS = CPP / "include" / "discreet"
# What a folder may use beside itself and the headers above the folders.
USES = {"counters": set(), "noise": set(), "readers": set(), "sketches": {"counters", "noise"}}
# Headers above the folders that need one: a lineage draws a random name.
ABOVE = {"lineage.hpp": {"noise/random_source.hpp"}}
DECODER = {f"readers/{name}.hpp" for name in ("parquet_footer", "parquet_items", "parquet_pages", "snappy", "thrift")}


def used_by(path):
    return re.findall(r'#include "discreet/([a-z_/]+\.hpp)"', path.read_text(encoding="utf-8"))


def headers():
    return sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.hpp"))


def folder_of(header):
    return header.rpartition("/")[0]


def test_folders_are_those_of_the_layout():
    assert {folder_of(header) for header in headers()} == {"", *USES}
    assert len({header.rpartition("/")[2] for header in headers()}) == len(headers())  # no two files of one name


@pytest.mark.parametrize("header", headers())
def test_headers_use_what_their_folder_may(header):
    allowed = {"", folder_of(header), *USES.get(folder_of(header), ())}
    beyond = {used for used in used_by(KERNELS / header) if folder_of(used) not in allowed}
    assert beyond == ABOVE.get(header, set())


def test_the_parquet_decoder_is_fenced():
    """It reads bytes that nobody vouches for: one door leads to it, and it uses nothing but memory for pages."""
    for header in headers():
        used = set(used_by(KERNELS / header))
        if header in DECODER:
            assert {each for each in used if folder_of(each) == "readers"} <= DECODER | {"readers/page_memory.hpp"}
            assert "frozen" in (KERNELS / header).read_text(encoding="utf-8").lower().partition("#pragma once")[0]
        else:
            assert not used & DECODER
    doors = [path.name for path in sorted((CPP / "bindings").iterdir()) if set(used_by(path)) & DECODER]
    assert doors == ["parquet_footer.cpp"]
