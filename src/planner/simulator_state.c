#include "planner/simulator_state.h"

#include <stdlib.h>

#define ROOM_LEAST 4096u

void *tb_simulator_room(struct tb_simulator *m, unsigned room, size_t bytes)
{
    struct tb_simulator_room *r = &m->rooms[room];
    if (bytes <= r->bytes && r->at != NULL)
        return r->at;
    size_t more = r->bytes < ROOM_LEAST ? ROOM_LEAST : 2 * r->bytes;
    more = more < bytes ? bytes : more;
    void *at = realloc(r->at, more);
    if (at == NULL) {
        m->error = tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
        return NULL;
    }
    r->at = at;
    r->bytes = more;
    return at;
}
