/* Behind which port of a segment a host is, by its Ethernet address: as told, or as seen in the frames that came from
 * there. Owned by the emulator, touched by its one thread. */
#ifndef TB_LAB_EMULATOR_HOSTS_H
#define TB_LAB_EMULATOR_HOSTS_H

#include "base/base.h"

#define TB_HOSTS_LIMIT 24576u
#define TB_HOSTS_SLOTS 32768u
#define TB_HOSTS_NONE  UINT32_MAX

struct tb_hosts {
    uint32_t count;
    struct tb_hosts_entry {
        uint64_t key; /* 0: empty; segments are counted from 1 */
        uint32_t port;
        bool fixed;
    } entries[TB_HOSTS_SLOTS];
};

uint32_t tb_hosts_find(const struct tb_hosts *hosts, uint16_t segment, const uint8_t address[6]);
/* What was told (`fixed`) wins over what is seen. A full table learns nothing more. */
void tb_hosts_learn(struct tb_hosts *hosts, uint16_t segment, const uint8_t address[6], uint32_t port, bool fixed);
void tb_hosts_forget(struct tb_hosts *hosts, uint32_t port);

#endif
