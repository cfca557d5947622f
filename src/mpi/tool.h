/* The tool information interface (MPI_T; MPI-5.0, 15.3): what tools may read about the library. Every parameter is a
 * control variable, everything that is counted is a performance variable; events: event.h.
 *
 * It can be used before MPI_Init and after MPI_Finalize. It has no error handlers and ends no process: every call
 * returns a code. Any thread may call; one lock serialises all of it. MPI_Init holds that lock while parameters are
 * settled, and MPI_Finalize leaves here what was counted, since the engine and the plans then go away. */
#ifndef TB_MPI_TOOL_H
#define TB_MPI_TOOL_H

#include "mpi/self.h"
#include "planner/planner.h"

#define TB_MPIT_NAME_BYTES    96
#define TB_MPIT_DESC_BYTES    512
#define TB_MPIT_HANDLES_LIMIT 65536u /* of each kind */

enum tb_mpit_kind {
    TB_MPIT_CVAR = 0x71,
    TB_MPIT_PVAR,
    TB_MPIT_SESSION,
    TB_MPIT_REGISTRATION
}; /* no kinds of enum tb_object */

/* Objects with handles of one kind. A handle encodes kind, generation and place, so that a freed one is recognised. */
struct tb_mpit_slots {
    uint32_t count, room;
    uint32_t first; /* all before it are in use */
    struct tb_mpit_slot {
        void *object; /* NULL: free */
        uint32_t generation;
    } * slots;
};

struct tb_mpit {
    uint32_t depth; /* how often it was initialised */
    struct tb_mpit_slots cvars, pvars, sessions, registrations;
    struct tb_counters counters; /* what MPI_Finalize has left */
    uint64_t ratings;
    uint32_t usage_count;
    struct tb_usage *usage; /* and here; NULL: none */
};

/* ---- for MPI_Init and MPI_Finalize ------------------------------------------------------------------------------- */

/* Around everything that changes parameters or tb_self.state. */
void tb_mpit_hold(void);
void tb_mpit_release(void);
/* Keeps what was counted. While the engine and the plans still exist, when all has been done, with the lock held. */
void tb_mpit_keep(void);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* At the beginning of every call: takes the lock, unless the code that it returns is not MPI_SUCCESS. */
int tb_mpit_enter(void);
/* At the end: gives it back and returns `code`. */
int tb_mpit_leave(int code);

/* What the standard asks of every string: `length` is how much room there is in `to` and then how much the whole text
 * needs, its end included. */
void tb_mpit_text(const char *text, char *to, int *length);
/* For results that the caller may not want. */
static inline void tb_mpit_number(int *to, int value)
{
    if (to != NULL)
        *to = value;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* The handle of a new object; NULL: there is no room. */
void *tb_mpit_slot_take(struct tb_mpit_slots *slots, enum tb_mpit_kind kind, void *object);
/* The object; NULL: this is no handle of the kind. */
void *tb_mpit_slot_find(const struct tb_mpit_slots *slots, enum tb_mpit_kind kind, const void *handle);
void tb_mpit_slot_give(struct tb_mpit_slots *slots, const void *handle);
/* Frees all objects. */
void tb_mpit_slots_close(struct tb_mpit_slots *slots);

/* ---- enumerations (tool_enum.c) ---------------------------------------------------------------------------------- */

enum tb_mpit_enum { TB_MPIT_TRUTH, TB_MPIT_OPERATION, TB_MPIT_ALGORITHM, TB_MPIT_REASON, TB_MPIT_ENUMS };

MPI_T_enum tb_mpit_enum(enum tb_mpit_enum which);
/* How many rows the catalogue of algorithms has, and which one it is. */
uint32_t tb_mpit_algorithms(void);
uint32_t tb_mpit_algorithm(const struct tb_algorithm *algorithm);

/* ---- categories (tool_category.c): a category for each layer that has variables ---------------------------------- */

enum tb_mpit_category {
    TB_MPIT_ALL, /* that the others are in */
    TB_MPIT_BASE,
    TB_MPIT_JOB,
    TB_MPIT_TRANSPORT,
    TB_MPIT_ENGINE,
    TB_MPIT_PLANNER,
    TB_MPIT_COLLECTIVES,
    TB_MPIT_CATEGORIES
};

int tb_mpit_verbosity(enum tb_mpit_category category);

/* ---- variables --------------------------------------------------------------------------------------------------- */

uint32_t tb_mpit_cvar_count(void);
enum tb_mpit_category tb_mpit_cvar_category(uint32_t index);
uint32_t tb_mpit_pvar_count(void);
enum tb_mpit_category tb_mpit_pvar_category(uint32_t index);

/* What MPI_T_event_registration names. */
struct tb_mpit_registration {
    struct tb_event_listener *listener; /* event.h */
};

uint32_t tb_mpit_event_count(void);
enum tb_mpit_category tb_mpit_event_category(uint32_t index);

/* A performance variable. All are bound to nothing and continuous: they count from MPI_Init on, whether or not a tool
 * looks. Those that are not read-only are one number, and can be set anew in each session without touching another. */
struct tb_mpit_pvar {
    char name[TB_MPIT_NAME_BYTES];
    char description[TB_MPIT_DESC_BYTES];
    int class; /* MPI_T_PVAR_CLASS_ */
    MPI_Datatype datatype;
    MPI_T_enum enumtype;
    int count; /* elements */
    bool readonly;
};

void tb_mpit_pvar_describe(uint32_t index, struct tb_mpit_pvar *pvar);
/* Writes all elements. */
void tb_mpit_pvar_value(uint32_t index, void *value);

/* ---- what was counted (tool_count.c) ----------------------------------------------------------------------------- */

void tb_mpit_counters(struct tb_counters *counters);
/* Calls before this are counted in the rows that follow. */
void tb_mpit_usage_flush(void);
bool tb_mpit_usage(uint32_t index, struct tb_usage *usage);
uint64_t tb_mpit_ratings(void);

#endif
