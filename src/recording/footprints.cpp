// SPDX-License-Identifier: MIT
#include "recording/footprints.hpp"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fpt::recording {
namespace {

/// What an instruction is. `recording/footprints.py` says it of each word of a code, by these bits.
enum Word : char { told = 1, ends = 2, pauses = 4 };

/// The instructions that run while it is entered, in the thread that has entered it.
///
/// Those that are `told` are handed to Python where another thread may come in: before an instruction that `pauses`,
/// after one that `ends` what a statement does, and where a function begins or ends. The values of local variables are
/// the same there.
class Instructions {
 public:
  explicit Instructions(std::size_t most) : most_(most) {}

  /// @param words_of  gives the words of the code that a frame begins to run, as bytes; None for code not to follow
  /// @param seen  is called with a frame, and the offset of an instruction
  void enter(py::function words_of, py::function seen) {
    words_of_ = std::move(words_of);
    seen_ = std::move(seen);
    // Python 3.12 tells instructions if a frame wants it before anybody looks on
    const py::object frame = py::module_::import("sys").attr("_getframe")();
    const py::object before = frame.attr("f_trace_opcodes");
    frame.attr("f_trace_opcodes") = true;
    PyEval_SetTrace(&Instructions::look, py::cast(this).ptr());
    frame.attr("f_trace_opcodes") = before;
  }

  void leave() {
    PyEval_SetTrace(nullptr, nullptr);
    pending_.clear();
    words_of_ = seen_ = py::object();  // they lead back to this object
  }

  bool are_too_many() const noexcept { return count_ > most_; }
  /// Python 3.13 tells nothing where it runs a code for the first time.
  bool were_missed() const noexcept { return were_missed_; }

  bool has_run(const py::object& code, std::size_t word) const {
    const auto found = followed_.find(code.ptr());
    return found != followed_.end() && word < found->second.ran.size() && found->second.ran[word];
  }

 private:
  struct Followed {
    py::object code;
    std::string words;
    std::vector<bool> ran;
  };

  static int look(PyObject* self, PyFrameObject* frame, int what, PyObject*) {
    try {
      py::cast<Instructions&>(py::handle(self)).look_at(frame, what);
      return 0;
    } catch (py::error_already_set& failure) {
      failure.restore();
    } catch (const std::exception& failure) {
      PyErr_SetString(PyExc_RuntimeError, failure.what());
    }
    return -1;
  }

  void look_at(PyFrameObject* frame, int what) {
    if (what == PyTrace_LINE) return;
    if (what != PyTrace_OPCODE) {
      were_missed_ = were_missed_ || std::exchange(has_begun_, false);
      tell();
      if (what == PyTrace_CALL) begin(frame);
      return;
    }
    has_begun_ = false;
    const auto found = followed_.find(code_of(frame).ptr());
    if (found == followed_.end()) return;
    Followed& followed = found->second;
    const py::handle object(reinterpret_cast<PyObject*>(frame));
    const auto offset = py::cast<std::size_t>(object.attr("f_lasti"));
    const std::size_t word = offset / 2;
    if (word >= followed.words.size()) return;
    const char is = followed.words[word];
    if (has_ended_ || (is & Word::pauses)) tell();
    if (is & Word::told) pending_.emplace_back(py::reinterpret_borrow<py::object>(object), offset);
    has_ended_ = is & Word::ends;
    followed.ran[word] = true;
    if (++count_ > most_) PyEval_SetTrace(nullptr, nullptr);
  }

  static py::object code_of(PyFrameObject* frame) {
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  }

  void begin(PyFrameObject* frame) {
    py::object code = code_of(frame);
    const py::handle object(reinterpret_cast<PyObject*>(frame));
    if (followed_.find(code.ptr()) == followed_.end()) {
      const py::object words = words_of_(object);
      if (words.is_none()) return;
      Followed made{code, py::cast<std::string>(words), {}};
      made.ran.resize(made.words.size());
      followed_.emplace(code.ptr(), std::move(made));
    }
    object.attr("f_trace_opcodes") = true;
    object.attr("f_trace_lines") = false;
    has_begun_ = true;
  }

  /// Python is told what has been put off.
  void tell() {
    has_ended_ = false;
    for (const auto& [frame, offset] : std::exchange(pending_, {})) seen_(frame, offset);
  }

  std::size_t most_, count_ = 0;
  py::object words_of_, seen_;
  std::unordered_map<PyObject*, Followed> followed_;
  std::vector<std::pair<py::object, std::size_t>> pending_;
  bool has_begun_ = false;  ///< a code to follow, of which nothing was told yet
  bool has_ended_ = false;  ///< the instruction before this one
  bool were_missed_ = false;
};

}  // namespace

void add_footprints(py::module_& module) {
  py::class_<Instructions>(module, "Instructions")
      .def(py::init<std::size_t>(), py::arg("most"), "most: after so many they are no longer followed.")
      .def(
          "enter", &Instructions::enter, py::arg("words_of"), py::arg("seen"),
          "Follow the instructions of this thread. words_of: bytes for the code of a frame, or None; seen: called with "
          "a frame and an offset.")
      .def("leave", &Instructions::leave, "Follow them no longer.")
      .def("has_run", &Instructions::has_run, py::arg("code"), py::arg("word"), "Whether that instruction has run.")
      .def_property_readonly("were_missed", &Instructions::were_missed, "Whether Python has told none of some code.")
      .def_property_readonly("are_too_many", &Instructions::are_too_many);
  module.attr("told") = static_cast<int>(Word::told);
  module.attr("ends") = static_cast<int>(Word::ends);
  module.attr("pauses") = static_cast<int>(Word::pauses);
}

}  // namespace fpt::recording
