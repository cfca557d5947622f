/* tombolo info: version, parameters, and what the library does not implement yet. */
#include "command.h"
#include "command_words.h"
#include "help_texts.h"

#include "base/base.h"
#include "launch/launch.h"
#include "transport/transport.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = TB_HELP_TOMBOLO_INFO;

/* The library lies beside the commands: PREFIX/bin and PREFIX/lib, or the same two folders of a build. */
static void *open_library(char *path, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = 0;
        *strrchr(program, '/') = 0;
        snprintf(path, size, "%s/../lib/libmpi_abi.so.1", program);
        void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (library != NULL)
            return library;
    }
    snprintf(path, size, "libmpi_abi.so.1");
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

static int list_unimplemented(void)
{
    char path[PATH_MAX + 64];
    void *library = open_library(path, sizeof path);
    if (library == NULL) {
        fprintf(stderr, "tombolo info: cannot load the library: %s\n", dlerror());
        return 1;
    }
    const char *const *(*unimplemented)(void) = NULL;
    *(void **)&unimplemented = dlsym(library, "Tombolo_unimplemented");
    if (unimplemented == NULL) {
        fprintf(stderr, "tombolo info: %s is no library of Tombolo\n", path);
        return 1;
    }
    for (const char *const *name = unimplemented(); *name != NULL; name++)
        puts(*name);
    return 0;
}

static void print_library(void)
{
    char path[PATH_MAX + 64], real[PATH_MAX];
    void *library = open_library(path, sizeof path);
    const char *(*version)(void) = NULL;
    if (library != NULL)
        *(void **)&version = dlsym(library, "Tombolo_version");
    if (version == NULL) {
        printf("library     not found\n");
        return;
    }
    printf("library     %s (%s)\n", realpath(path, real) != NULL ? real : path, version());
}

static void print_parameters(void)
{
    static const char *const origins[] = {
        [TB_PARAM_DEFAULT] = "default", [TB_PARAM_ENVIRONMENT] = "environment", [TB_PARAM_LAUNCHER] = "launcher"};
    printf("\n%-18s %-14s %-12s %s\n", "parameter", "value", "from", "meaning");
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        char value[1024], range[96];
        tb_param_print(row, value, sizeof value);
        tb_param_print_range(row, range, sizeof range);
        printf("%-18s %-14s %-12s %s%s%s%s\n", row->name, *value != 0 ? value : "-", origins[tb_param_origin(row)],
               row->help, *range != 0 ? " (" : "", range, *range != 0 ? ")" : "");
    }
}

int tb_command_info(char **words)
{
    if (words[0] != NULL && strcmp(words[0], "--options") == 0 && words[1] == NULL) {
        tb_options_list(stdout);
        return 0;
    }
    if (words[0] != NULL && strcmp(words[0], "--unimplemented") == 0 && words[1] == NULL)
        return list_unimplemented();
    if (tb_command_help(words, usage))
        return 0;
    if (words[0] != NULL) {
        fprintf(stderr, "tombolo info: \"%s\" is no option\n%s", words[0], usage);
        return 2;
    }
    if (tb_transports_load_params() != TB_OK) {
        fprintf(stderr, "tombolo info: %s\n", tb_error_story());
        return 1;
    }
    printf("version     Tombolo %s\n", TB_VERSION);
    printf("transports ");
    for (uint32_t i = 0; tb_transports[i] != NULL; i++)
        printf(" %s", tb_transports[i]->name);
    printf(" %s\n", tb_transport_fault.name);
    print_library();
    print_parameters();
    return 0;
}
