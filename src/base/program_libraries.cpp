// SPDX-License-Identifier: MIT
#include "base/program_libraries.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "base/blas_trial.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "base/switches.hpp"

namespace fpt {
namespace {

constexpr const char* ways_out =
    ". Load with per=\"node\", or link the program with a static BLAS or one with other names";

/// A library that is loaded; the handle stays open, as the library does.
void* loaded(const char* file) { return dlopen(file, RTLD_LAZY | RTLD_NOLOAD); }

/// What libraries find that do not take their own names first. Not RTLD_DEFAULT, which also looks into what was opened
/// together with this library and nobody else sees.
void* program_scope() {
  static void* const scope = dlopen(nullptr, RTLD_LAZY);
  return scope;
}

/// The C++ library, and with it the C library.
void* standard_library() {
  static void* const library = loaded("libstdc++.so.6");
  return library;
}

#if defined(__GLIBC__) && defined(RTLD_DEEPBIND)

constexpr int own_first = RTLD_DEEPBIND;

#if defined(__x86_64__)
constexpr auto copied_object = R_X86_64_COPY;
#elif defined(__aarch64__)
constexpr auto copied_object = R_AARCH64_COPY;
#elif defined(__powerpc64__)
constexpr auto copied_object = R_PPC64_COPY;
#else
constexpr auto copied_object = -1;
#endif

using Dynamic = ElfW(Dyn);
using Relocation = ElfW(Rela);
using Symbol = ElfW(Sym);

ElfW(Addr) entry(const link_map& map, ElfW(Sxword) tag) {
  for (const Dynamic* each = map.l_ld; each->d_tag != DT_NULL; ++each)
    if (each->d_tag == tag) return each->d_un.d_ptr;
  return 0;
}

/// Whether memory of a library cannot change once it has been loaded: a table of functions, the description of a type.
bool is_constant(const void* object) {
  struct Asked {
    ElfW(Addr) address;
    bool is_constant;
  } asked{reinterpret_cast<ElfW(Addr)>(object), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        Asked& found = *static_cast<Asked*>(result);
        bool is_here = false, is_protected = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & part = info->dlpi_phdr[i];
          if (found.address - (info->dlpi_addr + part.p_vaddr) >= part.p_memsz) continue;
          if (part.p_type == PT_LOAD) {
            is_here = true;
            is_protected = is_protected || !(part.p_flags & PF_W);
          }
          is_protected = is_protected || part.p_type == PT_GNU_RELRO;
        }
        found.is_constant = is_here && is_protected;
        return static_cast<int>(is_here);
      },
      &asked);
  return asked.is_constant;
}

/// "std::cout"
std::string readable(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = text ? text : name;
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): what it was given by
  return result;
}

/// A variable of the C or C++ library that lives in the program, because code that is not position independent uses it
/// (std::cout, environ): the library keeps it there, and what takes names of the library first would see another one.
/// Empty if there is none.
std::string moved_variable() {
  link_map* map = nullptr;
  if (dlinfo(program_scope(), RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_ld) return {};
  const auto* const symbols = reinterpret_cast<const Symbol*>(entry(*map, DT_SYMTAB));
  const auto* const names = reinterpret_cast<const char*>(entry(*map, DT_STRTAB));
  const auto* const relocations = reinterpret_cast<const Relocation*>(entry(*map, DT_RELA));
  if (!symbols || !names || !relocations) return {};
  for (std::size_t i = 0; i < entry(*map, DT_RELASZ) / sizeof(Relocation); ++i) {
    if (static_cast<int>(relocations[i].r_info & 0xffffffff) != copied_object) continue;
    const Symbol& symbol = symbols[relocations[i].r_info >> 32];
    const char* const name = names + symbol.st_name;
    const void* const original = dlsym(standard_library(), name);
    if (!original || is_constant(original)) continue;
    // stderr and the like: both point to the same, as long as the program leaves them as they are
    const auto* const copy = reinterpret_cast<const void*>(map->l_addr + symbol.st_value);
    if (symbol.st_size > sizeof(void*) || std::memcmp(copy, original, symbol.st_size) != 0) return readable(name);
  }
  return {};
}

/// Who else than the C and C++ library gives memory: libraries that take names of their own first would free by one
/// what the other has given. Sanitizers do so, too. Empty if nobody does.
std::string owner_of_memory() {
  for (const char* name : {"malloc", "free"}) {
    const void* const found = dlsym(program_scope(), name);
    if (found && found != dlsym(standard_library(), name))
      return concat(name, " of this program is that of ", object_file_of(found));
  }
  // as the loader has bound it for this library, which takes that of the program first
  void* (*const new_of_program)(std::size_t) = &::operator new;
  link_map* map = nullptr;
  if (dlinfo(standard_library(), RTLD_DI_LINKMAP, &map) != 0) return {};
  const std::string file = object_file_of(reinterpret_cast<const void*>(new_of_program));
  if (resolved(file) != resolved(map->l_name)) return concat("operator new of this program is that of ", file);
  return {};
}

/// The program's OpenMP does the parallel regions of torch, too, unless torch takes its own: two would compete for
/// cores. Empty where it is the one that torch has.
std::string other_openmp() {
  const void* const found = dlsym(program_scope(), "GOMP_parallel");
  const std::string file = found ? object_file_of(found) : "";
  return file.find("libgomp") == std::string::npos ? file : std::string();
}

std::string obstacle() {
  if (is_switched_off("FTN_PYTORCH_DEEPBIND")) return "FTN_PYTORCH_DEEPBIND is 0";
  if (!standard_library()) return "the program has another C++ library than libstdc++.so.6";
  std::string owner = owner_of_memory();
  if (!owner.empty()) return owner;
  const std::string variable = moved_variable();
  if (!variable.empty())
    return concat("the program has ", variable, " of the C or C++ library in its own memory, where code compiled ",
                  "with -fPIC leaves it in the library");
  const std::string openmp = other_openmp();
  if (!openmp.empty() && variable_value("FTN_PYTORCH_DEEPBIND").empty())
    return concat("OpenMP of this program is that of ", openmp, ", which FTN_PYTORCH_DEEPBIND=1 accepts");
  return {};
}

#else

std::string obstacle() { return "the loader of this system has no RTLD_DEEPBIND"; }
constexpr int own_first = 0;

#endif

std::vector<ProgramFunction> found(std::initializer_list<const char*> names) {
  std::vector<ProgramFunction> functions;
  for (const char* name : names) {
    void* const address = dlsym(program_scope(), name);
    if (!address) continue;
    std::string file = object_file_of(address);
    // torch itself, in a program that is linked with it
    if (file.find("/libtorch") == std::string::npos) functions.push_back({name, address, std::move(file)});
  }
  return functions;
}

}  // namespace

const std::string& obstacle_to_own_names() {
  static const std::string& found = *new std::string(obstacle());
  return found;
}

void refuse_foreign(const std::string& file) {
  fail(FPT_ERR_VERSION, file, " belongs to another library than this one, ", own_file().string());
}

int own_names_first() { return obstacle_to_own_names().empty() ? own_first : 0; }

std::vector<ProgramFunction> functions_of_torch() {
  return found({"sgemm_", "dgemm_", "cgemm_", "zgemm_", "sdot_", "ddot_", "cdotc_", "zdotc_", "spotrf_", "dpotrf_",
                "cpotrf_", "zpotrf_"});
}

std::vector<ProgramFunction> functions_of_modules() { return found({"H5open", "nc_open"}); }

std::string file_of_malloc() { return object_file_of(dlsym(program_scope(), "malloc")); }

const std::string& unusable_blas() {
  static const std::string& found = *new std::string(try_blas(functions_of_torch()));
  return found;
}

void require_usable_blas(const std::string& why) {
  const std::string& wrong = unusable_blas();
  if (!wrong.empty()) fail(FPT_ERR_LIBRARY, wrong, ", and torch would use it in this process: ", why, ways_out);
}

void judge_numbers(const std::string& wrong, const std::string& why) {
  if (wrong.empty() && why.empty()) return;
  std::set<std::string> files;
  for (const ProgramFunction& each : functions_of_torch()) files.insert(each.file);
  std::string list;
  for (const std::string& file : files) append(list, (list.empty() ? "" : " and ") + file);
  if (!wrong.empty())
    fail(FPT_ERR_LIBRARY, "torch.", wrong, " gives wrong numbers in this process, where BLAS or LAPACK are those of ",
         list, why.empty() ? "" : ": ", why, ways_out);
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  warn_of_job(concat("torch computes products of matrices by ", list,
                     ", which the program has brought: they are right, ",
                     "and may be slower than by torch's own: ", why));
}

}  // namespace fpt
