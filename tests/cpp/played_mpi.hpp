// SPDX-License-Identifier: MIT
/// An MPI of one process, by the names of its Fortran bindings. For one file of a program that exports its symbols.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "base/mpi_sum.hpp"

/// An MPI of which this process is rank 0; `others_...` add what
/// the other ranks give to a sum of `count` numbers. Its communicator is 7.
struct PlayedMpi {
  int initialised = 1, finalised = 0, size = 2, code = 0;
  bool arrives = true, has_wide_integers = false;
  std::vector<int> counts;
  void (*operation)(void*, void*, int*, int*) = nullptr;  ///< of the last sum
  std::function<void(float*, int)> others_single;
  std::function<void(double*, int)> others_double;
};
inline PlayedMpi* played = nullptr;
inline std::vector<decltype(PlayedMpi::operation)> operations_made;

inline constexpr int null_handle = 2, inter_handle = 3;
inline constexpr int single = 41, real8 = 42, integer8 = 43, first_operation = 51;

extern "C" {
inline __attribute__((used, visibility("default"))) void mpi_initialized_(int* flag, int* code) {
  *flag = played ? played->initialised : 0;
  *code = 0;
  if (played && played->has_wide_integers) flag[1] = code[1] = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_finalized_(int* flag, int* code) {
  *flag = played->finalised;
  *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_comm_get_parent_(int* parent, int* code) {
  *parent = null_handle;
  *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_comm_test_inter_(int* handle, int* flag, int* code) {
  *flag = *handle == inter_handle;
  *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_comm_rank_(int*, int* rank, int* code) {
  *rank = *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_comm_size_(int* handle, int* size, int* code) {
  *size = played->size;
  *code = *handle == 7 ? 0 : 5;
}
inline __attribute__((used, visibility("default"))) void mpi_type_create_f90_real_(int* digits, int* range, int* type,
                                                                                   int* code) {
  *type = *digits == 6 && *range == 37 ? single : *digits == 15 && *range == 307 ? real8 : 0;
  *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_type_create_f90_integer_(int* digits, int* type,
                                                                                      int* code) {
  *type = *digits == 18 ? integer8 : 0;
  *code = 0;
}
inline __attribute__((used, visibility("default"))) void mpi_op_create_(decltype(PlayedMpi::operation) function,
                                                                        int* commutes, int* made, int* code) {
  *made = first_operation + static_cast<int>(operations_made.size());
  operations_made.push_back(function);
  *code = *commutes == 1 ? 0 : 1;
}
inline __attribute__((used, visibility("default"))) void mpi_iallreduce_(void* mine, void* sums, int* count, int* type,
                                                                         int* operation, int* communicator,
                                                                         int* request, int* code) {
  *code = *communicator == 7 ? played->code : 6;
  played->operation = operations_made.at(static_cast<std::size_t>(*operation - first_operation));
  *request = 9;
  played->counts.push_back(*count);
  std::memcpy(sums, mine, static_cast<std::size_t>(*count) * (*type == single ? 4 : 8));
  if (*type == real8 && played->others_double) played->others_double(static_cast<double*>(sums), *count);
  if (*type == single && played->others_single) played->others_single(static_cast<float*>(sums), *count);
}
inline __attribute__((used, visibility("default"))) void mpi_test_(int* request, int* done, int*, int* code) {
  *code = *request == 9 ? 0 : 8;
  *done = played->arrives;
}
}
