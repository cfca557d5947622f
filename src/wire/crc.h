/* CRC-32C without the machine's help, for machines that have none and for the test of those that do. Private to wire.
 */
#ifndef TB_WIRE_CRC_H
#define TB_WIRE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t tb_crc32c_plain(uint32_t crc, const void *bytes, size_t length);

#endif
