/* Environment variables that a section of the command line names. */
#include "launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

bool tb_variables_has(const struct tb_section *section, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (uint32_t i = 0; i < section->variable_count; i++)
        if (strncmp(section->variables[i], variable, length) == 0)
            return true;
    return false;
}

/* Takes over `made`, which may be NULL: there was no memory for it. */
static int append(struct tb_section *section, char *made)
{
    char **grown = made != NULL ? realloc(section->variables, (section->variable_count + 2) * sizeof *grown) : NULL;
    if (grown == NULL) {
        free(made);
        return tb_error(TB_ERR_MEMORY, "no memory for the environment");
    }
    section->variables = grown;
    grown[section->variable_count++] = made;
    grown[section->variable_count] = NULL;
    return TB_OK;
}

static int append_matching(struct tb_section *section, const char *prefix, size_t length)
{
    int rc = TB_OK;
    for (char **at = environ; *at != NULL && rc == TB_OK; at++)
        if (strncmp(*at, prefix, length) == 0 && strchr(*at, '=') != NULL && !tb_variables_has(section, *at))
            rc = append(section, strdup(*at));
    return rc;
}

int tb_variables_add(struct tb_section *section, const char *name, const char *value)
{
    size_t length = value != NULL ? strlen(name) : strcspn(name, "=");
    if (length == 0 || memchr(name, '=', length) != NULL)
        return tb_error(TB_ERR_ARGUMENT, "-x %s: should be NAME or NAME=VALUE", name);
    char *made = NULL;
    if (value != NULL)
        return append(section, asprintf(&made, "%s=%s", name, value) >= 0 ? made : NULL);
    if (name[length] == '=')
        return append(section, strdup(name));
    if (name[length - 1] == '*')
        return append_matching(section, name, length - 1);
    const char *here = getenv(name);
    if (here == NULL)
        return tb_error(TB_ERR_ARGUMENT, "-x %s: there is no such variable in the environment; write -x %s=VALUE", name,
                        name);
    return append(section, asprintf(&made, "%s=%s", name, here) >= 0 ? made : NULL);
}

int tb_variables_add_list(struct tb_section *section, const char *names)
{
    char name[256];
    for (const char *at = names; *at != 0;) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof name || memchr(at, '=', length) != NULL)
            return tb_error(TB_ERR_ARGUMENT, "-genvlist %s: should be names of variables, as in HOME,LANG", names);
        memcpy(name, at, length);
        name[length] = 0;
        int rc = getenv(name) != NULL ? tb_variables_add(section, name, NULL) : TB_OK;
        if (rc != TB_OK)
            return rc;
        at += length + (at[length] == ',');
    }
    return TB_OK;
}

/* What describes this machine, this login or this job, and would be wrong elsewhere. */
static bool stays_here(const char *variable)
{
    static const char *const names[] = {"PWD=",
                                        "OLDPWD=",
                                        "SHLVL=",
                                        "_=",
                                        "HOSTNAME=",
                                        "HOME=",
                                        "USER=",
                                        "LOGNAME=",
                                        "SHELL=",
                                        "MAIL=",
                                        "TERM=",
                                        "DISPLAY=",
                                        "SSH_",
                                        "XDG_",
                                        "DBUS_",
                                        "TOMBOLO_",
                                        "PMI_",
                                        "PMIX_",
                                        "MPI_LOCALRANKID=",
                                        "MPI_LOCALNRANKS=",
                                        "OMPI_COMM_WORLD_",
                                        "SLURM_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

int tb_variables_add_all(struct tb_section *section)
{
    int rc = TB_OK;
    for (char **at = environ; *at != NULL && rc == TB_OK; at++)
        if (strchr(*at, '=') != NULL && !stays_here(*at) && !tb_variables_has(section, *at))
            rc = append(section, strdup(*at));
    return rc;
}
