/* SPDX-License-Identifier: MIT */
/* Ranks without an MPI: processes that the first one forks, and as much of MPI's Fortran bindings as sums need. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_ranks = 64, bytes_of_rank = 1 << 16, doubles = 1, floats = 2, integers = 3 };

typedef struct {
  atomic_int arrived, turn;
  char parts[most_ranks][bytes_of_rank];
} Shared;

static Shared *shared;
static int own_rank, ranks = 1;
static pid_t children[most_ranks];
typedef void (*Operation)(void *, void *, int *, int *);
static Operation operations[most_ranks];
static int made;

/* The rank of this process, one of n. */
int ranks_begin(int n) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ranks = n;
  for (int rank = 1; rank < n; ++rank)
    if ((children[rank] = fork()) == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      own_rank = rank;
      return rank;
    }
  return 0;
}

void ranks_wait(void) {
  const int turn = atomic_load(&shared->turn);
  if (atomic_fetch_add(&shared->arrived, 1) + 1 == ranks) {
    atomic_store(&shared->arrived, 0);
    atomic_fetch_add(&shared->turn, 1);
  }
  const struct timespec moment = {.tv_nsec = 50000};
  for (int looks = 0; atomic_load(&shared->turn) == turn; ++looks) {
    if (looks < 1000)
      sched_yield();
    else
      nanosleep(&moment, NULL); /* the one that is waited for may need this core */
  }
}

/* For rank 0, when all others have ended: how many of them did so otherwise than by exit(0). */
int ranks_failed(void) {
  int failed = 0, status;
  for (int rank = 1; rank < ranks; ++rank) failed += waitpid(children[rank], &status, 0) < 0 || status != 0;
  return failed;
}

/* End this process at once, as a crash does. */
void ranks_die(void) { kill(getpid(), SIGKILL); }

void mpi_initialized_(int *flag, int *code) { *flag = 1, *code = 0; }
void mpi_finalized_(int *flag, int *code) { *flag = *code = 0; }
void mpi_comm_get_parent_(int *parent, int *code) { *parent = -1, *code = 0; }
void mpi_comm_test_inter_(const int *comm, int *flag, int *code) { (void)comm, *flag = *code = 0; }
void mpi_comm_rank_(const int *comm, int *rank, int *code) { (void)comm, *rank = own_rank, *code = 0; }
void mpi_comm_size_(const int *comm, int *size, int *code) { (void)comm, *size = ranks, *code = 0; }
void mpi_type_create_f90_real_(const int *digits, const int *range, int *type, int *code) {
  (void)range, *type = *digits > 6 ? doubles : floats, *code = 0;
}
void mpi_type_create_f90_integer_(const int *digits, int *type, int *code) {
  (void)digits, *type = integers, *code = 0;
}
void mpi_op_create_(Operation function, const int *commutes, int *operation, int *code) {
  (void)commutes, *code = made == most_ranks;
  if (*code) return;
  operations[made] = function;
  *operation = made++;
}
void mpi_test_(const int *request, int *done, int *status, int *code) {
  (void)request, (void)status, *done = 1, *code = 0;
}

void mpi_iallreduce_(const void *mine, void *sums, const int *count, const int *type, const int *operation,
                     const int *comm, int *request, int *code) {
  const size_t bytes = (size_t)*count * (*type == floats ? 4 : 8);
  int length = *count, kind = *type;
  (void)comm;
  *request = 1, *code = bytes > bytes_of_rank;
  if (*code) return;
  memcpy(shared->parts[own_rank], mine, bytes);
  ranks_wait();
  memcpy(sums, shared->parts[0], bytes);
  for (int rank = 1; rank < ranks; ++rank) operations[*operation](shared->parts[rank], sums, &length, &kind);
  ranks_wait();
}
