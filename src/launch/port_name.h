/* Names of ports: "tombolo:JOB:NUMBER:SECRET@ADDRESS,ADDRESS…". Whoever has the name may come, and nobody else: the
 * secret is made up for this port. The addresses are those of the border at which other jobs come. No input or output.
 */
#ifndef TB_LAUNCH_PORT_NAME_H
#define TB_LAUNCH_PORT_NAME_H

#include "job/job.h"

struct tb_port_name {
    uint32_t job;
    struct tb_key key; /* that follows from the secret */
    char addresses[TB_PORT_NAME_BYTES];
};

/* A new one, without addresses, and its key. */
int tb_port_name_make(char name[static TB_PORT_NAME_BYTES], uint32_t job, uint32_t number, struct tb_key *key);
void tb_port_name_add(char name[static TB_PORT_NAME_BYTES], const char *addresses, size_t length); /* those that fit */
/* An error, TB_ERR_CLOSED: it is no such name. */
int tb_port_name_parse(const char *name, size_t length, struct tb_port_name *port);

#endif
