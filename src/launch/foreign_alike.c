#include "launch/foreign_alike.h"

#include <string.h>

#define TAG_DISTANCE 65536u /* so many processes more may be started before contexts of two jobs could be alike */

/* What nothing depends on where jobs meet: how many cores hosts have is left out of the costs there (mpi/foreign.c). */
static bool is_of_one_job(const char *name)
{
    return strcmp(name, "explain") == 0 || strcmp(name, "cores") == 0 || strcmp(name, "shared_cores") == 0;
}

/* All that algorithms are chosen by. A plan is for the hosts of a job, and its contents are not known here: a job that
 * follows one is like no other. */
static uint32_t parameters(const struct tb_address_book *book)
{
    char text[8192];
    uint32_t sum = *tb_param.plan != 0 ? tb_crc32c(0, &book->job, sizeof book->job) : 0;
    bool collective = false;
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        collective = collective || strcmp(row->name, "cores") == 0; /* from there on all are about that */
        if (is_of_one_job(row->name) || (!collective && strncmp(row->name, "eager_", 6) != 0))
            continue;
        tb_param_print(row, text, sizeof text);
        sum = tb_crc32c(sum, text, strlen(text) + 1);
    }
    return sum;
}

static bool has_relay(void)
{
    return tb_param_lists(tb_param.transports, "relay");
}

static int no_relay(int error, const char *which)
{
    return tb_error(error,
                    "the job that %s was started with a parameter `transports` which leaves relay out, and nothing "
                    "else leads to processes of another job: add relay to the list, or do not set the parameter",
                    which);
}

int tb_foreign_alike_relays(void)
{
    return has_relay() ? TB_OK : no_relay(TB_ERR_CLOSED, "accepts");
}

void tb_foreign_alike_put(struct tb_writer *w, const struct tb_address_book *book)
{
    tb_put_text(w, TB_VERSION);
    tb_put_u32(w, tb_wire_machine());
    tb_put_u8(w, has_relay());
    tb_put_u32(w, parameters(book));
    tb_put_u32(w, book->job);
    tb_put_u32(w, tb_worlds_processes(book));
}

int tb_foreign_alike_far(const struct tb_address_book *book, uint32_t job, uint32_t processes)
{
    uint64_t ours = tb_context_tag(book->job), theirs = tb_context_tag(job);
    if (job != 0 && processes <= TB_JOB_RANKS_LIMIT &&
        (ours >= theirs + processes + TAG_DISTANCE || theirs >= ours + tb_worlds_processes(book) + TAG_DISTANCE))
        return TB_OK;
    return tb_error(TB_ERR_UNSUPPORTED, "the numbers of the two jobs, which are made up, are too near to each other: "
                                        "start one of them again");
}

int tb_foreign_alike_get(struct tb_reader *r, const struct tb_address_book *book, uint32_t *job)
{
    size_t length = 0;
    const char *version = tb_get_bytes(r, &length);
    uint32_t machine = tb_get_u32(r);
    uint8_t relays = tb_get_u8(r);
    uint32_t sum = tb_get_u32(r);
    *job = tb_get_u32(r);
    uint32_t processes = tb_get_u32(r);
    if (r->error != TB_OK)
        return tb_error(TB_ERR_PROTOCOL, "the other job says nothing sensible");
    if (length != strlen(TB_VERSION) || memcmp(version, TB_VERSION, length) != 0)
        return tb_error(TB_ERR_UNSUPPORTED, "the two jobs are of different versions of Tombolo");
    if (machine != tb_wire_machine())
        return tb_error(TB_ERR_UNSUPPORTED, "the two jobs run on machines that write numbers differently");
    if (*job == book->job)
        return tb_error(TB_ERR_UNSUPPORTED, "who connects is of this job itself: the name of the port is not as "
                                            "MPI_Open_port has given it");
    if (!relays && has_relay()) /* if both have none, both are told when somebody accepts */
        return no_relay(TB_ERR_UNSUPPORTED, "connects");
    if (sum != parameters(book))
        return tb_error(TB_ERR_UNSUPPORTED, "the two jobs were started with different parameters of collectives or of "
                                            "eager messages, or with a plan; they must be the same where jobs meet");
    return tb_foreign_alike_far(book, *job, processes);
}
