/* SPDX-License-Identifier: MIT */
/**
 * device="cuda" with arrays in host memory: the network computes on the GPU, results come back to the host arrays.
 * Without a GPU the same load must be refused with FPT_ERR_DEVICE. Which of the two was tested is printed.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftn_pytorch.h"

static const char script[] =
    "import torch\n"
    "torch.manual_seed(1)\n"
    "net = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))\n"
    "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "where = None\n"
    "@torch.inference_mode()\n"
    "def ftn_pytorch_forward(x):\n"
    "    global where\n"
    "    where = str(x.device)\n"
    "    return net(x)\n"
    "def ftn_pytorch_train(x, target):\n"
    "    optimizer.zero_grad()\n"
    "    loss = torch.nn.functional.mse_loss(net(x), target)\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    return False, loss\n"
    "def has_gpu(): return torch.cuda.is_available()\n"
    "def device_seen(): return where\n"
    "def double_in_place(x): x.mul_(2)\n"
    "def on_gpu(): return torch.arange(6.0, device='cuda').reshape(2, 3)\n"
    "def half_on_gpu(): return torch.arange(6.0, device='cuda').reshape(2, 3).half()\n"
    "def same(x): return x\n"
    "kept = None\n"
    "def address_on_gpu():\n"
    "    global kept\n"
    "    kept = torch.ones(8, device='cuda')\n"
    "    return kept.data_ptr()\n"
    "def sum_on_gpu(): return kept.sum().item()\n";

static int passed = 0;

static void check(int condition, const char *what) {
  const char *text;
  int64_t length;
  if (condition) {
    ++passed;
    return;
  }
  fpt_error_text(&text, &length);
  fprintf(stderr, "failed: %s\nlast error: %.*s\n", what, (int)length, text);
  exit(1);
}

static fpt_status load(fpt_module *module, const char *file, const char *device) {
  fpt_arg option;
  if (!device) return fpt_module_load(module, 0, file, (int64_t)strlen(file), NULL, 0, NULL, 0);
  fpt_arg_text(&option, device, (int64_t)strlen(device), FPT_IN);
  fpt_arg_name(&option, "device", 6);
  return fpt_module_load(module, 0, file, (int64_t)strlen(file), &option, 1, NULL, 0);
}

static fpt_status call(fpt_module module, const char *name, fpt_arg *in, int nin, fpt_arg *out, int nout,
                       fpt_results *results) {
  return fpt_module_call(module, name, (int64_t)strlen(name), in, nin, out, nout, results);
}

static double difference(const float *a, const float *b, int n) {
  double largest = 0;
  for (int i = 0; i < n; ++i) largest = fmax(largest, fabs((double)a[i] - b[i]));
  return largest;
}

int main(void) {
  const char *file = "test_gpu_script.py";
  FILE *stream = fopen(file, "w");
  check(stream != NULL && fputs(script, stream) >= 0 && fclose(stream) == 0, "writing the script");

  enum { batch = 64 };
  static float x[batch][5], target[batch][3], host[batch][3], device[batch][3];
  for (int i = 0; i < batch; ++i) {
    for (int k = 0; k < 5; ++k) x[i][k] = (float)sin(i + 10 * k);
    for (int k = 0; k < 3; ++k) target[i][k] = (float)cos(i * k);
  }
  const int64_t shape_x[] = {5, batch}, shape_y[] = {3, batch};
  fpt_arg in, goal, out;
  fpt_arg_array(&in, x, FPT_FLOAT32, 2, shape_x, NULL, FPT_IN);
  fpt_arg_array(&goal, target, FPT_FLOAT32, 2, shape_y, NULL, FPT_IN);

  fpt_module cpu = 0, gpu = 0;
  check(load(&cpu, file, "cpu") == FPT_OK, "load for the host");
  fpt_results results = 0;
  unsigned char available = 2;
  fpt_arg answer;
  fpt_arg_array(&answer, &available, FPT_BOOL, 0, NULL, NULL, FPT_OUT);
  check(call(cpu, "has_gpu", NULL, 0, &answer, 1, NULL) == FPT_OK, "asking for a GPU");
  if (!available) {
    check(load(&gpu, file, "cuda") == FPT_ERR_DEVICE, "without a GPU, device=cuda is refused");
    check(gpu == 0, "a refused load gives no module");
    printf("no GPU here: %d checks passed\n", passed);
    return 0;
  }

  check(load(&gpu, file, "cuda") == FPT_OK, "load for the GPU");
  for (int i = 0; i < 4; ++i) {
    fpt_arg_array(&out, host, FPT_FLOAT32, 2, shape_y, NULL, FPT_OUT);
    check(fpt_module_forward(cpu, &in, 1, &out, 1, NULL, 0) == FPT_OK, "forward on the host");
    fpt_arg_array(&out, device, FPT_FLOAT32, 2, shape_y, NULL, FPT_OUT);
    check(fpt_module_forward(gpu, &in, 1, &out, 1, NULL, 0) == FPT_OK, "forward on the GPU");
    check(difference(&host[0][0], &device[0][0], 3 * batch) < 1e-5, "host and GPU agree");
    check(difference(&host[0][0], &target[0][0], 3 * batch) > 1e-3, "and say something");
    int32_t done;
    double loss_host, loss_gpu;
    check(fpt_module_train(cpu, &in, 1, &goal, 1, &done, &loss_host) == FPT_OK, "train on the host");
    check(fpt_module_train(gpu, &in, 1, &goal, 1, &done, &loss_gpu) == FPT_OK, "train on the GPU");
    check(fabs(loss_host - loss_gpu) < 1e-5, "the losses agree");
  }

  const char *text;
  int64_t length;
  check(call(gpu, "device_seen", NULL, 0, NULL, 0, &results) == FPT_OK, "asking for the device");
  check(fpt_results_text(results, 1, &text, &length) == FPT_OK && strncmp(text, "cuda", 4) == 0, "it is cuda");

  float numbers[4] = {1, 2, 3, 4};
  const int64_t four = 4;
  fpt_arg_array(&out, numbers, FPT_FLOAT32, 1, &four, NULL, FPT_OUT);
  for (int i = 0; i < 4; ++i) check(call(gpu, "double_in_place", &out, 1, NULL, 0, NULL) == FPT_OK, "in place");
  check(numbers[0] == 16 && numbers[3] == 64, "changes on the GPU come back to an array passed as output");
  fpt_arg_array(&out, numbers, FPT_FLOAT32, 1, &four, NULL, FPT_IN);
  fpt_module fresh = 0;
  check(load(&fresh, file, "cuda") == FPT_OK, "a second instance");
  check(call(fresh, "double_in_place", &out, 1, NULL, 0, NULL) == FPT_ERR_INPUT_MODIFIED,
        "and are refused for an input");

  float six[6] = {0};
  const int64_t shape[] = {3, 2};
  fpt_arg_array(&out, six, FPT_FLOAT32, 2, shape, NULL, FPT_OUT);
  check(call(cpu, "on_gpu", NULL, 0, &out, 1, NULL) == FPT_OK && six[5] == 5, "a result on the GPU reaches an output");
  memset(six, 0, sizeof six);
  check(call(cpu, "half_on_gpu", NULL, 0, &out, 1, NULL) == FPT_OK && six[5] == 5, "half precision is widened");
  memset(six, 0, sizeof six);
  check(call(cpu, "half_on_gpu", NULL, 0, NULL, 0, &results) == FPT_OK, "a half result on the GPU is kept");
  check(fpt_results_copy(results, 1, &out, 0) == FPT_OK && six[5] == 5, "and can be copied");
  void *data;
  int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
  check(call(cpu, "on_gpu", NULL, 0, NULL, 0, &results) == FPT_OK, "a result on the GPU is kept");
  check(fpt_results_data(results, 1, FPT_FLOAT32, 2, &data, extents, strides) == FPT_ERR_DEVICE,
        "its memory is not for the host");
  check(call(gpu, "on_gpu", NULL, 0, NULL, 0, &results) == FPT_OK, "with device= results come to the host");
  check(fpt_results_data(results, 1, FPT_FLOAT32, 2, &data, extents, strides) == FPT_OK && ((float *)data)[5] == 5,
        "and can be pointed to");

  fpt_module any = 0;
  check(load(&any, file, NULL) == FPT_OK, "load for wherever the arrays are");
  int64_t address = 0;
  fpt_arg_array(&answer, &address, FPT_INT64, 0, NULL, NULL, FPT_OUT);
  check(call(any, "address_on_gpu", NULL, 0, &answer, 1, NULL) == FPT_OK && address != 0, "an address on the GPU");
  const int64_t eight = 8;
  fpt_arg_array(&in, (void *)(intptr_t)address, FPT_FLOAT32, 1, &eight, NULL, FPT_IN);
  check(call(any, "double_in_place", &in, 1, NULL, 0, NULL) == FPT_ERR_INPUT_MODIFIED,
        "an array on the GPU is that of a script, which may not change an input");
  check(call(cpu, "double_in_place", &in, 1, NULL, 0, NULL) == FPT_ERR_INPUT_MODIFIED,
        "nor the copy of one that a script on the host gets");
  fpt_arg_array(&in, (void *)(intptr_t)address, FPT_FLOAT32, 1, &eight, NULL, FPT_OUT);
  check(call(any, "double_in_place", &in, 1, NULL, 0, NULL) == FPT_OK, "but an output");
  float total = 0;
  fpt_arg_array(&answer, &total, FPT_FLOAT32, 0, NULL, NULL, FPT_OUT);
  check(call(any, "sum_on_gpu", NULL, 0, &answer, 1, NULL) == FPT_OK && total == 4 * 8, "both times in its memory");
  fpt_arg_array(&in, (void *)(intptr_t)address, FPT_FLOAT32, 1, &eight, NULL, FPT_COPY);
  check(call(any, "same", &in, 1, NULL, 0, NULL) == FPT_ERR_DEVICE, "a copy of it is not described");
  fpt_arg_array(&in, (void *)(intptr_t)address, FPT_FLOAT32, 0, NULL, NULL, FPT_IN);
  check(call(any, "same", &in, 1, NULL, 0, NULL) == FPT_ERR_DEVICE, "nor a number in it");
  fpt_arg_array(&in, numbers, FPT_FLOAT32, 1, &four, NULL, FPT_IN);
  fpt_arg_array(&out, (void *)(intptr_t)address, FPT_FLOAT32, 1, &four, NULL, FPT_OUT);
  for (int i = 0; i < 4; ++i) check(call(any, "same", &in, 1, &out, 1, NULL) == FPT_OK, "as an output it is written");
  total = 0;
  for (int i = 0; i < 4; ++i) total += numbers[i];
  const float expected = total + 4 * 4;
  check(call(any, "sum_on_gpu", NULL, 0, &answer, 1, NULL) == FPT_OK && total == expected,
        "with the numbers of the host");
  check(call(any, "same", &in, 1, NULL, 0, &results) == FPT_OK, "a result on the host");
  fpt_arg_array(&out, (void *)(intptr_t)(address + 16), FPT_FLOAT32, 1, &four, NULL, FPT_OUT);
  check(fpt_results_copy(results, 1, &out, 0) == FPT_OK, "is copied to the GPU");
  check(call(any, "sum_on_gpu", NULL, 0, &answer, 1, NULL) == FPT_OK && total == 2 * (expected - 16), "as well");

  printf("on a GPU: %d checks passed\n", passed);
  return 0;
}
