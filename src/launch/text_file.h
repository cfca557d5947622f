/* A file that the user wrote for us, read as a whole. */
#ifndef TB_LAUNCH_TEXT_FILE_H
#define TB_LAUNCH_TEXT_FILE_H

/* The text, ended by 0, to be freed. `what` names the kind of file in messages: "host file". */
int tb_text_file_read(const char *path, const char *what, char **text);

#endif
