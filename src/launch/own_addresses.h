/* The addresses of this host that others could know, for what people give to others. */
#ifndef TB_LAUNCH_OWN_ADDRESSES_H
#define TB_LAUNCH_OWN_ADDRESSES_H

#include <stdint.h>

#define TB_OWN_ADDRESSES_BYTES 512u

/* "192.0.2.1:4711,[2001:db8::1]:4711"; of a host without a network its own name for itself. */
void tb_own_addresses_print(uint16_t port, char text[static TB_OWN_ADDRESSES_BYTES]);

#endif
