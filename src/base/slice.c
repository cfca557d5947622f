#include "base/slice.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the least that the scheduler allows */

bool tb_schedule(struct tb_scheduling wanted)
{
    wanted.size = sizeof wanted;
    return syscall(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

bool tb_slice_shorten(void)
{
    return sched_getscheduler(0) == SCHED_OTHER &&
           tb_schedule((struct tb_scheduling){
               .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS});
}
