#include "agent/uplink_frames.h"

#include <stdlib.h>
#include <unistd.h>

void tb_uplink_tell_ready(struct tb_uplink *uplink, const struct tb_address_list *addresses,
                          const struct tb_seat *seats, uint32_t seat_count)
{
    char name[256] = "";
    const char *site = getenv("TOMBOLO_SITE"), *cluster = getenv("TOMBOLO_CLUSTER");
    gethostname(name, sizeof name - 1);
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_READY);
    tb_put_text(w, TB_VERSION);
    tb_put_text(w, name);
    tb_put_text(w, site != NULL ? site : "");
    tb_put_text(w, cluster != NULL ? cluster : "");
    tb_put_u32(w, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    tb_put_u32(w, addresses->count);
    for (uint32_t i = 0; i < addresses->count; i++)
        tb_address_put(w, &addresses->at[i]);
    tb_put_u32(w, tb_wire_machine());
    tb_put_u32(w, seat_count);
    for (uint32_t i = 0; i < seat_count; i++)
        tb_put_u64(w, tb_seat_pack(&seats[i]));
    tb_uplink_end(uplink);
}

void tb_uplink_tell_call(struct tb_uplink *uplink, uint32_t host, struct tb_proc there, struct tb_proc here,
                         uint32_t stream)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_CALL);
    const uint32_t fields[] = {host, there.job, there.index, here.job, here.index, stream};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        tb_put_u32(w, fields[i]);
    tb_uplink_end(uplink);
}

void tb_uplink_tell_probed(struct tb_uplink *uplink, const struct tb_reach_report *reports, uint32_t count)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_PROBED);
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u32(w, reports[i].host);
        tb_put_u8(w, reports[i].reached);
        tb_put_text(w, reports[i].story);
    }
    tb_uplink_end(uplink);
}

void tb_uplink_tell_link(struct tb_uplink *uplink, uint32_t host, enum tb_link_report state, uint64_t time,
                         const char *why)
{
    if ((state == TB_LINK_SILENT || state == TB_LINK_STUCK) && tb_uplink_is_down(uplink))
        return;
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_LINK);
    tb_put_u32(w, host);
    tb_put_u8(w, (uint8_t)state);
    tb_put_u64(w, time);
    tb_put_text(w, why);
    tb_uplink_end(uplink);
}

void tb_uplink_tell_group_state(struct tb_uplink *uplink, uint32_t attempt, enum tb_multicast_state state,
                                const struct tb_multicast_fit *fit, const char *why)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_GROUP_STATE);
    tb_put_u32(w, attempt);
    tb_put_u8(w, (uint8_t)state);
    tb_put_u32(w, fit->piece);
    tb_put_u32(w, fit->buffer);
    tb_put_text(w, why);
    tb_uplink_end(uplink);
}

void tb_uplink_tell_group_heard(struct tb_uplink *uplink, uint32_t test, uint64_t heard, uint64_t longest)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_GROUP_HEARD);
    tb_put_u32(w, test);
    tb_put_u64(w, heard);
    tb_put_u64(w, longest);
    tb_uplink_end(uplink);
}

void tb_uplink_tell_group_trouble(struct tb_uplink *uplink, uint32_t version, enum tb_multicast_trouble what)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_GROUP_TROUBLE);
    tb_put_u32(w, version);
    tb_put_u8(w, (uint8_t)what);
    tb_uplink_end(uplink);
}
