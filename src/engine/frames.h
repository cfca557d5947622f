/* Kinds of frames, and who takes them: a table by enum tb_kind. Whoever adds a kind writes a handler in a file of its
 * own and a line here; docs/wire.md says which numbers are for what. Called with the engine locked. */
#ifndef TB_ENGINE_FRAMES_H
#define TB_ENGINE_FRAMES_H

#include "engine/engine.h"
#include "wire/wire.h"

#define TB_FRAME_KINDS 64u /* numbers from here on are not used */

struct tb_frame_kind {
    /* A frame that tb_message_check has passed; the payload is valid during the call. NULL: nobody takes such frames,
     * and whoever sends one is given up. */
    void (*handle)(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
    /* Where its payload had better go before that; NULL, or NULL is returned: nowhere yet. The frame is not checked. */
    void *(*place)(struct tb_peer *p, const struct tb_message *m, size_t length);
};

extern const struct tb_frame_kind tb_frame_kinds[TB_FRAME_KINDS];

#endif
