/* base: what every layer stands on. Others include this header only. */
#ifndef TB_BASE_BASE_H
#define TB_BASE_BASE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/character.h"
#include "base/error.h"
#include "base/frame_size.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/list.h"
#include "base/number.h"
#include "base/plural.h"
#include "base/pool.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "base/span.h"
#include "base/param.h"
#include "base/clock.h"
#include "base/random.h"

#endif
