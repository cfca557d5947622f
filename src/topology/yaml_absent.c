/* In the place of yaml.c where libyaml is not there: every file is refused, so nothing else can be called. */
#include "topology/yaml.h"

int tb_yaml_open(struct tb_yaml *yaml, const char *text, size_t length, const char *file)
{
    *yaml = (struct tb_yaml){.file = file};
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s: this Tombolo was built without libyaml and cannot read grid files; "
                    "build it anew with libyaml (libyaml-dev) and -Dyaml=enabled",
                    file);
}

void tb_yaml_close(struct tb_yaml *yaml)
{
    *yaml = (struct tb_yaml){0};
}

static _Noreturn void panic(void)
{
    tb_panic(__FILE__, __LINE__, "a document that nobody can have opened");
}

enum tb_yaml_kind tb_yaml_kind(const struct tb_yaml *yaml, int node)
{
    panic();
}

uint32_t tb_yaml_line(const struct tb_yaml *yaml, int node)
{
    panic();
}

const char *tb_yaml_text(const struct tb_yaml *yaml, int node)
{
    panic();
}

uint32_t tb_yaml_count(const struct tb_yaml *yaml, int node)
{
    panic();
}

int tb_yaml_item(const struct tb_yaml *yaml, int node, uint32_t i)
{
    panic();
}

int tb_yaml_key(const struct tb_yaml *yaml, int node, uint32_t i)
{
    panic();
}

int tb_yaml_value(const struct tb_yaml *yaml, int node, uint32_t i)
{
    panic();
}
