#include "launch/verdict.h"

#include <stdio.h>

void tb_verdict_add(struct tb_verdict *verdict, enum tb_verdict_weight weight, int code, const char *text)
{
    if (verdict->weight == TB_VERDICT_LATE || weight <= verdict->weight)
        return;
    verdict->weight = weight;
    verdict->code = code != 0 ? code : 1;
    if (text == NULL)
        verdict->text[0] = 0;
    else if (*text != 0)
        snprintf(verdict->text, sizeof verdict->text, "%s", text);
    else
        snprintf(verdict->text, sizeof verdict->text, "the job has failed with exit code %d, and nothing was said why",
                 verdict->code);
}
