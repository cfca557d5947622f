#include "mpi/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/universe.h"

#define CLOSED_LIMIT 1024u /* closed ones that are remembered */

struct tb_inbox {
    struct tb_list node;
    uint32_t id;
    bool closed; /* its process has left the group, and may join it again */
    MPI_Comm comm;
    char name[TB_REGISTRY_NAME_BYTES];
};

/* All of this process. */
struct tb_inboxes {
    pthread_mutex_t lock;
    struct tb_list all; /* closed ones in the order in which they were closed */
    uint32_t closed_count;
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

/* Its memory stays while receives of it are in flight. */
static void drop_comm(MPI_Comm handle)
{
    struct tb_comm *comm = handle != MPI_COMM_NULL ? tb_comm_find(handle) : NULL;
    if (comm != NULL)
        tb_comm_drop("Tombolo_Group_leave", comm);
}

/* A closed one has none. */
static void free_comm(struct tb_inbox *inbox)
{
    drop_comm(inbox->comm);
    inbox->comm = MPI_COMM_NULL;
}

static void forget(struct tb_inboxes *inboxes, struct tb_inbox *inbox)
{
    free_comm(inbox);
    inboxes->closed_count -= inbox->closed;
    tb_list_remove(&inbox->node);
    free(inbox);
}

static void forget_first_closed(struct tb_inboxes *inboxes)
{
    struct tb_inbox *inbox;
    TB_LIST_EACH (inbox, &inboxes->all, struct tb_inbox, node)
        if (inbox->closed) {
            forget(inboxes, inbox);
            return;
        }
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

static int reopen(struct tb_inboxes *inboxes, struct tb_inbox *inbox)
{
    int error = open_comm(inbox->name, inbox->id, &inbox->comm);
    inboxes->closed_count -= error == TB_OK;
    inbox->closed = error != TB_OK;
    return error;
}

int tb_inbox_open(const char *name, uint32_t id, MPI_Comm *comm)
{
    int error = TB_OK;
    MPI_Comm old = MPI_COMM_NULL;
    struct tb_inboxes *inboxes = lock_all();
    if (inboxes == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for the inbox of a group");
    struct tb_inbox *inbox = find(inboxes, name);
    if (inbox != NULL && inbox->id != id) {
        old = inbox->comm;
        inbox->comm = MPI_COMM_NULL;
        forget(inboxes, inbox);
        inbox = NULL;
    }
    if (inbox != NULL && inbox->closed)
        error = reopen(inboxes, inbox);
    struct tb_comm *known = inbox != NULL ? tb_comm_find(inbox->comm) : NULL;
    if (inbox == NULL)
        error = open_new(inboxes, name, id, comm);
    else if (error == TB_OK)
        error = tb_universe_widen(known);
    if (known != NULL && error == TB_OK)
        *comm = inbox->comm;
    pthread_mutex_unlock(&inboxes->lock);
    drop_comm(old);
    return error;
}

int tb_inbox_expect(const char *name, bool *reopened)
{
    int error = TB_OK;
    struct tb_inboxes *inboxes = lock_all();
    *reopened = false;
    if (inboxes == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for the inbox of a group");
    struct tb_inbox *inbox = find(inboxes, name);
    if (inbox != NULL && inbox->closed) {
        error = reopen(inboxes, inbox);
        *reopened = error == TB_OK;
    }
    pthread_mutex_unlock(&inboxes->lock);
    return error;
}

/* Receives in flight keep its channel, and there can be no second one of the same number; so it stays. */
static bool is_in_use(const struct tb_inbox *inbox)
{
    const struct tb_comm *comm = tb_comm_find(inbox->comm);
    return comm != NULL && __atomic_load_n(&comm->references, __ATOMIC_RELAXED) > 1;
}

static void close_one(struct tb_inboxes *inboxes, struct tb_inbox *inbox)
{
    if (inbox == NULL || inbox->closed || is_in_use(inbox))
        return;
    free_comm(inbox);
    inbox->closed = true;
    tb_list_remove(&inbox->node);
    tb_list_append(&inboxes->all, &inbox->node);
    if (++inboxes->closed_count > CLOSED_LIMIT)
        forget_first_closed(inboxes);
}

/* Without the lock, since the program's functions may ask for inboxes, this one as well. False: one of them refuses. */
static bool delete_attributes(struct tb_comm *comm)
{
    struct tb_bearer bearer = tb_comm_bearer(comm);
    int code = tb_attributes_delete(&bearer);
    if (code != MPI_SUCCESS)
        tb_raise_code(comm, code);
    tb_comm_release(comm);
    return code == MPI_SUCCESS;
}

void tb_inbox_dismiss(const char *name)
{
    struct tb_inboxes *inboxes = lock_all();
    if (inboxes == NULL)
        return;
    const struct tb_inbox *inbox = find(inboxes, name);
    bool closes = inbox != NULL && !inbox->closed && !is_in_use(inbox);
    struct tb_comm *comm = closes ? tb_comm_find(inbox->comm) : NULL;
    if (comm != NULL)
        tb_comm_hold(comm);
    pthread_mutex_unlock(&inboxes->lock);
    if (comm == NULL || !delete_attributes(comm))
        return;
    pthread_mutex_lock(&inboxes->lock);
    close_one(inboxes, find(inboxes, name));
    pthread_mutex_unlock(&inboxes->lock);
}

void tb_inbox_leave(const char *name, uint32_t id)
{
    MPI_Comm comm;
    if (tb_inbox_open(name, id, &comm) == TB_OK)
        tb_inbox_dismiss(name);
}
