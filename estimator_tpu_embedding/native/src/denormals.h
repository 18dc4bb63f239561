// A scope in which numbers below 2**-126 count as 0, on this thread only.
//
// TensorFlow's own threads work like that. The threads of a Pool inherit the mode of the thread
// that made the Pool on some systems (Linux on x86), and have the processor's default on others.
// Callers of an engine may be of any kind. So every computation sets the mode. Otherwise the result
// for such a number would depend on the thread, and moments that decay towards 0 would take many
// times as long on some processors.
#ifndef ETE_DENORMALS_H_
#define ETE_DENORMALS_H_

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace ete {

class FlushDenormals {
 public:
  FlushDenormals() : before_(read()) { write(before_ | kFlush); }
  ~FlushDenormals() { write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE__)
  static constexpr uint64_t kFlush = 0x8040;  // Results (15) and operands (6).
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = 1 << 24;
  static uint64_t read() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  const uint64_t before_;
};

}  // namespace ete

#endif  // ETE_DENORMALS_H_
