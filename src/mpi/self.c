#include "mpi/self.h"

struct tb_self tb_self = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .anytime_lock = PTHREAD_MUTEX_INITIALIZER,
                          .error_lock = PTHREAD_MUTEX_INITIALIZER,
                          .mpit_lock = PTHREAD_MUTEX_INITIALIZER,
                          .presence_lock = PTHREAD_MUTEX_INITIALIZER,
                          .event_lock = PTHREAD_MUTEX_INITIALIZER,
                          .next_context = TB_CONTEXT_FIRST};
