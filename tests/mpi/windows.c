/* Windows as objects: making them in each of the four ways, on all ranks or none; what can be asked of them, attached
 * to them and set; memory that ranks of a host share; freeing them, again and again; and what goes wrong. */
#include "test.h"

#include <dirent.h>

#define AGAIN 20

static int deleted, refused, handler_calls, handler_code;
static MPI_Win handler_win;

static int on_delete(MPI_Win win, int keyval, void *value, void *state)
{
    CHECK(state == &deleted, "another state");
    if (refused)
        return MPI_ERR_OTHER;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void on_error(MPI_Win *win, int *code, ...)
{
    handler_calls++;
    handler_code = *code;
    handler_win = *win;
}

static MPI_Win create(void *base, MPI_Aint size, int unit, MPI_Info info)
{
    MPI_Win win = MPI_WIN_NULL;
    CHECK_EQUAL(MPI_Win_create(base, size, unit, info, MPI_COMM_WORLD, &win), MPI_SUCCESS);
    test_need(win != MPI_WIN_NULL, "there is no window");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

static void end(MPI_Win *win)
{
    CHECK_EQUAL(MPI_Win_free(win), MPI_SUCCESS);
    CHECK(*win == MPI_WIN_NULL, "the handle is still there");
}

static void check_facts(MPI_Win win, const void *base, MPI_Aint size, int unit, int flavor)
{
    void *value = NULL;
    int flag = 0;
    CHECK_EQUAL(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag), MPI_SUCCESS);
    CHECK(flag && value == base, "%p", value);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    CHECK(flag && *(MPI_Aint *)value == size, "%lld", (long long)*(MPI_Aint *)value);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    CHECK(flag && *(int *)value == unit, "%d", *(int *)value);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    CHECK(flag && *(int *)value == flavor, "%d", *(int *)value);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED, "%d", *(int *)value);
}

/* ---- what can be asked of them ----------------------------------------------------------------------------------- */

static void facts(void)
{
    char memory[300];
    MPI_Group all = MPI_GROUP_NULL, mine = MPI_GROUP_NULL;
    int same = -1, length = -1;
    char name[MPI_MAX_OBJECT_NAME] = "x";
    MPI_Win win = create(test_rank % 2 ? NULL : memory, test_rank % 2 ? 0 : 300, 1 + test_rank % 3, MPI_INFO_NULL);
    check_facts(win, test_rank % 2 ? NULL : memory, test_rank % 2 ? 0 : 300, 1 + test_rank % 3, MPI_WIN_FLAVOR_CREATE);
    CHECK_EQUAL(MPI_Win_get_group(win, &mine), MPI_SUCCESS);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_compare(all, mine, &same);
    CHECK_EQUAL(same, MPI_IDENT);
    MPI_Group_free(&all);
    MPI_Group_free(&mine);
    CHECK_EQUAL(MPI_Win_get_name(win, name, &length), MPI_SUCCESS);
    CHECK(name[0] == 0 && length == 0, "%s", name);
    CHECK_EQUAL(MPI_Win_set_name(win, "the lake"), MPI_SUCCESS);
    MPI_Win_get_name(win, name, &length);
    CHECK(strcmp(name, "the lake") == 0 && length == 8, "%s", name);
    MPI_Win_get_name(MPI_WIN_NULL, name, &length);
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && length == 12, "%s", name);
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win, "another handle");
    end(&win);
}

static void attributes(void)
{
    int key = MPI_KEYVAL_INVALID, other = MPI_KEYVAL_INVALID, flag = -1, one = 1, two = 2;
    void *value = NULL;
    MPI_Win win = create(NULL, 0, 1, MPI_INFO_NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &deleted);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    CHECK_EQUAL(MPI_Win_get_attr(win, key, &value, &flag), MPI_SUCCESS);
    CHECK_EQUAL(flag, 0);
    CHECK_EQUAL(MPI_Win_set_attr(win, key, &one), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_set_attr(win, key, &two), MPI_SUCCESS);
    CHECK_EQUAL(deleted, 1);
    MPI_Win_get_attr(win, key, &value, &flag);
    CHECK(flag && value == &two, "another value");
    CHECK_EQUAL(MPI_Win_delete_attr(win, key), MPI_SUCCESS);
    CHECK_EQUAL(deleted, 3);
    CHECK_CLASS(MPI_Win_set_attr(win, MPI_WIN_SIZE, &one), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Win_delete_attr(win, MPI_WIN_BASE), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Win_set_attr(win, other, &one), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Win_get_attr(win, key, NULL, &flag), MPI_ERR_ARG);
    MPI_Win_set_attr(win, key, &two);
    refused = 1;
    CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_OTHER);
    CHECK(win != MPI_WIN_NULL, "it was freed all the same");
    refused = 0;
    end(&win);
    CHECK_EQUAL(deleted, 5);
    MPI_Win_free_keyval(&key);
    MPI_Comm_free_keyval(&other);
}

static void check_hint(MPI_Win win, const char *key, const char *expected)
{
    MPI_Info info = MPI_INFO_NULL;
    char value[100] = "";
    int flag = -1, length = sizeof value;
    CHECK_EQUAL(MPI_Win_get_info(win, &info), MPI_SUCCESS);
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK(flag && strcmp(value, expected) == 0, "%s=%s", key, value);
    MPI_Info_free(&info);
}

static void hints(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    MPI_Info_set(info, "accumulate_ordering", "waw,rar");
    MPI_Info_set(info, "same_disp_unit", "perhaps");
    MPI_Info_set(info, "unheard_of", "x");
    MPI_Win win = create(NULL, 0, 1, info);
    check_hint(win, "no_locks", "true");
    check_hint(win, "accumulate_ordering", "rar,waw");
    check_hint(win, "accumulate_ops", "same_op_no_op");
    check_hint(win, "mpi_accumulate_granularity", "0");
    check_hint(win, "same_size", "false");
    check_hint(win, "same_disp_unit", "false");
    MPI_Info_set(info, "no_locks", "false"); /* too late */
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    MPI_Info_set(info, "mpi_accumulate_granularity", "64");
    CHECK_EQUAL(MPI_Win_set_info(win, info), MPI_SUCCESS);
    check_hint(win, "no_locks", "true");
    check_hint(win, "accumulate_ordering", "none");
    check_hint(win, "accumulate_ops", "same_op");
    check_hint(win, "mpi_accumulate_granularity", "64");
    CHECK_CLASS(MPI_Win_set_info(win, MPI_INFO_NULL), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Win_get_info(win, NULL), MPI_ERR_ARG);
    MPI_Info_free(&info);
    end(&win);
}

static void handlers(void)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Errhandler mine, seen = MPI_ERRHANDLER_NULL;
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_errhandler(win, &seen);
    CHECK(seen == MPI_ERRORS_ARE_FATAL, "another handler from the start");
    MPI_Win_create_errhandler(on_error, &mine);
    CHECK_EQUAL(MPI_Win_set_errhandler(win, mine), MPI_SUCCESS);
    MPI_Errhandler_free(&mine);
    CHECK_CLASS(MPI_Win_set_name(win, NULL), MPI_ERR_ARG);
    CHECK_EQUAL(handler_calls, 1);
    CHECK(handler_win == win, "another window");
    CHECK_EQUAL(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC), MPI_SUCCESS);
    CHECK_EQUAL(handler_calls, 2);
    CHECK_EQUAL(handler_code, MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_call_errhandler(win, 12345678), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_set_errhandler(win, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    end(&win);
}

/* ---- memory that is shared --------------------------------------------------------------------------------------- */

static MPI_Aint shared_bytes(int rank)
{
    return rank % 3 == 1 ? 0 : 4096 * (rank % 2) + 104;
}

/* Each writes into the memory of the next rank, and finds what the one before has written into its own. */
static void write_to_next(MPI_Win win, MPI_Comm comm)
{
    int rank, size, unit = -1;
    MPI_Aint bytes = -1;
    char *base = NULL, *own = NULL;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size;
    CHECK_EQUAL(MPI_Win_shared_query(win, next, &bytes, &unit, &base), MPI_SUCCESS);
    CHECK_EQUAL(bytes, shared_bytes(next));
    CHECK_EQUAL(unit, 1 + next);
    test_fill(base, (size_t)bytes, (uint64_t)next);
    MPI_Barrier(comm);
    MPI_Win_shared_query(win, rank, &bytes, &unit, &own);
    CHECK_EQUAL(bytes, shared_bytes(rank));
    CHECK_DATA(own, (size_t)bytes, (uint64_t)rank);
    MPI_Barrier(comm);
}

static void check_contiguous(MPI_Win win, int size)
{
    char *expected = NULL;
    for (int rank = 0; rank < size; rank++) {
        MPI_Aint bytes;
        int unit;
        char *base;
        MPI_Win_shared_query(win, rank, &bytes, &unit, &base);
        CHECK(expected == NULL || base == expected, "rank %d is %td bytes further", rank, base - expected);
        expected = base + bytes;
    }
}

static void shared(bool noncontiguous)
{
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info;
    int rank, size, unit = -1;
    MPI_Aint bytes = -1;
    char *base = NULL, *first = NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &size);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", noncontiguous ? "true" : "false");
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "65536");
    CHECK_EQUAL(MPI_Win_allocate_shared(shared_bytes(rank), 1 + rank, info, host, &base, &win), MPI_SUCCESS);
    MPI_Info_free(&info);
    test_need(win != MPI_WIN_NULL, "there is no window");
    check_facts(win, base, shared_bytes(rank), 1 + rank, MPI_WIN_FLAVOR_SHARED);
    check_hint(win, "alloc_shared_noncontig", noncontiguous ? "true" : "false");
    CHECK(!(noncontiguous || rank == 0) || (uintptr_t)base % 65536 == 0, "%p", (void *)base);
    CHECK(!noncontiguous || (base == NULL) == (shared_bytes(rank) == 0), "%p", (void *)base);
    for (MPI_Aint i = 0; i < shared_bytes(rank); i++)
        CHECK(base[i] == 0, "byte %lld is not 0", (long long)i);
    MPI_Barrier(host);
    write_to_next(win, host);
    if (!noncontiguous)
        check_contiguous(win, size);
    CHECK_EQUAL(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first), MPI_SUCCESS);
    CHECK_EQUAL(bytes, shared_bytes(0));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_shared_query(win, size, &bytes, &unit, &first), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_shared_query(win, 0, &bytes, NULL, &first), MPI_ERR_ARG);
    end(&win);
    MPI_Comm_free(&host);
}

/* Of what MPI_Win_allocate gives, each sees its own, and of others all or nothing. */
static void allocated(void)
{
    char *base = NULL, *seen = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint bytes = -1;
    MPI_Aint unit = -1;
    CHECK_EQUAL(MPI_Win_allocate_c(shared_bytes(test_rank), 1 + test_rank, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
                MPI_SUCCESS);
    check_facts(win, base, shared_bytes(test_rank), 1 + test_rank, MPI_WIN_FLAVOR_ALLOCATE);
    test_fill(base, (size_t)shared_bytes(test_rank), (uint64_t)test_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size; rank++) {
        CHECK_EQUAL(MPI_Win_shared_query_c(win, rank, &bytes, &unit, &seen), MPI_SUCCESS);
        CHECK(seen == NULL ? bytes == 0 : bytes == shared_bytes(rank), "%lld bytes", (long long)bytes);
        CHECK_EQUAL(unit, 1 + rank);
        CHECK(rank != test_rank || seen == base, "another place");
        CHECK_DATA(seen, (size_t)bytes, (uint64_t)rank);
    }
    end(&win);
}

/* Only rank 0 says how memory is to lie: everybody's is where all look for it. */
static void differing_hints(void)
{
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Info info;
    int rank, size;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "65536");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &size);
    for (int who = 0; who < size && who < 3; who++) {
        MPI_Info mine = rank == who ? info : MPI_INFO_NULL;
        MPI_Win shared_win = MPI_WIN_NULL, win = MPI_WIN_NULL;
        char *base = NULL, *own = NULL;
        CHECK_EQUAL(MPI_Win_allocate_shared(shared_bytes(rank), 1 + rank, mine, host, &base, &shared_win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_allocate(shared_bytes(rank), 1 + rank, mine, host, &own, &win), MPI_SUCCESS);
        CHECK((uintptr_t)base % 65536 == 0, "%p", (void *)base);
        check_hint(shared_win, "alloc_shared_noncontig", "true");
        check_hint(shared_win, "mpi_minimum_memory_alignment", "65536");
        CHECK(rank != who || (uintptr_t)own % 65536 == 0, "%p", (void *)own);
        write_to_next(shared_win, host);
        test_fill(own, (size_t)shared_bytes(rank), (uint64_t)rank);
        MPI_Barrier(host);
        for (int other = 0; other < size; other++) {
            char seen[4096 + 104];
            MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
            MPI_Get(seen, (int)shared_bytes(other), MPI_BYTE, other, 0, (int)shared_bytes(other), MPI_BYTE, win);
            MPI_Win_unlock(other, win);
            CHECK_DATA(seen, (size_t)shared_bytes(other), (uint64_t)other);
        }
        end(&shared_win);
        end(&win);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&host);
}

static void dynamic(void)
{
    static char memory[100];
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint bytes;
    int unit;
    void *base;
    CHECK_EQUAL(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_SUCCESS);
    check_facts(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPI_Win_attach(win, memory, sizeof memory), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_attach(win, NULL, 1), MPI_ERR_ARG);
    CHECK_EQUAL(MPI_Win_attach(win, memory + 50, 0), MPI_SUCCESS); /* no bytes, even among others */
    CHECK_EQUAL(MPI_Win_attach(win, NULL, 0), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_detach(win, memory + 50), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_detach(win, NULL), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_detach(win, memory + 50), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_shared_query(win, 0, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    CHECK_EQUAL(MPI_Win_detach(win, memory), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    end(&win);
    win = create(memory, sizeof memory, 1, MPI_INFO_NULL);
    CHECK_CLASS(MPI_Win_attach(win, memory, 1), MPI_ERR_RMA_FLAVOR);
    CHECK_CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_FLAVOR);
    end(&win);
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

/* The last rank alone is wrong: nobody gets a window. */
static void one_is_wrong(void)
{
    char memory[10];
    bool wrong = test_rank == test_size - 1;
    void *base;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    CHECK_CLASS(MPI_Win_create(memory, wrong ? -1 : 10, 1, MPI_INFO_NULL, world, &win),
                wrong ? MPI_ERR_SIZE : MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Win_create(memory, 10, wrong ? 0 : 1, MPI_INFO_NULL, world, &win),
                wrong ? MPI_ERR_DISP : MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Win_create(wrong ? NULL : memory, 10, 1, MPI_INFO_NULL, world, &win),
                wrong ? MPI_ERR_BASE : MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Win_create(memory, 10, 1, MPI_INFO_NULL, world, wrong ? NULL : &win),
                wrong ? MPI_ERR_ARG : MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Win_allocate(10, 1, MPI_INFO_NULL, world, wrong ? NULL : (void *)&base, &win),
                wrong ? MPI_ERR_ARG : MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Win_create_dynamic(wrong ? (MPI_Info)(uintptr_t)99 : MPI_INFO_NULL, world, &win),
                wrong ? MPI_ERR_INFO : MPI_ERR_OTHER);
    CHECK(win == MPI_WIN_NULL, "there is a window");
}

/* No machine has so much memory. Ranks that share it find out alike; elsewhere the one who asked knows why. */
static void too_much(void)
{
    static const MPI_Aint sizes[] = {INT64_MAX, (MPI_Aint)1 << 45}; /* the latter has addresses */
    for (int i = 0; i < 2; i++) {
        char *base = NULL;
        int class = -1;
        MPI_Win win = MPI_WIN_NULL;
        MPI_Error_class(MPI_Win_allocate(test_rank == 0 ? sizes[i] : 1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
                        &class);
        CHECK(class == MPI_ERR_NO_MEM || (test_rank > 0 && class == MPI_ERR_OTHER), "class %d", class);
        CHECK(win == MPI_WIN_NULL, "there is a window");
    }
}

static void wrong_arguments(void)
{
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Win win = create(NULL, 0, 1, MPI_INFO_NULL), freed = win;
    char *base;
    int here, length;
    char name[MPI_MAX_OBJECT_NAME];
    end(&win);
    CHECK_CLASS(MPI_Win_set_name(freed, "x"), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_get_name(freed, name, &length), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_free(&freed), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_free(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_set_errhandler(MPI_WIN_NULL, MPI_ERRORS_RETURN), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    if (here < test_size)
        CHECK_CLASS(MPI_Win_allocate_shared(10, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_RMA_SHARED);
}

static void between_groups(void)
{
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    MPI_Win win = MPI_WIN_NULL;
    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 1, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, inter, &win), MPI_ERR_COMM);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* ---- again and again --------------------------------------------------------------------------------------------- */

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void again(void)
{
    int before = 0;
    for (int i = 0; i < AGAIN; i++) {
        MPI_Win wins[3];
        char *base;
        MPI_Win_allocate(100 + i, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[0]);
        wins[1] = create(base, 100 + i, 1, MPI_INFO_NULL);
        MPI_Win_create_dynamic(MPI_INFO_NULL, i % 2 ? MPI_COMM_SELF : MPI_COMM_WORLD, &wins[2]);
        for (int k = 0; k < 3; k++)
            end(&wins[(k + i) % 3]);
        if (i == 4)
            before = open_files();
    }
    CHECK_EQUAL(open_files(), before);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    facts();
    attributes();
    hints();
    handlers();
    shared(false);
    shared(true);
    allocated();
    differing_hints();
    dynamic();
    one_is_wrong();
    too_much();
    wrong_arguments();
    between_groups();
    again();
    return test_end();
}
