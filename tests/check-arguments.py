#!/usr/bin/env python3
"""Checks what every call of MPI says of two mistakes: a null pointer, and one buffer for what a collective gives and takes.

    tests/check-arguments.py            of the build in BUILD_DIR (or build)

For each call of mpi.h that is implemented and each of its pointers a program is written that gives null for this one and
something right for all others, and that compares class and text of the error: MPI_ERR_ARG, or MPI_ERR_BUFFER for data. A
call that is added to mpi.h is checked by itself; a parameter for which no value is known below is an error. Where null
means something, as MPI_STATUS_IGNORE does, is said in MAY_BE_NULL. Calls of MPI_T must not crash, whatever they return.
Each form of a collective with sendbuf and recvbuf is also called with one buffer as both.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "src", "mpi"))
import bindings  # noqa: E402  (the script that reads mpi.h for the library)

RANKS = 2
LIMIT_S = 100
CRASHES = 60  # after so many nobody reads on

# Calls that are not made here at all: those that end MPI, or the process.
NOT_CALLED = {"MPI_Init", "MPI_Finalize", "MPI_Abort", "MPI_Pcontrol"}

# Where null has a meaning, or where nothing is looked at: (call or None for all calls, parameter).
MAY_BE_NULL = {
    (None, "status"), (None, "array_of_statuses"), (None, "array_of_errcodes"), (None, "extra_state"),
    (None, "comm_copy_attr_fn"), (None, "comm_delete_attr_fn"), (None, "win_copy_attr_fn"), (None, "win_delete_attr_fn"),
    (None, "type_copy_attr_fn"), (None, "type_delete_attr_fn"), (None, "copy_fn"), (None, "delete_fn"),
    ("MPI_Init_thread", "argc"), ("MPI_Init_thread", "argv"),
    ("MPI_Comm_set_attr", "attribute_val"), ("MPI_Win_set_attr", "attribute_val"), ("MPI_Type_set_attr", "attribute_val"),
    ("MPI_Attr_put", "attribute_val"),
    ("MPI_Comm_spawn", "argv"), ("MPI_Comm_spawn_multiple", "array_of_argv"),
    ("MPI_Get_address", "location"), ("MPI_Free_mem", "base"), ("MPI_Info_create_env", "argv"),
    ("MPI_Type_get_contents", "array_of_large_counts"),  # of a type without any
    ("MPI_Exscan", "recvbuf"),  # of the first rank
}
# Statuses that are read or written, not ignored.
NEEDS_STATUS = {"MPI_Get_count", "MPI_Get_elements", "MPI_Get_elements_x", "MPI_Test_cancelled", "MPI_Status_get_source",
                "MPI_Status_get_tag", "MPI_Status_get_error", "MPI_Status_set_source", "MPI_Status_set_tag",
                "MPI_Status_set_error", "MPI_Status_set_elements", "MPI_Status_set_elements_x",
                "MPI_Status_set_cancelled"}
BUFFERS = {"buf", "buffer", "sendbuf", "recvbuf", "inbuf", "outbuf", "inoutbuf", "origin_addr", "result_addr",
           "compare_addr", "base"}

# Other classes than MPI_ERR_ARG, and MPI_ERR_BUFFER for data.
CLASSES = {
    "key": "MPI_ERR_INFO_KEY", ("MPI_Info_get_nthkey", "key"): "MPI_ERR_ARG", ("MPI_Info_set", "value"): "MPI_ERR_INFO_VALUE",
    ("MPI_Comm_accept", "port_name"): "MPI_ERR_PORT", ("MPI_Comm_connect", "port_name"): "MPI_ERR_PORT",
    ("MPI_Pack", "outbuf"): "MPI_ERR_ARG", ("MPI_Unpack", "inbuf"): "MPI_ERR_ARG",
    ("MPI_Pack_external", "outbuf"): "MPI_ERR_ARG", ("MPI_Unpack_external", "inbuf"): "MPI_ERR_ARG",
    ("MPI_Win_create", "base"): "MPI_ERR_BASE", ("MPI_Win_attach", "base"): "MPI_ERR_ARG",
    ("MPI_Win_detach", "base"): "MPI_ERR_RMA_ATTACH",
}

# Values of what is no pointer: by parameter of a call, by name, by type.
VALUES = {
    ("MPI_Comm_accept", "root"): "rank", ("MPI_Comm_connect", "root"): "rank", ("MPI_Comm_spawn", "root"): "rank",
    ("MPI_Comm_spawn_multiple", "root"): "rank",
    ("MPI_Intercomm_create", "remote_leader"): "1 - rank", ("MPI_Intercomm_create_from_groups", "remote_leader"): "0",
    ("MPI_Intercomm_create", "local_comm"): "MPI_COMM_SELF",
    ("MPI_Group_rank", "rank"): "0", ("MPI_Type_match_size", "typeclass"): "MPI_TYPECLASS_INTEGER",
    ("MPI_Type_match_size", "size"): "4", ("MPI_Type_create_darray", "size"): "1", ("MPI_Type_create_darray", "rank"): "0",
    ("MPI_Comm_split_type", "split_type"): "MPI_COMM_TYPE_SHARED",
    ("MPI_Type_create_f90_integer", "r"): "5", ("MPI_Type_create_f90_real", "r"): "5",
    ("MPI_Type_create_f90_complex", "r"): "5", ("MPI_Error_string", "errorcode"): "MPI_ERR_ARG",
    ("MPI_Error_class", "errorcode"): "MPI_ERR_ARG", ("MPI_Add_error_code", "errorclass"): "MPI_ERR_ARG",
    ("MPI_Add_error_string", "errorcode"): "added", ("MPI_Info_get_nthkey", "n"): "0",
    ("MPI_Session_get_nth_pset", "n"): "0", ("MPI_Type_get_contents", "datatype"): "structure",
    ("MPI_Type_get_contents", "max_large_counts"): "0",
    ("MPI_Type_get_contents", "max_integers"): "9", ("MPI_Type_get_contents", "max_addresses"): "9",
    ("MPI_Type_get_contents", "max_datatypes"): "9",
    ("MPI_Comm_create_from_group", "group"): "alone", ("MPI_Intercomm_create_from_groups", "local_group"): "alone",
    ("MPI_Intercomm_create_from_groups", "remote_group"): "other",
    ("MPI_Win_attach", "win"): "dynamic", ("MPI_Win_detach", "win"): "dynamic",
    ("MPI_Win_shared_query", "win"): "shared", ("MPI_Dims_create", "nnodes"): "4",
    ("MPI_Graph_map", "nnodes"): "1", ("MPI_Graph_create", "nnodes"): "1",
    ("MPI_Type_create_darray", "order"): "MPI_ORDER_C", ("MPI_Type_create_subarray", "order"): "MPI_ORDER_C",
    ("MPI_Abi_get_fortran_booleans", "logical_size"): "4", ("MPI_Abi_set_fortran_booleans", "logical_size"): "4",
    ("MPI_Parrived", "request"): "partitioned", ("MPI_Pready_list", "request"): "given",
    ("MPI_Request_get_status", "request"): "MPI_REQUEST_NULL",
    ("MPI_Type_create_resized", "extent"): "8", ("MPI_Unpack", "insize"): "64", ("MPI_Win_create", "disp_unit"): "1",
    "comm_keyval": "comm_key", "win_keyval": "win_key", "type_keyval": "type_key", "keyval": "comm_key",
    "win": "win", "session": "session", "info": "info", "errhandler": "MPI_ERRORS_RETURN", "op": "MPI_SUM",
    "group": "group", "group1": "group", "group2": "group", "session_": "session", "tag": "7", "sendtag": "7",
    "recvtag": "7", "dest": "rank", "source": "rank", "root": "rank", "target_rank": "rank", "rank": "0",
    "disp_unit": "1", "outsize": "64", "insize": "64", "valuelen": "20", "index_type": "MPI_INT", "value_type": "MPI_FLOAT",
    "file": "MPI_FILE_NULL", "fh": "MPI_FILE_NULL", "split_type": "MPI_COMM_TYPE_SHARED",
    "target_disp": "0", "local_leader": "0", "direction": "0", "key": "0", "color": "0", "ndims": "1", "maxdims": "1",
    "reorder": "0", "partition": "0", "partitions": "1", "maxprocs": "1", "fd": "0", "size": "64",
    "argc": "0", "required": "MPI_THREAD_SINGLE", "high": "rank", "maxedges": "1", "maxindex": "1", "maxneighbors": "1",
    "indegree": "1", "outdegree": "1", "maxindegree": "1", "maxoutdegree": "1", "n": "1", "commute": "1", "p": "5",
}
TYPES = {"MPI_Datatype": "MPI_INT", "MPI_T_cb_safety": "MPI_T_CB_REQUIRE_NONE", "int": "1", "MPI_Count": "1", "MPI_Aint": "1"}
# Values of pointers.
POINTERS = {
    ("MPI_Cart_create", "dims"): "two", ("MPI_Cart_map", "dims"): "two", ("MPI_Dims_create", "dims"): "none",
    ("MPI_Cart_rank", "coords"): "none", ("MPI_Type_create_subarray", "array_of_starts"): "{none}",
    ("MPI_Comm_idup", "request"): "&request", ("MPI_Dist_graph_create", "sources"): "own",
    ("MPI_Dist_graph_create", "destinations"): "own", ("MPI_Dist_graph_create_adjacent", "sources"): "own",
    ("MPI_Dist_graph_create_adjacent", "destinations"): "own", ("MPI_Graph_create", "edges"): "none",
    ("MPI_Graph_map", "edges"): "none", ("MPI_Group_incl", "ranks"): "none", ("MPI_Group_excl", "ranks"): "none",
    ("MPI_Info_get_nthkey", "key"): "text", ("MPI_Intercomm_create_from_groups", "stringtag"): '"null"',
    ("MPI_Info_get_string", "buflen"): "&length", ("MPI_Group_translate_ranks", "ranks1"): "none",
    ("MPI_Session_get_nth_pset", "pset_len"): "&length", ("MPI_Mrecv", "message"): "&message",
    ("MPI_Imrecv", "message"): "&message", ("MPI_Session_get_pset_info", "pset_name"): '"mpi://SELF"',
    ("MPI_Type_create_darray", "array_of_distribs"): "distribs", ("MPI_Type_create_darray", "array_of_dargs"): "dargs",
    ("MPI_Pready_list", "array_of_partitions"): "none",
    ("MPI_Group_range_incl", "ranges"): "ranges", ("MPI_Group_range_excl", "ranges"): "ranges",
    "pset_name": '"mpi://SELF"', "datarep": '"external32"', "stringtag": '"null"', "command": '"./none"',
    "array_of_commands": "commands", "array_of_info": "infos", "array_of_maxprocs": "ones", "argv": "words",
    "array_of_requests": "requests", "array_of_types": "types", "sendtypes": "types", "recvtypes": "types",
    "displs": "{none}", "sdispls": "{none}", "rdispls": "{none}", "array_of_displacements": "{none}",
    "array_of_starts": "{none}", "position": "{position}", "sourceweights": "weights", "destweights": "weights",
    "weights": "weights", "service_name": '"null"', "port_name": "text", "key": '"key"', "value": "text",
    "comm_name": "text", "type_name": "text", "win_name": "text", "string": "text", "name": "text", "version": "text",
    "indx": "ones", "query_fn": "query", "free_fn": "release", "cancel_fn": "cancel",
    "remain_dims": "ones", "periods": "ones",
}
COMMUNICATORS = [("MPI_Cart_(get|rank|coords|shift|sub)|MPI_Cartdim_get", "cart"),
                 ("MPI_Graphdims_get|MPI_Graph_(get|neighbors.*)", "graph"), ("MPI_Dist_graph_neighbors.*", "dist"),
                 ("MPI_I?[Nn]eighbor.*", "cart"), ("MPI_Comm_remote_.*|MPI_Intercomm_merge", "inter"),
                 ("MPI_(Comm_spawn|Comm_accept|Comm_connect).*", "MPI_COMM_SELF")]
FUNCTION = re.compile(r"_function(_c)? \*$|_cb_function$")

PROGRAM = r"""
#include <mpi.h>
#include <tombolo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, trial, added, length = 64, own[1], comm_key, win_key, type_key, request_flag;
static int ones[64], none[64], weights[64], two[] = {@RANKS@}, ranges[1][3] = {{0, 0, 1}}, distribs[1], dargs[1];
static MPI_Count ones_large[64], none_large[64], position_large;
static MPI_Aint ones_wide[64], none_wide[64], position_wide;
static int position;
static char text[8192], data[8192], other_data[8192];
static long long room[1024];
static char *words[] = {"a", NULL}, *commands[] = {"./none"};
static MPI_Info infos[] = {MPI_INFO_NULL};
static MPI_Comm comm, cart, graph, dist, inter;
static MPI_Group group, alone, other;
static MPI_Win win, dynamic, shared;
static MPI_Session session;
static MPI_Info info;
static MPI_Datatype types[64], structure;
static MPI_Request requests[4], request, partitioned, given;
static MPI_Message message;

static int query(void *extra, MPI_Status *status) { (void)extra; (void)status; return MPI_SUCCESS; }
static int release(void *extra) { (void)extra; return MPI_SUCCESS; }
static int cancel(void *extra, int complete) { (void)extra; (void)complete; return MPI_SUCCESS; }
static void function(void) {}

static void crashed(int signal)
{
    char line[64];
    int n = snprintf(line, sizeof line, "\ncrash %d %d\n", trial, signal);
    if (write(1, line, (size_t)n) != n)
        _exit(2);
    _exit(1);
}

static void judge(const char *call, int position_at, const char *name, int class, const char *word, int code)
{
    char story[MPI_MAX_ERROR_STRING] = "", wanted[100];
    int n, found = -1;
    alarm(0);
    if (class < 0 || rank > 0)
        return;
    MPI_Error_class(code, &found);
    MPI_Error_string(code, story, &n);
    snprintf(wanted, sizeof wanted, "%s: argument %d (%s): ", call, position_at, name);
    if (found != class || strncmp(story, wanted, strlen(wanted)) != 0 || strstr(story, word) == NULL)
        printf("wrong %d class %d instead of %d: %s\n", trial, found, class, story);
    fflush(stdout);
}

static void prepare(void)
{
    int size, zero = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own[0] = rank;
    for (int i = 0; i < 64; i++) {
        ones[i] = 1;
        ones_large[i] = ones_wide[i] = 1;
        types[i] = MPI_INT;
    }
    distribs[0] = MPI_DISTRIBUTE_NONE;
    dargs[0] = MPI_DISTRIBUTE_DFLT_DARG;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Cart_create(comm, 1, two, ones, 0, &cart);
    MPI_Graph_create(comm, 1, ones, none, 0, &graph);
    if (graph == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_SELF, &graph);
    MPI_Dist_graph_create(comm, 1, own, ones, own, weights, MPI_INFO_NULL, 0, &dist);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 0, &inter);
    MPI_Comm_group(comm, &group);
    MPI_Group_incl(group, 1, &rank, &alone);
    MPI_Group_difference(group, alone, &other);
    MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, room, &shared);
    MPI_Win_set_errhandler(shared, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Type_create_struct(1, ones, ones_wide, types, &structure);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    MPI_Add_error_code(MPI_ERR_ARG, &added);
    MPI_Psend_init(data, 1, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &given);
    MPI_Precv_init(other_data, 1, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned);
    MPI_Start(&given);
    MPI_Start(&partitioned);
    MPI_Send(&zero, 0, MPI_INT, rank, 99, comm);
    MPI_Mprobe(rank, 99, comm, &message, MPI_STATUS_IGNORE);
    (void)size;
    (void)function;
}

/* Of what a trial may have changed. */
static void reset(void)
{
    for (int i = 0; i < 4; i++)
        requests[i] = MPI_REQUEST_NULL;
    request = MPI_REQUEST_NULL;
    length = 64;
    position = 0;
    position_large = position_wide = 0;
    memset(none, 0, sizeof none);
    strcpy(text, "text");
    alarm(20);
}

int main(int argc, char **argv)
{
    int provided, from = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    signal(SIGSEGV, crashed);
    signal(SIGALRM, crashed);
    prepare();
@TRIALS@
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("all %d\n", trial);
    fflush(stdout);
    _exit(0);
}
"""


def is_pointer(parameter):
    return bool(parameter.array) or parameter.type.endswith("*") or FUNCTION.search(parameter.type) is not None


def looked_up(table, call, name):
    return table.get((call, name)) or table.get(name)


def value_of(plain, parameter):
    """Something right for a parameter of the call that is called so without _c and _init."""
    kind = parameter.type.replace("const ", "").strip()
    if kind.endswith("_function *") or kind.endswith("_function_c *") or kind.endswith("_cb_function"):
        pointer = "" if kind.endswith("*") else " *"
        return looked_up(POINTERS, plain, parameter.name) or f"({parameter.type}{pointer})function"
    if not is_pointer(parameter):
        value = looked_up(VALUES, plain, parameter.name)
        if kind == "MPI_Comm" and value is None:
            value = next((comm for calls, comm in COMMUNICATORS if re.fullmatch(calls, plain)), "comm")
        if kind.startswith("MPI_T_") and kind not in TYPES:
            value = "0"
        return value or TYPES.get(kind)
    scalar = kind.rstrip("* ")
    wide = {"MPI_Count": "_large", "MPI_Aint": "_wide"}.get(scalar, "")
    value = looked_up(POINTERS, plain, parameter.name)
    if value is not None:
        if value.startswith("{"):
            value = value[1:-1] + wide
        return "&" + value if value.startswith("position") else value
    if scalar == "MPI_Request":
        return "&request"
    if parameter.array and scalar in ("int", "MPI_Count", "MPI_Aint") and "const" in parameter.type:
        return "ones" + wide
    if parameter.name in BUFFERS:
        return "other_data" if parameter.name in ("recvbuf", "outbuf", "inoutbuf", "result_addr") else "data"
    return "(void *)room"


def class_of(call, plain, parameter):
    """The class of the error if this is null; None if it may be."""
    if call.name.startswith("MPI_T_"):
        return "-1"
    if parameter.name in ("status", "array_of_statuses"):
        return "MPI_ERR_ARG" if plain in NEEDS_STATUS or plain == "MPI_Topo_test" else None
    if (plain, parameter.name) in MAY_BE_NULL or (None, parameter.name) in MAY_BE_NULL:
        return None
    kind = looked_up(CLASSES, plain, parameter.name)
    if kind is not None:
        return kind
    return "MPI_ERR_BUFFER" if parameter.name in BUFFERS and parameter.type.endswith("void *") else "MPI_ERR_ARG"


def plain_name(calls, name):
    name = name[:-2] if name.endswith("_c") else name
    return bindings.blocking_name(calls, name)


def spoken_name(calls, name):
    """The name by which a call speaks of itself: that of the twin whose implementation serves it, and of the successor of
    one of an older date."""
    name = bindings.SAME_AS.get(name, name)
    return name[:-2] if name[-2:] in ("_c", "_x") and bindings.base_name(calls, name) != name else name


def write_trial(number, spoken, position, argument, kind, word, call, values):
    return (f"    trial = {number};\n    if (trial >= from) {{\n        reset();\n"
            f'        judge("{spoken}", {position}, "{argument}", {kind}, "{word}", {call}({", ".join(values)}));\n    }}')


def write_shared(number, call, plain, spoken, values):
    """A collective with one buffer for both. MPI_IN_PLACE stands for what is given, but for what a root has itself."""
    names = [p.name for p in call.parameters]
    at = names.index("recvbuf" if plain.startswith("MPI_Scatter") else "sendbuf")
    values = ["data" if name in ("sendbuf", "recvbuf") else value for name, value in zip(names, values)]
    word = "another one is needed" if "eighbor" in plain else "MPI_IN_PLACE"
    return write_trial(number, spoken, at + 1, names[at], "MPI_ERR_BUFFER", word, call.name, values)


def write_trials(calls, implemented):
    """The lines of the program, and what each trial is about."""
    lines, names, unknown = [], [], []
    for call in calls.values():
        if call.name in NOT_CALLED or bindings.implementation(calls, call)[0] not in implemented:
            continue
        if not any(is_pointer(p) for p in call.parameters):
            continue
        plain = plain_name(calls, call.name)
        spoken = spoken_name(calls, call.name)
        values = [value_of(plain, p) for p in call.parameters if p.name]
        unknown += [f"{call.name}: {p.name}" for p, v in zip(call.parameters, values) if v is None]
        for i, parameter in enumerate(call.parameters):
            if not parameter.name or not is_pointer(parameter):
                continue
            kind = class_of(call, plain, parameter)
            if kind is None:
                continue
            same = len(calls[spoken].parameters) == len(call.parameters)
            said = (calls[spoken] if same else call).parameters[i].name
            given = ["NULL" if i == j else str(value) for j, value in enumerate(values)]
            lines.append(write_trial(len(names), spoken, i + 1, said, kind, "", call.name, given))
            names.append(f"{call.name}: {parameter.name}")
        if bindings.has_forms(calls, plain) and "sendbuf" in (p.name for p in call.parameters):
            lines.append(write_shared(len(names), call, plain, spoken, [str(value) for value in values]))
            names.append(f"{call.name}: one buffer for both")
    return lines, names, unknown


def run(program, start):
    """(what was wrong as (trial, text), the trial that crashed or None, whether it came to its end)"""
    found = subprocess.run([os.path.join(BUILD, "bin", "mpiexec"), "-n", str(RANKS), program, str(start)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
    wrong = [(int(number), story) for number, story in re.findall(r"^wrong (\d+) (.*)", found.stdout, re.M)]
    crash = re.search(r"^crash (\d+) (\d+)", found.stdout, re.M)
    if crash:
        return wrong, int(crash[1]), False
    ended = "\nall " in "\n" + found.stdout and found.returncode == 0
    if not ended:
        print(found.stdout + found.stderr)
    return wrong, None, ended


def main():
    with open(os.path.join(ROOT, "include", "mpi.h"), encoding="utf-8") as header:
        calls = bindings.read_calls(header.read())
    folder = os.path.join(ROOT, "src", "mpi")
    sources = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".c")]
    lines, names, unknown = write_trials(calls, bindings.find_implementations(sources))
    for parameter in unknown:
        print(f"no value is known for {parameter}")
    if unknown:
        return 1
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        source, program = os.path.join(scratch, "null.c"), os.path.join(scratch, "null")
        with open(source, "w", encoding="utf-8") as out:
            out.write(PROGRAM.replace("@RANKS@", str(RANKS)).replace("@TRIALS@", "\n".join(lines)))
        subprocess.run([os.path.join(BUILD, "bin", "mpicc"), "-w", "-O0", source, "-o", program], check=True)
        start, crashes, ended = 0, 0, False
        while not ended and crashes < CRASHES:
            wrong, crash, ended = run(program, start)
            failures += [f"{names[number]}: {story}" for number, story in wrong]
            if crash is None:
                break
            failures.append(f"{names[crash]}: it crashed, or waited")
            start, crashes = crash + 1, crashes + 1
    for failure in failures:
        print(failure)
    print(f"{len(names)} mistakes, {len(failures)} of them badly answered")
    return 0 if ended and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
