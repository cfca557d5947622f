/* Datagrams of a multicast group: one header, and what a fragment of a broadcast or a question about one carries. All
 * numbers are little-endian on the wire. Who may speak on a group has its key; whatever fails the check is dropped
 * without an answer and without memory. The same facts in prose: docs/wire.md. */
#ifndef TB_WIRE_DATAGRAM_H
#define TB_WIRE_DATAGRAM_H

#include "base/base.h"

#define TB_DATAGRAM_VERSION       1
#define TB_DATAGRAM_BYTES         52u   /* of the header */
#define TB_DATAGRAM_PAYLOAD_LIMIT 9000u /* more than what fits a frame of Ethernet's largest that is in use */

enum tb_datagram_type {
    TB_DATAGRAM_DATA = 1, /* a fragment of a message */
    TB_DATAGRAM_ASK,      /* to the root alone. payload: which fragments are missing */
    TB_DATAGRAM_STATUS,   /* of the root: how far it is. payload: for how long nobody need ask */
    TB_DATAGRAM_POLL,     /* of the root: report now */
    TB_DATAGRAM_PROBE,    /* of agents: does this reach you? */
    TB_DATAGRAM_TYPES
};

enum tb_datagram_flags {
    TB_DATAGRAM_REPAIR = 1,  /* it was sent before */
    TB_DATAGRAM_CONFIRM = 2, /* the root wants to be told when this message is everywhere */
    TB_DATAGRAM_WINDOW = 4,  /* the last of a window */
    TB_DATAGRAM_FLAGS = 7    /* every flag of this version */
};

struct tb_datagram {
    uint64_t context; /* communicator and plane */
    uint64_t number;  /* of the broadcast in it; never used twice */
    uint64_t length;  /* bytes of the whole message */
    uint32_t job;
    uint32_t sender;   /* process of the job */
    uint32_t fragment; /* begins at fragment * piece of the message */
    uint16_t piece;    /* payload bytes of every fragment but the last */
    uint16_t extra;    /* of ASK: the how manieth */
    uint8_t type, representation, flags;
};

/* Into how many fragments a message is cut; one without bytes is one fragment. */
static inline uint64_t tb_datagram_fragments(uint64_t length, uint16_t piece)
{
    return length == 0 ? 1 : (length - 1) / piece + 1;
}

/* How many bytes a fragment of it has; 0 beyond its end. */
static inline size_t tb_datagram_fragment_bytes(uint64_t length, uint16_t piece, uint64_t fragment)
{
    uint64_t begin = fragment * piece;
    return begin >= length ? 0 : length - begin < piece ? (size_t)(length - begin) : piece;
}

/* Writes the header of TB_DATAGRAM_BYTES with its check, which covers the payload; that follows on the wire, but need
 * not stand behind the header in memory. Without a key (NULL) the check is 0, as tb_datagram_get then wants it. */
void tb_datagram_put(void *to, const struct tb_datagram *d, const struct tb_siphash_key *key, const void *payload,
                     size_t length);
/* TB_OK; TB_ERR_FORBIDDEN: the check fails (*d is set as far as it can be read, for counting foreign jobs);
 * TB_ERR_PROTOCOL: too short, another version, or contradicting fields though the check is right; then *d means
 * nothing. `payload` need not stand behind the header in memory. */
int tb_datagram_get(const void *header, size_t header_bytes, const void *payload, size_t length,
                    const struct tb_siphash_key *key, struct tb_datagram *d);

#endif
