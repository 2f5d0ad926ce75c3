# SPDX-License-Identifier: MIT
"""A stand-in for a Triton server: the protocol with the messages of tritonclient, y = tanh(x) summed over features.

``python triton_double.py PORT [WEIGHTS.npz]`` serves until it is killed; with weights, "heating" is a network of two
layers.
"""

import sys
import threading
from concurrent import futures

import grpc
import numpy as np
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

TYPES = {"FP32": "float32", "FP64": "float64", "INT64": "int64", "FP16": "float16"}
NAMES = {np.dtype(name): kind for kind, name in TYPES.items()}


class Double(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Models of a test: "net" (x, 3 features), "batches" (at most 4 samples), "two" (a, b to total, difference).

    ``may_answer``: an event that answers wait for. ``garbage``: what is wrong with answers, "" for nothing.
    """

    def __init__(self, weights=None):
        self.weights = weights
        self.garbage, self.requests, self.asked = "", [], 0
        self.is_ready, self.may_answer = True, threading.Event()
        self.may_answer.set()

    def ModelMetadata(self, request, context):
        self._require(request, context)
        answer = service_pb2.ModelMetadataResponse(name=request.name)
        kind = "BYTES" if request.name == "texts" else "FP32"
        if request.name == "two":
            described = {"inputs": [("a", [-1]), ("b", [-1])], "outputs": [("total", [-1]), ("difference", [-1])]}
        elif request.name == "heating":
            levels = self.weights[0].shape[1]
            described = {"inputs": [("temperature", [-1, levels])], "outputs": [("heating", [-1, levels])]}
        else:
            described = {"inputs": [("x", [-1, 3])], "outputs": [("y", [-1, 1])]}
        for field, entries in described.items():
            for name, shape in entries:
                getattr(answer, field).add(name=name, datatype=kind, shape=shape)
        return answer

    def ModelConfig(self, request, context):
        self._require(request, context)
        config = model_config_pb2.ModelConfig(max_batch_size=4 if request.name == "batches" else 0)
        return service_pb2.ModelConfigResponse(config=config)

    def ModelInfer(self, request, context):
        self._require(request, context, request.model_name)
        self.asked += 1
        self.may_answer.wait(60)
        arrays = {
            entry.name: np.frombuffer(raw, TYPES[entry.datatype]).reshape(entry.shape)
            for entry, raw in zip(request.inputs, request.raw_input_contents)
        }
        self.requests.append({name: array.shape for name, array in arrays.items()})
        if request.model_name == "two":
            found = {"total": arrays["a"] + arrays["b"], "difference": arrays["a"] - arrays["b"]}
        elif request.model_name == "heating":
            first, bias, second, other = self.weights
            found = {"heating": np.tanh(arrays["temperature"] @ first.T + bias) @ second.T + other}
        elif (arrays["x"] > 1e6).any():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "numbers are too large")
        else:
            found = {"y": np.tanh(arrays["x"]).sum(1, keepdims=True)}
        if self.garbage == "type":
            found = {name: array.astype("float64") for name, array in found.items()}
        elif self.garbage == "shape":
            found = {name: array[:-1] for name, array in found.items()}
        elif self.garbage == "name":
            found = dict.fromkeys("z", found["y"])
        elif self.garbage == "failure":
            context.abort(grpc.StatusCode.INTERNAL, "the model raised an exception")
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        for name, array in found.items():
            answer.outputs.add(name=name, datatype=NAMES[array.dtype], shape=array.shape)
            answer.raw_output_contents.append(array.tobytes()[: -1 if self.garbage == "bytes" else None])
        return answer

    def _require(self, request, context, name=None):
        name = name or request.name
        if name not in ("net", "batches", "two", "texts") and not (name == "heating" and self.weights):
            context.abort(grpc.StatusCode.NOT_FOUND, f"Request for unknown model: '{name}' is not found")
        if not self.is_ready:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Request for unknown model: 'net' is not ready")


def serve(port=0, double=None, threads=8):
    """(server, double, port); ``server.stop(None)`` ends it."""
    # A port that is still held by connections of a server which was killed is taken over.
    server = grpc.server(futures.ThreadPoolExecutor(threads), options=[("grpc.so_reuseport", 1)])
    double = double or Double()
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(double, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, double, port


if __name__ == "__main__":
    given = list(np.load(sys.argv[2]).values()) if len(sys.argv) > 2 else None
    serve(int(sys.argv[1]), Double(given))[0].wait_for_termination()
