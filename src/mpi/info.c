/* Info objects (MPI-5.0, chapter 10). */
#include "mpi/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/comm.h"
#include "mpi/face_decls.h"

/* ---- objects -------------------------------------------------------------------------------------------------------
 */

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

int tb_info_put(struct tb_info *info, const char *key, const char *value)
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

void tb_info_free(struct tb_info *info)
{
    for (uint32_t i = 0; i < info->count; i++) {
        free(info->pairs[i].key);
        free(info->pairs[i].value);
    }
    free(info->pairs);
    tb_handle_give(TB_OBJECT_INFO, info);
}

/* What is known about the start of this process. Made when first asked for and kept. */
static struct tb_info *info_environment(void)
{
    tb_self_lock();
    struct tb_info *info = tb_self.environment;
    tb_self_unlock();
    if (info != NULL)
        return info;
    char text[32];
    info = tb_info_new();
    if (info == NULL)
        return NULL;
    if (tb_self_active()) {
        snprintf(text, sizeof text, "%u", tb_self.job.size);
        tb_info_put(info, "maxprocs", text);
        tb_info_put(info, "host", tb_self.job.host);
        const char *level = tb_self.thread_level == MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
                            : tb_self.thread_level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                            : tb_self.thread_level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                                                            : "MPI_THREAD_SINGLE";
        tb_info_put(info, "thread_level", level);
    }
    tb_self_lock();
    tb_self.environment = info;
    tb_self_unlock();
    return info;
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
        return tb_raise_argument(NULL, MPI_ERR_INFO_KEY, call, 2, "key", "the key is empty");
    if (strlen(key) >= MPI_MAX_INFO_KEY)
        return tb_raise_argument(NULL, MPI_ERR_INFO_KEY, call, 2, "key", "the key is longer than %d characters",
                                 MPI_MAX_INFO_KEY - 1);
    return MPI_SUCCESS;
}

static int null_pointer(const char *call, int position, const char *name)
{
    return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

/* ---- calls ---------------------------------------------------------------------------------------------------------
 */

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
    for (uint32_t i = 0; error == TB_OK && i < from->count; i++)
        error = tb_info_put(made, from->pairs[i].key, from->pairs[i].value);
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
        return tb_raise_argument(NULL, MPI_ERR_INFO_VALUE, call, 3, "value", "the value is %s",
                                 value == NULL ? "null" : "too long");
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
    struct tb_info_pair *pair = info == MPI_INFO_ENV ? NULL : info_find(i, key);
    if (pair == NULL)
        return tb_raise_argument(NULL, MPI_ERR_INFO_NOKEY, call, 2, "key", "there is no key \"%s\"", key);
    free(pair->key);
    free(pair->value);
    memmove(pair, pair + 1, (size_t)(&i->pairs[i->count] - (pair + 1)) * sizeof *pair);
    i->count--;
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
    const struct tb_info_pair *pair = info_find(i, key);
    *flag = pair != NULL;
    if (pair == NULL)
        return MPI_SUCCESS;
    if (*buflen > 0)
        snprintf(value, (size_t)*buflen, "%s", pair->value);
    *buflen = (int)strlen(pair->value) + 1;
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
    const struct tb_info_pair *pair = info_find(i, key);
    *flag = pair != NULL;
    if (pair != NULL)
        snprintf(value, (size_t)valuelen + 1, "%s", pair->value);
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
    const struct tb_info_pair *pair = info_find(i, key);
    *flag = pair != NULL;
    if (pair != NULL)
        *valuelen = (int)strlen(pair->value);
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_nkeys(MPI_Info info, int *nkeys)
{
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(NULL, "MPI_Info_get_nkeys", 1, info);
    if (nkeys == NULL)
        return null_pointer("MPI_Info_get_nkeys", 2, "nkeys");
    *nkeys = (int)i->count;
    return MPI_SUCCESS;
}

int tb_mpi_Info_get_nthkey(MPI_Info info, int n, char *key)
{
    static const char call[] = "MPI_Info_get_nthkey";
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(NULL, call, 1, info);
    if (n < 0 || (uint32_t)n >= i->count)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "n", "there are %u keys, so %d is none", i->count, n);
    if (key == NULL)
        return null_pointer(call, 3, "key");
    snprintf(key, MPI_MAX_INFO_KEY, "%s", i->pairs[n].key);
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
