"""The driver's libraries on disk: what a link leads to, and whether the file is whole."""

from pathlib import Path

import pytest

FOLDER = "/usr/lib/x86_64-linux-gnu"
WHOLE = next(Path("/usr/lib").glob("*-linux-gnu/libc.so.6")).read_bytes()


@pytest.fixture
def libraries(tree, collect):
    def run(content=None, link="libcuda.so.580.95.05"):
        root = tree({f"{FOLDER}/libcuda.so.1": f"-> {link}", f"{FOLDER}/other": ""})
        if content is not None:
            (root / FOLDER[1:] / link).write_bytes(content)
        return collect("libraries")["libraries.nvidia"]

    return run


def test_a_whole_library_has_what_its_header_needs(libraries):
    found = libraries(WHOLE)["each"][FOLDER + "/libcuda.so.1"]["value"]
    assert found["target"] == FOLDER + "/libcuda.so.580.95.05"
    assert found["size"] == len(WHOLE) >= found["needed"] > len(WHOLE) // 2


def test_a_cut_off_library_is_shorter_than_it_needs(libraries):
    found = libraries(WHOLE[: len(WHOLE) // 2])["each"][FOLDER + "/libcuda.so.1"]["value"]
    assert found["size"] < found["needed"]


def test_an_empty_library_has_size_zero(libraries):
    assert libraries(b"")["each"][FOLDER + "/libcuda.so.1"]["value"]["size"] == 0


def test_a_link_that_leads_nowhere_has_no_size(libraries):
    found = libraries()["each"][FOLDER + "/libcuda.so.1"]["value"]
    assert found == {"target": FOLDER + "/libcuda.so.580.95.05", "size": None, "needed": None}


@pytest.mark.parametrize("content", [b"GROUP ( libcuda.so )" * 9, b"\x7fELF\x02\x01" + b"\xff" * 80, b"\x7fELF"])
def test_what_is_no_library_needs_nothing_known(libraries, content):
    found = libraries(content)["each"][FOLDER + "/libcuda.so.1"]["value"]
    assert (found["size"], found["needed"]) == (len(content), None)


def test_a_host_without_the_driver_has_none(tree, collect):
    tree({FOLDER + "/libc.so.6": "x"})
    assert "absent" in collect("libraries")["libraries.nvidia"]


def test_cuda_toolkits_are_named_once_with_their_version(tree, collect):
    told = '{"cuda" : {"name": "CUDA SDK", "version" : "13.0.20250826"}, "nsight": {"version": "1"}}'
    tree(
        {
            "/usr/local/cuda": "-> cuda-13.0",
            "/usr/local/cuda-13.0/version.json": told,
            "/usr/local/cuda-13.0/compat/libcuda.so.580.82.07": "",
            "/usr/local/cuda-12.4/version.json": told.replace("13.0.20250826", "12.4.1"),
            "/usr/local/cuda-9.0/version.txt": "CUDA Version 9.0.176",
            "/usr/local/cudnn/": None,
        }
    )
    assert collect("libraries", ["cuda_toolkits"])["libraries.cuda_toolkits"]["value"] == {
        "/usr/local/cuda-13.0": {"version": "13.0.20250826", "compat": True},
        "/usr/local/cuda-12.4": {"version": "12.4.1", "compat": False},
        "/usr/local/cuda-9.0": {"version": "9.0.176", "compat": False},
    }
