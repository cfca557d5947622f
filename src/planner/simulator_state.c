#include "planner/simulator_state.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 4096u
#define LINE       64u /* of the cache: what has this size is read at once */

void *tb_simulator_room(struct tb_simulator *m, unsigned room, size_t bytes)
{
    struct tb_simulator_room *r = &m->rooms[room];
    if (bytes <= r->bytes && r->at != NULL)
        return r->at;
    size_t more = r->bytes < ROOM_LEAST ? ROOM_LEAST : 2 * r->bytes;
    more = more < bytes ? bytes : more;
    more = (more + LINE - 1) / LINE * LINE;
    void *at = aligned_alloc(LINE, more);
    if (at == NULL) {
        m->error = tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
        return NULL;
    }
    if (r->at != NULL)
        memcpy(at, r->at, r->bytes);
    free(r->at);
    r->at = at;
    r->bytes = more;
    return at;
}
