/* Names that are published in a job: found by all of its ranks, waited for, replaced, withdrawn. */
#include "test.h"

static char port[MPI_MAX_PORT_NAME];

static MPI_Info info_of(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* Each rank publishes, and each finds all of them. */
static void all_publish(void)
{
    char name[64], own[64];
    MPI_Info wait = info_of("tombolo_timeout", "60");
    snprintf(name, sizeof name, "service of %d", test_rank);
    snprintf(own, sizeof own, "port of %d", test_rank);
    CHECK_EQUAL(MPI_Publish_name(name, MPI_INFO_NULL, own), MPI_SUCCESS);
    for (int i = 0; i < test_size; i++) {
        char theirs[64], expected[64];
        snprintf(theirs, sizeof theirs, "service of %d", (i + test_rank) % test_size);
        snprintf(expected, sizeof expected, "port of %d", (i + test_rank) % test_size);
        CHECK_EQUAL(MPI_Lookup_name(theirs, wait, port), MPI_SUCCESS);
        CHECK(strcmp(port, expected) == 0, "\"%s\"", port);
    }
    MPI_Info_free(&wait);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(MPI_Unpublish_name(name, MPI_INFO_NULL, own), MPI_SUCCESS);
    CHECK_CLASS(MPI_Unpublish_name(name, MPI_INFO_NULL, own), MPI_ERR_SERVICE);
    CHECK_CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One name, of which the first has it; another port in its place only if that is asked for. */
static void one_has_it(void)
{
    int code = MPI_Publish_name("once", MPI_INFO_NULL, "some port"), got = code == MPI_SUCCESS, sum = 0;
    if (code != MPI_SUCCESS)
        CHECK_CLASS(code, MPI_ERR_SERVICE);
    MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(sum, 1);
    CHECK_CLASS(MPI_Unpublish_name("once", MPI_INFO_NULL, "another port"), MPI_ERR_SERVICE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == test_size - 1) {
        MPI_Info replace = info_of("tombolo_replace", "true"), unlike = info_of("ompi_unique", "false");
        CHECK_EQUAL(MPI_Publish_name("once", replace, "newer port"), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Publish_name("once", unlike, "newest port"), MPI_SUCCESS);
        MPI_Info_free(&replace);
        MPI_Info_free(&unlike);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(MPI_Lookup_name("once", MPI_INFO_NULL, port), MPI_SUCCESS);
    CHECK(strcmp(port, "newest port") == 0, "\"%s\"", port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0)
        CHECK_EQUAL(MPI_Unpublish_name("once", MPI_INFO_NULL, "newest port"), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void errors(void)
{
    static char longest[MPI_MAX_PORT_NAME + 1], text[MPI_MAX_ERROR_STRING];
    MPI_Info brief = info_of("tombolo_timeout", "0.05"), wrong = info_of("tombolo_timeout", "soon");
    int length = 0;
    memset(longest, 'x', sizeof longest - 1);
    CHECK_CLASS(MPI_Publish_name(NULL, MPI_INFO_NULL, "p"), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Publish_name("s", MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Publish_name("", MPI_INFO_NULL, "p"), MPI_ERR_SERVICE);
    CHECK_CLASS(MPI_Publish_name(longest, MPI_INFO_NULL, "p"), MPI_ERR_SERVICE);
    CHECK_CLASS(MPI_Publish_name("s", MPI_INFO_NULL, ""), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Publish_name("s", MPI_INFO_NULL, longest), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Publish_name("s", (MPI_Info)&length, "p"), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Lookup_name("s", MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Lookup_name("s", wrong, port), MPI_ERR_INFO_VALUE);
    double begin = test_now();
    int code = MPI_Lookup_name("never", brief, port);
    CHECK_CLASS(code, MPI_ERR_NAME);
    CHECK(test_now() - begin >= 0.05, "%g s", test_now() - begin);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "\"never\"") != NULL, "%s", text);
    longest[MPI_MAX_PORT_NAME - 1] = 0;
    char name[64];
    snprintf(name, sizeof name, "long of %d", test_rank);
    CHECK_EQUAL(MPI_Publish_name(name, MPI_INFO_NULL, longest), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
    CHECK(strcmp(port, longest) == 0, "%zu bytes", strlen(port));
    MPI_Info_free(&brief);
    MPI_Info_free(&wrong);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    all_publish();
    one_has_it();
    errors();
    return test_end();
}
