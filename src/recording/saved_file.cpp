// SPDX-License-Identifier: MIT
#include "recording/saved_file.hpp"

#include <dlfcn.h>

namespace fpt::recording {
namespace {

namespace py = pybind11;

[[noreturn]] void raise_failure(const std::string& status, const std::string& text) {
  const py::object type = py::module_::import("ftn_pytorch.errors").attr("FtnPytorchError");
  PyErr_SetObject(type.ptr(), type(status, text).ptr());
  throw py::error_already_set();
}

/// A value as an argument; ARGUMENT for an object that no file compares with.
c10::IValue argument_of(const py::handle& value) {
  if (THPVariable_Check(value.ptr())) {
    const at::Tensor& tensor = THPVariable_Unpack(value.ptr());
    return tensor.requires_grad() ? tensor.detach() : tensor;
  }
  PyObject* object = value.ptr();
  if (value.is_none()) return {};
  if (PyBool_Check(object)) return py::cast<bool>(value);
  if (PyLong_CheckExact(object)) return py::cast<int64_t>(value);
  if (PyFloat_CheckExact(object)) return py::cast<double>(value);
  if (PyUnicode_CheckExact(object)) return py::cast<std::string>(value);
  raise_failure("ARGUMENT", "a saved recording is given " + std::string(py::str(py::repr(value))) +
                                ", and takes tensors, numbers and texts");
}

/// Adds what a container holds, in the order of recording/arguments.py.
// NOLINTNEXTLINE(misc-no-recursion)
void add_leaves(const py::handle& value, const std::string& name, SavedArguments& made) {
  if (PyTuple_CheckExact(value.ptr()) || PyList_CheckExact(value.ptr()))
    for (const auto& each : value) add_leaves(each, {}, made);
  else if (PyDict_CheckExact(value.ptr()))
    for (const auto& each : py::reinterpret_borrow<py::dict>(value)) add_leaves(each.second, {}, made);
  else
    made.push_back({argument_of(value), name});
}

SavedArguments arguments_of(const py::tuple& args, const py::dict& named) {
  SavedArguments made;
  add_leaves(args, {}, made);
  for (const auto& each : named) made.push_back({argument_of(each.second), py::cast<std::string>(each.first)});
  return made;
}

/// A result, with dicts for what has names.
// NOLINTNEXTLINE(misc-no-recursion)
py::object result_of(const c10::IValue& value) {
  if (value.isGenericDict()) {
    py::dict made;
    for (const auto& each : value.toGenericDict()) made[py::str(each.key().toStringRef())] = result_of(each.value());
    return made;
  }
  if (value.isList()) {
    py::list made;
    for (const c10::IValue& each : value.toListRef()) made.append(result_of(each));
    return made;
  }
  if (!value.isTuple()) return torch::jit::toPyObject(value);
  const c10::ivalue::Tuple& tuple = value.toTupleRef();
  const auto type = tuple.type();
  py::list items;
  py::dict by_name;
  for (std::size_t i = 0; i < tuple.elements().size(); ++i) {
    items.append(result_of(tuple.elements()[i]));
    if (type->schema()) by_name[py::str(type->schema()->arguments()[i].name())] = items[i];
  }
  return type->schema() ? py::object(by_name) : py::tuple(items);
}

class SavedFile {
 public:
  SavedFile(const std::string& plugin, const std::string& file, const std::string& device, py::object average,
            bool starts_generator)
      : modules_(modules_of(plugin)), average_(std::move(average)) {
    guarded([&] {
      module_ = modules_.open(file, device, [this](auto& stack) { this->average(stack); }, starts_generator);
    });
  }

  py::object call(const std::string& name, const py::tuple& args, const py::dict& named) {
    const SavedArguments given = arguments_of(args, named);
    c10::IValue result;
    guarded([&] { result = module_->run(name, given); });
    return result_of(result);
  }

  template <class Ask>
  auto ask(const Ask& ask) const {
    decltype(ask(*module_)) found{};
    guarded([&] { found = ask(*module_); });
    return found;
  }

  void tell(const std::function<void(SavedModule&)>& tell) const {
    guarded([&] { tell(*module_); });
  }

 private:
  /// Without the interpreter lock. What `body` throws is a failure of the package here, or what Python has thrown in
  /// it.
  void guarded(const std::function<void()>& body) const {
    int32_t status = 0;
    {
      const py::gil_scoped_release released;
      status = modules_.guarded(body);
    }
    if (status == 0) return;
    if (PyErr_Occurred()) throw py::error_already_set();
    raise_failure(std::string(modules_.name_of(status)).substr(std::string("FTN_PYTORCH_ERR_").size()),
                  modules_.text());
  }

  void average(torch::jit::Stack& stack) const {
    const py::gil_scoped_acquire acquired;
    const int64_t number = torch::jit::pop(stack).toInt();
    const at::Tensor tensor = torch::jit::pop(stack).toTensor();
    try {
      const py::object mean = average_(py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor)), number);
      torch::jit::push(stack, THPVariable_Unpack(mean.ptr()));
    } catch (py::error_already_set& failure) {
      failure.restore();  // for guarded()
      throw std::runtime_error("Python has failed");
    }
  }

  const SavedModules& modules_;
  py::object average_;
  std::unique_ptr<SavedModule> module_;
};

/// Names and tensors as a dict.
py::dict tensors_by_name(const std::map<std::string, at::Tensor>& tensors) {
  py::dict made;
  for (const auto& [name, tensor] : tensors)
    made[py::str(name)] = py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
  return made;
}

}  // namespace

const SavedModules& modules_of(const std::string& plugin) {
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) throw py::import_error(dlerror());
  const auto get = reinterpret_cast<const SavedModules* (*)()>(dlsym(library, saved_modules_symbol));
  if (!get || std::string(get()->version) != FPT_RECORDING_VERSION || std::string(get()->torch) != TORCH_VERSION)
    throw py::import_error(plugin + " is not of the build of this module");
  return *get();
}

void add_saved_file(py::module_& module) {
  using Step = std::optional<int64_t>;
  using Text = const std::string&;
  const auto shown = [](const SavedContent& content) {
    return py::capsule(new SavedContent(content), [](void* each) { delete static_cast<SavedContent*>(each); });
  };
  py::class_<SavedFile>(module, "SavedFile", "A saved recording, run without Python.")
      .def(py::init<const std::string&, const std::string&, const std::string&, py::object, bool>(), py::arg("plugin"),
           py::arg("file"), py::arg("device"), py::arg("average"), py::arg("starts_generator"))
      .def("call", &SavedFile::call, py::arg("name"), py::arg("args"), py::arg("named"))
      .def(
          "written",
          [](const SavedFile& file, Text name, const py::tuple& args, const py::dict& named) {
            const SavedArguments given = arguments_of(args, named);
            return file.ask([&](SavedModule& each) { return each.written(name, given); });
          },
          "Places of the arguments that a call would change in place.")
      .def(
          "functions",
          [](const SavedFile& file) {
            py::list made;
            for (const SavedFunction& each : file.ask([](SavedModule& all) { return all.functions(); }))
              made.append(py::make_tuple(each.name, each.arguments, each.operators, each.changes_arguments));
            return made;
          },
          "Name, arguments and operators of each recording, and whether it changes an argument.")
      .def("parameters",
           [](const SavedFile& file) { return file.ask([](SavedModule& all) { return all.parameters(); }); })
      .def("arrays",
           [](const SavedFile& file) {
             return tensors_by_name(file.ask([](SavedModule& all) { return all.arrays(); }));
           })
      .def("numbers", [](const SavedFile& file) { return file.ask([](SavedModule& all) { return all.numbers(); }); })
      .def("number", [](const SavedFile& file,
                        Text name) { return file.ask([&](SavedModule& all) { return all.number(name); }); })
      .def("set_number", [](const SavedFile& file, Text name,
                            double value) { file.tell([&](SavedModule& all) { all.set_number(name, value); }); })
      .def("told", [](const SavedFile& file,
                      const char* name) { return file.ask([&](SavedModule& all) { return all.told(name); }); })
      .def("write",
           [](const SavedFile& file, Text path, bool with_tapes, Step step, int rank, int ranks) {
             file.tell([&](SavedModule& all) { all.write(path, with_tapes, step, rank, ranks); });
           })
      .def("read", [shown](const SavedFile& file,
                           Text path) { return shown(file.ask([&](SavedModule& all) { return all.read(path); })); })
      .def("go_on_from", [](const SavedFile& file, const py::capsule& content, Text path) {
        const SavedContent& read = *content.get_pointer<SavedContent>();
        file.tell([&](SavedModule& all) { all.go_on_from(read, path); });
      });
}

}  // namespace fpt::recording
