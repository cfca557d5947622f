/* Every operation of bench/operations.h with every root, at some sizes, and whether its result is right
 * (tests/lab/trees). At the end rank 0 says how many calls there were. */
#define _GNU_SOURCE
#include "../../bench/operations.h"

static const int sizes[] = {8, 1000, 30000};
#define SIZES (sizeof sizes / sizeof sizes[0])

static int call_all(const struct operation *op, int n)
{
    int calls = 0;
    room_open(op, n);
    for (root = 0; root < (op->turn == ROOT ? size : 1); root++, calls++) {
        salt = (salt + 1) % 256;
        fill(op, n);
        op->run(n);
        check(op, n);
    }
    room_close();
    root = 0;
    return calls;
}

int main(int argc, char **argv)
{
    int calls = 0;
    bench_open(&argc, &argv);
    for (size_t i = 0; i < OPERATIONS; i++)
        for (size_t k = 0; k < (operations[i].run == do_barrier ? 1 : SIZES); k++)
            calls += call_all(&operations[i], operations[i].doubles ? (sizes[k] + 7) / 8 * 8 : sizes[k]);
    if (rank == 0)
        printf("%d calls on %d ranks\n", calls, size);
    bench_close();
    return 0;
}
