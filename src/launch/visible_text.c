#include "launch/visible_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* How many bytes the character has that begins here; 0: this is none. Longer forms than needed and halves of pairs are
 * none, since some terminals take them for something else. */
static size_t character(const unsigned char *c, uint32_t *code)
{
    size_t length = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *code = length < 2 ? *c : *c & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (c[i] & 0x3f);
    }
    bool sound = *code >= least[length] && *code < 0x110000 && (*code < 0xd800 || *code >= 0xe000);
    return sound ? length : 0;
}

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7f && code < 0xa0);
}

void tb_visible_text(const char *text, char *to, size_t size)
{
    const unsigned char *from = (const unsigned char *)text;
    while (*from != 0) {
        uint32_t code;
        size_t length = character(from, &code);
        bool shown = length > 0 && !is_control(code);
        length = length > 0 ? length : 1;
        size_t room = shown ? length : TB_VISIBLE_TEXT_GROWTH * length;
        if (size <= room)
            break;
        if (shown)
            memcpy(to, from, length);
        for (size_t i = 0; i < length && !shown; i++)
            snprintf(to + TB_VISIBLE_TEXT_GROWTH * i, TB_VISIBLE_TEXT_GROWTH + 1, "\\x%02x", from[i]);
        to += room;
        size -= room;
        from += length;
    }
    *to = 0;
}
