#include "mpi/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/universe.h"

struct tb_inbox {
    struct tb_list node;
    uint32_t id;
    MPI_Comm comm;
    char name[TB_REGISTRY_NAME_BYTES];
};

/* All of this process. */
struct tb_inboxes {
    pthread_mutex_t lock;
    struct tb_list all;
};

/* Made with the first one, and locked; NULL: no memory. */
static struct tb_inboxes *lock_all(void)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
    struct tb_inboxes *inboxes = tb_self.inboxes;
    if (inboxes == NULL && (inboxes = calloc(1, sizeof *inboxes)) != NULL) {
        pthread_mutex_init(&inboxes->lock, NULL);
        tb_list_init(&inboxes->all);
        tb_self.inboxes = inboxes;
    }
    pthread_mutex_unlock(&tb_self.anytime_lock);
    if (inboxes != NULL)
        pthread_mutex_lock(&inboxes->lock);
    return inboxes;
}

static struct tb_inbox *find(const struct tb_inboxes *inboxes, const char *name)
{
    struct tb_inbox *inbox;
    TB_LIST_EACH (inbox, &inboxes->all, struct tb_inbox, node)
        if (strcmp(inbox->name, name) == 0)
            return inbox;
    return NULL;
}

/* Its memory stays while receives of it are in flight. The program may have freed it, which it should not. */
static void forget(struct tb_inbox *inbox)
{
    if (tb_comm_find(inbox->comm) != NULL)
        tb_mpi_Comm_free(&inbox->comm);
    tb_list_remove(&inbox->node);
    free(inbox);
}

static int open_comm(const char *name, uint32_t id, MPI_Comm *comm)
{
    struct tb_comm *made = NULL;
    int error = tb_universe_open(id, &made);
    if (error < 0)
        return error;
    snprintf(made->name, sizeof made->name, "inbox of %.40s", name);
    *comm = tb_comm_handle(made);
    return TB_OK;
}

static int open_new(struct tb_inboxes *inboxes, const char *name, uint32_t id, MPI_Comm *comm)
{
    struct tb_inbox *inbox = calloc(1, sizeof *inbox);
    if (inbox == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for the inbox of a group");
    inbox->id = id;
    memcpy(inbox->name, name, strlen(name) + 1);
    int error = open_comm(name, id, &inbox->comm);
    if (error < 0) {
        free(inbox);
        return error;
    }
    tb_list_append(&inboxes->all, &inbox->node);
    *comm = inbox->comm;
    return TB_OK;
}

int tb_inbox_open(const char *name, uint32_t id, MPI_Comm *comm)
{
    int error = TB_OK;
    struct tb_inboxes *inboxes = lock_all();
    if (inboxes == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for the inbox of a group");
    struct tb_inbox *inbox = find(inboxes, name);
    if (inbox != NULL && inbox->id != id) {
        forget(inbox);
        inbox = NULL;
    }
    struct tb_comm *known = inbox != NULL ? tb_comm_find(inbox->comm) : NULL;
    if (inbox == NULL)
        error = open_new(inboxes, name, id, comm);
    else if (known == NULL)
        error = tb_error(TB_ERR_ARGUMENT, "the program has freed the inbox of the group \"%.100s\"", name);
    else
        error = tb_universe_widen(known);
    if (known != NULL && error == TB_OK)
        *comm = inbox->comm;
    pthread_mutex_unlock(&inboxes->lock);
    return error;
}

void tb_inbox_close(const char *name)
{
    struct tb_inboxes *inboxes = lock_all();
    if (inboxes == NULL)
        return;
    struct tb_inbox *inbox = find(inboxes, name);
    if (inbox != NULL)
        forget(inbox);
    pthread_mutex_unlock(&inboxes->lock);
}
