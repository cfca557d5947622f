/* A source: a message as its root has it, for as long as others may ask for parts of it. */
#ifndef TB_LINK_MULTICAST_SOURCE_H
#define TB_LINK_MULTICAST_SOURCE_H

#include "link/multicast_state.h"

struct tb_multicast_source {
    struct tb_list of_context;
    struct tb_multicast_context *in;
    uint64_t number, length;
    uint64_t turn; /* so many of the context had begun then, itself among them */
    uint32_t fragments;
    uint32_t sent; /* so many of them, from the first on, have been sent once */
    uint16_t piece;
    uint8_t flags; /* of all its datagrams */
    bool is_kept;  /* a copy, of a short message */
    struct tb_multicast_payload payload;
};

struct tb_multicast_source *tb_multicast_source_find(const struct tb_multicast_context *c, uint64_t number);
void tb_multicast_source_enter(struct tb_multicast_source *s, struct tb_multicast_context *in, uint64_t number,
                               uint64_t length, uint16_t piece);
/* Makes the datagram of a fragment, the `slot`th of a batch. */
void tb_multicast_source_datagram(struct tb_multicast *m, const struct tb_multicast_source *s, uint32_t fragment,
                                  uint8_t flags, const struct tb_multicast_address *to, uint32_t slot,
                                  struct tb_multicast_out *out);
struct tb_multicast_name tb_multicast_source_name(const struct tb_multicast *m, const struct tb_multicast_source *s);

#endif
