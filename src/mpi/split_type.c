/* Splitting communicators by where their processes are (MPI-5.0, 7.4.2), and what a process can say about that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/foreign.h"
#include "mpi/hint.h"
#include "mpi/place_type.h"
#include "mpi/pset.h"
#include "mpi/resource.h"
#include "mpi/split.h"

static const char resource_key[] = "mpi_hw_resource_type";

/* Numbers of resources are those of a host, so the host is part of the colour, and so is the kind, in case ranks ask
 * for different ones. */
static int64_t resource_color(enum tb_resource resource, int64_t number)
{
    if (number == TB_RESOURCE_NONE)
        return TB_COLOR_NONE;
    int64_t host = tb_address_book_host_of(&tb_self.job.book, tb_self.job.self.index);
    return host << 40 | (int64_t)resource << 32 | number;
}

static int64_t color_of_resource(enum tb_resource resource)
{
    int64_t numbers[TB_RESOURCE_COUNT];
    if (resource == TB_RESOURCE_HOST)
        return resource_color(resource, 0);
    tb_resource_read(numbers);
    return resource_color(resource, numbers[resource]);
}

/* Places are those of the job, and have a kind of their own. */
static int64_t place_color(int type)
{
    uint32_t place = tb_place_type_own(type);
    return place != TB_PLACE_NONE ? INT64_C(0xff) << 32 | place : TB_COLOR_NONE;
}

static int64_t set_color(enum tb_pset set)
{
    switch (set) {
    case TB_PSET_WORLD:
        return 0;
    case TB_PSET_SELF:
        return 1 + (int64_t)tb_self.job.self.index;
    case TB_PSET_HOST:
        return color_of_resource(TB_RESOURCE_HOST);
    case TB_PSET_CLUSTER:
        return place_color(TB_PLACE_TYPE_INNERMOST);
    case TB_PSET_SITE:
        return place_color(TB_PLACE_TYPE_SITE);
    default:
        return TB_COLOR_NONE;
    }
}

/* Of the resource, or for MPI_COMM_TYPE_RESOURCE_GUIDED also the process set, that the info object names. */
static int64_t guided_color(const struct tb_info *info, bool sets_too)
{
    const char *name = info != NULL ? tb_info_value(info, resource_key) : NULL;
    if (name != NULL) {
        enum tb_resource resource = tb_resource_find(name);
        int type = tb_place_type_find(name);
        if (type != TB_PLACE_TYPE_NONE)
            return place_color(type);
        return resource != TB_RESOURCE_COUNT ? color_of_resource(resource) : TB_COLOR_NONE;
    }
    const char *set = info != NULL && sets_too ? tb_info_value(info, "mpi_pset_name") : NULL;
    return set != NULL ? set_color(tb_pset_find(set)) : TB_COLOR_NONE;
}

typedef int64_t resource_row[TB_RESOURCE_COUNT]; /* a colour for each kind */

/* What the ranks of a communicator have, of an intercommunicator those of both groups. */
struct resource_table {
    resource_row *mine, *theirs;
    uint32_t count, their_count;
};

/* The widest kind of which the ranks do not all share the same one. TB_RESOURCE_COUNT: there is none. */
static enum tb_resource widest_difference(const struct resource_table *table)
{
    for (int kind = 0; kind < TB_RESOURCE_COUNT; kind++) {
        bool different = false, any = false;
        for (uint32_t i = 0; i < table->count + table->their_count; i++) {
            int64_t color = i < table->count ? table->mine[i][kind] : table->theirs[i - table->count][kind];
            different = different || color != table->mine[0][kind];
            any = any || color != TB_COLOR_NONE;
        }
        if (different && any)
            return (enum tb_resource)kind;
    }
    return TB_RESOURCE_COUNT;
}

/* Gets everyone's row. `error`: this rank has nothing to tell, and all hear so. */
static int resource_table_fill(struct tb_comm *comm, int error, const resource_row *mine, struct resource_table *table)
{
    struct tb_comm *local = comm->inter ? comm->local : comm;
    if (error == TB_OK)
        error = tb_comm_exchange(local, mine, sizeof *mine, table->mine);
    else
        tb_comm_refuse(local, TB_OPERATION_ALLGATHER, error);
    if (!comm->inter)
        return error;
    struct tb_news ours = {table->mine, comm->size * sizeof *table->mine}, theirs;
    uint64_t context;
    error = tb_agree_inter(error, comm, &ours, &theirs, &context);
    tb_context_put_back(context);
    if (error == TB_OK && theirs.bytes != comm->remote_size * sizeof *table->theirs)
        error = tb_error(TB_ERR_PROTOCOL, "the other group has sent %zu bytes for the places of %u ranks", theirs.bytes,
                         comm->remote_size);
    table->theirs = theirs.data;
    table->their_count = comm->remote_size;
    return error;
}

/* By the widest level, from sites down, at which the ranks, all of whom ask for it, are not all together; what is below
 * hosts they tell each other. They do so in any case, so that all hear of one that cannot go on. */
static int unguided_color(struct tb_comm *comm, char *name, int64_t *color)
{
    resource_row mine;
    struct resource_table table = {.mine = malloc(comm->size * sizeof *table.mine), .count = comm->size};
    int type, error = tb_place_type_widest(comm, &type);
    if (error == TB_OK && table.mine == NULL)
        error = tb_error(TB_ERR_MEMORY, "out of memory for the places of %u ranks", comm->size);
    tb_resource_read(mine);
    for (int kind = 0; kind < TB_RESOURCE_COUNT; kind++)
        mine[kind] = tb_foreign_color(comm, resource_color((enum tb_resource)kind, mine[kind]));
    error = resource_table_fill(comm, error, &mine, &table);
    enum tb_resource kind = error == TB_OK ? widest_difference(&table) : TB_RESOURCE_COUNT;
    if (error == TB_OK && type != TB_PLACE_TYPE_NONE) {
        tb_place_type_print(type, name);
        *color = tb_foreign_color(comm, place_color(type));
    } else if (kind != TB_RESOURCE_COUNT) {
        snprintf(name, TB_PLACE_TYPE_BYTES, "%s", tb_resource_name(kind));
        *color = mine[kind];
    }
    free(table.mine);
    free(table.theirs);
    return error;
}

/* Of those who ask for it. The others, with MPI_UNDEFINED, do not know what these do: they are in one split, as with
 * every other type, and what follows is among those that it leaves. */
static int unguided_split(struct tb_comm *comm, int key, struct tb_info *info, struct tb_comm **made)
{
    struct tb_comm *asking;
    int64_t color = TB_COLOR_NONE;
    char name[TB_PLACE_TYPE_BYTES] = "";
    *made = NULL;
    int error = tb_split(comm, TB_OK, 0, 0, &asking);
    if (error < 0 || asking == NULL)
        return error;
    error = unguided_color(asking, name, &color);
    if (error == TB_OK && *name != 0 && info != NULL)
        error = tb_info_put(info, resource_key, name);
    error = tb_split(asking, error, color, key, made);
    tb_comm_release(asking);
    return error;
}

int tb_mpi_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
    static const char call[] = "MPI_Comm_split_type";
    struct tb_comm *c = tb_comm_find(comm), *made = NULL;
    const struct tb_info *i;
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    int code = tb_hints_check(c, call, 4, info, &i);
    if (code != MPI_SUCCESS)
        return code;
    if (newcomm == NULL)
        return tb_raise_null(c, call, 5, "newcomm");
    int64_t color = TB_COLOR_NONE;
    bool unguided = false;
    switch (split_type) {
    case MPI_UNDEFINED:
        break;
    case MPI_COMM_TYPE_SHARED:
        color = color_of_resource(TB_RESOURCE_HOST);
        break;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        color = guided_color(i, split_type == MPI_COMM_TYPE_RESOURCE_GUIDED);
        break;
    case MPI_COMM_TYPE_HW_UNGUIDED:
        unguided = true;
        break;
    default:
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "split_type", "%d is none of the standard's MPI_COMM_TYPE_",
                                 split_type);
    }
    int error = unguided ? unguided_split(c, key, info == MPI_INFO_ENV ? NULL : (struct tb_info *)i, &made)
                         : tb_split(c, TB_OK, tb_foreign_color(c, color), key, &made);
    if (error < 0)
        return tb_raise_below(c, error, call);
    if (made != NULL && i != NULL)
        tb_hints_take(&made->hints, i);
    *newcomm = made != NULL ? tb_comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* Sites and clusters, of which those in one another are told one by one. */
static int put_places(struct tb_info *info)
{
    char name[TB_PLACE_TYPE_BYTES];
    int error = TB_OK;
    for (int type = TB_PLACE_TYPE_INNERMOST; type <= TB_PLACE_TYPE_SITE && error == TB_OK; type++) {
        tb_place_type_print(type, name);
        error = tb_info_put(info, name, tb_place_type_own(type) != TB_PLACE_NONE ? "true" : "false");
    }
    if (tb_place_type_own(2) == TB_PLACE_NONE)
        return error;
    for (int type = 1; tb_place_type_own(type) != TB_PLACE_NONE && error == TB_OK; type++) {
        tb_place_type_print(type, name);
        error = tb_info_put(info, name, "true");
    }
    return error;
}

int tb_mpi_Get_hw_resource_info(MPI_Info *hw_info)
{
    static const char call[] = "MPI_Get_hw_resource_info";
    if (hw_info == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "hw_info", "the pointer is null");
    int64_t numbers[TB_RESOURCE_COUNT];
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : TB_OK;
    tb_resource_read(numbers);
    for (int kind = 0; kind < TB_RESOURCE_COUNT && error == TB_OK; kind++)
        error = tb_info_put(made, tb_resource_name((enum tb_resource)kind),
                            numbers[kind] != TB_RESOURCE_NONE ? "true" : "false");
    if (error == TB_OK)
        error = put_places(made);
    if (error < 0) {
        if (made != NULL)
            tb_info_free(made);
        return tb_raise_below(NULL, error, call);
    }
    *hw_info = tb_info_handle(made);
    return MPI_SUCCESS;
}
