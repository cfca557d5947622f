/* The tool information interface: starting and ending it, its lock and its handles (MPI-5.0, 15.3.4). */
#include "mpi/tool.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/event.h"

#define SLOTS_LEAST     64u
#define GENERATION_LAST 0xffffffu

void tb_mpit_hold(void)
{
    pthread_mutex_lock(&tb_self.mpit_lock);
}

void tb_mpit_release(void)
{
    pthread_mutex_unlock(&tb_self.mpit_lock);
}

int tb_mpit_enter(void)
{
    tb_mpit_hold();
    if (tb_self.mpit == NULL || tb_self.mpit->depth == 0)
        return tb_mpit_leave(MPI_T_ERR_NOT_INITIALIZED);
    /* In a forked child another thread may have held the locks of what is counted. */
    if (tb_self.state == TB_STATE_FORKED)
        return tb_mpit_leave(MPI_T_ERR_NOT_ACCESSIBLE);
    return MPI_SUCCESS;
}

int tb_mpit_leave(int code)
{
    tb_mpit_release();
    return code;
}

void tb_mpit_text(const char *text, char *to, int *length)
{
    if (length == NULL)
        return;
    size_t need = strlen(text) + 1;
    if (to != NULL && *length > 0) {
        size_t taken = need - 1 < (size_t)*length - 1 ? need - 1 : (size_t)*length - 1;
        memcpy(to, text, taken);
        to[taken] = 0;
    }
    *length = (int)need;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static uint64_t slot_handle(const struct tb_mpit_slots *slots, enum tb_mpit_kind kind, uint32_t at)
{
    return (uint64_t)kind << 56 | (uint64_t)slots->slots[at].generation << 32 | (TB_HANDLE_FIRST + at);
}

static bool slots_grow(struct tb_mpit_slots *slots)
{
    uint32_t room = slots->room == 0 ? SLOTS_LEAST : 2 * slots->room;
    struct tb_mpit_slot *grown = room <= TB_MPIT_HANDLES_LIMIT ? realloc(slots->slots, room * sizeof *grown) : NULL;
    if (grown == NULL)
        return false;
    memset(grown + slots->room, 0, (room - slots->room) * sizeof *grown);
    slots->slots = grown;
    slots->room = room;
    return true;
}

void *tb_mpit_slot_take(struct tb_mpit_slots *slots, enum tb_mpit_kind kind, void *object)
{
    if (slots->count == slots->room && !slots_grow(slots))
        return NULL;
    uint32_t at = slots->first;
    while (slots->slots[at].object != NULL)
        at++;
    slots->first = at + 1;
    slots->slots[at].object = object;
    slots->slots[at].generation = (slots->slots[at].generation + 1) & GENERATION_LAST;
    slots->count++;
    return (void *)(uintptr_t)slot_handle(slots, kind, at);
}

void *tb_mpit_slot_find(const struct tb_mpit_slots *slots, enum tb_mpit_kind kind, const void *handle)
{
    uint32_t at = (uint32_t)(uintptr_t)handle - TB_HANDLE_FIRST;
    if (at >= slots->room || (uint64_t)(uintptr_t)handle != slot_handle(slots, kind, at))
        return NULL;
    return slots->slots[at].object;
}

void tb_mpit_slot_give(struct tb_mpit_slots *slots, const void *handle)
{
    uint32_t at = (uint32_t)(uintptr_t)handle - TB_HANDLE_FIRST;
    TB_ASSERT(at < slots->room && slots->slots[at].object != NULL);
    free(slots->slots[at].object);
    slots->slots[at].object = NULL;
    slots->count--;
    if (at < slots->first)
        slots->first = at;
}

void tb_mpit_slots_close(struct tb_mpit_slots *slots)
{
    for (uint32_t i = 0; i < slots->room; i++) {
        free(slots->slots[i].object);
        slots->slots[i].object = NULL;
    }
    slots->count = slots->first =
        0; /* generations stay, so that old handles are still recognised when tools come again */
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* With the lock held. */
static int open_first(void)
{
    if (tb_self.state == TB_STATE_FORKED)
        return MPI_T_ERR_CANNOT_INIT;
    if (tb_self.mpit == NULL)
        tb_self.mpit = calloc(1, sizeof *tb_self.mpit);
    if (tb_self.mpit == NULL)
        return MPI_T_ERR_MEMORY;
    if (tb_self.mpit->depth == UINT32_MAX)
        return MPI_T_ERR_CANNOT_INIT;
    if (tb_self.mpit->depth > 0 || tb_self.state != TB_STATE_BEFORE || tb_engine_load_params() == TB_OK)
        return MPI_SUCCESS;
    tb_log(TB_LOG_ERROR, "mpi", "MPI_T_init_thread: %s", tb_error_story());
    return MPI_T_ERR_CANNOT_INIT;
}

int tb_mpi_T_init_thread(int required, int *provided)
{
    if (provided == NULL || (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED &&
                             required != MPI_THREAD_SERIALIZED && required != MPI_THREAD_MULTIPLE))
        return MPI_T_ERR_INVALID;
    tb_mpit_hold();
    int code = open_first();
    if (code == MPI_SUCCESS) {
        tb_self.mpit->depth++;
        *provided = MPI_THREAD_MULTIPLE;
    }
    return tb_mpit_leave(code);
}

/* They free themselves when none of their functions runs any more. */
static void leave_events(struct tb_mpit_slots *registrations)
{
    for (uint32_t i = 0; i < registrations->room; i++) {
        const struct tb_mpit_registration *registration = registrations->slots[i].object;
        if (registration != NULL)
            tb_event_leave(registration->listener, NULL, NULL);
    }
}

int tb_mpi_T_finalize(void)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct tb_mpit *m = tb_self.mpit;
    if (--m->depth == 0) {
        tb_mpit_slots_close(&m->cvars);
        tb_mpit_slots_close(&m->pvars);
        tb_mpit_slots_close(&m->sessions);
        leave_events(&m->registrations);
        tb_mpit_slots_close(&m->registrations);
    }
    return tb_mpit_leave(MPI_SUCCESS);
}
