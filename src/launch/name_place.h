/* Where `tombolo meet` keeps names, and the secret that jobs prove there: one line of text, which is given to jobs in a
 * file (name_file.h). No input or output but for reading that. */
#ifndef TB_LAUNCH_NAME_PLACE_H
#define TB_LAUNCH_NAME_PLACE_H

#include "job/job.h"

#define TB_NAME_PLACE_BYTES 768u

struct tb_name_place {
    struct tb_key key; /* that follows from the secret */
    char addresses[TB_NAME_PLACE_BYTES];
};

/* Makes up a secret; `text` is the line. */
int tb_name_place_make(struct tb_name_place *place, const char *addresses, char text[static TB_NAME_PLACE_BYTES]);
int tb_name_place_parse(struct tb_name_place *place, const char *text);
int tb_name_place_read(struct tb_name_place *place, const char *path);

#endif
