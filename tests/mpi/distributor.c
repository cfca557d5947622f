/* ECCLib's distributor, as docs/guide/groups.md shows it: which portion of the root's buffer goes to which process is
 * what the displacements of MPI_Scatterv say, and of MPI_Gatherv which comes from whom. The lines of the guide stand
 * here as they stand there (tests/check-docs.py). */
#include "test.h"

static int peers, portion, root;
static MPI_Comm comm;
static double *buffer, *mine;

/* Word k of portion i. */
static double word(int i, int k)
{
    return 1000.0 * i + k + 0.5;
}

/* Every process has the portion that is wanted for it, changes it, and the root has all of it back in its place;
 * portions that are nobody's stay as they were. */
static void send_and_fetch(const int *counts, const int *displs, const int *wanted)
{
    for (int i = 0; test_rank == root && i < peers; i++)
        for (int k = 0; k < portion; k++)
            buffer[i * portion + k] = word(i, k);
    for (int k = 0; k < portion; k++)
        mine[k] = -1;
    MPI_Scatterv(buffer, counts, displs, MPI_DOUBLE, mine, portion, MPI_DOUBLE, root, comm);
    for (int k = 0; k < portion; k++) {
        CHECK(mine[k] == word(wanted[test_rank], k), "%g of portion %d", mine[k], wanted[test_rank]);
        mine[k] += 1e6;
    }
    MPI_Gatherv(mine, portion, MPI_DOUBLE, buffer, counts, displs, MPI_DOUBLE, root, comm);
    for (int i = 0; test_rank == root && i < peers; i++) {
        bool taken = false;
        for (int target = 0; target < peers; target++)
            taken = taken || wanted[target] == i;
        for (int k = 0; k < portion; k++)
            CHECK(buffer[i * portion + k] == word(i, k) + taken * 1e6, "%g in portion %d", buffer[i * portion + k], i);
    }
}

static void changed_by_hand(void)
{
    int wanted[peers];
    int counts[peers], displs[peers];
    for (int target = 0; target < peers; target++) {
        counts[target] = portion;
        displs[target] = target * portion;
    }
    displs[0] = 3 * portion;
    displs[3] = 0 * portion;
    for (int target = 0; target < peers; target++)
        wanted[target] = target == 0 ? 3 : target == 3 ? 0 : target;
    send_and_fetch(counts, displs, wanted);
}

static void in_order(bool descending)
{
    int wanted[peers], counts[peers], displs[peers];
    for (int target = 0; target < peers; target++) {
        counts[target] = portion;
        displs[target] = descending ? (peers - 1 - target) * portion : target * portion;
        wanted[target] = descending ? peers - 1 - target : target;
    }
    send_and_fetch(counts, displs, wanted);
}

/* Portions of different lengths, and one that all get. */
static void beyond(void)
{
    int counts[peers], displs[peers], sum = 0;
    for (int target = 0; target < peers; target++) {
        counts[target] = portion > 0 ? target % (portion + 1) : 0;
        displs[target] = sum;
        sum += counts[target];
    }
    for (int k = 0; test_rank == root && k < peers * portion; k++)
        buffer[k] = k;
    MPI_Scatterv(buffer, counts, displs, MPI_DOUBLE, mine, counts[test_rank], MPI_DOUBLE, root, comm);
    for (int k = 0; k < counts[test_rank]; k++)
        CHECK(mine[k] == displs[test_rank] + k, "%g", mine[k]);
    for (int target = 0; target < peers; target++) {
        counts[target] = portion;
        displs[target] = 0;
    }
    MPI_Scatterv(buffer, counts, displs, MPI_DOUBLE, mine, portion, MPI_DOUBLE, root, comm);
    for (int k = 0; k < portion; k++)
        CHECK(mine[k] == k, "%g", mine[k]);
}

int main(int argc, char **argv)
{
    static const int portions[] = {0, 1, 3, 5000};
    test_begin(&argc, &argv);
    comm = MPI_COMM_WORLD;
    peers = test_size;
    for (size_t i = 0; i < sizeof portions / sizeof portions[0]; i++) {
        portion = portions[i];
        buffer = test_memory((size_t)(peers * portion) * sizeof *buffer);
        mine = test_memory((size_t)portion * sizeof *mine);
        for (root = 0; root<peers; root += peers> 1 ? peers - 1 : 1) {
            in_order(false);
            in_order(true);
            if (peers > 3)
                changed_by_hand();
            beyond();
        }
        free(buffer);
        free(mine);
    }
    return test_end();
}
