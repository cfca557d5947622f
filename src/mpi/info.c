/* Info objects (MPI-5.0, chapter 10). */
#include "mpi/info.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* What is in an object is read and changed under a lock, whatever the level of threads (MPI-5.0, 12.4.1). No error is
 * raised meanwhile, since error handlers may use info objects. */

static void contents_lock(void)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
}

static void contents_unlock(void)
{
    pthread_mutex_unlock(&tb_self.anytime_lock);
}

struct tb_info *tb_info_new(void)
{
    return tb_handle_take(TB_OBJECT_INFO, sizeof(struct tb_info));
}

static struct tb_info_pair *info_find(const struct tb_info *info, const char *key)
{
    for (uint32_t i = 0; i < info->count; i++)
        if (strcmp(info->pairs[i].key, key) == 0)
            return &info->pairs[i];
    return NULL;
}

static struct tb_info_pair *info_append(struct tb_info *info, const char *key)
{
    if (info->count == info->room) {
        uint32_t room = info->room == 0 ? 4 : 2 * info->room;
        struct tb_info_pair *pairs = room > TB_INFO_LIMIT ? NULL : realloc(info->pairs, room * sizeof *pairs);
        if (pairs == NULL)
            return NULL;
        info->pairs = pairs;
        info->room = room;
    }
    struct tb_info_pair *pair = &info->pairs[info->count];
    *pair = (struct tb_info_pair){.key = strdup(key)};
    if (pair->key == NULL)
        return NULL;
    info->count++;
    return pair;
}

static int info_put(struct tb_info *info, const char *key, const char *value)
{
    char *copy = strdup(value);
    struct tb_info_pair *pair = info_find(info, key);
    if (copy != NULL && pair == NULL)
        pair = info_append(info, key);
    if (copy == NULL || pair == NULL) {
        free(copy);
        return tb_error(TB_ERR_MEMORY, "no room for another key");
    }
    free(pair->value);
    pair->value = copy;
    return TB_OK;
}

int tb_info_put(struct tb_info *info, const char *key, const char *value)
{
    contents_lock();
    int error = info_put(info, key, value);
    contents_unlock();
    return error;
}

static bool info_remove(struct tb_info *info, const char *key)
{
    contents_lock();
    struct tb_info_pair *pair = info_find(info, key);
    if (pair != NULL) {
        free(pair->key);
        free(pair->value);
        memmove(pair, pair + 1, (size_t)(&info->pairs[info->count] - (pair + 1)) * sizeof *pair);
        info->count--;
    }
    contents_unlock();
    return pair != NULL;
}

/* The length of a value, -1 if there is none. As much of it as fits goes into `text` of `room` bytes, with a null
 * character; nothing if room is 0. */
static int info_read(const struct tb_info *info, const char *key, char *text, size_t room)
{
    contents_lock();
    const struct tb_info_pair *pair = info_find(info, key);
    int length = pair != NULL ? (int)strlen(pair->value) : -1;
    if (pair != NULL && room > 0)
        snprintf(text, room, "%s", pair->value);
    contents_unlock();
    return length;
}

void tb_info_free(struct tb_info *info)
{
    for (uint32_t i = 0; i < info->count; i++) {
        free(info->pairs[i].key);
        free(info->pairs[i].value);
    }
    free(info->pairs);
    tb_handle_give(TB_OBJECT_INFO, info);
}

/* What is known about the start of this process, which is the same before MPI_Init, after it and after the end. Made
 * when first asked for and kept. Levels of threads are not chosen at the start, so there is no thread_level. */
static struct tb_info *info_environment(void)
{
    contents_lock();
    struct tb_info *kept = tb_self.environment;
    contents_unlock();
    if (kept != NULL)
        return kept;
    struct tb_info *info = tb_info_new();
    if (info == NULL)
        return NULL;
    const char *size = getenv("TOMBOLO_SIZE");
    char host[HOST_NAME_MAX + 1] = "";
    const char *errhandler = getenv(TB_FIRST_ERRHANDLER_VARIABLE), *kinds = getenv(TB_MEMORY_KINDS_VARIABLE);
    tb_info_put(info, "maxprocs", size != NULL ? size : "1");
    if (errhandler != NULL)
        tb_info_put(info, "mpi_initial_errhandler", errhandler);
    if (kinds != NULL)
        tb_info_put(info, "mpi_memory_alloc_kinds", kinds);
    if (gethostname(host, sizeof host - 1) == 0)
        tb_info_put(info, "host", host);
    contents_lock();
    kept = tb_self.environment; /* another thread may have been as quick */
    if (kept == NULL)
        tb_self.environment = info;
    contents_unlock();
    if (kept != NULL)
        tb_info_free(info);
    return kept != NULL ? kept : info;
}

struct tb_info *tb_info_find(MPI_Info handle)
{
    if (handle == MPI_INFO_ENV)
        return info_environment();
    return tb_table_find(&tb_self.tables[TB_OBJECT_INFO], TB_OBJECT_INFO, sizeof(struct tb_info), handle);
}

const char *tb_info_value(const struct tb_info *info, const char *key)
{
    const struct tb_info_pair *pair = info_find(info, key);
    return pair != NULL ? pair->value : NULL;
}

int tb_info_seconds(const struct tb_info *info, const char *key, uint64_t *ns)
{
    const char *value = tb_info_value(info, key);
    char *end;
    if (value == NULL)
        return TB_OK;
    double seconds = strtod(value, &end);
    if (end == value || *end != 0 || !(seconds >= 0))
        return tb_error(TB_ERR_ARGUMENT, "the info key %s is \"%.100s\", which is no number of seconds", key, value);
    *ns = (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
    return TB_OK;
}

int tb_raise_info(struct tb_comm *comm, const char *call, int position, MPI_Info handle)
{
    const char *what = "this is no handle of an info object, or it has been freed";
    if (handle == MPI_INFO_NULL)
        what = "it is MPI_INFO_NULL";
    return tb_raise_argument(comm, MPI_ERR_INFO, call, position, "info", "%s", what);
}

/* Whether a handle and a key are usable; raises what is not. */
static int check_key(const char *call, MPI_Info handle, const char *key, struct tb_info **info)
{
    *info = tb_info_find(handle);
    if (*info == NULL)
        return tb_raise_info(NULL, call, 1, handle);
    if (key == NULL || key[0] == 0)
        return tb_raise_argument(NULL, MPI_ERR_INFO_KEY, call, 2, "key",
                                 key == NULL ? "the pointer is null" : "the key is empty");
    if (strlen(key) >= MPI_MAX_INFO_KEY)
        return tb_raise_argument(NULL, MPI_ERR_INFO_KEY, call, 2, "key", "the key is longer than %d characters",
                                 MPI_MAX_INFO_KEY - 1);
    return MPI_SUCCESS;
}

static int null_pointer(const char *call, int position, const char *name)
{
    return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

int tb_mpi_Info_create(MPI_Info *info)
{
    if (info == NULL)
        return null_pointer("MPI_Info_create", 1, "info");
    struct tb_info *made = tb_info_new();
    if (made == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, "MPI_Info_create");
    *info = tb_info_handle(made);
    return MPI_SUCCESS;
}

static int info_copy(const char *call, const struct tb_info *from, MPI_Info *newinfo)
{
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : TB_OK;
    contents_lock();
    for (uint32_t i = 0; error == TB_OK && i < from->count; i++)
        error = info_put(made, from->pairs[i].key, from->pairs[i].value);
    contents_unlock();
    if (error != TB_OK) {
        if (made != NULL)
            tb_info_free(made);
        return tb_raise_below(NULL, error, call);
    }
    *newinfo = tb_info_handle(made);
    return MPI_SUCCESS;
}

int tb_mpi_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
    static const char call[] = "MPI_Info_create_env";
    if (info == NULL)
        return null_pointer(call, 3, "info");
    const struct tb_info *environment = info_environment();
    if (environment == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, call);
    return info_copy(call, environment, info);
}

int tb_mpi_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
    static const char call[] = "MPI_Info_dup";
    const struct tb_info *from = tb_info_find(info);
    if (from == NULL)
        return tb_raise_info(NULL, call, 1, info);
    if (newinfo == NULL)
        return null_pointer(call, 2, "newinfo");
    return info_copy(call, from, newinfo);
}

int tb_mpi_Info_free(MPI_Info *info)
{
    static const char call[] = "MPI_Info_free";
    if (info == NULL)
        return null_pointer(call, 1, "info");
    struct tb_info *i = tb_info_find(*info);
    if (i == NULL)
        return tb_raise_info(NULL, call, 1, *info);
    if (*info == MPI_INFO_ENV)
        return tb_raise_argument(NULL, MPI_ERR_INFO, call, 1, "info", "MPI_INFO_ENV cannot be freed");
    tb_info_free(i);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Info_set(MPI_Info info, const char *key, const char *value)
{
    static const char call[] = "MPI_Info_set";
    struct tb_info *i;
    int code = check_key(call, info, key, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (info == MPI_INFO_ENV)
        return tb_raise_argument(NULL, MPI_ERR_INFO, call, 1, "info", "MPI_INFO_ENV cannot be changed");
    if (value == NULL || strlen(value) >= MPI_MAX_INFO_VAL)
        return tb_raise_argument(NULL, MPI_ERR_INFO_VALUE, call, 3, "value",
                                 value == NULL ? "the pointer is null" : "the value is too long");
    int error = tb_info_put(i, key, value);
    return error < 0 ? tb_raise_below(NULL, error, call) : MPI_SUCCESS;
}

int tb_mpi_Info_delete(MPI_Info info, const char *key)
{
    static const char call[] = "MPI_Info_delete";
    struct tb_info *i;
    int code = check_key(call, info, key, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (info == MPI_INFO_ENV || !info_remove(i, key))
        return tb_raise_argument(NULL, MPI_ERR_INFO_NOKEY, call, 2, "key", "there is no key \"%s\"", key);
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
    static const char call[] = "MPI_Info_get_string";
    struct tb_info *i;
    int code = check_key(call, info, key, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (buflen == NULL || flag == NULL || (*buflen > 0 && value == NULL))
        return null_pointer(call,
                            buflen == NULL ? 3
                            : flag == NULL ? 5
                                           : 4,
                            buflen == NULL ? "buflen"
                            : flag == NULL ? "flag"
                                           : "value");
    int length = info_read(i, key, value, *buflen > 0 ? (size_t)*buflen : 0);
    *flag = length >= 0;
    if (length >= 0)
        *buflen = length + 1;
    return MPI_SUCCESS;
}

int tb_mpi_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
    static const char call[] = "MPI_Info_get";
    struct tb_info *i;
    int code = check_key(call, info, key, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (valuelen < 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 3, "valuelen", "%d is negative", valuelen);
    if (value == NULL || flag == NULL)
        return null_pointer(call, value == NULL ? 4 : 5, value == NULL ? "value" : "flag");
    *flag = info_read(i, key, value, (size_t)valuelen + 1) >= 0;
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
    static const char call[] = "MPI_Info_get_valuelen";
    struct tb_info *i;
    int code = check_key(call, info, key, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (valuelen == NULL || flag == NULL)
        return null_pointer(call, valuelen == NULL ? 3 : 4, valuelen == NULL ? "valuelen" : "flag");
    int length = info_read(i, key, NULL, 0);
    *flag = length >= 0;
    if (length >= 0)
        *valuelen = length;
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_nkeys(MPI_Info info, int *nkeys)
{
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(NULL, "MPI_Info_get_nkeys", 1, info);
    if (nkeys == NULL)
        return null_pointer("MPI_Info_get_nkeys", 2, "nkeys");
    contents_lock();
    *nkeys = (int)i->count;
    contents_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_nthkey(MPI_Info info, int n, char *key)
{
    static const char call[] = "MPI_Info_get_nthkey";
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(NULL, call, 1, info);
    if (key == NULL)
        return null_pointer(call, 3, "key");
    contents_lock();
    uint32_t count = i->count;
    bool found = n >= 0 && (uint32_t)n < count;
    if (found)
        snprintf(key, MPI_MAX_INFO_KEY, "%s", i->pairs[n].key);
    contents_unlock();
    if (!found)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "n", "there are %u keys, so %d is none", count, n);
    return MPI_SUCCESS;
}

int tb_mpi_Info_toint(MPI_Info info)
{
    return tb_handle_to_int(info);
}

MPI_Info tb_mpi_Info_fromint(int info)
{
    return tb_handle_from_int(TB_OBJECT_INFO, sizeof(struct tb_info), info, MPI_INFO_NULL);
}
