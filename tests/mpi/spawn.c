/* Processes that are started while a job runs: what they and those who have started them see of each other, messages
 * and collectives of all lengths between and among them, merging, children of children, several programs at once, many
 * worlds one after the other, and what cannot be started. The program starts itself; its first argument says what a
 * child does. */
#include "test.h"

#include <dirent.h>

#define AGAIN    12     /* worlds one after the other */
#define LONG     300007 /* bytes, more than leaves at once */
#define CHILDREN 3

static char *own_name;

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void exchange_all(MPI_Comm inter, int mine, int theirs, int seed)
{
    static const int sizes[] = {0, 1, 9000, LONG};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        unsigned char *out = malloc((size_t)sizes[k] + 1), *in = malloc((size_t)sizes[k] + 1);
        for (int i = 0; i < theirs; i++) {
            MPI_Status status;
            for (int b = 0; b < sizes[k]; b++)
                out[b] = (unsigned char)(b * 3 + mine + i + seed);
            MPI_Sendrecv(out, sizes[k], MPI_BYTE, i, 10 + (int)k, in, sizes[k], MPI_BYTE, i, 10 + (int)k, inter,
                         &status);
            int count = -1, wrong = 0;
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQUAL(count, sizes[k]);
            for (int b = 0; b < sizes[k]; b++)
                wrong += in[b] != (unsigned char)(b * 3 + mine + i + seed);
            CHECK_EQUAL(wrong, 0);
        }
        free(out);
        free(in);
    }
}

/* Communicators from groups, of one world and of two. */
static void from_groups(MPI_Comm merged)
{
    MPI_Group group, theirs, mine, all;
    MPI_Comm made = MPI_COMM_NULL;
    int size, half = test_rank % 2;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_from_group(group, "spawn", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    MPI_Comm_size(made, &size);
    CHECK_EQUAL(size, test_size);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    MPI_Group_free(&group);
    if (test_size > 1) {
        int ranges[2][3] = {{0, test_size - 1, 2}, {1, test_size - 1, 2}};
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_range_incl(all, 1, &ranges[half], &group);
        MPI_Group_range_incl(all, 1, &ranges[!half], &theirs);
        MPI_Intercomm_create_from_groups(group, 0, theirs, 0, "halves", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
        MPI_Barrier(made);
        MPI_Comm_free(&made);
        MPI_Group_free(&group);
        MPI_Group_free(&theirs);
        MPI_Group_free(&all);
    }
    if (test_peer())
        return;
    MPI_Comm_group(merged, &group);
    CHECK_EQUAL(MPI_Comm_create_from_group(group, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), MPI_SUCCESS);
    MPI_Comm_compare(made, merged, &size);
    CHECK_EQUAL(size, MPI_CONGRUENT);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_intersection(group, all, &mine);
    MPI_Group_difference(group, all, &theirs);
    MPI_Group_free(&all);
    CHECK_EQUAL(MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "worlds", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
                MPI_SUCCESS);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    MPI_Group_free(&mine);
    MPI_Group_free(&theirs);
    MPI_Group_free(&group);
}

static void has_name(MPI_Comm comm, const char *expected)
{
    char name[MPI_MAX_OBJECT_NAME] = "?";
    int length = -1;
    MPI_Comm_get_name(comm, name, &length);
    CHECK(strcmp(name, expected) == 0 && length == (int)strlen(expected), "%s, %d", name, length);
}

/* Collectives between the two groups, and among all of them. */
static void meet(MPI_Comm inter, bool child)
{
    int mine, theirs, rank, size, sum = 0, high = child, merged_rank, merged_size, from = child ? 0 : MPI_ROOT;
    MPI_Comm merged, copy;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &theirs);
    mine = rank + 1;
    exchange_all(inter, rank, theirs, 5);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK_EQUAL(sum, theirs * (theirs + 1) / 2);
    if (!child && rank > 0)
        from = MPI_PROC_NULL;
    sum = child ? 0 : 4711;
    MPI_Bcast(&sum, 1, MPI_INT, from, inter);
    CHECK_EQUAL(sum, 4711);
    MPI_Comm_dup(inter, &copy);
    has_name(inter, child ? "MPI_COMM_PARENT" : "");
    has_name(copy, "");
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    MPI_Intercomm_merge(inter, high, &merged);
    MPI_Comm_rank(merged, &merged_rank);
    MPI_Comm_size(merged, &merged_size);
    CHECK_EQUAL(merged_size, size + theirs);
    CHECK_EQUAL(merged_rank, child ? theirs + rank : rank);
    for (int root = 0; root < merged_size; root++) {
        double *data = malloc(LONG / 8 * sizeof *data);
        for (int i = 0; i < LONG / 8; i++)
            data[i] = merged_rank == root ? i + root : -1;
        MPI_Bcast(data, LONG / 8, MPI_DOUBLE, root, merged);
        CHECK(data[0] == root && data[LONG / 8 - 1] == LONG / 8 - 1 + root, "%g and %g", data[0], data[LONG / 8 - 1]);
        free(data);
    }
    MPI_Allreduce(&merged_rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK_EQUAL(sum, merged_size * (merged_size - 1) / 2);
    MPI_Comm_split(merged, merged_rank % 2, 0, &copy); /* some of one world, some of both */
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_split_type(merged, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    from_groups(merged);
    MPI_Comm_free(&merged);
}

static void child(MPI_Comm parent, const char *what)
{
    MPI_Comm again;
    MPI_Comm_get_parent(&again);
    CHECK(again == parent, "another parent");
    if (strcmp(what, "meet") == 0) {
        meet(parent, true);
    } else if (strcmp(what, "many") == 0) {
        int value = 7, sum;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, parent);
    } else if (strcmp(what, "early") == 0) {
        const struct timespec moment = {.tv_nsec = 100000000}; /* in which parents take in what waits for them */
        int parents, value = 4711;
        MPI_Comm_remote_size(parent, &parents);
        for (int i = 0; i < parents; i++)
            MPI_Send(&value, 1, MPI_INT, i, 3, parent);
        nanosleep(&moment, NULL);
        MPI_Abort(MPI_COMM_WORLD, 17);
    } else if (strcmp(what, "deeper") == 0) {
        char *words[] = {(char *)"meet", NULL};
        MPI_Comm inter;
        MPI_Comm_spawn(own_name, words, 2, MPI_INFO_NULL, test_size - 1, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        meet(inter, false);
        MPI_Comm_disconnect(&inter);
        MPI_Barrier(parent);
    } else if (strncmp(what, "program", 7) == 0) {
        int *number, found, program = what[7] - '0';
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
        CHECK(found && *number == program, "%d", found ? *number : -1);
        MPI_Gather(&program, 1, MPI_INT, NULL, 0, MPI_INT, 0, parent);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&again);
    CHECK(again == MPI_COMM_NULL, "there is a parent");
}

/* ---- parents ----------------------------------------------------------------------------------------------------- */

static MPI_Comm start(const char *what, int count, int root)
{
    char *words[] = {(char *)what, NULL};
    int codes[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, size;
    MPI_Comm inter = MPI_COMM_NULL;
    CHECK_EQUAL(MPI_Comm_spawn(own_name, words, count, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes),
                MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &size);
    CHECK_EQUAL(size, count);
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(codes[i], MPI_SUCCESS);
    return inter;
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void many(void)
{
    int before = 0;
    for (int i = 0; i < AGAIN; i++) {
        MPI_Comm inter = start("many", 1 + i % CHILDREN, i % test_size);
        int sum = 0;
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK_EQUAL(sum, 7 * (1 + i % CHILDREN));
        MPI_Comm_disconnect(&inter);
        before = i == AGAIN / 2 ? open_descriptors() : before;
    }
    int after = open_descriptors(); /* those of the last ones may still be open */
    CHECK(after <= before + 4 * CHILDREN, "%d descriptors, %d before", after, before);
}

static void several_programs(void)
{
    char *commands[] = {own_name, own_name}, *first[] = {(char *)"program0", NULL},
         *second[] = {(char *)"program1", NULL};
    char **words[] = {first, second};
    const int counts[] = {2, 1};
    int codes[3] = {-1, -1, -1}, got[3] = {-1, -1, -1}, size;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    MPI_Comm_spawn_multiple(2, commands, words, counts, infos, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_remote_size(inter, &size);
    CHECK_EQUAL(size, 3);
    CHECK_EQUAL(codes[2], MPI_SUCCESS);
    MPI_Gather(NULL, 0, MPI_INT, got, 1, MPI_INT, test_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    if (test_rank == 0)
        CHECK(got[0] == 0 && got[1] == 0 && got[2] == 1, "%d %d %d", got[0], got[1], got[2]);
    MPI_Comm_disconnect(&inter);
}

/* Each rank by itself, at the same time. */
static void alone(void)
{
    char *words[] = {(char *)"meet", NULL};
    MPI_Comm inter;
    MPI_Comm_spawn(own_name, words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    meet(inter, false);
    MPI_Comm_disconnect(&inter);
}

static void expect_failure(const char *command, MPI_Info info, int count, int class)
{
    int codes[CHILDREN], seen = 0;
    MPI_Comm inter = MPI_COMM_WORLD;
    int code = MPI_Comm_spawn(command, MPI_ARGV_NULL, count, info, 0, MPI_COMM_WORLD, &inter,
                              test_rank < 2 ? codes : MPI_ERRCODES_IGNORE);
    MPI_Error_class(code, &seen);
    CHECK_EQUAL(seen, class);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    for (int i = 0; test_rank < 2 && i < count; i++) {
        MPI_Error_class(codes[i], &seen);
        CHECK_EQUAL(seen, class);
    }
}

/* Programs that do not end, nor call MPI_Init: the whole of it takes as long as was allowed. */
static void expect_never_joined(MPI_Info info)
{
    char *words[] = {(char *)"-f", (char *)"/dev/null", NULL};
    MPI_Comm inter = MPI_COMM_WORLD;
    double begun = MPI_Wtime();
    CHECK_CLASS(MPI_Comm_spawn("tail", words, 2, info, test_size - 1, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    if (test_rank == test_size - 1) /* others may call later */
        CHECK(MPI_Wtime() - begun > 0.29, "%g s", MPI_Wtime() - begun);
}

/* One calls MPI_Abort when it has sent something to those who have started it, while another one never calls MPI_Init:
 * all are told the code, and what was sent is not found in a communicator that is made later. */
static void expect_abort(void)
{
    char *aborts[] = {(char *)"early", NULL}, *waits[] = {(char *)"-f", (char *)"/dev/null", NULL};
    char *commands[] = {own_name, (char *)"tail"}, **words[] = {aborts, waits};
    const int counts[] = {1, 1};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Comm inter = MPI_COMM_WORLD, next;
    int found = -1;
    int code =
        MPI_Comm_spawn_multiple(2, commands, words, counts, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    CHECK_CLASS(code, MPI_ERR_SPAWN);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "called MPI_Abort with code 17") != NULL, "%s", text);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, next, &found, MPI_STATUS_IGNORE);
    CHECK_EQUAL(found, 0);
    MPI_Comm_free(&next);
}

/* Every rank gets the error, nothing stays, and the job goes on. */
static void failures(void)
{
    MPI_Info info;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect_failure("/no/such/program", MPI_INFO_NULL, CHILDREN, MPI_ERR_SPAWN);
    expect_failure("no-such-program-anywhere", MPI_INFO_NULL, 1, MPI_ERR_SPAWN);
    expect_failure("/bin/true", MPI_INFO_NULL, CHILDREN, MPI_ERR_SPAWN); /* ends before it has joined */
    expect_failure("/bin/false", MPI_INFO_NULL, 1, MPI_ERR_SPAWN);
    expect_abort();
    expect_failure("", MPI_INFO_NULL, 1, MPI_ERR_ARG);
    expect_failure(own_name, MPI_INFO_NULL, 0, MPI_ERR_ARG);
    expect_failure(own_name, MPI_INFO_NULL, -1, MPI_ERR_ARG);
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", "no-such-host");
    expect_failure(own_name, info, 2, MPI_ERR_SPAWN);
    MPI_Info_delete(info, "host");
    MPI_Info_set(info, "wdir", "/no/such/folder");
    expect_failure(own_name, info, 1, MPI_ERR_SPAWN);
    MPI_Info_delete(info, "wdir");
    static const char *const bad[] = {"abc", "", "-1", "1 s", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        MPI_Info_set(info, "timeout", bad[i]);
        expect_failure(own_name, info, 1, MPI_ERR_INFO_VALUE);
    }
    MPI_Info_set(info, "timeout", "0.3");
    expect_never_joined(info);
    MPI_Info_free(&info);
    MPI_Comm inter;
    CHECK_CLASS(MPI_Comm_spawn(own_name, NULL, 1, MPI_INFO_NULL, test_size, MPI_COMM_WORLD, &inter, NULL),
                MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Comm_spawn(own_name, NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_NULL, &inter, NULL), MPI_ERR_COMM);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void soft(void)
{
    char *words[] = {(char *)"none", NULL};
    int codes[5], size;
    MPI_Info info;
    MPI_Comm inter;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", "1,3:4:2,9:100");
    MPI_Comm_spawn(own_name, words, 5, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_remote_size(inter, &size);
    CHECK_EQUAL(size, 3);
    CHECK(codes[2] == MPI_SUCCESS && codes[3] != MPI_SUCCESS, "%d %d", codes[2], codes[3]);
    MPI_Comm_disconnect(&inter);
    /* Each command has its own: three of four, and all of two. */
    char *commands[] = {own_name, own_name}, **several[] = {words, words};
    const int counts[] = {4, 2};
    const MPI_Info infos[] = {info, MPI_INFO_NULL};
    int each[6] = {-1, -1, -1, -1, -1, -1};
    static const bool started[] = {true, true, true, false, true, true};
    MPI_Comm_spawn_multiple(2, commands, several, counts, infos, test_size - 1, MPI_COMM_WORLD, &inter,
                            test_rank % 2 == 0 ? each : MPI_ERRCODES_IGNORE);
    MPI_Comm_remote_size(inter, &size);
    CHECK_EQUAL(size, 5);
    for (int i = 0; i < 6 && test_rank % 2 == 0; i++)
        CHECK_EQUAL(each[i] == MPI_SUCCESS, started[i]);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
}

/* There is room for the processes that run, and those who have asked are told no less. */
static void universe(void)
{
    int *value = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    CHECK(flag && *value >= test_size && *value < 1 << 20, "%d", flag ? *value : -1);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    own_name = argv[0];
    test_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent, argc > 1 ? argv[1] : "");
        return test_end();
    }
    inter = start("meet", CHILDREN, 0);
    meet(inter, false);
    MPI_Comm_disconnect(&inter);
    inter = start("deeper", 2, test_size - 1);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    several_programs();
    alone();
    universe();
    if (!test_peer()) {
        soft();
        failures();
        many();
    }
    return test_end();
}
