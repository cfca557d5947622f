/* What agents tell the launcher. */
#include "launch/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void send_books(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_pipe *pipe = &launch->guests[i].pipe;
        int rc = tb_book_encode(&launch->placement.book, tb_pipe_begin(pipe, TB_CONTROL_BOOK));
        if (rc == TB_OK)
            rc = tb_pipe_end(pipe);
        if (rc != TB_OK)
            tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "the address book is too long: %s", tb_error_story());
    }
}

static void take_place(struct tb_reader *r, char *place, size_t size)
{
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && length > 0 && length < size && *place == 0)
        snprintf(place, size, "%.*s", (int)length, text);
}

static void take_ready(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    struct tb_host *host = &launch->placement.book.hosts[guest->host];
    char version[64] = "", own_name[256] = "";
    take_place(r, version, sizeof version); /* the same as ours, or the preamble would have told */
    take_place(r, own_name, sizeof own_name);
    take_place(r, host->place.site, sizeof host->place.site);
    take_place(r, host->place.cluster, sizeof host->place.cluster);
    tb_get_u32(r); /* processors */
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count > TB_HOST_ADDRESS_LIMIT || guest->phase != TB_GUEST_SPOKEN)
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        tb_address_get(r, &host->addresses[i]);
    host->address_count = r->error == TB_OK ? count : 0;
    guest->phase = TB_GUEST_READY;
    launch->ready_count++;
    tb_log(TB_LOG_INFO, "launch", "host %s (%s) is ready with %u addresses", host->name, own_name, count);
    if (launch->ready_count < launch->host_count) {
        tb_guests_start(launch);
        return;
    }
    tb_timer_clear(&launch->start_timer);
    if (launch->host_count > 1 && !launch->ending)
        send_books(launch);
}

static void take_started(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count != launch->placement.book.hosts[guest->host].rank_count)
        return;
    guest->phase = TB_GUEST_STARTED;
    if (guest->target.local && guest->pids == NULL)
        guest->pids = calloc(count, sizeof *guest->pids);
    for (uint32_t i = 0; guest->pids != NULL && i < count; i++)
        guest->pids[i] = tb_get_u32(r);
    if (guest == tb_launch_guest_of(launch, 0))
        tb_input_open(launch);
}

static void take_output(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    uint32_t rank = tb_get_u32(r);
    uint8_t stream = tb_get_u8(r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < launch->placement.book.ranks && (stream == 1 || stream == 2))
        tb_screen_add(&launch->screens[stream - 1], rank, guest->host, bytes, length);
}

static void take_ended(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    struct tb_ended ended;
    if (tb_ended_get(r, &ended) != TB_OK || ended.rank >= launch->placement.book.ranks ||
        (launch->ranks[ended.rank] & TB_RANK_ENDED))
        return;
    launch->ranks[ended.rank] |= TB_RANK_ENDED;
    /* A group that is gone may come again under its number as somebody else's. */
    uint32_t local = tb_book_local_index(&launch->placement.book, ended.rank);
    if (guest->pids != NULL && guest == tb_launch_guest_of(launch, ended.rank) && guest->pids[local] > 1 &&
        kill(-(pid_t)guest->pids[local], 0) < 0 && errno == ESRCH)
        guest->pids[local] = 0;
    tb_ending_rank(launch, &ended);
}

static void take_abort(struct tb_guest *guest, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), pid = tb_get_u32(r), code = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < guest->launch->placement.book.ranks)
        tb_ending_abort(guest->launch, rank, pid, code, text, (int)length);
}

static void take_text(struct tb_guest *guest, struct tb_reader *r, bool trouble)
{
    uint32_t code = trouble ? tb_get_u32(r) : 0;
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return;
    if (trouble && guest->phase < TB_GUEST_READY) /* it does not know its name in the job yet */
        tb_launch_fail(guest->launch, TB_VERDICT_CAUSE, (int)(code & 255), "host %s: %.*s", guest->target.host,
                       (int)length, text);
    else if (trouble)
        tb_launch_fail(guest->launch, TB_VERDICT_CAUSE, (int)(code & 255), "%.*s", (int)length, text);
    else
        tb_launch_say(guest->launch, "%.*s", (int)length, text);
}

void tb_guest_take_frame(struct tb_guest *guest, struct tb_frame *frame)
{
    struct tb_launch *launch = guest->launch;
    struct tb_reader *r = &frame->fields;
    switch (frame->kind) {
    case TB_CONTROL_READY:
        take_ready(guest, r);
        break;
    case TB_CONTROL_STARTED:
        take_started(guest, r);
        break;
    case TB_CONTROL_OUTPUT:
        take_output(guest, r);
        break;
    case TB_CONTROL_ENDED:
        take_ended(guest, r);
        break;
    case TB_CONTROL_ABORTED:
        take_abort(guest, r);
        break;
    case TB_CONTROL_TROUBLE:
        take_text(guest, r, true);
        break;
    case TB_CONTROL_NOTE:
        take_text(guest, r, false);
        break;
    case TB_CONTROL_WINDOW:
        tb_input_allow(launch, tb_get_u32(r));
        break;
    case TB_CONTROL_GONE:
        tb_guest_give_up(guest);
        break;
    default:
        break;
    }
}
