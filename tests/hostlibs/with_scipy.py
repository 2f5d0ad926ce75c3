# SPDX-License-Identifier: MIT
"""SciPy and NumPy, which bring a BLAS and a LAPACK of their own."""

import numpy as np
import scipy.linalg
import torch


def ftn_pytorch_forward(x):
    a, b = x.numpy()
    z = a + 1j * b
    found = []
    for m in (a, z, a.astype("float32"), z.astype("complex64")):
        found += [m @ m.T, np.vdot(m, m), np.linalg.inv(m), np.linalg.svd(m)[1], np.linalg.eigh(m @ m.conj().T)[0]]
        found += [scipy.linalg.lu(m)[2], scipy.linalg.qr(m)[1], scipy.linalg.solve(m, m[0]), scipy.linalg.expm(m / 99)]
        found += [scipy.linalg.blas.find_best_blas_type((m,))[1] == m.dtype, scipy.linalg.schur(m)[0]]
    flat = [np.atleast_1d(each).ravel() for each in found]
    return torch.from_numpy(np.concatenate([part for each in flat for part in (each.real * 1.0, each.imag * 1.0)]))
