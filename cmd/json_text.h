/* Texts in JSON that subcommands print for programs. */
#ifndef TB_CMD_JSON_TEXT_H
#define TB_CMD_JSON_TEXT_H

/* In quotes, to standard output. Names of files may have any bytes: what is no UTF-8 becomes U+FFFD. */
void tb_json_text(const char *text);

#endif
