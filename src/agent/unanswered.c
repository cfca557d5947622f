#include "agent/unanswered.h"

#include <stdio.h>
#include <string.h>

void tb_unanswered_add(struct tb_unanswered *unanswered, const struct tb_address *address, int error)
{
    char where[80], one[200];
    size_t used = strlen(unanswered->text);
    tb_address_print(address, where, sizeof where);
    snprintf(one, sizeof one, "%s%s (%s)", unanswered->count > 0 ? ", " : "", where, strerror(error));
    if (unanswered->more > 0 || used + strlen(one) >= sizeof unanswered->text) {
        unanswered->more++;
    } else {
        snprintf(unanswered->text + used, sizeof unanswered->text - used, "%s", one);
        unanswered->count++;
    }
}

void tb_unanswered_print(const struct tb_unanswered *unanswered, char *text, size_t size)
{
    char others[32] = "";
    if (unanswered->more > 0)
        snprintf(others, sizeof others, " and %u more", unanswered->more);
    snprintf(text, size, "nobody answers at %s%s", unanswered->text, others);
}
