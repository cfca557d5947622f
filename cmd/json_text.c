#include "json_text.h"

#include "base/base.h"

#include <stdio.h>

void tb_json_text(const char *text)
{
    putchar('"');
    for (int bytes; *text != 0; text += bytes > 0 ? bytes : 1) {
        bytes = tb_character_bytes(text);
        if (bytes == 0)
            fputs(TB_CHARACTER_UNKNOWN, stdout);
        else if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            printf("%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", bytes, text);
    }
    putchar('"');
}
