/* What the error classes of the standard mean, and those of our own: one sentence for each. Constant. */
#ifndef TB_MPI_ERROR_TEXT_H
#define TB_MPI_ERROR_TEXT_H

const char *tb_error_class_text(int class); /* NULL: there is no such class */
int tb_error_class_count(void);             /* classes are below this, but for those of the tools interface */

#endif
