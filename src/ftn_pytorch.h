/* SPDX-License-Identifier: MIT */
/**
 * C interface of ftn_pytorch: run functions of a Python script on arrays that the caller owns.
 *
 * This header is the whole contract of libftn_pytorch. It is valid C11 and C++17, and the Fortran modules are
 * written on top of nothing else.
 *
 * Status. Every function that can fail returns an fpt_status: FPT_OK, or one code of the list below. The text that
 * belongs to the last failure of the calling thread is returned by fpt_error_text(). Nothing is thrown, printed or
 * exited from inside the library, and on failure output arguments keep their values.
 *
 * Threads. Every function may be called from any thread, also from threads Python has never seen. Calls into
 * Python are serialised by its global lock, which is never held while the caller's own code runs.
 *
 * Handles. Modules, tensors, argument lists and results are named by integers made of a slot and a generation:
 * zero names nothing, freeing a stale handle does nothing, using one fails with FPT_ERR_FREED. A handle may be
 * copied freely; all copies die with the first one that is freed.
 *
 * Axis order. Extents and strides in this header always follow the Fortran order (first axis fastest for a
 * contiguous array). What the script sees is decided by the option "layout" of fpt_module_load().
 *
 * Floating point and OpenMP. The floating-point environment of the calling thread (traps, rounding, flush-to-zero,
 * sticky flags) and its OpenMP team size are the same after a call as before it.
 */
#ifndef FTN_PYTORCH_H
#define FTN_PYTORCH_H

#include <stdint.h>

#if defined(__GNUC__)
#define FPT_API __attribute__((visibility("default")))
#else
#define FPT_API
#endif

/* A status that is not looked at is a failure that nobody sees. Descriptions keep theirs for the call that uses them.
 */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define FPT_STATUS [[nodiscard]] FPT_API fpt_status
#else
#define FPT_STATUS FPT_API fpt_status
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header; fpt_version() returns that of the library. */
#define FPT_VERSION "0.2.0"
/** Number of the layout of fpt_arg and of the values of its constants. Parts with different numbers do not fit
 * together. */
#define FPT_ABI 1

/** Highest rank of an array that crosses the boundary, in either direction. */
#define FPT_MAX_RANK 7
/** Longest name of an argument, in characters. */
#define FPT_MAX_NAME 63
/**
 * Longest text that is stored inside an fpt_arg. Of longer ones the library keeps those that were described or passed
 * last: 256, and as many more as fit into 16 MiB. An argument whose text has gone gives FPT_ERR_FREED.
 */
#define FPT_MAX_INLINE_TEXT 111

/** Result of a call. Fortran: FTN_PYTORCH_OK and FTN_PYTORCH_ERR_..., the same values. */
typedef int32_t fpt_status;
enum {
  FPT_OK = 0,
  FPT_ERR_ARGUMENT = 1,        /**< an option or argument of the call itself is invalid */
  FPT_ERR_FILE = 2,            /**< file not found or not readable */
  FPT_ERR_FORMAT = 3,          /**< file is of no kind that load accepts */
  FPT_ERR_SYNTAX = 4,          /**< the script is not valid Python */
  FPT_ERR_IMPORT = 5,          /**< the script, or the library, could not import a Python module */
  FPT_ERR_SCRIPT = 6,          /**< another exception while the script or its setup hook ran */
  FPT_ERR_HOOK = 7,            /**< the script does not define the function that was called */
  FPT_ERR_SIGNATURE = 8,       /**< the function cannot be called with these arguments */
  FPT_ERR_PYTHON = 9,          /**< exception raised by a function of the script */
  FPT_ERR_RESULT_TYPE = 10,    /**< the function returned something that is no array, number or text */
  FPT_ERR_RESULT_COUNT = 11,   /**< number of results and number of outputs differ */
  FPT_ERR_RESULT_NAME = 12,    /**< dict result without named outputs, or no result of that name or index */
  FPT_ERR_DTYPE = 13,          /**< element types differ and no lossless conversion exists */
  FPT_ERR_SHAPE = 14,          /**< shapes differ; nothing is broadcast or squeezed */
  FPT_ERR_RANK = 15,           /**< rank above FPT_MAX_RANK, or pointer of another rank than the tensor */
  FPT_ERR_TRAIN_RESULT = 16,   /**< train returned something other than (is_completed, loss) */
  FPT_ERR_UNALLOCATED = 17,    /**< array without memory: unallocated, disassociated or null */
  FPT_ERR_KIND = 18,           /**< Fortran type or kind that has no counterpart in the script */
  FPT_ERR_STRIDE = 19,         /**< stride that torch cannot express: negative, or no multiple of the element */
  FPT_ERR_DEVICE = 20,         /**< memory or computation on a device that cannot be used */
  FPT_ERR_INPUT_MODIFIED = 21, /**< the script changed an input that was not marked as output */
  FPT_ERR_NOT_LOADED = 22,     /**< handle that was never given an object: load or create first */
  FPT_ERR_FREED = 23,          /**< handle of an object that was freed */
  FPT_ERR_INTERPRETER = 24,    /**< no Python to start, or it could not be started */
  FPT_ERR_VERSION = 25,        /**< Python of another version or build than the library was made for */
  FPT_ERR_PYTHONHOME = 26,     /**< PYTHONHOME names no matching Python */
  FPT_ERR_MEMORY = 27,         /**< out of memory */
  FPT_ERR_INTERNAL = 28,       /**< defect of this library; please report */
  FPT_ERR_NO_CHECKPOINT = 29,  /**< nothing to restore: no such file or folder, or none of that step in it */
  FPT_ERR_CORRUPT = 30,        /**< checkpoint that is damaged or cut off */
  FPT_ERR_LOCKED = 31,         /**< another process, or another rank, writes that file or folder */
  FPT_ERR_LIBRARY = 32         /**< a library of the program takes the place of one that torch or a module brings */
};

/** Element types. Values are part of the contract with the Fortran modules. */
enum {
  FPT_NONE = 0,
  FPT_BOOL = 1, /**< one byte, 0 or 1: logical(c_bool) */
  FPT_INT8 = 2,
  FPT_INT16 = 3,
  FPT_INT32 = 4,
  FPT_INT64 = 5,
  FPT_FLOAT32 = 6,
  FPT_FLOAT64 = 7,
  FPT_COMPLEX64 = 8,
  FPT_COMPLEX128 = 9,
  FPT_TEXT = 10,
  FPT_UINT8 = 11, /**< results only, as are the two that follow */
  FPT_FLOAT16 = 12,
  FPT_BFLOAT16 = 13,
  FPT_LOGICAL16 = 14, /**< Fortran logical of 2, 4, 8 bytes: scalars only */
  FPT_LOGICAL32 = 15,
  FPT_LOGICAL64 = 16
};

/** What the script may do with an argument. */
enum {
  FPT_IN = 0,  /**< read */
  FPT_OUT = 1, /**< written by the library, or changed in place by the script; a scalar goes by reference */
  FPT_COPY = 2 /**< copied when described; the copy dies with the call that uses it */
};

/** Flags of fpt_module_forward(), as in pytorch-fortran. */
enum { FPT_USE_DEVICE = 1, FPT_USE_INFERENCE_MODE = 2 };

/**
 * Description of one argument: an array, a scalar, a text or a tensor. 256 bytes, plain data, no owner: it may be
 * copied, kept and passed again. The memory of an array must stay where it is while the description is used; after
 * a reallocation the description still means the old memory. Scalars of access FPT_IN and text are stored inside.
 *
 * Made by fpt_arg_array() and its neighbours, or by the Fortran functions torch_in, torch_out, torch_copy. Programs
 * need not look inside. A list of them may be NULL where its count is 0.
 */
typedef struct fpt_arg {
  void *data; /**< first element; text longer than FPT_MAX_INLINE_TEXT */
  union {
    struct {
      int64_t extents[FPT_MAX_RANK]; /**< elements, Fortran order, zero beyond the rank */
      int64_t strides[FPT_MAX_RANK]; /**< bytes, may be negative, zero beyond the rank */
    } array;
    char text[FPT_MAX_INLINE_TEXT + 1];
    unsigned char value[16]; /**< rank 0, access FPT_IN or FPT_COPY */
  } u;
  char name[FPT_MAX_NAME + 1]; /**< keyword name, empty for a positional argument */
  int16_t dtype;
  int8_t rank;
  int8_t access;
  int32_t status;   /**< FPT_OK, or what was wrong already when the argument was described */
  int64_t handle;   /**< tensor or copy that this argument refers to, else 0 */
  int64_t length;   /**< of the text; where status is set, the offending value */
  int64_t spare[6]; /**< zero; room for the device of the memory */
} fpt_arg;

typedef int64_t fpt_tensor;
typedef int64_t fpt_wrap;
typedef int64_t fpt_results;
typedef int64_t fpt_module;
typedef int64_t fpt_scope;

/* ---- library ------------------------------------------------------------------------------------------------ */

/** Version of the library, "major.minor.patch". Static memory. */
FPT_API const char *fpt_version(void);

/**
 * Start the interpreter, or adopt the one that already runs in this process. Optional: loading a module does it.
 *
 * @param python      path of the Python executable to use, not terminated; NULL or length 0 for
 *                    FTN_PYTORCH_PYTHON, else VIRTUAL_ENV or CONDA_PREFIX if that environment fits (a warning says if
 *                    not), else the Python the library was built with
 * @param python_len  length of `python` in bytes; trailing blanks are ignored
 * @return FPT_OK (also when it runs already), FPT_ERR_INTERPRETER, FPT_ERR_VERSION, FPT_ERR_PYTHONHOME,
 *         FPT_ERR_IMPORT when the Python part of this library is not found
 *
 * The library never finalizes the interpreter. Where another part of the program does so, later calls into Python fail
 * with FPT_ERR_INTERPRETER, fpt_module_has() finds nothing, and what is released later is leaked. Else an exit handler
 * runs Python's own exit functions and flushes its output.
 */
FPT_STATUS fpt_init(const char *python, int64_t python_len);

/**
 * Let this thread keep Python's lock between its calls, for other code of the program that embeds Python, too, and
 * never asks for the lock. On this thread such code works then. In a call the lock is free as ever. Starts Python if
 * nobody has.
 *
 * Meanwhile other threads of the program cannot call what runs in Python: FPT_ERR_INTERPRETER, at once. What they
 * release goes at the next call of this thread. Threads of scripts run while this thread is in a call.
 *
 * @param keeps  1: keep it. 0: give it back, if this thread keeps it; a lock that it held when it was to keep it stays
 * @return FPT_OK, also where nothing changes; what fpt_init() returns; FPT_ERR_INTERPRETER if another thread keeps the
 *         lock, in a call that Python has made into the program, and where the program has started Python itself and
 *         this thread does not hold the lock
 */
FPT_STATUS fpt_keep_lock(int32_t keeps);

/**
 * Make the primary CUDA context of a GPU, which torch uses, current on this thread. Runtimes of OpenACC and OpenMP
 * adopt the context that is current when they start; one of their own costs 0.3 ms at every change between it and
 * torch's.
 *
 * @param device  "cuda" (GPU 0), "cuda:1", or "cuda:local": rank of this process on its node modulo the number of GPUs
 * FPT_ERR_DEVICE.
 */
FPT_STATUS fpt_init_device(const char *device, int64_t device_len);

/**
 * Text of the last failure of the calling thread. For an exception of the script: type, message and traceback.
 *
 * @param text    set to the first byte; owned by the library, valid until the next failure of this thread
 * @param length  set to the length in bytes, UTF-8, not terminated
 */
FPT_API void fpt_error_text(const char **text, int64_t *length);

/** Name of a status as Fortran programs know it, "FTN_PYTORCH_ERR_SHAPE"; "unknown status" for other values. */
FPT_API const char *fpt_status_name(fpt_status status);

/**
 * Register the receiver of warnings (storage kept by a script, ranks that train on their own, ...).
 *
 * @param handler  called with text and length, on the thread that caused the warning, with Python's lock held: it
 *                 must not call into this library. NULL: warnings are kept, up to 64, until a handler is registered.
 */
FPT_API void fpt_on_warning(void (*handler)(const char *text, int64_t length));

/** Set the number of threads torch uses, at least 1, now or when something brings torch into the process; the caller's
 * own OpenMP team size stays. Starts nothing. */
FPT_STATUS fpt_set_threads(int64_t n);

/**
 * Tell all scripts of this process what they may want to know of the program: time, domain, grid. A script asks for it
 * by ftn_pytorch.host(), also while it is loaded. Values of earlier calls stay unless they get a new one. Starts
 * Python.
 *
 * @param values  [count] named scalars, texts and arrays; arrays are copied
 * FPT_ERR_ARGUMENT for one without a name, FPT_ERR_KIND, _UNALLOCATED and the like, and what fpt_init() returns. Then
 * no value has changed.
 */
FPT_STATUS fpt_set_host(fpt_arg values[], int32_t count);

/**
 * Describe the installation: library, interpreter and why it was chosen, packages, threads, floating-point mode. One
 * line each, which begins with a verdict: "ok", "note" or "wrong".
 *
 * @param text    set to the first byte; owned by the library, valid until the next call of this function on this thread
 * @param length  set to the length in bytes
 * @return FPT_OK if no line begins with "wrong"; FPT_ERR_VERSION if parts of the installation do not fit each other;
 *         FPT_ERR_IMPORT if neither torch nor NumPy is there, or one is broken; what fpt_init() returns if Python
 * cannot be started, and then the text says why. The error text is the first line that is wrong.
 */
FPT_STATUS fpt_diagnose(const char **text, int64_t *length);

/* ---- arguments ---------------------------------------------------------------------------------------------- */

/**
 * Describe an array or a scalar. Nothing is touched or copied, unless access is FPT_COPY.
 *
 * @param arg      filled completely, also when the description fails: the failure is reported again by the call
 *                 that uses it
 * @param data     first element; NULL gives FPT_ERR_UNALLOCATED
 * @param dtype    one of FPT_BOOL ... FPT_COMPLEX128, FPT_LOGICAL16 ... for scalars
 * @param rank     0 to FPT_MAX_RANK
 * @param extents  [rank] in elements, first axis fastest; NULL for rank 0
 * @param strides  [rank] in bytes; NULL for a contiguous array
 * @param access   FPT_IN, FPT_OUT or FPT_COPY
 */
FPT_API fpt_status fpt_arg_array(fpt_arg *arg, void *data, int32_t dtype, int32_t rank, const int64_t extents[],
                                 const int64_t strides[], int32_t access);

/**
 * Describe contiguous memory by the name of its element type, the same as fpt_arg_array() otherwise.
 *
 * @param data       NULL is fine where there are no elements
 * @param dtype      as torch calls it, "float32", not terminated; FPT_ERR_ARGUMENT for one that arrays cannot have
 */
FPT_API fpt_status fpt_arg_memory(fpt_arg *arg, void *data, const char *dtype, int64_t dtype_len, int32_t rank,
                                  const int64_t extents[], int32_t access);

/** Describe a text of `length` bytes. Trailing blanks do not count; the text is copied, see FPT_MAX_INLINE_TEXT. */
FPT_API fpt_status fpt_arg_text(fpt_arg *arg, const char *text, int64_t length, int32_t access);

/** Give an argument its keyword name; trailing blanks do not count. FPT_ERR_ARGUMENT when too long or empty. */
FPT_API fpt_status fpt_arg_name(fpt_arg *arg, const char *name, int64_t length);

/**
 * Lock the pages of an array on the host in memory, in place, so that GPUs copy it faster. It takes about as long as a
 * copy: for arrays that stay. fpt_unpin() must be called before the memory is released. Otherwise the driver goes on to
 * copy from the old pages, and what gets the address next arrives with old values, without an error.
 *
 * The elements must follow each other. Needs a GPU that this thread uses: call fpt_init_device() before. An array
 * without elements is fine.
 *
 * @param arg  array of access FPT_IN or FPT_OUT; fpt_unpin() takes one that begins at the same address
 * @return FPT_OK, FPT_ERR_DEVICE (no driver of CUDA, no GPU in use; memory of a device or managed memory), _ARGUMENT
 *         (pinned already, or not pinned; no array of the program), _STRIDE, _MEMORY, and what was wrong with `arg`
 */
FPT_STATUS fpt_pin(const fpt_arg *arg);
FPT_STATUS fpt_unpin(const fpt_arg *arg);

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/**
 * Make a tensor of an argument, or give an existing one new contents.
 *
 * @param tensor  in: 0, or a tensor whose contents are replaced; out: the tensor; release with fpt_tensor_free()
 * @param arg     array, scalar or another tensor. The memory stays the caller's and is not copied. A scalar of access
 *                FPT_IN becomes a tensor of its own with the value it had when it was described, one of access FPT_OUT
 *                goes by reference.
 */
FPT_STATUS fpt_tensor_set(fpt_tensor *tensor, fpt_arg *arg);

/** Describe a tensor as an argument. The argument refers to the tensor: it must not be freed before the call. */
FPT_API fpt_status fpt_tensor_arg(fpt_tensor tensor, fpt_arg *arg);

/**
 * Type, shape and place of a tensor as they are now: torch may change them at any time.
 *
 * @param dtype    set to an FPT_ element type
 * @param rank     set to 0 ... FPT_MAX_RANK
 * @param extents  [FPT_MAX_RANK] set in Fortran order, zero beyond the rank
 * @param device   [32] set to a terminated text, "cpu" or "cuda:0"
 */
FPT_STATUS fpt_tensor_info(fpt_tensor tensor, int32_t *dtype, int32_t *rank, int64_t extents[], char device[]);

/**
 * Memory of a tensor, not copied. It is valid until one of these:
 *  - the tensor is freed or given new contents, unless somebody else has the same tensor of torch;
 *  - torch gives the tensor other memory: resize_, set_, x.data = y, and what does that to parameters: Module.to(),
 *    double() and half(), vector_to_parameters(), load_state_dict(assign=True);
 *  - for a gradient: the next question about it after backward or zero_grad has replaced it.
 * Memory of the caller is valid as long as the caller keeps it. Ask again after such a change. Of a tensor that torch
 * has only marked as conjugate or negative, the values are computed when its memory is first asked for: it is a tensor
 * of its own from then on, and no view of another.
 *
 * @param dtype    element type that the caller expects; FPT_ERR_DTYPE if it is another
 * @param rank     rank that the caller expects; FPT_ERR_RANK if it is another
 * @param data     set to the first element
 * @param extents  [rank] set in Fortran order
 * @param strides  [rank] set in bytes
 * FPT_ERR_DEVICE for a tensor that is not in host memory.
 */
FPT_STATUS fpt_tensor_data(fpt_tensor tensor, int32_t dtype, int32_t rank, void **data, int64_t extents[],
                           int64_t strides[]);

/**
 * The same as fpt_tensor_set(), with the axis order in which torch sees the memory: 0 reversed, 1 that of Fortran.
 * FPT_ERR_ARGUMENT for another number.
 */
FPT_STATUS fpt_tensor_from(fpt_tensor *tensor, fpt_arg *arg, int32_t same_layout);

/**
 * Let a variable own the tensor that it names: fpt_tensor_end_owner() for the same address frees it. Inside a scope
 * nothing is owned, and what an owner leaves there ends with the scope. fpt_tensor_disown() says that the variable has
 * got another tensor, which it does not own.
 *
 * @param home    the variable; copies of the handle that a compiler makes lie elsewhere
 * @param before  what the variable named until now; it is freed if the variable owned it
 */
FPT_API void fpt_tensor_own(const fpt_tensor *home, fpt_tensor before);
FPT_API void fpt_tensor_disown(const fpt_tensor *home, fpt_tensor before);

/** The variable at `home` ends its life. Any address may be given: it is read only if a variable there owned a tensor.
 */
FPT_API void fpt_tensor_end_owner(fpt_tensor *home);

/**
 * Assign. A tensor made of an array of the caller gets the values of the other, which must have its shape and type, and
 * the graph behind them; any other becomes a new handle of what `right` names. A tensor assigned to itself stays.
 *
 * @return FPT_OK, FPT_ERR_SHAPE, _DTYPE, _PYTHON (torch refuses: in-place change of a leaf that requires gradients)
 */
FPT_STATUS fpt_tensor_assign(fpt_tensor *left, fpt_tensor right);

/** Operators of fpt_tensor_operate(), as Python has them for tensors and numbers. */
enum {
  FPT_ADD = 0,
  FPT_SUBTRACT = 1,
  FPT_MULTIPLY = 2,
  FPT_DIVIDE = 3,
  FPT_POWER = 4,
  FPT_EQUAL = 5,
  FPT_NOT_EQUAL = 6,
  FPT_LESS = 7,
  FPT_LESS_EQUAL = 8,
  FPT_GREATER = 9,
  FPT_GREATER_EQUAL = 10,
  FPT_MATMUL = 11 /**< product of the matrices as Fortran sees them */
};

/**
 * Apply an operator to two tensors, or to a tensor and a scalar.
 *
 * @param left    a tensor, or 0 for `scalar`
 * @param right   a tensor, or 0 for `scalar`
 * @param scalar  NULL, or a scalar of access FPT_IN that takes the place of the one that is 0
 * @param tensor  set to a new tensor. After a failure it carries that: whatever uses it fails with the same status and
 *                text, so that expressions need no checks inside. Lives until the scope ends or it is freed.
 */
FPT_STATUS fpt_tensor_operate(int32_t operation, fpt_tensor left, fpt_tensor right, fpt_arg *scalar,
                              fpt_tensor *tensor);

/** What fpt_tensor_let() writes. */
enum {
  FPT_VALUES = 0,       /**< of the first tensor */
  FPT_GRADIENT = 1,     /**< that the first tensor has now */
  FPT_SUM = 2,          /**< of all elements of the first tensor */
  FPT_MEAN = 3,         /**< of all elements of the first tensor */
  FPT_MSE_LOSS = 4,     /**< mean squared error of the first tensor, whose target is the second one */
  FPT_CROSS_ENTROPY = 5 /**< of the first tensor, whose target is the second one */
};

/**
 * Write values into the memory of a tensor, which has their graph and their requires_grad from then on.
 *
 * @param what       FPT_VALUES, ...
 * @param first      a tensor
 * @param second     target of a loss; 0 for all else
 * @param reduction  of a loss: 0 none, 1 mean, 2 sum
 */
FPT_STATUS fpt_tensor_let(int32_t what, fpt_tensor target, fpt_tensor first, fpt_tensor second, int32_t reduction);

/**
 * Compute the gradients of all that requires them and that a tensor was computed from. They add up.
 *
 * @param gradient      may be NULL: a gradient with respect to the tensor; without one the tensor has one element
 * @param retain_graph  nonzero: the graph stays
 */
FPT_STATUS fpt_tensor_backward(fpt_tensor tensor, const fpt_tensor *gradient, int32_t retain_graph);

/** Make a new tensor that carries the last failure of this thread, as fpt_tensor_operate() does. */
FPT_API void fpt_tensor_fail(fpt_tensor *tensor, fpt_status status);

/**
 * The gradient of a tensor, whatever it is when it is used: after every backward the new one.
 *
 * @param gradient  see fpt_tensor_set(). Using it before there is a gradient fails with FPT_ERR_ARGUMENT.
 */
FPT_STATUS fpt_tensor_gradient(fpt_tensor tensor, fpt_tensor *gradient);

/** Copy a tensor into an array or scalar; shapes must agree, types may widen, and narrow if cast is not 0. */
FPT_STATUS fpt_tensor_copy(fpt_tensor tensor, fpt_arg *output, int32_t cast);

/** 1 if the handle names a tensor with contents, else 0. */
FPT_API int32_t fpt_tensor_is_set(fpt_tensor tensor);

/** Address that identifies the tensor's object inside the library, NULL if there is none. For identity only. */
FPT_API void *fpt_tensor_address(fpt_tensor tensor);

/** Release a tensor; 0 and stale handles are fine. Memory of the caller is not touched. */
FPT_API void fpt_tensor_free(fpt_tensor tensor);

/* ---- scopes ------------------------------------------------------------------------------------------------- */

/**
 * Open a scope of this thread, inside those that are open. Tensors that are made in it die at its end, or when they are
 * freed; outside of every scope they live until they are freed, or their owner ends.
 *
 * @param scope  in: 0, or what it was set to before: a scope that was not ended is ended, with a warning; out: the
 * scope
 * @param name   for messages, may be empty
 */
FPT_STATUS fpt_scope_begin(fpt_scope *scope, const char *name, int64_t name_len);

/** End a scope, and with a warning those that are still open inside. FPT_ERR_ARGUMENT: not open on this thread. */
FPT_STATUS fpt_scope_end(fpt_scope scope);

/**
 * The variable at `home` ends its life: a scope that it has begun and not ended, on this thread, ends with those inside
 * it, without a warning. Any address may be given: it is read only if a variable there has begun a scope.
 */
FPT_API void fpt_scope_leave(const fpt_scope *home);

/** Let a tensor of the scope, or of one inside it, live as long as the scope outside, or without one until it is freed.
 */
FPT_STATUS fpt_scope_keep(fpt_scope scope, fpt_tensor tensor);

/**
 * torch.autocast on this thread until the scope, its innermost one, ends.
 *
 * @param device  type of device, "cuda"; length 0: "cpu"
 * @param dtype   element type to compute with, "bfloat16"; length 0: that of torch for the device
 */
FPT_STATUS fpt_scope_autocast(fpt_scope scope, const char *device, int64_t device_len, const char *dtype,
                              int64_t dtype_len);

/** Switch gradients on (1) or off (0) for this thread until the scope, its innermost one, ends. */
FPT_STATUS fpt_scope_gradients(fpt_scope scope, int32_t wanted);

/** 1 if this thread is within a scope: what is made now ends with it, and needs no owner. */
FPT_API int32_t fpt_scope_is_open(void);

/* ---- procedures ---------------------------------------------------------------------------------------------- */

/**
 * A procedure of the program that Python calls, and torch for gradients. It runs without Python's lock, unless
 * fpt_keep_lock() says so, and may call this library, on the thread that called it: that of the call which led to it.
 *
 * @param context  as registered
 * @param inputs   [ninputs] tensors, valid until it returns; it must not change them. For an adjoint: the inputs of the
 *                 procedure, followed by the gradients of its outputs.
 * @param outputs  [noutputs] in: 0; out: tensors that it has made, none of them in memory of the program, which may end
 *                 with the procedure (FPT_ERR_ARGUMENT). For an adjoint: the gradients of the inputs.
 * @return 0, or any other number for a failure
 */
typedef int32_t (*fpt_procedure)(void *context, const fpt_tensor inputs[], int32_t ninputs, fpt_tensor outputs[],
                                 int32_t noutputs);

/**
 * Make a procedure known to Python: ftn_pytorch.procedure(name), or fpt_torch_call() with "ftn_pytorch.name".
 *
 * @param adjoint   NULL: gradients cannot pass it
 * @param context   handed to both, never looked at; lives as long as they are registered
 * @param noutputs  number of tensors that it makes, at least 1
 * @return FPT_OK, FPT_ERR_ARGUMENT. A procedure of that name is replaced.
 */
FPT_STATUS fpt_procedure_register(const char *name, int64_t name_len, fpt_procedure forward, fpt_procedure adjoint,
                                  void *context, int32_t noutputs);

/* ---- argument lists (torch_tensor_wrap) --------------------------------------------------------------------- */

/** Make an empty list, or empty the one that *wrap names. Release with fpt_wrap_free(). */
FPT_STATUS fpt_wrap_create(fpt_wrap *wrap);

/** Append an argument; the list keeps its own copy of the description, and a reference to a Python-owned tensor. */
FPT_STATUS fpt_wrap_add(fpt_wrap wrap, fpt_arg *arg);

/** Remove all arguments. */
FPT_STATUS fpt_wrap_clear(fpt_wrap wrap);

/** Release a list; 0 and stale handles are fine. */
FPT_API void fpt_wrap_free(fpt_wrap wrap);

/* ---- modules ------------------------------------------------------------------------------------------------ */

/**
 * Load a script or a saved model.
 *
 * @param module    in: 0, or a module that is replaced after the new one was loaded; out: the module; release with
 *                  fpt_module_free()
 * @param kind      0: a Python script is expected (torch_pymodule); 1: a saved model is expected (torch_module).
 *                  What the file holds decides in the end.
 * @param file      path, not terminated, trailing blanks ignored
 * @param options   [noptions] named texts and numbers: layout ("reversed", "same"), mode ("checked", "safe"),
 *                  dtype (name of a floating-point type that real arrays are cast to on the way in, or
 *                  "keep"), device, inputs ("share", "copy"), cast (allow narrowing into outputs), flags,
 *                  backend ("auto", "direct", "python": "direct" runs a saved model through libtorch, without Python,
 *                  and "auto" does so for kind 1 where it can be done), compile (a bool, or a mode of torch.compile),
 *                  compile_backend (of torch.compile), weights_only (0: files may run code while they are read),
 *                  training (1: a saved model predicts in training mode; evaluation mode otherwise),
 *                  record (1: calls of a script are recorded and made again without Python),
 *                  background (1: ftn_pytorch_train of a script runs in a process of its own),
 *                  communicator (handle of Fortran of an MPI communicator: its ranks train one network in a script),
 *                  fallback (file of a saved model, where `file` is the address of a server,
 * triton+grpc://HOST:PORT/MODEL)
 * @param config    [nconfig] named scalars, texts and arrays, handed to ftn_pytorch_setup as keyword arguments
 * @return FPT_OK, or FPT_ERR_FILE, _FORMAT, _SYNTAX, _IMPORT, _SCRIPT, _HOOK, _ARGUMENT, or what fpt_init() returns
 */
FPT_STATUS fpt_module_load(fpt_module *module, int32_t kind, const char *file, int64_t file_len, fpt_arg options[],
                           int32_t noptions, fpt_arg config[], int32_t nconfig);

/** Run the script again from its file and set it up with the configuration of its load. On failure it stays. */
FPT_STATUS fpt_module_reload(fpt_module module);

/** Set *has to 1 if the module has a function of that name, else to 0. */
FPT_STATUS fpt_module_has(fpt_module module, const char *name, int64_t name_len, int32_t *has);

/**
 * What runs the file: "script", "torchscript", "exported", "aoti", "onnx", "pickle" or "direct". `text` is owned by the
 * library, valid while the module lives.
 */
FPT_STATUS fpt_module_backend(fpt_module module, const char **text, int64_t *length);

/**
 * Write the model to a file: by ftn_pytorch_save(file) of a script, as a checkpoint of its state if it has no such
 * hook, as TorchScript otherwise. "%r" in a name stands for the MPI rank, here and in the two that follow. A file of
 * that name is replaced by a complete one only, apart from what a hook does.
 *
 * @return FPT_OK, FPT_ERR_FILE (cannot be written), _LOCKED (by another writer), _HOOK, _RESULT_TYPE, _PYTHON
 */
FPT_STATUS fpt_module_save(fpt_module module, const char *file, int64_t file_len);

/**
 * Write all state of a training (model, optimizer, random states, what the script keeps) as a new file of a folder.
 * Whatever happens meanwhile, also a kill, files that are there stay whole.
 *
 * @param folder  made if only itself is missing; locked for other writers until the module is freed
 * @param keep    number of files to keep, the latest, at least 1
 * @param step    number of this one, -1 for one more than the last; a restart takes the highest
 * @return FPT_OK, FPT_ERR_FILE (cannot be written), _LOCKED, _ARGUMENT (keep, or a step before one that is there),
 *         _HOOK, _RESULT_TYPE (state that cannot be stored)
 */
FPT_STATUS fpt_module_checkpoint(fpt_module module, const char *folder, int64_t folder_len, int64_t keep, int64_t step);

/**
 * Read what fpt_module_save() or fpt_module_checkpoint() wrote: a file, or the latest one of a folder. Nothing is
 * changed on failure, apart from what a hook does.
 *
 * @param fallback  not 0: a file of the folder that is damaged or foreign is passed over, with a warning
 * @param step      -1, or which file of the folder
 * @param found     NULL, or set to the step of what was read, -1 if it has none
 * @return FPT_OK, FPT_ERR_NO_CHECKPOINT, _CORRUPT, _FORMAT (foreign, or it does not fit this module), _FILE,
 *         _HOOK, _PYTHON
 */
FPT_STATUS fpt_module_restore(fpt_module module, const char *file, int64_t file_len, int32_t fallback, int64_t step,
                              int64_t *found);

/**
 * Give a saved model the weights of a network of a script: copies all parameters and buffers by name. Calls of the
 * saved model see the old weights or the new ones.
 *
 * @param module   a script
 * @param target   a saved model that can be trained: TorchScript on either path, a program of torch.export, a pickled
 *                 module
 * @param network  name of the network in the script, also "background.published"; empty: the only one that it has
 * @return FPT_OK, or FPT_ERR_HOOK (there is no such network, or the target takes no weights), _SHAPE (names or shapes
 *         differ; nothing has been changed), _ARGUMENT (a module to itself)
 */
FPT_STATUS fpt_module_publish(fpt_module module, fpt_module target, const char *network, int64_t network_len);

/**
 * Call ftn_pytorch_forward.
 *
 * @param inputs   [ninputs] positional or keyword arguments of the function
 * @param outputs  [noutputs] arrays that receive the results
 * @param results  NULL, or a handle as in fpt_module_call()
 * @param flags    0 or a sum of FPT_USE_...; scripts ignore them
 */
FPT_STATUS fpt_module_forward(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg outputs[], int32_t noutputs,
                              fpt_results *results, int32_t flags);

/** The same with an argument list; *output becomes a tensor that shares the memory of the result. */
FPT_STATUS fpt_module_forward_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor *output, int32_t flags);

/**
 * Call ftn_pytorch_train with the inputs followed by the targets.
 *
 * @param completed  set to 0 or 1, the first result
 * @param loss       set to the second result; NaN is passed on
 */
FPT_STATUS fpt_module_train(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg targets[], int32_t ntargets,
                            int32_t *completed, double *loss);

/** The same with an argument list and one target tensor. */
FPT_STATUS fpt_module_train_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor target, int32_t *completed,
                                 double *loss);

/**
 * Call any function of the module.
 *
 * @param results  NULL, or a handle that receives the results; 0 makes a new one, another is given new contents;
 *                 release with fpt_results_free(). Pointers into earlier contents become invalid.
 */
FPT_STATUS fpt_module_call(fpt_module module, const char *name, int64_t name_len, fpt_arg inputs[], int32_t ninputs,
                           fpt_arg outputs[], int32_t noutputs, fpt_results *results);

/** Call any function of the module whose result is one tensor, which keeps the graph that torch gave it. */
FPT_STATUS fpt_module_call_tensor(fpt_module module, const char *name, int64_t name_len, fpt_arg inputs[],
                                  int32_t ninputs, fpt_tensor *tensor);

/**
 * Call a function of torch, or a method of its tensors: "nn.functional.softmax", "cumsum", "Tensor.clamp_". Tensors
 * among the inputs arrive as what they are, graph included.
 *
 * @param layout   axis order of arrays and results, 0 reversed, 1 that of Fortran, -1 that of the first tensor among
 * the inputs, else 0
 * @param outputs  [noutputs] arrays that receive the results
 * @param results  NULL, or as in fpt_module_call()
 * @param tensor   NULL, or a tensor that becomes the one result. A new handle is made for it in any case.
 */
FPT_STATUS fpt_torch_call(const char *name, int64_t name_len, fpt_arg inputs[], int32_t ninputs, fpt_arg outputs[],
                          int32_t noutputs, fpt_results *results, fpt_tensor *tensor, int32_t layout);

/**
 * Let calls of a module work on a CUDA stream of the program. Arrays on devices are ready when what was put on the
 * stream before is done.
 *
 * @param queue   queue of OpenACC whose stream is used; NULL: `stream`
 * @param stream  cudaStream_t, null for the default stream
 * @param waits   1: a call with arrays on a device returns when its work is done; 0: it returns before, and results are
 *                there for what the program puts on the stream afterwards, or after fpt_module_wait()
 * FPT_ERR_DEVICE for NumPy, for a queue without a stream, and on the direct path for a torch without CUDA.
 */
FPT_STATUS fpt_module_set_stream(fpt_module module, const int32_t *queue, void *stream, int32_t waits);

/** Until the work of calls that did not wait is done. */
FPT_STATUS fpt_module_wait(fpt_module module);

/**
 * Make an object that is used like a module: an optimizer, a scheduler, a loss.
 *
 * @param object   as in fpt_module_load()
 * @param factory  module whose function makes it, 0 for torch
 * @param name     of that function, one of "ftn_pytorch_optimizer", "ftn_pytorch_scheduler", ...
 */
FPT_STATUS fpt_module_create(fpt_module *object, fpt_module factory, const char *name, int64_t name_len,
                             fpt_arg inputs[], int32_t ninputs);

/** Release a module; 0 and stale handles are fine. A call that is running keeps what it needs until it returns. */
FPT_API void fpt_module_free(fpt_module module);

/* ---- results ------------------------------------------------------------------------------------------------ */

/** Number of results; a function that returned None has none. */
FPT_STATUS fpt_results_count(fpt_results results, int32_t *count);

/** Name of result `index` (from 1), empty for tuples; owned by the library, valid until the results are freed. */
FPT_STATUS fpt_results_name(fpt_results results, int32_t index, const char **name, int64_t *length);

/** Index (from 1) of the result called `name`; FPT_ERR_RESULT_NAME lists the names there are. */
FPT_STATUS fpt_results_find(fpt_results results, const char *name, int64_t name_len, int32_t *index);

/** Result `index` as a tensor that shares its memory; see fpt_tensor_set() for the handle. */
FPT_STATUS fpt_results_get(fpt_results results, int32_t index, fpt_tensor *tensor);

/**
 * Memory of result `index`, as fpt_tensor_data(). Freeing or replacing the results ends it, as freeing the tensor does
 * there. A result on a device is shown as a copy on the host, which is valid until it is asked for after the result has
 * changed.
 */
FPT_STATUS fpt_results_data(fpt_results results, int32_t index, int32_t dtype, int32_t rank, void **data,
                            int64_t extents[], int64_t strides[]);

/** Copy result `index` into an array or scalar; shapes must agree, types may widen, and narrow if cast is not 0. */
FPT_STATUS fpt_results_copy(fpt_results results, int32_t index, fpt_arg *output, int32_t cast);

/** Text of result `index`, UTF-8; owned by the library, valid until the results are freed or replaced. */
FPT_STATUS fpt_results_text(fpt_results results, int32_t index, const char **text, int64_t *length);

/** Release results; 0 and stale handles are fine. Pointers into them become invalid. */
FPT_API void fpt_results_free(fpt_results results);

#ifdef __cplusplus
}
#endif

#endif
