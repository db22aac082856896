#include "warpwright/model/memory/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <new>
#include <utility>

#include "warpwright/model/machine.h"

namespace warpwright::model {
namespace {

thread_local Guard* active = nullptr;
struct sigaction before;

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

// Called from the signal handler: no memory is taken, nothing is locked.
bool note_fault(std::uintptr_t address) {
  Guard* const guard = active;
  if (guard == nullptr) return false;
  for (const Guard::Range& r : guard->ranges_) {
    if (address < r.begin || address >= r.end) continue;
    if (guard->count_ < Guard::most) guard->noted_[guard->count_++] = address;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return mprotect(reinterpret_cast<void*>(address / page * page), page, PROT_READ | PROT_WRITE) ==
           0;
  }
  return false;
}

static void on_fault(int signal, siginfo_t* info, void* context) {
  if (note_fault(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  // Not ours: whoever was there before, or the default, once this returns.
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  sigaction(signal, &before, nullptr);
}

GuardedMemory::GuardedMemory(std::size_t bytes) : bytes_(whole_pages(bytes == 0 ? 1 : bytes)) {
  const int file = memfd_create("warpwright", MFD_CLOEXEC);
  if (file < 0) throw std::bad_alloc();
  const auto map = [&]() -> std::byte* {
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  };
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    data_ = map();
    behind_ = map();
  }
  close(file);
  if (data_ == nullptr || behind_ == nullptr) throw std::bad_alloc();
}

GuardedMemory::~GuardedMemory() {
  munmap(data_, bytes_);
  munmap(behind_, bytes_);
}

Guard::Guard(const std::vector<Allocation>& allocations) {
  for (const Allocation& a : allocations) {
    if (a.memory == nullptr || a.bytes <= 0) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(a.base);
    ranges_.push_back({begin, begin + whole_pages(static_cast<std::size_t>(a.bytes))});
  }
  if (ranges_.empty()) return;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before);
  });
  outer_ = std::exchange(active, this);
  lower();
}

Guard::~Guard() {
  if (ranges_.empty()) return;
  lift();
  active = outer_;
}

void Guard::protect(int protection) const {
  for (const Range& r : ranges_) {
    mprotect(reinterpret_cast<void*>(r.begin), r.end - r.begin, protection);
  }
}

void Guard::lift() {
  protect(PROT_READ | PROT_WRITE);
}

void Guard::lower() {
  protect(PROT_NONE);
}

std::uintptr_t Guard::take() {
  return taken_ < count_ ? noted_[taken_++] : 0;
}

}  // namespace warpwright::model
