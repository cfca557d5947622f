/* Ranks that share one core give it to each other at once: whoever waits in vain looks once and then yields or sleeps,
 * also after messages have gone between all of them. What a rank learns takes a few waits, which are not counted. */
#include "test.h"

#include <sched.h>

#define WARM_UP 300
#define ROUNDS  2000
#define LOOKS   4 /* that a yield or sleep may cost; without learning it is 64 */

static unsigned long long count_of(MPI_T_pvar_session session, const char *name)
{
    int index = -1, count = 0;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    unsigned long long value = 0;
    CHECK_EQUAL(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_handle_free(session, &handle);
    return value;
}

/* To the first core that rank 0 may use; whoever may not use it stays where it is, as on another machine. */
static bool share_a_core(void)
{
    cpu_set_t set;
    int core = 0;
    CHECK_EQUAL(sched_getaffinity(0, sizeof set, &set), 0);
    while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &set))
        core++;
    MPI_Bcast(&core, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void gather_and_release(void)
{
    long long value = test_rank;
    if (test_rank != 0) {
        MPI_Send(&value, 1, MPI_LONG_LONG, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_LONG_LONG, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(value, test_size);
        return;
    }
    for (int i = 1; i < test_size; i++) {
        MPI_Recv(&value, 1, MPI_LONG_LONG, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(value, i);
    }
    value = test_size;
    for (int i = 1; i < test_size; i++)
        MPI_Send(&value, 1, MPI_LONG_LONG, i, 2, MPI_COMM_WORLD);
}

static void work(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        long long mine = test_rank, sum = -1;
        gather_and_release();
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQUAL(sum, (long long)test_size * (test_size - 1) / 2);
    }
}

int main(int argc, char **argv)
{
    int level;
    MPI_T_pvar_session session;
    test_begin(&argc, &argv);
    CHECK_EQUAL(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    bool shares = share_a_core();
    work(WARM_UP);
    unsigned long long looks = count_of(session, "tombolo_engine_looks");
    unsigned long long offers = count_of(session, "tombolo_engine_yields") + count_of(session, "tombolo_engine_sleeps");
    work(ROUNDS);
    looks = count_of(session, "tombolo_engine_looks") - looks;
    offers = count_of(session, "tombolo_engine_yields") + count_of(session, "tombolo_engine_sleeps") - offers;
    if (shares && test_size > 1) {
        CHECK(offers > 0, "none");
        CHECK(looks <= LOOKS * offers, "%llu looks for %llu yields and sleeps", looks, offers);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return test_end();
}
