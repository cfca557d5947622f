/* tombolo meet: names for jobs that have no launcher in common. */
#include "command.h"
#include "command_words.h"
#include "help_texts.h"

#include "launch/launch.h"

#include <stdio.h>
#include <string.h>

static const char usage[] = TB_HELP_TOMBOLO_MEET;

int tb_command_meet(char **words)
{
    const char *ports = "0", *path = NULL;
    if (tb_command_help(words, usage))
        return 0;
    for (; words[0] != NULL; words++) {
        uint16_t low, high;
        if (strcmp(words[0], "--ports") == 0 && words[1] != NULL && tb_ports_parse(words[1], &low, &high) == TB_OK) {
            ports = *++words;
        } else if (words[0][0] != '-' && path == NULL) {
            path = words[0];
        } else {
            fprintf(stderr, "tombolo meet: %s is not understood\n%s", words[0], usage);
            return 2;
        }
    }
    if (path == NULL) {
        fprintf(stderr, "tombolo meet: which file is to say where jobs find it?\n%s", usage);
        return 2;
    }
    return tb_meet_run(path, ports);
}
