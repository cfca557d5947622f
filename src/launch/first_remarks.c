#include "launch/first_remarks.h"

#include "launch/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Each host has a home of its own, so the agents choose. */
static void note_directory(struct tb_job_report *report, const struct tb_job_plan *plan)
{
    bool needed = false;
    for (uint32_t i = 0; i < plan->options->section_count; i++)
        needed = needed || plan->options->sections[i].directory == NULL;
    char *here = getcwd(NULL, 0);
    if (here == NULL && needed)
        tb_job_report_say(
            report, "the present directory has been removed, or has no name here; ranks start in the home directory, "
                    "or in / where there is none (--wdir chooses another)");
    free(here);
}

/* Nodes that a batch system has given to us, and nobody asked for. */
static void note_allocation(struct tb_job_report *report, const struct tb_job_plan *plan)
{
    const struct tb_options *options = plan->options;
    struct tb_allocation found;
    bool named = options->hosts.count > 0 || options->grid_file != NULL || options->lab != NULL;
    for (uint32_t i = 0; i < options->section_count; i++)
        named = named || options->sections[i].hosts.count > 0;
    if (named || plan->placement.book.ranks < 2 || getenv("TOMBOLO_RANK") != NULL || !tb_allocation_find(&found))
        return;
    tb_job_report_say(report, "the %u nodes of %s job %s are not used: all ranks start here. %s names them",
                      found.nodes, found.system, found.job, found.hint);
}

int tb_first_remarks_say(struct tb_job_report *report, const struct tb_job_plan *plan)
{
    const struct tb_options *options = plan->options;
    const struct tb_address_book *book = &plan->placement.book;
    note_directory(report, plan);
    note_allocation(report, plan);
    if (*options->ignored != 0)
        tb_job_report_say(report,
                          "ignored, since there is nothing of the kind here: %s (docs/guide/other-launchers.md)",
                          options->ignored);
    if (options->input_rank != TB_RANK_NONE && options->input_rank >= book->ranks)
        return tb_error(TB_ERR_ARGUMENT, "--stdin %u: the ranks are 0 to %u", options->input_rank, book->ranks - 1);
    char *map = options->shows_map ? tb_placement_print(&plan->placement) : NULL;
    if (options->shows_map && map == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the map of the ranks");
    if (map != NULL && options->plans_only)
        fprintf(stderr, "%s: %s\n", options->name, map); /* nobody will wait until the screen has shown it */
    else if (map != NULL)
        tb_job_report_answer(report, map);
    free(map);
    return TB_OK;
}
