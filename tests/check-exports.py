#!/usr/bin/env python3
"""Checks what the MPI library shows to the world and what it needs from it.

    tests/check-exports.py [LIBRARY [HEADER]]      default: libmpi_abi.so.1 of BUILD_DIR (or build), include/mpi.h

Every call of the header is there as a weak MPI_X and a strong PMPI_X, everything else that is exported is called
Tombolo_X, its name as a library is libmpi_abi.so.1, and nothing but the C library is loaded with it.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS = 664
LARGE_CALLS = 161
TOOL_CALLS = 51
# Parts of the C library; older ones keep threads and loading apart.
C_LIBRARY = re.compile(r"(libc|libpthread|libdl|librt|ld-linux-[\w-]+|ld-musl-[\w-]+|libc\.musl-[\w-]+)\.so(\.\d+)?$")


def header_calls(path):
    with open(path, encoding="utf-8") as header:
        return re.findall(r"^MPI_ABI_CALL\(\w+, (MPI_\w+),", header.read(), re.M)


def exported_symbols(library):
    """Name -> letter of nm: T and W are strong and weak functions."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True)
    symbols = {}
    for line in output.stdout.splitlines():
        _, letter, name = line.split()
        symbols[name] = letter
    return symbols


def dynamic_section(library):
    output = subprocess.run(["readelf", "-d", "-W", library], check=True, stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, LC_ALL="C"))
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output.stdout)
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", output.stdout)
    return needed, soname


def check_header(calls):
    large = [name for name in calls if name.endswith("_c")]
    tools = [name for name in calls if name.startswith("MPI_T_")]
    found = (len(calls), len(set(calls)), len(large), len(tools))
    if found != (CALLS, CALLS, LARGE_CALLS, TOOL_CALLS):
        yield f"the header has {found[0]} calls, {found[1]} different, {found[2]} large, {found[3]} of tools"


def check_symbols(calls, symbols):
    for name in calls:
        if symbols.get(name) != "W":
            yield f"{name} is not exported as a weak function"
        if symbols.get("P" + name) != "T":
            yield f"P{name} is not exported as a strong function"
    expected = set(calls) | {"P" + name for name in calls}
    for name in sorted(set(symbols) - expected):
        if not name.startswith("Tombolo_"):
            yield f"{name} is exported and should not be"
    for name in ("Tombolo_version", "Tombolo_unimplemented", "Tombolo_Multicast", "Tombolo_Group_join"):
        if name not in symbols:
            yield f"{name} is not exported"


def check_dynamic(needed, soname):
    if soname != ["libmpi_abi.so.1"]:
        yield f"the library calls itself {soname}, not libmpi_abi.so.1"
    for name in needed:
        if not C_LIBRARY.match(name):
            yield f"a program on one host would load {name}"


def main():
    build = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
    library = sys.argv[1] if len(sys.argv) > 1 else os.path.join(build, "lib", "libmpi_abi.so.1")
    header = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "include", "mpi.h")
    if not os.path.exists(library):
        sys.exit(f"check-exports.py: {library} is not there; build it first")
    calls = header_calls(header)
    complaints = [*check_header(calls), *check_symbols(calls, exported_symbols(library)),
                  *check_dynamic(*dynamic_section(library))]
    for complaint in complaints:
        print(complaint)
    if complaints:
        sys.exit(1)
    print(f"{library}: {len(calls)} calls under both names, nothing else")


if __name__ == "__main__":
    main()
