/* The file in which `tombolo meet` tells jobs where it is (name_place.h). It is ours as long as we hold its lock: no
 * other `tombolo meet` on this file takes it over, and what one that has ended has left behind is replaced by one of
 * those who find it. Anything else that has the name stays as it is. Belongs to the one thread of `tombolo meet`. */
#ifndef TB_LAUNCH_NAME_FILE_H
#define TB_LAUNCH_NAME_FILE_H

#include "launch/name_place.h"

struct tb_name_file {
    const char *path;
    int left; /* the file of a server that holds no lock any more; -1: there was none */
    int own;  /* what was written; -1: nothing yet */
    struct tb_key key;
};

/* Looks at what is there. TB_ERR_ARGUMENT: it is something else, or of a server that lives on this machine. If `left`
 * is a file then, its server may still answer: it is a copy from another machine perhaps, or here are no locks. */
int tb_name_file_claim(struct tb_name_file *file, const char *path);
/* A file that nobody else may read, with this line, in the place of the one that was left. TB_ERR_ARGUMENT: somebody
 * has made one since. */
int tb_name_file_write(struct tb_name_file *file, const char *text);
/* Takes the file away, unless it is not the one any more that was written. */
void tb_name_file_close(struct tb_name_file *file);

#endif
