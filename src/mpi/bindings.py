#!/usr/bin/env python3
"""Writes the bindings of the library: every call of mpi.h under its two names, from one implementation.

    bindings.py --code bindings.c --decls binding_decls.h include/mpi.h SOURCE.c ...

For each MPI_X that mpi.h declares, bindings.c gets a strong PMPI_X and MPI_X as its weak alias. PMPI_X calls
tb_mpi_X if one of the sources defines it (return type and name at the start of a line), and otherwise reports the
call as unsupported: through tb_mpi_unsupported(), or, for MPI_T calls, which know no error handlers, by
MPI_T_ERR_NOT_SUPPORTED. binding_decls.h declares every tb_mpi_X, so that the compiler compares each implementation
with what the bindings will call.

One implementation serves a call and its large-count twin MPI_X_c (also MPI_X_x and the deprecated names in
SAME_AS). It has the name of the small call and the parameters of the large one, except where the twins differ in
more than the width of a value (types from ints.h):

    small call              large call               the implementation gets
    int, MPI_Aint n         MPI_Count n              MPI_Count n
    const int a[]           const MPI_Count a[]      struct tb_ints a: a view, nothing is copied
    MPI_Aint a[], *n        MPI_Count a[], *n        the large type: both have 64 bits
    int *n                  MPI_Count *n             MPI_Count *n; the small call narrows the result, to MPI_UNDEFINED
                                                     where it does not fit, and writes only on success
    SOME_function *f        SOME_function_c *f       struct tb_callback f

One implementation also serves a collective in its three forms: MPI_X, MPI_Ix and MPI_X_init, and their large-count
twins. Its first parameter is a struct tb_form, which says what is to be done with the rest (form.h).

A null array, result pointer or function stays null. Twins with different numbers of parameters
(MPI_Type_get_envelope, MPI_Type_get_contents) and those in APART are two calls with two implementations, tb_mpi_X
and tb_mpi_X_c.
At the end of the calls in TELLING tools are told what has happened (event.h).
Variable arguments (MPI_Pcontrol) are not passed on. Calls that return a value rather than a code have
implementations that return it.
"""

import argparse
import collections
import pathlib
import re
import sys

# Deprecated calls that are other calls under an older name.
SAME_AS = {
    "MPI_Attr_put": "MPI_Comm_set_attr",
    "MPI_Attr_get": "MPI_Comm_get_attr",
    "MPI_Attr_delete": "MPI_Comm_delete_attr",
    "MPI_Keyval_create": "MPI_Comm_create_keyval",
    "MPI_Keyval_free": "MPI_Comm_free_keyval",
}

# Constructors whose result remembers which of the twins made it, where no array of the arguments tells.
APART = {
    "MPI_Type_contiguous",
    "MPI_Type_vector",
    "MPI_Type_create_hvector",
    "MPI_Type_create_hindexed_block",
    "MPI_Type_create_resized",
}

# Calls that may wait, or look whether something has come: tools are told of events at their end.
TELLING = {
    "MPI_Barrier", "MPI_Improbe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Mrecv", "MPI_Probe", "MPI_Recv",
    "MPI_Request_get_status", "MPI_Request_get_status_all", "MPI_Request_get_status_any",
    "MPI_Request_get_status_some", "MPI_Sendrecv", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Wait",
    "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome", "MPI_Win_complete", "MPI_Win_fence", "MPI_Win_flush",
    "MPI_Win_flush_all", "MPI_Win_flush_local", "MPI_Win_flush_local_all", "MPI_Win_free", "MPI_Win_lock",
    "MPI_Win_lock_all", "MPI_Win_post", "MPI_Win_start", "MPI_Win_sync", "MPI_Win_test", "MPI_Win_unlock",
    "MPI_Win_unlock_all", "MPI_Win_wait",
}

WIDE = {"MPI_Count", "MPI_Aint", "MPI_Offset"}  # one 64-bit type on every machine that Tombolo knows

# What a call that returns a value answers while it is not implemented.
NO_VALUE = {"double": "0.0", "MPI_Aint": "0", "MPI_Datatype": "MPI_DATATYPE_NULL"}

Parameter = collections.namedtuple("Parameter", "type name array")
Call = collections.namedtuple("Call", "result name parameters")
# How an argument reaches the implementation: its declaration there, the expression, and for a result that must be
# narrowed the name of the caller's pointer.
Passed = collections.namedtuple("Passed", "declaration expression narrowed")


def declare(parameter):
    space = "" if not parameter.name or parameter.type.endswith("*") else " "
    return parameter.type + space + parameter.name + parameter.array


def read_parameter(text):
    text = re.sub(r"\s+", " ", text.strip())
    if text in ("void", "..."):
        return Parameter(text, "", "")
    match = re.fullmatch(r"(.*?[\s*])(\w+)((?:\[\d*\])*)", text)
    if not match:
        sys.exit(f"bindings.py: cannot read the parameter '{text}'")
    return Parameter(match[1].strip(), match[2], match[3])


def read_calls(header):
    """The calls of mpi.h by name, in its order."""
    calls = {}
    for match in re.finditer(r"^MPI_ABI_CALL\((\w+), (MPI_\w+), ([^()]*)\);", header, re.M):
        parameters = [read_parameter(text) for text in match[3].split(",")]
        calls[match[2]] = Call(match[1], match[2], parameters)
    if len(calls) != header.count("\nMPI_ABI_CALL("):
        sys.exit("bindings.py: mpi.h holds calls that this script cannot read, or one twice")
    return calls


def find_implementations(paths):
    found = set()
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        for match in re.finditer(r"^\w[\w ]*[ *](tb_mpi_\w+)\([^;{]*\)\s*\{", text, re.M):
            found.add(match[1])
    return found


def has_forms(calls, name):
    """Whether a call is the blocking form of a collective: the persistent one takes hints, unlike MPI_Send_init."""
    nonblocking, persistent = calls.get("MPI_I" + name[4:5].lower() + name[5:]), calls.get(name + "_init")
    if not nonblocking or not persistent:
        return False
    return [p.type for p in persistent.parameters[-2:]] == ["MPI_Info", "MPI_Request *"]


def blocking_name(calls, name):
    """The blocking form of a collective in another form; any other name as it is."""
    for base in (name[: -len("_init")] if name.endswith("_init") else "",
                 "MPI_" + name[5:6].upper() + name[6:] if name.startswith("MPI_I") else ""):
        if base in calls and has_forms(calls, base):
            return base
    return name


def base_name(calls, name):
    """The call whose implementation serves this one."""
    if name in SAME_AS:
        return SAME_AS[name]
    base = name[:-2] if name[-2:] in ("_c", "_x") else name
    if base in calls and base not in APART and len(calls[base].parameters) == len(calls[name].parameters):
        return blocking_name(calls, base)
    return name


def large_twin(calls, name):
    twin = calls.get(name + "_c")
    return twin if twin and base_name(calls, twin.name) == name else None


def is_callback(parameter):
    return re.search(r"_function(_c)? \*$", parameter.type) is not None


def scalar(parameter_type):
    return parameter_type.replace("const ", "").rstrip("* ")


def pass_argument(given, small, large):
    """How the argument `given` reaches an implementation that serves the parameters `small` and `large`."""
    if small == large or (scalar(small.type) in WIDE and scalar(large.type) in WIDE):
        return Passed(declare(large), given.name, None)
    if is_callback(small):
        is_large = "true" if given == large else "false"
        callback = "(struct tb_callback){(void (*)(void))%s, %s}" % (given.name, is_large)
        return Passed("struct tb_callback " + large.name, callback, None)
    if scalar(small.type) != "int" or scalar(large.type) not in WIDE:
        sys.exit(f"bindings.py: no rule for the twins '{declare(small)}' and '{declare(large)}'")
    given_is_int = scalar(given.type) == "int"
    if large.array:
        view = "tb_ints_narrow" if given_is_int else "tb_ints_wide"
        return Passed("struct tb_ints " + large.name, f"{view}({given.name})", None)
    if large.type.endswith("*") and given_is_int:
        return Passed(declare(large), f"{given.name} ? &wide_{given.name} : NULL", given.name)
    return Passed(declare(large), given.name, None)


def implementation(calls, call):
    """Name of the implementation of a call and how each argument is passed."""
    small = calls[base_name(calls, call.name)]
    large = large_twin(calls, small.name) or small
    name = "tb_mpi_" + small.name[len("MPI_"):]
    if call.name in SAME_AS:  # the types differ in name only
        return name, [Passed(declare(p), p.name, None) for p in call.parameters]
    passed = [
        pass_argument(*three)
        for three in zip(call.parameters, small.parameters, large.parameters)
        if three[0].type != "..."
    ]
    if has_forms(calls, small.name):
        passed.insert(0, Passed("const struct tb_form *form", "&form", None))
    return name, passed


def write_form(calls, call):
    """The definition of the form in which a collective is called; nothing for other calls."""
    if not has_forms(calls, base_name(calls, call.name)):
        return []
    small = call.name[:-2] if call.name.endswith("_c") else call.name
    if base_name(calls, call.name) == small:
        return [f'    static const struct tb_form form = {{.call = "{small}"}};']
    persistent = small.endswith("_init")
    kind = "TB_FORM_PERSISTENT" if persistent else "TB_FORM_NONBLOCKING"
    info = ".info = info, " if persistent else ""
    return [f'    const struct tb_form form = {{.call = "{small}", .kind = {kind}, {info}'
            f".request_at = {len(call.parameters)}, .request = request}};"]


def write_supported(call, name, passed):
    arguments = ", ".join(p.expression for p in passed if p.expression)
    narrowed = [p for p in passed if p.narrowed]
    if not narrowed and "MPI_" + name[len("tb_mpi_"):] in TELLING:
        return [f"    return tb_events_tell({name}({arguments}));"]
    if not narrowed:
        return [f"    return {name}({arguments});"]
    lines = []
    for p in narrowed:
        # MPI_Pack and MPI_Unpack read the position before they advance it; all others only write their result.
        start = f"{p.narrowed} ? *{p.narrowed} : 0" if p.narrowed == "position" else "0"
        wide = re.match(r"\w+", p.declaration)[0]
        lines.append(f"    {wide} wide_{p.narrowed} = {start};")
    lines.append(f"    int code = {name}({arguments});")
    for p in narrowed:
        lines.append(f"    if ({p.narrowed} && code == MPI_SUCCESS)")
        lines.append(f"        *{p.narrowed} = tb_ints_result(wide_{p.narrowed});")
    lines.append("    return code;")
    return lines


def write_unsupported(call):
    if call.name.startswith("MPI_T_"):
        return ["    return MPI_T_ERR_NOT_SUPPORTED;"]
    comms = [p.name for p in call.parameters if p.type == "MPI_Comm" and not p.array]
    report = f'tb_mpi_unsupported("{call.name}", {comms[0] if comms else "MPI_COMM_NULL"})'
    if call.result == "int":
        return [f"    return {report};"]
    value = NO_VALUE.get(call.result, call.result.upper() + "_NULL")
    return [f"    (void){report};", f"    return {value};"]


def write_call(call, body):
    parameters = ", ".join(declare(p) for p in call.parameters)
    return [
        f"{call.result} P{call.name}({parameters})",
        "{",
        *body,
        "}",
        f'{call.result} {call.name}({parameters}) __attribute__((weak, alias("P{call.name}")));',
        "",
    ]


def write_code(calls, implemented):
    missing = []
    functions = []
    for call in calls.values():
        name, passed = implementation(calls, call)
        if name in implemented:
            functions += write_call(call, write_form(calls, call) + write_supported(call, name, passed))
        else:
            missing.append(call.name)
            functions += write_call(call, write_unsupported(call))
    return "\n".join([
        f"/* Written by bindings.py; {len(calls) - len(missing)} of {len(calls)} calls are implemented. */",
        "#pragma GCC visibility push(default)",
        "#include <mpi.h>",
        "#include <tombolo.h>",
        "#pragma GCC visibility pop",
        "",
        '#include "mpi/binding_decls.h"',
        '#include "mpi/event.h"',
        "",
        '_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "Tombolo needs a 64-bit machine");',
        "",
        f"const size_t tb_mpi_unimplemented_count = {len(missing)};",
        "const char *const tb_mpi_unimplemented_calls[] = {",
        *[f'    "{name}",' for name in missing],
        "    NULL,",
        "};",
        "",
        "const char *const *Tombolo_unimplemented(void)",
        "{",
        "    return tb_mpi_unimplemented_calls;",
        "}",
        "",
        "const char *Tombolo_version(void)",
        "{",
        "    return TB_VERSION;",
        "}",
        "",
        *functions,
    ])


def write_decls(calls):
    lines = [
        "/* Written by bindings.py: what the bindings of the library calls. */",
        "#ifndef TB_MPI_FACE_DECLS_H",
        "#define TB_MPI_FACE_DECLS_H",
        "",
        '#include "mpi/form.h"',
        '#include "mpi/ints.h"',
        "",
        "/* Raises MPI_ERR_UNSUPPORTED_OPERATION on the communicator, or where none is concerned, by the default handler. */",
        "int tb_mpi_unsupported(const char *call, MPI_Comm comm);",
        "",
        "/* The calls without an implementation; the array ends with a null pointer, which is not counted. */",
        "extern const size_t tb_mpi_unimplemented_count;",
        "extern const char *const tb_mpi_unimplemented_calls[];",
        "",
    ]
    for call in calls.values():
        if base_name(calls, call.name) == call.name:
            name, passed = implementation(calls, call)
            lines.append(f"{call.result} {name}({', '.join(p.declaration for p in passed)});")
    return "\n".join(lines + ["", "#endif", ""])


def write_if_changed(path, text):
    """Leaves an unchanged file alone, so that nothing that depends on it is compiled again."""
    path = pathlib.Path(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def check_implemented(calls, implemented):
    """A definition that no call would reach is a misspelt name, better found here than by a user."""
    known = {implementation(calls, call)[0] for call in calls.values()} | {"tb_mpi_unsupported"}
    mpi_like = {name for name in implemented if name[len("tb_mpi_"):len("tb_mpi_") + 1].isupper()}
    if mpi_like - known:
        sys.exit("bindings.py: no MPI call is served by " + ", ".join(sorted(mpi_like - known)))


def main():
    parser = argparse.ArgumentParser(description="Write the bindings of the MPI library.")
    parser.add_argument("--code", help="the C file to write")
    parser.add_argument("--decls", help="the header to write")
    parser.add_argument("header", help="mpi.h")
    parser.add_argument("sources", nargs="*", help="C files that may define tb_mpi_X")
    options = parser.parse_args()
    calls = read_calls(pathlib.Path(options.header).read_text(encoding="utf-8"))
    implemented = find_implementations(options.sources)
    check_implemented(calls, implemented)
    if options.code:
        write_if_changed(options.code, write_code(calls, implemented))
    if options.decls:
        write_if_changed(options.decls, write_decls(calls))


if __name__ == "__main__":
    main()
