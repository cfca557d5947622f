/* A vector of more than 2 GiB of single bytes with gaps between them: sent and received by its type, and packed piece
 * by piece. A few megabytes are mapped again and again, so that the test needs address space rather than memory. */
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

#define WINDOW ((size_t)64 << 20) /* real memory */
#define COUNT  (((MPI_Count)1 << 31) + 1)
#define STRIDE 2
#define SPAN   ((size_t)(COUNT * STRIDE) + WINDOW)

static unsigned char *map(void)
{
    int memory = memfd_create("strided", MFD_CLOEXEC);
    test_need(memory >= 0 && ftruncate(memory, (off_t)WINDOW) == 0, "there is no memory");
    unsigned char *base = mmap(NULL, SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    test_need(base != MAP_FAILED, "there is no address space");
    for (size_t at = 0; at + WINDOW <= SPAN; at += WINDOW)
        test_need(mmap(base + at, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) != MAP_FAILED,
                  "the memory cannot be mapped");
    close(memory);
    return base;
}

static unsigned char byte_at(size_t place) /* of the window */
{
    return (unsigned char)(test_word(1, place) | 1);
}

/* The elements are where they should be, and the gaps are zero. */
static void check(const unsigned char *base, const char *how)
{
    for (size_t i = 0; i < WINDOW; i++)
        if (base[i] != (i % STRIDE == 0 ? byte_at(i) : 0)) {
            CHECK(false, "%s: byte %zu is 0x%02x", how, i, base[i]);
            return;
        }
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    unsigned char *base = map();
    MPI_Datatype type;
    MPI_Count size = 0, extent = 0, lower = 0, count = 0;
    int small = 0;
    MPI_Status status;
    MPI_Type_vector_c(COUNT, 1, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Type_size_c(type, &size);
    CHECK_EQUAL(size, COUNT);
    MPI_Type_size(type, &small);
    CHECK_EQUAL(small, MPI_UNDEFINED);
    MPI_Type_get_extent_c(type, &lower, &extent);
    CHECK_EQUAL(extent, (COUNT - 1) * STRIDE + 1);
    if (test_rank % 2 == 0)
        for (size_t i = 0; i < WINDOW; i += STRIDE)
            base[i] = byte_at(i);
    if (test_rank % 2 == 0 && test_rank + 1 < test_size) {
        MPI_Send(base, 1, type, test_rank + 1, 1, MPI_COMM_WORLD);
    } else if (test_rank % 2 == 1) {
        MPI_Recv(base, 1, type, test_rank - 1, 1, MPI_COMM_WORLD, &status);
        check(base, "received");
        MPI_Get_count_c(&status, MPI_BYTE, &count);
        CHECK_EQUAL(count, COUNT);
        MPI_Get_elements_c(&status, type, &count);
        CHECK_EQUAL(count, COUNT);
        MPI_Get_elements(&status, type, &small);
        CHECK_EQUAL(small, MPI_UNDEFINED);
        MPI_Get_count(&status, type, &small);
        CHECK_EQUAL(small, 1);
    }
    if (test_size == 1) { /* to itself, where nothing but the spans is in between */
        MPI_Request request;
        unsigned char *other = map();
        MPI_Irecv(other, 1, type, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Send(base, 1, type, 0, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        check(other, "from itself");
        munmap(other, SPAN);
    }
    MPI_Type_free(&type);
    munmap(base, SPAN);
    return test_end();
}
