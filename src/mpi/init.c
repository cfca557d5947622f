/* Starting and ending (MPI-5.0, 11.2 to 11.4): the world model. */
#include <pthread.h>
#include <stdio.h>

#include "mpi/buffered.h"
#include "mpi/comm.h"
#include "mpi/binding_decls.h"
#include "mpi/collective.h"
#include "mpi/multicast_print.h"
#include "mpi/presence.h"
#include "mpi/request.h"
#include "mpi/spawn.h"
#include "mpi/win.h"

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int start(const char *call, int level)
{
    if (tb_self.state == TB_STATE_FORKED)
        return tb_raise(NULL, MPI_ERR_OTHER, call, "this process was forked by a process of the job");
    if (tb_self.model != TB_WORLD_BEFORE)
        return tb_raise(NULL, MPI_ERR_OTHER, call, "%s",
                        tb_self.model == TB_WORLD_ACTIVE ? "MPI has been initialised already"
                                                         : "MPI cannot be initialised again after MPI_Finalize");
    int error = tb_presence_enter(level == MPI_THREAD_MULTIPLE);
    if (error < 0)
        return tb_raise_code(NULL, tb_error_code(tb_error_class_of(error), call, "%s", tb_error_story()));
    tb_self.thread_level = tb_self.single && level == MPI_THREAD_MULTIPLE ? MPI_THREAD_SERIALIZED : level;
    tb_self.main_thread = pthread_self();
    tb_self.self = tb_self.alone;
    tb_self.world = tb_self.everyone;
    tb_self.model = TB_WORLD_ACTIVE;
    error = tb_spawn_open_parent();
    if (error < 0)
        tb_error_fatal(tb_error_code(tb_error_class_of(error), call, "%s", tb_error_story()));
    return MPI_SUCCESS;
}

int tb_mpi_Init(int *argc, char ***argv)
{
    return start("MPI_Init", MPI_THREAD_SINGLE);
}

int tb_mpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    static const char call[] = "MPI_Init_thread";
    if (provided == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 4, "provided", "the pointer is null");
    if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
        required != MPI_THREAD_MULTIPLE)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 3, "required", "%d is no level of thread support", required);
    int code = start(call, required);
    *provided = tb_self.thread_level;
    return code;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* What must be done while MPI still works: the program's own functions, what it has left to be sent. What belongs to no
 * communicator waits for the sessions that go on. */
static int settle(const char *call)
{
    struct tb_bearer self = tb_comm_bearer(tb_self.self), world = tb_comm_bearer(tb_self.world);
    int code = tb_attributes_delete(&self);
    if (code != MPI_SUCCESS)
        return code;
    code = tb_attributes_delete(&world);
    if (code != MPI_SUCCESS)
        return code;
    tb_pending_wait_orphans(tb_self.present == 1 ? TB_ORPHANS_ALL : TB_ORPHANS_WORLD, NULL, call);
    if (tb_self.present == 1)
        tb_bsend_close(&tb_self.bsend);
    tb_bsend_close(&tb_self.world->bsend);
    tb_bsend_close(&tb_self.self->bsend);
    return MPI_SUCCESS;
}

/* Whoever has multicast something may need others to know that it is everywhere; after this nobody does any more. */
static int meet_last(const char *call)
{
    struct tb_collective what = {.operation = TB_OPERATION_BARRIER, .connected = true, .last = true};
    struct tb_binding binding = {.call = call, .buffers[TB_SYMBOL_OUT] = {.type = &tb_type_byte}};
    int error = tb_engine_flush(tb_self.engine);
    if (error != TB_OK)
        return error;
    bool last = tb_self.present == 1; /* else sessions go on */
    if (last)
        tb_engine_meet_last(tb_self.engine);
    error = tb_comm_execute(tb_self.world, &what, &binding);
    if (last)
        tb_engine_part(tb_self.engine, error == TB_OK);
    return error;
}

/* In a job that outlives its ranks nobody can wait for one that has died. */
static bool goes_on(int error)
{
    return tb_param.keep_going && (error == TB_ERR_PEER || error == TB_ERR_CLOSED || error == TB_ERR_GIVEN_UP);
}

int tb_mpi_Finalize(void)
{
    static const char call[] = "MPI_Finalize";
    tb_require_world(call);
    int code = settle(call);
    if (code != MPI_SUCCESS)
        return tb_raise_code(tb_self.self, code);
    struct tb_buffer nothing = {.type = &tb_type_byte};
    tb_multicast_print(call);
    tb_wins_leave(NULL);
    int error = tb_engine_flush_told(tb_self.engine);
    if (error == TB_OK)
        error = tb_self.world->size == 1 ? TB_OK : tb_comm_run(tb_self.world, TB_OPERATION_BARRIER, 0, &nothing, call);
    if (error == TB_OK && tb_self.job.multicast.expected)
        error = meet_last(call);
    if (error < 0 && !goes_on(error))
        tb_error_fatal_last(tb_error_code_below(error, call), call);
    tb_presence_leave(call);
    tb_self.model = TB_WORLD_AFTER;
    tb_self.world = tb_self.self = NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Abort(MPI_Comm comm, int errorcode)
{
    tb_require_active("MPI_Abort");
    char text[64] = ""; /* the launcher says it in its own words */
    if (tb_self.job.source == TB_JOB_ALONE)
        snprintf(text, sizeof text, "MPI_Abort was called with code %d", errorcode);
    tb_error_flush_output();
    tb_comm_abort(tb_comm_find(comm), errorcode, TB_ABORT_CALLED, text);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_mpi_Initialized(int *flag)
{
    if (flag == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Initialized", 1, "flag", "the pointer is null");
    *flag = tb_self.model != TB_WORLD_BEFORE;
    return MPI_SUCCESS;
}

int tb_mpi_Finalized(int *flag)
{
    if (flag == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Finalized", 1, "flag", "the pointer is null");
    *flag = tb_self.model == TB_WORLD_AFTER;
    return MPI_SUCCESS;
}

int tb_mpi_Query_thread(int *provided)
{
    tb_require_world("MPI_Query_thread");
    if (provided == NULL)
        return tb_raise_null(NULL, "MPI_Query_thread", 1, "provided");
    *provided = tb_self.thread_level;
    return MPI_SUCCESS;
}

int tb_mpi_Is_thread_main(int *flag)
{
    tb_require_world("MPI_Is_thread_main");
    if (flag == NULL)
        return tb_raise_null(NULL, "MPI_Is_thread_main", 1, "flag");
    *flag = pthread_equal(tb_self.main_thread, pthread_self()) != 0;
    return MPI_SUCCESS;
}
