/* Characters of texts from elsewhere, such as names of files, which may be any bytes. */
#ifndef TB_BASE_CHARACTER_H
#define TB_BASE_CHARACTER_H

#include <stdbool.h>

#define TB_CHARACTER_UNKNOWN "\xef\xbf\xbd" /* U+FFFD, in place of what is none */

/* Bytes of the character in UTF-8 that begins here, before the end of the text; 0: none does. */
static inline int tb_character_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    int more = c[0] < 0x80 ? 0 : c[0] < 0xc2 ? -1 : c[0] < 0xe0 ? 1 : c[0] < 0xf0 ? 2 : c[0] < 0xf5 ? 3 : -1;
    for (int i = 1; i <= more; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool wrong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) ||
                 (c[0] == 0xf4 && c[1] > 0x8f);
    return wrong ? 0 : more + 1;
}

/* Whether a byte has no place in a text that people write: it is a control character that neither is a blank nor ends a
 * line. Terminals that are shown it in an error may obey it. */
static inline bool tb_character_foreign(char byte)
{
    unsigned char c = (unsigned char)byte;
    return (c < ' ' && (c < '\t' || c > '\r')) || c == 0x7f;
}

#endif
