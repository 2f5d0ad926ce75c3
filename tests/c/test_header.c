/* SPDX-License-Identifier: MIT */
/* A program in C11 that uses every public function, with nothing but the header and the shared library. */
#include <ftn_pytorch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition) \
  ((condition) ? (void)0 : (void)(++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

/* The call succeeds; otherwise the text of the library is shown. */
#define CHECK_OK(call) check_ok((call), #call, __LINE__)

static void check_ok(fpt_status status, const char *call, int line) {
  const char *text;
  int64_t length;
  if (status == FPT_OK) return;
  fpt_error_text(&text, &length);
  fprintf(stderr, "%s:%d: %s: %s: %.*s\n", __FILE__, line, call, fpt_status_name(status), (int)length, text);
  ++failures;
}

static int error_contains(const char *part) {
  const char *text;
  int64_t length;
  char copy[2000] = "";
  fpt_error_text(&text, &length);
  memcpy(copy, text, (size_t)(length < 1999 ? length : 1999));
  return strstr(copy, part) != NULL;
}

static int warnings = 0;
static void on_warning(const char *text, int64_t length) { warnings += text != NULL && length > 0; }

static const char script_file[] = "test_header_script.py";
static const char state_file[] = "test_header_state.txt";
static const char steps[] = "test_header_steps";
static const char script[] =
    "import numpy as np\n"
    "kept = []\n"
    "def ftn_pytorch_setup(factor): globals().update(factor=factor)\n"
    "def one(x): return x[0] if isinstance(x, list) else x\n"
    "def ftn_pytorch_forward(x): return factor * one(x)\n"
    "def ftn_pytorch_train(x, t): return True, float(np.mean((factor * one(x) - t) ** 2))\n"
    "def ftn_pytorch_save(name): open(name, 'w').write(str(factor))\n"
    "def ftn_pytorch_restore(name): globals().update(factor=float(open(name).read()))\n"
    "def results(x): return {'twice': 2 * x, 'name': 'west', 'n': 3}\n"
    "def keep(x): kept.append(x)\n";

static void write_script(void) {
  FILE *file = fopen(script_file, "w");
  if (!file || fputs(script, file) < 0 || fclose(file) != 0) exit(2);
}

static fpt_arg array(double *data, int64_t n, int32_t access) {
  fpt_arg arg;
  CHECK_OK(fpt_arg_array(&arg, data, FPT_FLOAT64, 1, &n, NULL, access));
  return arg;
}

static void test_library(void) {
  const char *text = NULL;
  int64_t length = 0;
  CHECK(strcmp(fpt_version(), FPT_VERSION) == 0);
  CHECK(strcmp(fpt_status_name(FPT_ERR_SHAPE), "FTN_PYTORCH_ERR_SHAPE") == 0);
  CHECK(fpt_init("/nowhere/python", 15) == FPT_ERR_INTERPRETER);
  CHECK(error_contains("/nowhere/python"));
  CHECK_OK(fpt_init(NULL, 0));
  CHECK_OK(fpt_set_threads(1));
  fpt_on_warning(on_warning);
  fpt_diagnose(&text, &length);
  CHECK(text != NULL && length > 0);
}

static void test_descriptions(void) {
  fpt_arg arg;
  double values[2] = {1, 2};
  const int64_t n = 2, backwards = -8;
  CHECK(sizeof(fpt_arg) == 256);
  CHECK_OK(fpt_arg_array(&arg, &values[1], FPT_FLOAT64, 1, &n, &backwards, FPT_IN));
  CHECK_OK(fpt_arg_name(&arg, "u   ", 4));
  CHECK(strcmp(arg.name, "u") == 0);
  CHECK(fpt_arg_array(&arg, NULL, FPT_FLOAT64, 1, &n, NULL, FPT_IN) == FPT_ERR_UNALLOCATED);
  CHECK_OK(fpt_arg_memory(&arg, values, "float64 ", 8, 1, &n, FPT_IN));
  CHECK(arg.data == values && arg.dtype == FPT_FLOAT64 && arg.u.array.extents[0] == n);
  CHECK(fpt_arg_memory(&arg, values, "double", 6, 1, &n, FPT_IN) == FPT_ERR_ARGUMENT);
  CHECK(error_contains("the element type of the array is 'double'; valid are bool, int8,"));
  CHECK_OK(fpt_arg_text(&arg, "text  ", 6, FPT_IN));
  CHECK(fpt_pin(&arg) == FPT_ERR_ARGUMENT);
  CHECK(fpt_unpin(&arg) == FPT_ERR_ARGUMENT);
  CHECK(arg.length == 4);
  memset(&arg, 0xFF, sizeof arg);
  CHECK(fpt_arg_text(&arg, NULL, 1, FPT_IN) == FPT_ERR_UNALLOCATED);
  memset(&arg, 0xFF, sizeof arg);
  CHECK_OK(fpt_arg_text(&arg, "", 0, FPT_IN));
}

static void test_tensors(void) {
  double x[2] = {1, 2};
  fpt_arg arg = array(x, 2, FPT_OUT);
  fpt_tensor tensor = 0, copy = 0;
  int32_t dtype, rank;
  int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
  char device[32];
  void *data = NULL;
  CHECK_OK(fpt_tensor_set(&tensor, &arg));
  CHECK_OK(fpt_tensor_arg(tensor, &arg));
  CHECK_OK(fpt_tensor_set(&copy, &arg));
  CHECK_OK(fpt_tensor_info(copy, &dtype, &rank, extents, device));
  CHECK(dtype == FPT_FLOAT64 && rank == 1 && extents[0] == 2 && strcmp(device, "cpu") == 0);
  CHECK_OK(fpt_tensor_data(copy, FPT_FLOAT64, 1, &data, extents, strides));
  CHECK(data == x && strides[0] == 8);
  CHECK(fpt_tensor_is_set(tensor) == 1);
  CHECK(fpt_tensor_address(tensor) != NULL && fpt_tensor_address(tensor) != fpt_tensor_address(copy));
  fpt_tensor_free(tensor);
  fpt_tensor_free(tensor);
  CHECK(fpt_tensor_is_set(tensor) == 0);
  CHECK(fpt_tensor_info(tensor, &dtype, &rank, extents, device) == FPT_ERR_FREED);
  fpt_tensor_free(copy);
}

static void test_results(fpt_module module) {
  double x[2] = {1, 2}, y[2] = {0, 0};
  fpt_arg input = array(x, 2, FPT_IN), output = array(y, 2, FPT_OUT);
  fpt_results results = 0;
  fpt_tensor tensor = 0;
  int32_t count = 0, index = 0;
  int64_t length, extents[1], strides[1];
  const char *text;
  void *data;
  CHECK_OK(fpt_module_call(module, "results", 7, &input, 1, NULL, 0, &results));
  CHECK_OK(fpt_results_count(results, &count));
  CHECK(count == 3);
  CHECK_OK(fpt_results_find(results, "name", 4, &index));
  CHECK(index == 2);
  CHECK_OK(fpt_results_text(results, index, &text, &length));
  CHECK(length == 4 && memcmp(text, "west", 4) == 0);
  CHECK_OK(fpt_results_name(results, 1, &text, &length));
  CHECK(length == 5 && memcmp(text, "twice", 5) == 0);
  CHECK_OK(fpt_results_data(results, 1, FPT_FLOAT64, 1, &data, extents, strides));
  CHECK(((double *)data)[1] == 4);
  CHECK_OK(fpt_results_copy(results, 1, &output, 0));
  CHECK(y[0] == 2 && y[1] == 4);
  CHECK_OK(fpt_results_get(results, 1, &tensor));
  fpt_results_free(results);
  CHECK(fpt_results_count(results, &count) == FPT_ERR_FREED);
  CHECK_OK(fpt_tensor_data(tensor, FPT_FLOAT64, 1, &data, extents, strides));
  CHECK(((double *)data)[0] == 2);
  fpt_tensor_free(tensor);
}

static void test_module(void) {
  double x[2] = {1, 2}, y[2] = {0, 0}, target[2] = {3, 6}, factor = 3, loss = -1;
  fpt_arg input = array(x, 2, FPT_IN), output = array(y, 2, FPT_OUT), goal = array(target, 2, FPT_IN), config, option;
  fpt_module module = 0;
  fpt_wrap wrap = 0;
  fpt_tensor result = 0, goal_tensor = 0;
  int32_t has = -1, completed = -1;
  int64_t length, extent, stride, found = -1;
  const char *text;
  void *data;
  CHECK_OK(fpt_arg_array(&config, &factor, FPT_FLOAT64, 0, NULL, NULL, FPT_IN));
  CHECK_OK(fpt_arg_name(&config, "factor", 6));
  CHECK_OK(fpt_arg_text(&option, "same", 4, FPT_IN));
  CHECK_OK(fpt_arg_name(&option, "layout", 6));
  CHECK_OK(fpt_module_load(&module, 0, script_file, (int64_t)strlen(script_file), &option, 1, &config, 1));
  CHECK_OK(fpt_module_has(module, "results", 7, &has));
  CHECK(has == 1);
  CHECK_OK(fpt_module_backend(module, &text, &length));
  CHECK(length == 6 && memcmp(text, "script", 6) == 0);

  CHECK_OK(fpt_module_forward(module, &input, 1, &output, 1, NULL, 0));
  CHECK(y[0] == 3 && y[1] == 6);
  CHECK_OK(fpt_module_train(module, &input, 1, &goal, 1, &completed, &loss));
  CHECK(completed == 1 && loss == 0);

  CHECK_OK(fpt_wrap_create(&wrap));
  CHECK_OK(fpt_wrap_add(wrap, &output));
  CHECK_OK(fpt_wrap_clear(wrap));
  CHECK_OK(fpt_wrap_add(wrap, &input));
  CHECK_OK(fpt_tensor_set(&goal_tensor, &goal));
  completed = 0;
  loss = -1;
  CHECK_OK(fpt_module_train_wrap(module, wrap, goal_tensor, &completed, &loss));
  CHECK(completed == 1 && loss == 0);
  CHECK_OK(fpt_module_forward_wrap(module, wrap, &result, 0));
  CHECK_OK(fpt_tensor_data(result, FPT_FLOAT64, 1, &data, &extent, &stride));
  CHECK(((double *)data)[1] == 6);
  fpt_wrap_free(wrap);
  fpt_tensor_free(goal_tensor);
  fpt_tensor_free(result);

  CHECK_OK(fpt_module_save(module, state_file, (int64_t)strlen(state_file)));
  CHECK_OK(fpt_module_reload(module));
  CHECK_OK(fpt_module_restore(module, state_file, (int64_t)strlen(state_file), 0, -1, NULL));
  CHECK_OK(fpt_module_checkpoint(module, steps, (int64_t)strlen(steps), 1, 4));
  CHECK_OK(fpt_module_restore(module, steps, (int64_t)strlen(steps), 0, -1, &found));
  CHECK(found == 4);
  CHECK(warnings == 0);
  CHECK_OK(fpt_module_call(module, "keep", 4, &input, 1, NULL, 0, NULL));
  CHECK(warnings == 1);
  test_results(module);
  fpt_module_free(module);
  CHECK(fpt_module_reload(module) == FPT_ERR_FREED);
  remove(state_file);
}

int main(void) {
  write_script();
  test_library();
  test_descriptions();
  test_tensors();
  test_module();
  remove(script_file);
  return failures != 0;
}
