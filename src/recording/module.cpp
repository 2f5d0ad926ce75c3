// SPDX-License-Identifier: MIT
/// The Python module `_ftn_pytorch_recording`: recorded functions that run without Python. It is an extension module of
/// its own, so that scripts can use it without a Fortran program, and the rest of the library never needs torch's
/// Python binding.
#include "base/release.hpp"
#include "recording/code_in_python.hpp"
#include "recording/description.hpp"
#include "recording/device_graphs_in_python.hpp"
#include "recording/footprints.hpp"
#include "recording/random_runs.hpp"
#include "recording/reads.hpp"
#include "recording/saved_file.hpp"
#include "recording/tensor_looks.hpp"
#include "recording/validity.hpp"
#include "shared/code.hpp"

namespace fpt::recording {
namespace {

/// Another tensor of the same memory, so that the tensor itself has no other holder: torch.utils.swap_tensors wants
/// that.
at::Tensor alias_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? tensor : tensor.detach().set_requires_grad(tensor.requires_grad());
}

/// A recorded function: arguments as they were, what it depends on, its calls, and what comes out. The members that are
/// lists come from `recording/tape.py`, which says what they are.
class Replay {
 public:
  Replay(const py::tuple& args, const py::dict& named, const py::object& tape)
      : signature_(args, named, py::cast<bool>(tape.attr("is_bare")), tape.attr("memory")),
        casts_(py::cast<bool>(tape.attr("casts"))),
        enters_inference_(py::cast<bool>(tape.attr("enters_inference"))),
        modes_(Modes::current(casts_)),
        asked_(py::cast<bool>(tape.attr("asks_switches")) ? std::optional(switches()) : std::nullopt),
        tape_(py::cast<int32_t>(tape.attr("slots")),
              all_of<std::pair<int32_t, at::Tensor>>(tape.attr("constants"),
                                                     [](const py::tuple& pair) {
                                                       return std::pair(py::cast<int32_t>(pair[0]),
                                                                        alias_of(tensor_of(pair[1])));
                                                     }),
              all_of<Operation>(tape.attr("operations"), operation_of)),
        first_write_(py::cast<std::size_t>(tape.attr("first_write"))),
        inputs_(integers(tape.attr("inputs"))),
        results_(integers(tape.attr("results"))),
        counted_inputs_(integers(tape.attr("counted_inputs"))),
        bindings_(all_of<Binding>(tape.attr("bindings"), binding_of)),
        numbers_(all_of<Source>(tape.attr("numbers"), source_of)),
        branches_(all_of<Branch>(tape.attr("branches"), branch_of)),
        before_(all_of<GradientBefore>(tape.attr("gradients_before"),
                                       [](const py::tuple& each) {
                                         return GradientBefore{each[0], py::cast<bool>(each[1]),
                                                               each[2].is_none() ? at::Tensor() : tensor_of(each[2])};
                                       })),
        memory_(all_of<Memory>(tape.attr("memory"), [](const py::tuple& each) { return Memory(each[0]); })),
        after_(all_of<GradientAfter>(tape.attr("gradients_after"),
                                     [](const py::tuple& each) {
                                       return GradientAfter{each[0], py::cast<int32_t>(each[1]),
                                                            py::cast<std::size_t>(each[2])};
                                     })),
        written_(all_of<py::object>(tape.attr("written"), [](const py::tuple& each) { return each[0]; })) {}

  /// A tuple of tensors, or NotImplemented: nothing was done, and why() tells the reason.
  /// @param code  computes in place of the operators, where it takes the arguments; null for none
  py::object run(const py::tuple& args, const py::dict& named, const Code* code) {
    std::vector<at::Tensor> inputs;
    std::vector<double> numbers;
    if (is_refused(mismatch(args, named, inputs, numbers))) return not_implemented();
    return run_with(inputs, numbers, code);
  }

  /// As run(), of what given() has told of the call: nothing is asked again.
  py::object run_given(const py::list& tensors, const std::vector<double>& numbers) {
    return run_with(tensors_in(tensors), numbers, nullptr);
  }

  /// What a graph needs of a call for which the recording holds: its tensors and numbers, and torch's switches.
  /// NotImplemented as for run().
  py::object given(const py::tuple& args, const py::dict& named) {
    std::vector<at::Tensor> inputs;
    std::vector<double> numbers;
    if (is_refused(mismatch(args, named, inputs, numbers))) return not_implemented();
    // counters decide on branches only, which are no part of a graph
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (numbers_[i].counter.defined()) numbers[i] = 0;
    py::list tensors;
    for (const at::Tensor& input : inputs) tensors.append(py::reinterpret_steal<py::object>(THPVariable_Wrap(input)));
    return py::make_tuple(tensors, numbers, switches());
  }

  /// The operators alone: tuples of results and of new gradients.
  py::object launch(const py::list& tensors, const std::vector<double>& numbers, bool is_captured) {
    Frame frame = take_frame();
    if (const auto failure = compute(frame, tensors_in(tensors), numbers, is_captured, nullptr))
      rethrow_in_python(failure);
    std::vector<int32_t> gradients;
    for (const GradientAfter& each : after_) gradients.push_back(each.slot);
    py::object made =
        py::make_tuple(results_in(frame), tensors_of(gradients, [&](int32_t slot) { return tensor_in(frame, slot); }));
    put_back(std::move(frame));
    return made;
  }

  /// What a run does besides, after the operators were made elsewhere. Parameters get tensors of their own on the
  /// memory of these gradients.
  void settle(const py::list& tensors, const py::sequence& gradients) {
    for (std::size_t i = 0; i < after_.size(); ++i)
      behind(after_[i].parameter).mutable_grad() =
          gradients[i].is_none() ? at::Tensor() : tensor_of(gradients[i]).detach();
    count_writes(tensors_in(tensors));
  }

  /// How many tensors share the memory of each of these gradients.
  static std::vector<std::size_t> holders(const py::sequence& gradients) {
    std::vector<std::size_t> found;
    for (const auto& gradient : gradients)
      found.push_back(gradient.is_none() ? 0 : tensor_of(gradient).storage().use_count());
    return found;
  }

  /// Take gradients that settle() gave away from the parameters. False, and nothing has changed, if somebody else holds
  /// one of them: then there are more holders than these.
  bool take_back(const py::sequence& gradients, const std::vector<std::size_t>& expected) const {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < after_.size(); ++i) {
      at::Tensor& now = behind(after_[i].parameter).mutable_grad();
      if (gradients[i].is_none() || !now.defined() || !now.is_alias_of(tensor_of(gradients[i]))) continue;
      now = at::Tensor();
      taken.push_back(i);
    }
    if (holders(gradients) == expected) return true;
    for (const std::size_t i : taken) behind(after_[i].parameter).mutable_grad() = tensor_of(gradients[i]).detach();
    return false;
  }

  /// Reason of the last call for which it did not hold.
  py::object why() const { return why_; }
  int64_t runs() const noexcept { return runs_; }
  bool is_shared() const noexcept { return is_shared_; }

  /// After that many runs it does not hold, so that the call is compared with the function. The next one sets it anew.
  int64_t check_at = std::numeric_limits<int64_t>::max();

  /// Hand each object of Python that it holds to a visitor: what it watches leads back to the recorded function.
  template <class Visit>
  void visit(const Visit& object) {
    signature_.visit(object);
    for (Binding& each : bindings_) object(each.holder), object(each.key), object(each.value);
    for (Source& each : numbers_) object(each.group), object(each.key);
    for (GradientBefore& each : before_) object(each.parameter);
    for (GradientAfter& each : after_) object(each.parameter);
    for (Memory& each : memory_) object(each.tensor);
    for (py::object& tensor : written_) object(tensor);
  }

 private:
  /// Other threads may have run it when why() is asked for, which must go on to tell one of the reasons.
  bool is_refused(py::object&& mismatch) {
    if (mismatch.is_none()) return false;
    why_ = std::move(mismatch);
    return true;
  }

  /// None, or (kind, index) of the first thing that is not as it was.
  py::object mismatch(const py::tuple& args, const py::dict& named, std::vector<at::Tensor>& inputs,
                      std::vector<double>& numbers) const {
    if (!(Modes::current(casts_) == modes_) || (asked_ && *asked_ != switches()) || is_intercepted())
      return py::make_tuple("modes", 0);
    if (!signature_.matches(args.ptr(), named.ptr(), inputs)) return py::make_tuple("arguments", 0);
    const auto first = [](const char* kind, const auto& all) -> py::object {
      for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].holds()) return py::make_tuple(kind, i);
      return py::none();
    };
    if (py::object found = first("binding", bindings_); !found.is_none()) return found;
    if (py::object found = first("gradient", before_); !found.is_none()) return found;
    if (py::object found = first("memory", memory_); !found.is_none()) return found;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const auto number = numbers_[i].read();
      if (!number) return py::make_tuple("number", i);
      numbers.push_back(*number);
    }
    for (std::size_t i = 0; i < branches_.size(); ++i)
      if (!branches_[i].holds(numbers)) return py::make_tuple("branch", i);
    if (runs_ >= check_at) return py::make_tuple("check", runs_);
    return py::none();
  }

  py::object run_with(const std::vector<at::Tensor>& inputs, const std::vector<double>& numbers, const Code* code) {
    Frame frame = take_frame();
    if (const std::exception_ptr failure = compute(frame, inputs, numbers, false, code)) {
      if (frame.position >= first_write_) {
        leave_gradients(frame);
        rethrow_in_python(failure);
      }
      why_ = py::make_tuple("failure", frame.position);
      return not_implemented();
    }
    for (const GradientAfter& each : after_) behind(each.parameter).mutable_grad() = tensor_in(frame, each.slot);
    count_writes(inputs);
    py::object results = results_in(frame);
    put_back(std::move(frame));
    return results;
  }

  Frame take_frame() {
    if (idle_.empty()) return tape_.frame();
    Frame frame = std::move(idle_.back());
    idle_.pop_back();
    return frame;
  }

  void put_back(Frame&& frame) {
    tape_.clear(frame);
    idle_.push_back(std::move(frame));
  }

  std::exception_ptr compute(Frame& frame, const std::vector<at::Tensor>& inputs, const std::vector<double>& numbers,
                             bool is_captured, const Code* code) const {
    if (inputs.size() != inputs_.size())
      throw py::value_error("a recording of " + std::to_string(inputs_.size()) + " tensors is given " +
                            std::to_string(inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) frame.slots[static_cast<std::size_t>(inputs_[i])] = inputs[i];
    const OthersMayRun meanwhile;
    std::optional<c10::InferenceMode> inference;
    if (enters_inference_) inference.emplace();
    try {
      if (!code || !code->run(frame, numbers)) tape_.run(frame, numbers, is_captured);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  /// What was there before a call comes out as another tensor of the same memory, without gradients.
  at::Tensor result_in(const Frame& frame, int32_t slot) const {
    const at::Tensor tensor = tensor_in(frame, slot);
    return tape_.is_constant(slot) || tensor.requires_grad() ? tensor.detach() : tensor;
  }

  static at::Tensor tensor_in(const Frame& frame, int32_t slot) {
    return slot < 0 ? at::Tensor() : frame.slots[static_cast<std::size_t>(slot)].toTensor();
  }

  template <class Get>
  static py::object tensors_of(const std::vector<int32_t>& slots, const Get& get) {
    py::tuple tensors(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i)
      tensors[i] = py::reinterpret_steal<py::object>(THPVariable_Wrap(get(slots[i])));
    return tensors;
  }

  py::object results_in(const Frame& frame) const {
    return tensors_of(results_, [&](int32_t slot) { return result_in(frame, slot); });
  }

  /// The gradients of a call that has failed, as the function leaves them there.
  void leave_gradients(const Frame& frame) const {
    for (const GradientAfter& each : after_) {
      const bool is_made = each.slot >= 0 && frame.slots[static_cast<std::size_t>(each.slot)].isTensor();
      if (is_made || frame.position >= each.cleared_at)
        behind(each.parameter).mutable_grad() = is_made ? tensor_in(frame, each.slot) : at::Tensor();
    }
  }

  /// As autograd counts them, for those who have kept a tensor for their backward pass.
  void count_writes(const std::vector<at::Tensor>& inputs) {
    const auto count = [](const at::Tensor& tensor) {
      if (!tensor.is_inference()) torch::autograd::impl::bump_version(tensor);
    };
    for (const py::object& tensor : written_) count(behind(tensor));
    for (const int32_t input : counted_inputs_) count(inputs[static_cast<std::size_t>(input)]);
    ++runs_;
    const unsigned long thread = PyThread_get_thread_ident();
    is_shared_ = is_shared_ || (runs_ > 1 && thread != thread_);
    thread_ = thread;
  }

  Signature signature_;
  bool casts_;  ///< what names lead to
  bool enters_inference_;
  Modes modes_;
  std::optional<Switches> asked_;  ///< where the function asks for some
  Tape tape_;
  std::size_t first_write_;
  std::vector<int32_t> inputs_, results_, counted_inputs_;
  std::vector<Binding> bindings_;
  std::vector<Source> numbers_;
  std::vector<Branch> branches_;
  std::vector<GradientBefore> before_;
  std::vector<Memory> memory_;
  std::vector<GradientAfter> after_;
  std::vector<py::object> written_;
  std::vector<Frame> idle_;
  py::object why_ = py::make_tuple("arguments", 0);
  int64_t runs_ = 0;
  unsigned long thread_ = 0;  ///< that has run it last
  bool is_shared_ = false;
};

/// Lets Python's collector see the cycles that a recording is part of.
void take_part_in_collection(PyHeapTypeObject* heap_type) {
  PyTypeObject& type = heap_type->ht_type;
  type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    int found = 0;
    if (py::detail::is_holder_constructed(self))
      py::cast<Replay&>(py::handle(self)).visit([&](const py::object& each) {
        if (each && !found) found = visit(each.ptr(), arg);
      });
    return found;
  };
  type.tp_clear = [](PyObject* self) {
    py::cast<Replay&>(py::handle(self)).visit([](py::object& each) { each = py::none(); });
    return 0;
  };
}

/// In one call of C, as in a statement: no other thread comes in between the read and the write.
void add_to_slot(const py::object& holder, const py::object& name, const py::object& number) {
  const auto value = py::reinterpret_steal<py::object>(PyObject_GenericGetAttr(holder.ptr(), name.ptr()));
  if (!value) throw py::error_already_set();
  const py::object sum = value + number;
  if (PyObject_GenericSetAttr(holder.ptr(), name.ptr(), sum.ptr()) < 0) throw py::error_already_set();
}

/// The loader takes another one, and the process crashes later.
void require_torch_of_the_build() {
  const auto found = py::cast<std::string>(py::str(py::module_::import("torch").attr("__version__")));
  if (!fits_torch(TORCH_VERSION, found))
    throw py::import_error("it was built for torch " TORCH_VERSION ", and this is torch " + found);
}

}  // namespace
}  // namespace fpt::recording

PYBIND11_MODULE(_ftn_pytorch_recording, module) {
  namespace py = pybind11;
  using fpt::recording::Replay;
  fpt::recording::require_torch_of_the_build();
  module.attr("version") = FPT_RECORDING_VERSION;
  module.doc() = "Recorded functions of ftn_pytorch.recording, run without Python.";
  py::class_<Replay>(module, "Replay", py::custom_type_setup(fpt::recording::take_part_in_collection))
      .def(py::init<const py::tuple&, const py::dict&, const py::object&>(), py::arg("args"), py::arg("named"),
           py::arg("tape"))
      .def("run", &Replay::run, py::arg("args"), py::arg("named"), py::arg("code") = nullptr,
           "A tuple of tensors, or NotImplemented if the recording does not hold for this call.")
      .def("given", &Replay::given, py::arg("args"), py::arg("named"),
           "Tensors, numbers and switches of a call, or NotImplemented as for run().")
      .def("run_given", &Replay::run_given, py::arg("tensors"), py::arg("numbers"), "run() of what given() has told.")
      .def("launch", &Replay::launch, py::arg("tensors"), py::arg("numbers"), py::arg("is_captured"),
           "The operators alone: a tuple of results, and one of gradients.")
      .def("settle", &Replay::settle, py::arg("tensors"), py::arg("gradients"),
           "What run() does besides: gradients of parameters, and counting what was written.")
      .def_static("holders", &Replay::holders, py::arg("gradients"), "How many tensors share the memory of each.")
      .def("take_back", &Replay::take_back, py::arg("gradients"), py::arg("expected"),
           "Take these away from the parameters; False if somebody else holds one.")
      .def_property_readonly("runs", &Replay::runs, "How often it has run.")
      .def_property_readonly("is_shared", &Replay::is_shared, "Whether several threads have run it.")
      .def_readwrite("check_at", &Replay::check_at, "After how many runs a call is to be compared with the function.")
      .def("why", &Replay::why, "What did not hold when it last did not: (kind, index).");
  module.def(
      "first_change",
      [](const py::list& bindings) {
        const auto described = fpt::recording::all_of<fpt::recording::Binding>(bindings, fpt::recording::binding_of);
        for (std::size_t i = 0; i < described.size(); ++i)
          if (!described[i].holds()) return static_cast<int>(i);
        return -1;
      },
      py::arg("bindings"), "Index of the first binding that no longer holds; -1 if all do.");
  module.def(
      "tensor_at",
      [](std::uintptr_t address) {
        return py::reinterpret_steal<py::object>(THPVariable_Wrap(*reinterpret_cast<const at::Tensor*>(address)));
      },
      py::arg("address"), "The tensor of libtorch that lies there, as Python sees it: the same one, with its graph.");
  module.def(
      "address_of",
      [](const py::object& tensor) { return reinterpret_cast<std::uintptr_t>(&THPVariable_Unpack(tensor.ptr())); },
      py::arg("tensor"), "Where the tensor of libtorch lies that is behind one of Python, as long as that lives.");
  fpt::recording::add_code(module);
  fpt::recording::add_saved_file(module);
  fpt::recording::add_device_graphs(module);
  fpt::recording::add_tensor_looks(module);
  fpt::recording::add_footprints(module);
  fpt::recording::add_random_runs(module);
  fpt::recording::add_reads(module);
  module.def(
      "modes", [] { return fpt::recording::Modes::current(true).in_python(); },
      "What torch has switched on now, as far as it decides on operators and numbers.");
  module.def("keeps_casts", &fpt::recording::keeps_casts, "Whether an autocast keeps for later calls what is cast.");
  module.def(
      "is_waited_for",
      [](const py::object& tensor) { return fpt::recording::is_waited_for(THPVariable_Unpack(tensor.ptr())); },
      py::arg("tensor"), "Whether a hook waits for its gradient.");
  module.def("add_to_slot", &fpt::recording::add_to_slot, py::arg("holder"), py::arg("name"), py::arg("number"),
             "What ``holder.name += number`` does, without code of the class.");
  module.def("is_intercepted", &fpt::recording::is_intercepted, "Whether operators of this thread go elsewhere.");
}
