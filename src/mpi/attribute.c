/* Attributes of communicators (MPI-5.0, 7.7 and 9.1.2): those that exist from the start and those of the program. */
#include <limits.h>
#include <stdlib.h>

#include "mpi/comm.h"
#include "mpi/face_decls.h"

#define KEYVAL_FIRST 4096
#define KEYVAL_LIMIT 4096u

/* A key of the program; it lives until it is freed and no communicator has a value for it. */
struct tb_keyval {
    MPI_Comm_copy_attr_function *copy;
    MPI_Comm_delete_attr_function *delete;
    void *state;
    uint32_t references; /* the program's and those of values; 0: free */
    bool freed;
};

struct tb_attribute {
    struct tb_attribute *next; /* the one set before */
    int keyval;
    void *value;
};

/* ---- keys ----------------------------------------------------------------------------------------------------------
 */

/* A copy of the key, taken under the lock since the table may move; false if there is none. */
static bool keyval_get(int keyval, struct tb_keyval *copy)
{
    tb_self_lock();
    uint32_t at = (uint32_t)keyval - KEYVAL_FIRST;
    bool there = keyval >= KEYVAL_FIRST && at < tb_self.keyval_room && tb_self.keyvals[at].references > 0;
    if (there)
        *copy = tb_self.keyvals[at];
    tb_self_unlock();
    return there;
}

static void keyval_count(int keyval, int change)
{
    tb_self_lock();
    tb_self.keyvals[keyval - KEYVAL_FIRST].references += (uint32_t)change;
    tb_self_unlock();
}

/* Room for a new key, entered; -1: none. Locked. */
static int keyval_take(const struct tb_keyval *key)
{
    uint32_t at = 0;
    while (at < tb_self.keyval_room && tb_self.keyvals[at].references > 0)
        at++;
    if (at == tb_self.keyval_room) {
        uint32_t room = at == 0 ? 16 : 2 * at;
        struct tb_keyval *keys = room > KEYVAL_LIMIT ? NULL : realloc(tb_self.keyvals, room * sizeof *keys);
        if (keys == NULL)
            return -1;
        for (uint32_t i = at; i < room; i++)
            keys[i].references = 0;
        tb_self.keyvals = keys;
        tb_self.keyval_room = room;
    }
    tb_self.keyvals[at] = *key;
    return KEYVAL_FIRST + (int)at;
}

int tb_mpi_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                              MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state)
{
    static const char call[] = "MPI_Comm_create_keyval";
    if (comm_keyval == NULL)
        return tb_raise_null(NULL, call, 3, "comm_keyval");
    struct tb_keyval key = {comm_copy_attr_fn, comm_delete_attr_fn, extra_state, 1, false};
    tb_self_lock();
    int keyval = keyval_take(&key);
    tb_self_unlock();
    if (keyval < 0)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "there is no room for more than %u keys", KEYVAL_LIMIT);
    *comm_keyval = keyval;
    return MPI_SUCCESS;
}

static int raise_keyval(struct tb_comm *comm, const char *call, int position, int keyval)
{
    const char *what = "this is no key of the program's";
    if (keyval == MPI_KEYVAL_INVALID)
        what = "it is MPI_KEYVAL_INVALID";
    if (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE)
        what = "this attribute is the standard's and cannot be changed";
    return tb_raise_argument(comm, MPI_ERR_KEYVAL, call, position, "comm_keyval", "%s", what);
}

int tb_mpi_Comm_free_keyval(int *comm_keyval)
{
    static const char call[] = "MPI_Comm_free_keyval";
    struct tb_keyval key;
    if (comm_keyval == NULL)
        return tb_raise_null(NULL, call, 1, "comm_keyval");
    if (!keyval_get(*comm_keyval, &key) || key.freed)
        return raise_keyval(NULL, call, 1, *comm_keyval);
    tb_self_lock();
    struct tb_keyval *k = &tb_self.keyvals[*comm_keyval - KEYVAL_FIRST];
    k->freed = true;
    k->references--;
    tb_self_unlock();
    *comm_keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

/* ---- values --------------------------------------------------------------------------------------------------------
 */

static struct tb_attribute **attribute_place(struct tb_comm *comm, int keyval)
{
    struct tb_attribute **place = &comm->attributes;
    while (*place != NULL && (*place)->keyval != keyval)
        place = &(*place)->next;
    return place;
}

/* Calls the program's delete function and, if that agrees, takes the attribute away. */
static int attribute_delete(struct tb_comm *comm, struct tb_attribute **place)
{
    struct tb_attribute *attribute = *place;
    struct tb_keyval key = {0};
    keyval_get(attribute->keyval, &key);
    int code = MPI_SUCCESS;
    if (key.delete != MPI_COMM_NULL_DELETE_FN)
        code = key.delete(tb_comm_handle(comm), attribute->keyval, attribute->value, key.state);
    if (code != MPI_SUCCESS)
        return code;
    place = attribute_place(comm, attribute->keyval); /* the function may have changed others */
    TB_ASSERT(*place == attribute);
    *place = attribute->next;
    keyval_count(attribute->keyval, -1);
    free(attribute);
    return MPI_SUCCESS;
}

static int attribute_add(struct tb_comm *comm, int keyval, void *value)
{
    struct tb_attribute *attribute = malloc(sizeof *attribute);
    if (attribute == NULL)
        return tb_error_code(MPI_ERR_NO_MEM, "MPI_Comm_set_attr", "out of memory for an attribute");
    *attribute = (struct tb_attribute){comm->attributes, keyval, value};
    comm->attributes = attribute;
    keyval_count(keyval, 1);
    return MPI_SUCCESS;
}

int tb_attributes_delete(struct tb_comm *comm)
{
    int code = MPI_SUCCESS;
    while (comm->attributes != NULL && code == MPI_SUCCESS)
        code = attribute_delete(comm, &comm->attributes);
    return code;
}

/* Oldest first, so that the copies are in the same order. */
static int copy_from(struct tb_comm *from, const struct tb_attribute *attribute, struct tb_comm *to)
{
    if (attribute == NULL)
        return MPI_SUCCESS;
    int code = copy_from(from, attribute->next, to);
    struct tb_keyval key;
    if (code != MPI_SUCCESS || !keyval_get(attribute->keyval, &key) || key.copy == MPI_COMM_NULL_COPY_FN)
        return code;
    void *value = attribute->value;
    int wanted = 1;
    if (key.copy != MPI_COMM_DUP_FN) {
        wanted = 0;
        code = key.copy(tb_comm_handle(from), attribute->keyval, key.state, attribute->value, &value, &wanted);
    }
    return code == MPI_SUCCESS && wanted ? attribute_add(to, attribute->keyval, value) : code;
}

int tb_attributes_copy(struct tb_comm *from, struct tb_comm *to)
{
    return copy_from(from, from->attributes, to);
}

int tb_mpi_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
    static const char call[] = "MPI_Comm_set_attr";
    struct tb_keyval key;
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (!keyval_get(comm_keyval, &key))
        return raise_keyval(c, call, 2, comm_keyval);
    struct tb_attribute **place = attribute_place(c, comm_keyval);
    int code = *place != NULL ? attribute_delete(c, place) : MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        code = attribute_add(c, comm_keyval, attribute_val);
    return code == MPI_SUCCESS ? code : tb_raise_code(c, code);
}

/* The value of an attribute that exists from the start, or NULL. */
static int *predefined_value(int keyval)
{
    struct tb_facts *facts = &tb_self.facts;
    switch (keyval) {
    case MPI_TAG_UB:
        facts->tag_bound = INT_MAX;
        return &facts->tag_bound;
    case MPI_IO:
        facts->io = MPI_ANY_SOURCE;
        return &facts->io;
    case MPI_HOST:
        facts->host = MPI_PROC_NULL;
        return &facts->host;
    case MPI_WTIME_IS_GLOBAL:
        facts->global_time = 0;
        return &facts->global_time;
    case MPI_LASTUSEDCODE:
        facts->last_code = tb_error_last_used();
        return &facts->last_code;
    case MPI_UNIVERSE_SIZE:
        facts->universe = (int)tb_self.job.size;
        return &facts->universe;
    default: /* MPI_APPNUM is not known */
        return NULL;
    }
}

int tb_mpi_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    static const char call[] = "MPI_Comm_get_attr";
    struct tb_keyval key;
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (attribute_val == NULL || flag == NULL)
        return tb_raise_null(c, call, attribute_val == NULL ? 3 : 4, attribute_val == NULL ? "attribute_val" : "flag");
    if (comm_keyval >= MPI_TAG_UB && comm_keyval <= MPI_UNIVERSE_SIZE) {
        int *value = predefined_value(comm_keyval);
        *flag = value != NULL;
        if (value != NULL)
            *(void **)attribute_val = value;
        return MPI_SUCCESS;
    }
    if (!keyval_get(comm_keyval, &key))
        return raise_keyval(c, call, 2, comm_keyval);
    const struct tb_attribute *attribute = *attribute_place(c, comm_keyval);
    *flag = attribute != NULL;
    if (attribute != NULL)
        *(void **)attribute_val = attribute->value;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
    static const char call[] = "MPI_Comm_delete_attr";
    struct tb_keyval key;
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (!keyval_get(comm_keyval, &key))
        return raise_keyval(c, call, 2, comm_keyval);
    struct tb_attribute **place = attribute_place(c, comm_keyval);
    if (*place == NULL)
        return MPI_SUCCESS;
    int code = attribute_delete(c, place);
    return code == MPI_SUCCESS ? code : tb_raise_code(c, code);
}
