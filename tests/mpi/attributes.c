/* Attributes: when their functions are called, with what, in which order; on duplicates, on freeing, at the end. Hints
 * and error handlers of duplicates. */
#include "test.h"

#define KEYS 5

static int keys[KEYS];
static char log_text[200]; /* what was called: c and d with the number of the key */
static int fail_copy = -1, fail_delete = -1;

static int number(int keyval)
{
    for (int i = 0; i < KEYS; i++)
        if (keys[i] == keyval)
            return i;
    return 9;
}

static void note(char what, int keyval)
{
    size_t n = strlen(log_text);
    snprintf(log_text + n, sizeof log_text - n, "%c%d", what, number(keyval));
}

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    note('c', keyval);
    CHECK(state == &keys[number(keyval)], "the wrong state for key %d", number(keyval));
    if (number(keyval) == fail_copy)
        return MPI_ERR_OTHER;
    *(void **)out = (char *)in + 1;
    *flag = number(keyval) != 3;
    return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *state)
{
    note('d', keyval);
    CHECK(state == &keys[number(keyval)], "the wrong state for key %d", number(keyval));
    return number(keyval) == fail_delete ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Only Tombolo promises an order where there are several. */
static void expect_log(const char *expected)
{
    bool any_order = test_peer() && strlen(expected) > 2 && strlen(log_text) == strlen(expected);
    CHECK(any_order || strcmp(log_text, expected) == 0, "the calls \"%s\" instead of \"%s\"", log_text, expected);
    log_text[0] = 0;
}

static void expect_value(MPI_Comm comm, int key, bool there, char *value)
{
    int flag = -1;
    void *got = NULL;
    MPI_Comm_get_attr(comm, keys[key], &got, &flag);
    CHECK(flag == there, "key %d: flag %d", key, flag);
    if (there)
        CHECK(got == value, "key %d: value %p instead of %p", key, got, (void *)value);
}

static void life(void)
{
    static char values[10];
    MPI_Comm a, b, c;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN);
    for (int i = KEYS - 1; i >= 0; i--)
        MPI_Comm_set_attr(a, keys[i], &values[i]);
    expect_log("");
    MPI_Comm_set_attr(a, keys[2], &values[7]); /* the old value goes first */
    expect_log("d2");
    expect_value(a, 2, true, &values[7]);
    MPI_Comm_delete_attr(a, keys[1]);
    expect_log("d1");
    expect_value(a, 1, false, NULL);
    MPI_Comm_dup(a, &b); /* set in the order 4 3 0 2 */
    expect_log("c4c3c0c2");
    expect_value(b, 4, true, &values[5]);
    expect_value(b, 3, false, NULL);
    expect_value(b, 2, true, &values[8]);
    expect_value(b, 0, true, &values[1]);
    expect_value(a, 0, true, &values[0]);
    MPI_Comm_idup(b, &c, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_log("c4c0c2");
    expect_value(c, 4, true, &values[6]);
    MPI_Comm_free(&c);
    expect_log("d2d0d4"); /* newest first */
    MPI_Comm_free(&b);
    expect_log("d2d0d4");
    fail_delete = 3;
    CHECK_CLASS(MPI_Comm_delete_attr(a, keys[3]), MPI_ERR_OTHER);
    expect_value(a, 3, true, &values[3]);
    CHECK_CLASS(MPI_Comm_free(&a), MPI_ERR_OTHER);
    CHECK(a != MPI_COMM_NULL, "freed although %s", "a delete function refused");
    fail_delete = -1;
    log_text[0] = 0;
    fail_copy = 3;
    b = MPI_COMM_WORLD;
    CHECK_CLASS(MPI_Comm_dup(a, &b), MPI_ERR_OTHER);
    CHECK(b == MPI_COMM_NULL, "a duplicate although %s", "a copy function refused");
    CHECK_CLASS(MPI_Comm_idup(a, &b, &request), MPI_ERR_OTHER);
    fail_copy = -1;
    log_text[0] = 0;
    MPI_Barrier(a);
    MPI_Comm_free(&a);
    log_text[0] = 0;
}

static void predefined_functions(void)
{
    MPI_Comm a, b;
    int keep = 0, lose = 0, flag = -1;
    char value;
    void *got = NULL;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keep, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &lose, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &a);
    MPI_Comm_set_attr(a, keep, &value);
    MPI_Comm_set_attr(a, lose, &value);
    MPI_Comm_dup(a, &b);
    MPI_Comm_get_attr(b, keep, &got, &flag);
    CHECK(flag && got == &value, "flag %d", flag);
    MPI_Comm_get_attr(b, lose, &got, &flag);
    CHECK_EQUAL(flag, 0);
    int copy_of_key = keep;
    MPI_Comm_free_keyval(&keep); /* in use: values stay */
    CHECK_EQUAL(keep, MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(b, copy_of_key, &got, &flag);
    CHECK(flag && got == &value, "flag %d", flag);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    MPI_Comm_free_keyval(&lose);
}

static void wrong(void)
{
    MPI_Comm comm;
    int flag, type_key = 0, gone = 0, invalid = MPI_KEYVAL_INVALID;
    void *value;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    CHECK_CLASS(MPI_Comm_set_attr(comm, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_set_attr(comm, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_delete_attr(comm, MPI_TAG_UB), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_get_attr(comm, 4711, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_free_keyval(&invalid), MPI_ERR_KEYVAL);
    if (!test_peer())
        CHECK_CLASS(MPI_Comm_set_attr(comm, type_key, NULL), MPI_ERR_KEYVAL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &gone, NULL);
    int again = gone;
    MPI_Comm_free_keyval(&gone);
    CHECK_CLASS(MPI_Comm_set_attr(comm, again, NULL), MPI_ERR_KEYVAL);
    MPI_Type_free_keyval(&type_key);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

static int errors_seen;

static void count_errors(MPI_Comm *comm, int *code, ...)
{
    errors_seen++;
}

/* Every kind of offspring has its parent's error handler. */
static void handlers(void)
{
    MPI_Comm parent, children[5];
    MPI_Errhandler handler;
    MPI_Group group;
    MPI_Request request;
    int one = test_size, period = 1;
    MPI_Comm_create_errhandler(count_errors, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_errhandler(parent, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_group(parent, &group);
    MPI_Comm_dup(parent, &children[0]);
    MPI_Comm_split(parent, 1, 0, &children[1]);
    MPI_Comm_create(parent, group, &children[2]);
    MPI_Comm_idup(parent, &children[3], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Cart_create(parent, 1, &one, &period, 0, &children[4]);
    MPI_Group_free(&group);
    MPI_Comm_free(&parent);
    for (int i = 0; i < 5; i++) {
        errors_seen = 0;
        MPI_Send(NULL, 0, MPI_INT, test_size, 0, children[i]);
        CHECK_EQUAL(errors_seen, 1);
        MPI_Comm_free(&children[i]);
    }
}

static void expect_hint(MPI_Comm comm, const char *key, const char *expected)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL] = "";
    int flag = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, sizeof value - 1, value, &flag);
    CHECK(expected == NULL ? !flag : flag && strcmp(value, expected) == 0, "%s is %s", key, flag ? value : "not there");
    MPI_Info_free(&info);
}

static void hints(void)
{
    static const char key[] = "mpi_assert_no_any_tag";
    MPI_Comm a, b;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, "true");
    MPI_Info_set(info, "something_else", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a);
    MPI_Comm_dup(a, &b);
    if (!test_peer()) {
        expect_hint(MPI_COMM_WORLD, "mpi_memory_alloc_kinds", "system,mpi");
        expect_hint(a, "mpi_memory_alloc_kinds", "system,mpi");
        expect_hint(a, key, "true");
        expect_hint(a, "something_else", NULL);
        expect_hint(b, key, "false"); /* since MPI 4.0 hints are not inherited */
    }
    MPI_Comm_set_info(b, info);
    MPI_Info_set(info, key, "perhaps");
    MPI_Comm_set_info(b, info);
    if (!test_peer())
        expect_hint(b, key, "true");
    MPI_Info_free(&info);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
}

/* Those of MPI_COMM_SELF go first of all in MPI_Finalize, newest first, while MPI still works. */
static int at_end(MPI_Comm comm, int keyval, void *value, void *state)
{
    static int expected = KEYS;
    int done = -1, size = -1;
    MPI_Finalized(&done);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(!done && size == test_size, "finalized %d, %d ranks", done, size);
    CHECK_EQUAL((int)((char *)value - log_text), --expected);
    *(int *)state = expected;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int left = -1;
    test_begin(&argc, &argv);
    for (int i = 0; i < KEYS; i++)
        MPI_Comm_create_keyval(copy, delete, &keys[i], &keys[i]);
    life();
    life();
    for (int i = 0; i < KEYS; i++)
        MPI_Comm_free_keyval(&keys[i]);
    predefined_functions();
    wrong();
    handlers();
    hints();
    for (int i = 0; i < KEYS; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keys[i], &left);
        MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], log_text + i);
        MPI_Comm_free_keyval(&keys[i]);
    }
    MPI_Finalize();
    CHECK_EQUAL(left, 0);
    return test_verdict();
}
