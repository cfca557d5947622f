/* A YAML document as a tree of which every node knows its line. Read-only; whoever opened it owns it; one thread.
 * Nodes are numbers. An alias is the node that it stands for, so a node can be met more than once, also inside itself:
 * readers bound how deep they go. */
#ifndef TB_TOPOLOGY_YAML_H
#define TB_TOPOLOGY_YAML_H

#include "base/base.h"

struct tb_yaml {
    const char *file; /* for messages; belongs to the caller */
    void *document;
    int root;
};

enum tb_yaml_kind { TB_YAML_TEXT, TB_YAML_LIST, TB_YAML_MAP };

/* TB_ERR_UNSUPPORTED in a build without libyaml. */
int tb_yaml_open(struct tb_yaml *yaml, const char *text, size_t length, const char *file);
void tb_yaml_close(struct tb_yaml *yaml);

enum tb_yaml_kind tb_yaml_kind(const struct tb_yaml *yaml, int node);
uint32_t tb_yaml_line(const struct tb_yaml *yaml, int node);
/* Of a text; without zero bytes inside. */
const char *tb_yaml_text(const struct tb_yaml *yaml, int node);
/* Items of a list, pairs of a map. */
uint32_t tb_yaml_count(const struct tb_yaml *yaml, int node);
int tb_yaml_item(const struct tb_yaml *yaml, int node, uint32_t i);
int tb_yaml_key(const struct tb_yaml *yaml, int node, uint32_t i);
int tb_yaml_value(const struct tb_yaml *yaml, int node, uint32_t i);

#endif
