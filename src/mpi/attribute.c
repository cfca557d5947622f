/* Attributes (MPI-5.0, 7.7): keys and values. */
#include "mpi/attribute.h"

#include <stdlib.h>

#include <tombolo.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"

#define KEYVAL_FIRST 4096
#define KEYVAL_LIMIT 4096u

/* A key of the program; it lives until it is freed and no object has a value for it. Which members of the unions are
 * meant follows from the kind. */
struct tb_keyval {
    enum tb_bearer_kind kind;
    union {
        MPI_Comm_copy_attr_function *comm;
        MPI_Type_copy_attr_function *type;
        MPI_Win_copy_attr_function *win;
    } copy;
    union {
        MPI_Comm_delete_attr_function *comm;
        MPI_Type_delete_attr_function *type;
        MPI_Win_delete_attr_function *win;
    } delete;
    void *state;
    uint32_t references; /* the program's and those of values; 0: free */
    bool freed;
};

struct tb_attribute {
    struct tb_attribute *next; /* the one set before */
    int keyval;
    bool leaving; /* a thread calls the delete function for it; only that one takes it away for good */
    bool gone;    /* and another one has set a new value meanwhile: it is in no list any more */
    void *value;
};

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* A copy of the key, since the table may move; false if there is none of this kind. Locked. */
static bool keyval_look(enum tb_bearer_kind kind, int keyval, struct tb_keyval *copy)
{
    uint32_t at = (uint32_t)keyval - KEYVAL_FIRST;
    bool there = keyval >= KEYVAL_FIRST && at < tb_self.keyval_room && tb_self.keyvals[at].references > 0 &&
                 tb_self.keyvals[at].kind == kind;
    if (there)
        *copy = tb_self.keyvals[at];
    return there;
}

static bool keyval_get(enum tb_bearer_kind kind, int keyval, struct tb_keyval *copy)
{
    tb_self_lock();
    bool there = keyval_look(kind, keyval, copy);
    tb_self_unlock();
    return there;
}

/* Of a key that lives. Locked. */
static void keyval_count(int keyval, int change)
{
    tb_self.keyvals[keyval - KEYVAL_FIRST].references += (uint32_t)change;
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

static const char *const keyval_names[] = {"comm_keyval", "type_keyval", "win_keyval"};

static int keyval_create(const char *call, struct tb_keyval *key, int *keyval)
{
    if (keyval == NULL)
        return tb_raise_null(NULL, call, 3, keyval_names[key->kind]);
    key->references = 1;
    tb_self_lock();
    int made = keyval_take(key);
    tb_self_unlock();
    if (made < 0)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "there is no room for more than %u keys", KEYVAL_LIMIT);
    *keyval = made;
    return MPI_SUCCESS;
}

/* With the error handler of the object; NULL: of the process. */
static int bearer_raise(const struct tb_bearer *bearer, int code)
{
    if (bearer != NULL && bearer->errhandler != NULL) {
        MPI_Win win = bearer->handle;
        return tb_raise_to(bearer->errhandler, &win, code);
    }
    return tb_raise_code(bearer != NULL ? bearer->comm : NULL, code);
}

static const char *keyval_fault(enum tb_bearer_kind kind, int keyval)
{
    if (keyval == MPI_KEYVAL_INVALID)
        return "it is MPI_KEYVAL_INVALID";
    if ((keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) || (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL))
        return "this attribute is the standard's and cannot be changed";
    if (kind == TB_BEARER_COMM && keyval >= TOMBOLO_TOPOLOGY_DEPTHS && keyval <= TOMBOLO_TOPOLOGY_LEVELS)
        return "this attribute is Tombolo's and cannot be changed";
    return "this is no key of the program's";
}

static int raise_keyval(const struct tb_bearer *bearer, enum tb_bearer_kind kind, const char *call, int position,
                        int keyval)
{
    static const char *const what_for[] = {"communicators", "datatypes", "windows"};
    struct tb_keyval key;
    for (int other = 0; other < 3; other++)
        if (keyval_get((enum tb_bearer_kind)other, keyval, &key) && (enum tb_bearer_kind)other != kind)
            return bearer_raise(bearer, tb_error_code(MPI_ERR_KEYVAL, call,
                                                      "argument %d (%s): this key is for attributes of %s, not of %s",
                                                      position, keyval_names[kind], what_for[other], what_for[kind]));
    return bearer_raise(bearer, tb_error_code(MPI_ERR_KEYVAL, call, "argument %d (%s): %s", position,
                                              keyval_names[kind], keyval_fault(kind, keyval)));
}

static int keyval_free(const char *call, enum tb_bearer_kind kind, int *keyval)
{
    struct tb_keyval key;
    if (keyval == NULL)
        return tb_raise_null(NULL, call, 1, keyval_names[kind]);
    if (!keyval_get(kind, *keyval, &key))
        return raise_keyval(NULL, kind, call, 1, *keyval);
    tb_self_lock();
    struct tb_keyval *k = &tb_self.keyvals[*keyval - KEYVAL_FIRST];
    if (!k->freed) /* while values keep it, freeing it again changes nothing */
        k->references--;
    k->freed = true;
    tb_self_unlock();
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                              MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state)
{
    struct tb_keyval key = {.kind = TB_BEARER_COMM, .state = extra_state};
    key.copy.comm = comm_copy_attr_fn;
    key.delete.comm = comm_delete_attr_fn;
    return keyval_create("MPI_Comm_create_keyval", &key, comm_keyval);
}

int tb_mpi_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
                              MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state)
{
    struct tb_keyval key = {.kind = TB_BEARER_TYPE, .state = extra_state};
    key.copy.type = type_copy_attr_fn;
    key.delete.type = type_delete_attr_fn;
    return keyval_create("MPI_Type_create_keyval", &key, type_keyval);
}

int tb_mpi_Win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn,
                             MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval, void *extra_state)
{
    struct tb_keyval key = {.kind = TB_BEARER_WIN, .state = extra_state};
    key.copy.win = win_copy_attr_fn;
    key.delete.win = win_delete_attr_fn;
    return keyval_create("MPI_Win_create_keyval", &key, win_keyval);
}

int tb_mpi_Comm_free_keyval(int *comm_keyval)
{
    return keyval_free("MPI_Comm_free_keyval", TB_BEARER_COMM, comm_keyval);
}

int tb_mpi_Type_free_keyval(int *type_keyval)
{
    return keyval_free("MPI_Type_free_keyval", TB_BEARER_TYPE, type_keyval);
}

int tb_mpi_Win_free_keyval(int *win_keyval)
{
    return keyval_free("MPI_Win_free_keyval", TB_BEARER_WIN, win_keyval);
}

/* ---- the program's functions ------------------------------------------------------------------------------------- */

static int call_copy(const struct tb_keyval *key, void *handle, int keyval, void *value, void **copy, int *wanted)
{
    *wanted = 0;
    switch (key->kind) {
    case TB_BEARER_COMM:
        if (key->copy.comm == MPI_COMM_NULL_COPY_FN)
            return MPI_SUCCESS;
        if (key->copy.comm != MPI_COMM_DUP_FN)
            return key->copy.comm(handle, keyval, key->state, value, copy, wanted);
        break;
    case TB_BEARER_TYPE:
        if (key->copy.type == MPI_TYPE_NULL_COPY_FN)
            return MPI_SUCCESS;
        if (key->copy.type != MPI_TYPE_DUP_FN)
            return key->copy.type(handle, keyval, key->state, value, copy, wanted);
        break;
    case TB_BEARER_WIN:
        return MPI_SUCCESS; /* windows are not duplicated */
    }
    *copy = value;
    *wanted = 1;
    return MPI_SUCCESS;
}

static int call_delete(const struct tb_keyval *key, void *handle, int keyval, void *value)
{
    switch (key->kind) {
    case TB_BEARER_COMM:
        return key->delete.comm == MPI_COMM_NULL_DELETE_FN ? MPI_SUCCESS
                                                           : key->delete.comm(handle, keyval, value, key->state);
    case TB_BEARER_TYPE:
        return key->delete.type == MPI_TYPE_NULL_DELETE_FN ? MPI_SUCCESS
                                                           : key->delete.type(handle, keyval, value, key->state);
    default:
        return key->delete.win == MPI_WIN_NULL_DELETE_FN ? MPI_SUCCESS
                                                         : key->delete.win(handle, keyval, value, key->state);
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The lock is held while they are looked at and changed, and never while a function of the program's is called. */

static struct tb_attribute **attribute_place(struct tb_attributes *attributes, int keyval)
{
    struct tb_attribute **place = &attributes->newest;
    while (*place != NULL && (*place)->keyval != keyval)
        place = &(*place)->next;
    return place;
}

/* The one of the key, or, for MPI_KEYVAL_INVALID, the newest; from now on it is for the caller to take away. NULL:
 * there is none, or another thread does that already. */
static struct tb_attribute *attribute_claim(struct tb_attributes *attributes, int keyval)
{
    tb_self_lock();
    struct tb_attribute *a = attributes->newest;
    while (a != NULL && (a->leaving || (keyval != MPI_KEYVAL_INVALID && a->keyval != keyval)))
        a = a->next;
    if (a != NULL)
        a->leaving = true;
    tb_self_unlock();
    return a;
}

/* Calls the program's delete function for what was claimed and, if that agrees, takes the attribute away. The function
 * may change the object's other attributes. */
static int attribute_remove(const struct tb_bearer *bearer, struct tb_attribute *claimed)
{
    struct tb_keyval key = {.kind = bearer->kind};
    keyval_get(bearer->kind, claimed->keyval, &key);
    int code = call_delete(&key, bearer->handle, claimed->keyval, claimed->value);
    tb_self_lock();
    bool ends = code == MPI_SUCCESS || claimed->gone;
    claimed->leaving = ends;
    if (ends && !claimed->gone)
        *attribute_place(bearer->attributes, claimed->keyval) = claimed->next;
    if (ends)
        keyval_count(claimed->keyval, -1);
    tb_self_unlock();
    if (ends)
        free(claimed);
    return code;
}

static struct tb_attribute *attribute_new(int keyval, void *value)
{
    struct tb_attribute *attribute = malloc(sizeof *attribute);
    if (attribute != NULL)
        *attribute = (struct tb_attribute){.keyval = keyval, .value = value};
    return attribute;
}

/* Only if the object has none of the key but one that leaves. */
static bool attribute_add(struct tb_attributes *attributes, struct tb_attribute *attribute)
{
    tb_self_lock();
    struct tb_attribute **place = attribute_place(attributes, attribute->keyval), *old = *place;
    bool fits = old == NULL || old->leaving;
    if (fits && old != NULL) {
        *place = old->next;
        old->gone = true;
    }
    if (fits) {
        attribute->next = attributes->newest;
        attributes->newest = attribute;
        keyval_count(attribute->keyval, 1);
    }
    tb_self_unlock();
    return fits;
}

int tb_attributes_delete(const struct tb_bearer *bearer)
{
    int code = MPI_SUCCESS;
    struct tb_attribute *old;
    while (code == MPI_SUCCESS && (old = attribute_claim(bearer->attributes, MPI_KEYVAL_INVALID)) != NULL)
        code = attribute_remove(bearer, old);
    return code;
}

/* What is to be copied: the value and its key, which is held. */
struct original {
    int keyval;
    void *value;
    struct tb_keyval key;
};

/* All that do not leave, newest first; false: no memory. */
static bool originals_take(const struct tb_bearer *from, struct original **originals, uint32_t *count)
{
    uint32_t room = 0, n = 0;
    tb_self_lock();
    for (const struct tb_attribute *a = from->attributes->newest; a != NULL; a = a->next)
        room++;
    struct original *all = room > 0 ? malloc(room * sizeof *all) : NULL;
    for (const struct tb_attribute *a = from->attributes->newest; a != NULL && all != NULL; a = a->next) {
        all[n] = (struct original){.keyval = a->keyval, .value = a->value};
        if (a->leaving || !keyval_look(from->kind, a->keyval, &all[n].key))
            continue;
        keyval_count(a->keyval, 1);
        n++;
    }
    tb_self_unlock();
    *originals = all;
    *count = n;
    return room == 0 || all != NULL;
}

static void originals_give(struct original *originals, uint32_t count)
{
    tb_self_lock();
    for (uint32_t i = 0; i < count; i++)
        keyval_count(originals[i].keyval, -1);
    tb_self_unlock();
    free(originals);
}

static int copy_one(const struct tb_bearer *from, const struct original *o, struct tb_attributes *to)
{
    void *value = NULL;
    int wanted = 0, code = call_copy(&o->key, from->handle, o->keyval, o->value, &value, &wanted);
    if (code != MPI_SUCCESS || !wanted)
        return code;
    struct tb_attribute *made = attribute_new(o->keyval, value);
    if (made == NULL)
        return tb_error_code(MPI_ERR_NO_MEM, "copying attributes", "out of memory for an attribute");
    bool added = attribute_add(to, made);
    TB_ASSERT(added); /* nobody else has this object yet */
    return MPI_SUCCESS;
}

int tb_attributes_copy(const struct tb_bearer *from, struct tb_attributes *to)
{
    struct original *originals;
    uint32_t count;
    int code = MPI_SUCCESS;
    if (!originals_take(from, &originals, &count))
        return tb_error_code(MPI_ERR_NO_MEM, "copying attributes", "out of memory for a list of them");
    for (uint32_t i = count; i-- > 0 && code == MPI_SUCCESS;)
        code = copy_one(from, &originals[i], to);
    originals_give(originals, count);
    return code;
}

int tb_attribute_set(const struct tb_bearer *bearer, const char *call, int keyval, void *value)
{
    struct tb_keyval key;
    if (!keyval_get(bearer->kind, keyval, &key))
        return raise_keyval(bearer, bearer->kind, call, 2, keyval);
    int code = MPI_SUCCESS;
    struct tb_attribute *made = attribute_new(keyval, value);
    if (made == NULL)
        code = tb_error_code(MPI_ERR_NO_MEM, call, "out of memory for an attribute");
    while (code == MPI_SUCCESS) {
        struct tb_attribute *old = attribute_claim(bearer->attributes, keyval);
        if (old != NULL)
            code = attribute_remove(bearer, old);
        if (code == MPI_SUCCESS && attribute_add(bearer->attributes, made))
            return MPI_SUCCESS;
    }
    free(made);
    return bearer_raise(bearer, code);
}

int tb_attribute_get(const struct tb_bearer *bearer, const char *call, int keyval, void *attribute_val, int *flag)
{
    struct tb_keyval key;
    if (attribute_val == NULL || flag == NULL)
        return bearer_raise(bearer, tb_error_code(MPI_ERR_ARG, call, "argument %d (%s): the pointer is null",
                                                  attribute_val == NULL ? 3 : 4,
                                                  attribute_val == NULL ? "attribute_val" : "flag"));
    tb_self_lock();
    bool valid = keyval_look(bearer->kind, keyval, &key);
    const struct tb_attribute *attribute = valid ? *attribute_place(bearer->attributes, keyval) : NULL;
    void *value = attribute != NULL ? attribute->value : NULL;
    tb_self_unlock();
    if (!valid)
        return raise_keyval(bearer, bearer->kind, call, 2, keyval);
    *flag = attribute != NULL;
    if (attribute != NULL)
        *(void **)attribute_val = value;
    return MPI_SUCCESS;
}

int tb_attribute_delete(const struct tb_bearer *bearer, const char *call, int keyval)
{
    struct tb_keyval key;
    if (!keyval_get(bearer->kind, keyval, &key))
        return raise_keyval(bearer, bearer->kind, call, 2, keyval);
    struct tb_attribute *old = attribute_claim(bearer->attributes, keyval);
    int code = old != NULL ? attribute_remove(bearer, old) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? code : bearer_raise(bearer, code);
}
