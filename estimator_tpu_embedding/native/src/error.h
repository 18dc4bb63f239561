// The exception that every function here throws for a fault that a caller can cause.
//
// The operations turn it into a TF_Status of the same number, so no C++ exception ever reaches
// TensorFlow.
#ifndef ETE_ERROR_H_
#define ETE_ERROR_H_

#include <exception>
#include <string>
#include <utility>

namespace ete {

// The numbers are those of TF_Code.
enum class Code : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13
};

class Error : public std::exception {
 public:
  // `message` names the table or feature, what was expected and what came.
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Code code_;
  std::string message_;
};

}  // namespace ete

#endif  // ETE_ERROR_H_
