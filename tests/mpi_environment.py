# SPDX-License-Identifier: MIT
"""The environment of ranks: Open MPI refuses to start more of them than there are cores, and to run for root.

``fpt_mpi_environment`` of cmake/FtnPytorchTests.cmake is the same for ctest.
"""

MPI_ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
