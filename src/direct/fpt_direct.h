/* SPDX-License-Identifier: MIT */
/**
 * Boundary between libftn_pytorch and libftn_pytorch_direct. Not installed: both are of one build.
 *
 * The plug-in is linked with libtorch, the core is not. The core opens it on demand and gets everything from one table,
 * which fpt_direct_table_get() returns. Structs are plain C, failures are a status and a text, nothing is thrown
 * across.
 *
 * Arguments that are arrays have their axes in Fortran order, results in the order of the model; strides are in bytes.
 * The plug-in reverses the axes of arguments where the module was loaded so. Arguments are descriptions of memory,
 * scalars and texts: the core resolves handles and torch_copy before. A handle that is left says that the memory is not
 * the caller's: a model may change it, and the core keeps it until the answer is released, but no longer.
 *
 * Threads: every function may be called from any thread. What waits for what is said in direct-path.md.
 */
#ifndef FPT_DIRECT_H
#define FPT_DIRECT_H

#include "ftn_pytorch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header. The core refuses a plug-in of another one. */
#define FPT_DIRECT_VERSION 14

/** Kinds of files. */
enum { FPT_DIRECT_SCRIPT = 0, FPT_DIRECT_PACKAGE = 1, FPT_DIRECT_RECORDING = 2 };

/** Modes of a module, see the option "mode" of fpt_module_load(). */
enum { FPT_DIRECT_CHECKED = 0, FPT_DIRECT_SAFE = 1 };

/** Options of a load, checked by the core. Texts are terminated and need not outlive the call. */
typedef struct fpt_direct_options {
  const char *name;    /**< what texts call the module */
  const char *device;  /**< "cuda:1"; NULL for the host */
  int32_t kind;        /**< TorchScript, a package of AOTInductor, or a saved recording */
  int32_t same_layout; /**< 1: keep the axis order */
  int32_t float_dtype; /**< FPT_FLOAT32 or FPT_FLOAT64: what real arrays are cast to; FPT_NONE: nothing */
  int32_t copies_inputs;
  int32_t mode;
  int32_t flags;    /**< FPT_USE_... */
  int32_t training; /**< 1: predictions in training mode; not for packages */
  int32_t has_communicator;
  int32_t communicator; /**< handle of Fortran of the ranks that a recording averages over */
} fpt_direct_options;

/** What a value is. */
enum { FPT_DIRECT_TENSOR = 0, FPT_DIRECT_NUMBER = 1, FPT_DIRECT_TEXT = 2 };

/** One result. */
typedef struct fpt_direct_value {
  void *data;       /**< first element, or first byte of a text */
  const char *name; /**< terminated; NULL where results have no names */
  int32_t kind;
  int32_t dtype; /**< of a number: FPT_BOOL, FPT_INT64, FPT_FLOAT64 or FPT_COMPLEX128 */
  int32_t rank;
  int32_t device_type, device_index; /**< of a tensor, as in DLPack: 1 and 0 for the host */
  int64_t extents[FPT_MAX_RANK];
  int64_t strides[FPT_MAX_RANK];
  int64_t length;           /**< of a text, in bytes */
  unsigned char number[16]; /**< value of a number, as `dtype` says */
} fpt_direct_value;

/** The results of a call. Filled by the plug-in, valid until release(). Zero `owner`: nothing to release. */
typedef struct fpt_direct_answer {
  fpt_direct_value *values;
  void *owner;
  int32_t count;
  int32_t is_tuple; /**< results have names but also an order */
  uint64_t changed; /**< bit i: the model has changed the memory of input i, of the first 64 */
} fpt_direct_answer;

/** Settings of an optimizer, with the meaning they have in torch.optim. */
typedef struct fpt_direct_optimizer {
  int32_t kind; /**< 0: SGD, 1: Adam, 2: AdamW */
  int32_t nesterov, amsgrad;
  double lr, momentum, weight_decay, beta1, beta2, eps, dampening;
} fpt_direct_optimizer;

/** What a function of torch cannot be called with here: Python may know what to do. Never leaves the core. */
#define FPT_DIRECT_NOT_HERE (-1)

/** An operand: a tensor, or a scalar where that is NULL. */
typedef struct fpt_direct_operand {
  const struct fpt_direct_tensor *tensor;
  const fpt_arg *scalar;
  int32_t is_turned; /**< 1: its axes are to be reversed */
} fpt_direct_operand;

typedef struct fpt_direct_module fpt_direct_module;
/** An optimizer of tensors of the program. Used by one thread at a time. */
typedef struct fpt_direct_training fpt_direct_training;
/** A tensor that the program holds. Immutable; the tensor of torch behind it is not. */
typedef struct fpt_direct_tensor fpt_direct_tensor;

/** Tensors of the program. Axes are in the order of torch throughout, same_layout says how Fortran sees them. */
typedef struct fpt_direct_tensors {
  /**
   * A tensor on memory.
   *
   * @param owner  given to `release` when torch needs the memory no more, or after a failure; NULL: memory of the
   * caller FPT_ERR_STRIDE, _DEVICE, _KIND.
   */
  fpt_status (*make_tensor)(const fpt_direct_value *memory, void *owner, void (*release)(void *owner),
                            fpt_direct_tensor **tensor);
  void (*release_tensor)(fpt_direct_tensor *tensor);
  /** Its memory as it is now. A pending conjugation or sign is carried out first. FPT_ERR_RESULT_TYPE, _RANK, _DTYPE.
   */
  fpt_status (*describe_tensor)(fpt_direct_tensor *tensor, fpt_direct_value *memory);
  /** Address of the at::Tensor, valid as long as the tensor. */
  void *(*address_of_tensor)(fpt_direct_tensor *tensor);
  /** The tensor whose at::Tensor lies at an address. */
  fpt_status (*tensor_at)(void *address, fpt_direct_tensor **tensor);
  /** Number of the latest tensor on memory of the caller that was made. */
  uint64_t (*last_on_memory)(void);
  /** 1 if the memory is that of the caller, of a tensor that was made after the one of that number. */
  int32_t (*is_on_memory)(const fpt_direct_tensor *tensor, uint64_t after);
  /** Another tensor on the memory as it is now, without a graph. */
  fpt_status (*detach_tensor)(const fpt_direct_tensor *tensor, fpt_direct_tensor **detached);
  /** The gradient that there is now. FPT_ERR_ARGUMENT where there is none. */
  fpt_status (*gradient_of_tensor)(const fpt_direct_tensor *tensor, fpt_direct_tensor **gradient);
  /** 1 if torch would record what is computed with it on this thread. */
  int32_t (*records_gradients)(const fpt_direct_tensor *tensor);
  /** 1 if gradients are on for this thread. */
  int32_t (*gradients_are_on)(void);
  /** Compute gradients on this thread, or none; what it was before. */
  int32_t (*exchange_gradients)(int32_t wanted);
  /** FPT_ADD to FPT_MATMUL, as Python computes them. FPT_ERR_PYTHON with both operands. */
  fpt_status (*operate)(int32_t operation, const fpt_direct_operand *left, const fpt_direct_operand *right,
                        int32_t same_layout, fpt_direct_tensor **result);
  /** Assign to a tensor on memory of the caller, see Engine::write(). FPT_ERR_SHAPE, _DTYPE, _PYTHON. */
  fpt_status (*write_tensor)(fpt_direct_tensor *target, const fpt_direct_operand *value, int32_t same_layout);
  /** See Engine::require_writable(). FPT_ERR_ARGUMENT. */
  fpt_status (*require_writable)(const fpt_direct_tensor *target);
  /** The core has written into its memory, see Engine::written(). */
  void (*written)(fpt_direct_tensor *target);
  /**
   * Call a function of torch by the name that Python has for it; axes of tensors and arrays as of same_layout.
   *
   * @param inputs   [ninputs] as for call(); of those that are tensors only the names count
   * @param tensors  [ninputs] with no tensor for other inputs
   * @param tensor   set to the one result where that is a tensor, and not NULL; then there is no answer
   * @param answer   set on success else; to be given to release()
   * FPT_DIRECT_NOT_HERE: nothing was done. FPT_ERR_PYTHON, _ARGUMENT, _SHAPE, _INPUT_MODIFIED.
   */
  fpt_status (*call_function)(const char *name, int64_t name_len, int32_t same_layout, const fpt_arg inputs[],
                              const fpt_direct_operand tensors[], int32_t ninputs, fpt_direct_tensor **tensor,
                              fpt_direct_answer *answer);
  /** A tensor of an answer, with its graph. @param on_host  1: a copy in host memory where it is elsewhere */
  fpt_status (*tensor_of_answer)(const fpt_direct_answer *answer, int32_t index, int32_t on_host,
                                 fpt_direct_tensor **tensor);

  /**
   * An optimizer of tensors, with the kernels that torch_optimizer has in Python.
   *
   * FPT_DIRECT_NOT_HERE for a tensor that cannot be trained, or comes twice.
   */
  fpt_status (*make_training)(const fpt_direct_optimizer *settings, const fpt_direct_operand tensors[],
                              int32_t ntensors, fpt_direct_training **training);
  void (*end_training)(fpt_direct_training *training);
  /** From the gradients that there are. FPT_DIRECT_NOT_HERE where there are none. */
  fpt_status (*step_training)(fpt_direct_training *training);
  /** Forget the gradients. */
  fpt_status (*clear_training)(fpt_direct_training *training);
  /** Its settings, which can be changed. */
  fpt_direct_optimizer *(*settings_of_training)(fpt_direct_training *training);
  /**
   * What it keeps of a parameter.
   *
   * @param state  set to momentum_buffer or exp_avg, exp_avg_sq and max_exp_avg_sq of torch.optim; NULL for what is not
   *               there
   */
  fpt_status (*state_of_training)(fpt_direct_training *training, int32_t index, double *steps,
                                  fpt_direct_tensor *state[3]);
} fpt_direct_tensors;

typedef struct fpt_direct_table {
  int32_t version;           /**< FPT_DIRECT_VERSION */
  int32_t abi;               /**< FPT_ABI of the header that the plug-in was compiled with */
  const char *torch_version; /**< of the headers that the plug-in was compiled with */

  /** File of the libtorch_cpu that this process uses. Static memory. */
  const char *(*torch_library)(void);
  /** Text of the last failure of this thread, terminated, valid until the next one. */
  const char *(*error_text)(void);
  /** Receiver of warnings. */
  void (*on_warning)(void (*handler)(const char *text, int64_t length));
  /** Threads that torch uses for one operation. */
  fpt_status (*set_threads)(int64_t n);
  /** The function of torch that gives wrong numbers, NULL where all are right that use a BLAS or LAPACK. */
  fpt_status (*find_wrong_numbers)(const char **function);

  /** FPT_ERR_FILE, _FORMAT, _DEVICE, _VERSION. */
  fpt_status (*load)(const char *file, const fpt_direct_options *options, fpt_direct_module **module);
  void (*unload)(fpt_direct_module *module);
  /** Read the file again; on failure the module stays as it was. */
  fpt_status (*reload)(fpt_direct_module *module);
  fpt_status (*save)(fpt_direct_module *module, const char *file);
  /**
   * Go on from a file or from a folder of checkpoints, of which step -1 means the newest.
   *
   * @param fallback  1: damaged checkpoints are passed over
   * @param restored  set to the step of the checkpoint, -1 where it has none
   * FPT_ERR_NO_CHECKPOINT, _FORMAT, _CORRUPT, _FILE; then nothing is changed.
   */
  fpt_status (*restore)(fpt_direct_module *module, const char *file, int32_t fallback, int64_t step, int64_t *restored);
  /** Write the next checkpoint of a folder, of step -1 for one more than the last. FPT_ERR_HOOK for formats without. */
  fpt_status (*checkpoint)(fpt_direct_module *module, const char *folder, int64_t keep, int64_t step);
  /** Set parameters and buffers, all of them, by name: copies `count` tensors. FPT_ERR_SHAPE, and nothing is changed.
   */
  fpt_status (*assign)(fpt_direct_module *module, const fpt_direct_value values[], int32_t count);
  /** 1 if the model has a method of that name. */
  int32_t (*has)(fpt_direct_module *module, const char *name);

  /**
   * Call a method, or "ftn_pytorch_adjoint:1:METHOD" and its like with one gradient before the inputs.
   *
   * @param name     of the method, not terminated; NULL for forward
   * @param inputs   [ninputs] arrays, scalars and texts
   * @param tensors  [ninputs] with the tensors among the inputs, whose graphs go on in the results, with those of the
   *                 parameters; NULL: no graph is recorded. TorchScript alone.
   * @param answer   set on success; to be given to release()
   * FPT_ERR_HOOK, _SIGNATURE, _PYTHON (an exception of the model), _INPUT_MODIFIED, _STRIDE, _KIND, _RESULT_TYPE.
   */
  fpt_status (*call)(fpt_direct_module *module, const char *name, int64_t name_len, const fpt_arg inputs[],
                     const fpt_direct_operand tensors[], int32_t ninputs, int32_t flags, fpt_direct_answer *answer);
  /**
   * The parameters by name: the tensors themselves. From now on they may change outside of the module.
   *
   * @param answer  set on success; to be given to release()
   * FPT_ERR_HOOK for formats without.
   */
  fpt_status (*parameters)(fpt_direct_module *module, fpt_direct_answer *answer);
  void (*release)(void *owner);
  /**
   * Describe a copy of tensor `index` of an answer in host memory. The answer keeps it.
   *
   * @param widened  1: half precision becomes float32
   */
  fpt_status (*to_host)(const fpt_direct_answer *answer, int32_t index, int32_t widened, fpt_direct_value *copy);
  /**
   * Copy memory, wherever it is, into memory of its shape, axes in the same order. Converts. What goes to a device may
   * be under way afterwards.
   */
  fpt_status (*copy)(const fpt_direct_value *source, const fpt_direct_value *target);
  /** Until what libtorch was asked to do on a device is done, that of the current one for index -1. */
  fpt_status (*wait)(int32_t device_type, int32_t device_index);
  /**
   * Work on a CUDA stream of the program, of the GPU of the module, on this thread until leave_stream().
   *
   * @param stream   cudaStream_t, NULL for the default one
   * @param waits    0: wait() and calls do not wait for what is under way
   * @param entered  set on success; to be given to leave_stream()
   * FPT_ERR_DEVICE.
   */
  fpt_status (*enter_stream)(const fpt_direct_module *module, void *stream, int32_t waits, void **entered);
  void (*leave_stream)(void *entered);

  fpt_status (*create_optimizer)(fpt_direct_module *module, const fpt_direct_optimizer *settings);
  /** One step; *loss is the one before it. TorchScript: on the mean squared error to the only target. */
  fpt_status (*train)(fpt_direct_module *module, const fpt_arg inputs[], int32_t ninputs, const fpt_arg targets[],
                      int32_t ntargets, double *loss, int32_t *completed);

  fpt_direct_tensors tensors;
} fpt_direct_table;

/** The one exported function. */
FPT_API const fpt_direct_table *fpt_direct_table_get(void);
#define FPT_DIRECT_SYMBOL "fpt_direct_table_get"

#ifdef __cplusplus
}
#endif

#endif
