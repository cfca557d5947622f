#!/bin/sh
# Checks that include/mpi.h and include/tombolo.h are valid, without a warning, for C and C++ programs of any age, alone, twice,
# in either order, and that the macros of tombolo.h and the version of the build agree.
#
#     tests/check-header.sh [INCLUDE_DIRECTORY]
#
# Compilers that are not installed are left out; one of each language must be there.

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
include=${1:-$root/include}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
tried_c=0
tried_cxx=0

cat >"$scratch/program.c" <<'EOF'
#include <mpi.h>
#include <tombolo.h>
#include <mpi.h>

/* Constants that programs use in places where only constants will do. */
static int numbers[MPI_MAX_PROCESSOR_NAME + MPI_SUCCESS];
static MPI_Comm world = MPI_COMM_WORLD;
static MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_C_BOOL};

static void sum(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

int use(int code);
int use(int code)
{
    MPI_Op op;
    MPI_Status status;
    MPI_User_function *function = sum;
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = PMPI_Send;
    switch (code) {
    case MPI_ERR_COMM:
    case MPI_ERR_LASTCODE:
        return MPI_Op_create(function, 1, &op);
    case MPI_ANY_SOURCE:
        return send(numbers, 1, types[0], MPI_PROC_NULL, 0, world);
    default:
        return MPI_Recv_c(numbers, (MPI_Count)1 << 40, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status) +
               (Tombolo_version() != 0) + status.MPI_SOURCE + status.MPI_internal[4];
    }
}
EOF
cat >"$scratch/alone.c" <<'EOF'
#include <tombolo.h>
int (*unused_by_purpose)(void);
EOF
cat >"$scratch/fortran.c" <<'EOF'
#define MPI_ABI_Fint long /* as for a Fortran with long integers */
#include <mpi_fortran.h>
#include <mpi.h>

int use(MPI_Comm comm, MPI_Fint *f_status);
int use(MPI_Comm comm, MPI_Fint *f_status)
{
    MPI_Status status;
    MPI_Fint (*conversion)(MPI_Datatype) = PMPI_Type_c2f;
    long number = MPI_Comm_c2f(comm) + conversion(MPI_INT);
    if (f_status == MPI_F_STATUS_IGNORE || f_status == MPI_F_STATUSES_IGNORE)
        return (int)number;
    return MPI_Status_f2c(f_status, &status) + PMPI_Status_c2f(&status, f_status) + (MPI_Win_f2c(number) == MPI_WIN_NULL);
}
EOF
cat >"$scratch/removed.c" <<'EOF'
#include <mpi.h>
#define TOMBOLO_REMOVED_NAMES /* asked for late, and twice */
#include <mpi.h>
#include <mpi.h>

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

int use(int combiner);
int use(int combiner)
{
    int lengths[2] = {1, 2};
    MPI_Aint places[2] = {0, 8}, extent, low, high;
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, made;
    MPI_Errhandler handler;
    MPI_Handler_function *function = handle;
    switch (combiner) {
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HVECTOR_INTEGER:
        return MPI_Type_hvector(2, 1, 8, MPI_INT, &made);
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_HINDEXED_INTEGER:
        return MPI_Type_hindexed(2, lengths, places, MPI_INT, &made);
    case MPI_COMBINER_STRUCT:
    case MPI_COMBINER_STRUCT_INTEGER:
        return MPI_Type_struct(2, lengths, places, types, &made);
    default:
        return MPI_Address(lengths, &places[0]) + MPI_Type_extent(MPI_INT, &extent) + MPI_Type_lb(MPI_INT, &low) +
               MPI_Type_ub(MPI_INT, &high) + MPI_Errhandler_create(function, &handler) +
               MPI_Errhandler_set(MPI_COMM_WORLD, handler) + MPI_Errhandler_get(MPI_COMM_WORLD, &handler);
    }
}
EOF
cp "$scratch/program.c" "$scratch/program.cc"
cp "$scratch/removed.c" "$scratch/removed.cc"
cp "$scratch/alone.c" "$scratch/alone.cc"
cp "$scratch/fortran.c" "$scratch/fortran.cc"

try() { # compiler standard suffix programs [option]
    for name in $4; do
        if ! "$1" "-std=$2" ${5:+"$5"} -Wall -Wextra -Wshadow -Wundef -pedantic -Werror -I "$include" \
            -c "$scratch/$name.$3" -o "$scratch/$name.o"; then
            echo "$1 -std=$2 does not accept the headers"
            failed=1
        fi
    done
}

for compiler in gcc clang clang-14; do
    command -v "$compiler" >/dev/null || continue
    tried_c=1
    for standard in c99 c11 c17 gnu17; do
        try "$compiler" "$standard" c "program alone fortran removed"
    done
    # Variadic macros came later, and the compilers have them.
    try "$compiler" gnu89 c "program alone fortran" -Wno-variadic-macros
done
for compiler in g++ clang++ clang++-14; do
    command -v "$compiler" >/dev/null || continue
    tried_cxx=1
    for standard in c++11 c++14 c++17 c++20; do
        try "$compiler" "$standard" cc "program alone fortran removed"
    done
done
if [ "$tried_c$tried_cxx" != 11 ]; then
    echo "no compiler for C or none for C++ was found"
    failed=1
fi

number() {
    sed -n "s/^#define TOMBOLO_VERSION_$1 *//p" "$include/tombolo.h"
}
in_header=$(number MAJOR).$(number MINOR).$(number PATCH)
in_build=$(sed -n "s/^ *version: '\([0-9.]*\)',$/\1/p" "$root/meson.build" | head -n 1)
if [ "$in_header" != "$in_build" ]; then
    echo "tombolo.h says version $in_header, meson.build says $in_build"
    failed=1
fi
exit $failed
