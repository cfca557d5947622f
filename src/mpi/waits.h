/* What this rank waits for, in words, for whoever asks the launcher. Owns nothing. */
#ifndef TB_MPI_WAITS_H
#define TB_MPI_WAITS_H

#include <stdint.h>

/* Answers question `number`. With the engine locked; only reads. */
void tb_waits_tell(uint32_t number);

#endif
