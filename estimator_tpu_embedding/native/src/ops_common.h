// The common part of all operations: tensors and attributes in, tensors and faults out.
//
// A kernel is a class with a constructor of `const Attributes&` and a `compute(Context&)`. Both
// throw for faults. A fault becomes a TF_Status, so no C++ exception reaches TensorFlow.
#ifndef ETE_OPS_COMMON_H_
#define ETE_OPS_COMMON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "error.h"
#include "tf_api.h"

namespace ete {

// A TF_Status that is freed.
class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  TF_Status* get() { return status_; }

  // Throws what TensorFlow said, with its code, unless it said OK.
  void check() const;

  // Takes over the exception that is being handled; to be called in a handler only.
  void set_from_exception() noexcept;

 private:
  TF_Status* status_;
};

// A TF_Tensor that is freed; the memory belongs to TensorFlow.
class Tensor {
 public:
  explicit Tensor(TF_Tensor* tensor) : tensor_(tensor) {}

  TF_Tensor* get() const { return tensor_.get(); }
  std::vector<int64_t> shape() const;
  int type() const { return TF_TensorType(tensor_.get()); }
  size_t elements() const { return static_cast<size_t>(TF_TensorElementCount(tensor_.get())); }

  // Its memory. `Context` checked the type, or allocated the tensor with it.
  template <typename T>
  T* data() const {
    return static_cast<T*>(TF_TensorData(tensor_.get()));
  }

 private:
  struct Delete {
    void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
  };
  std::unique_ptr<TF_Tensor, Delete> tensor_;
};

std::string shape_text(const std::vector<int64_t>& shape);

// The attributes of a node. Each function throws Error if TensorFlow does not find the attribute.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* construction) : construction_(construction) {}

  bool has(const char* name) const;
  int64_t number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  std::vector<int64_t> numbers(const char* name) const;
  std::vector<float> floats(const char* name) const;
  std::vector<std::string> strings(const char* name) const;

 private:
  void sizes(const char* name, int32_t* count, int32_t* bytes) const;

  TF_OpKernelConstruction* construction_;
};

// One execution of a kernel.
class Context {
 public:
  explicit Context(TF_OpKernelContext* context) : context_(context) {}

  int inputs() const { return TF_NumInputs(context_); }
  int outputs() const { return TF_NumOutputs(context_); }

  // Input number i, of any type.
  Tensor input(int i) const;

  // Input number i. Throws Error kInvalidArgument, which names it, if it is of another type.
  Tensor input(int i, int type, const char* name) const;

  // Input number i, the handle of an engine or of none: a scalar int64.
  int64_t handle(int i) const;

  // The engine whose handle is input number i.
  std::shared_ptr<Engine> engine(int i) const { return registry::find(handle(i)); }

  // A new tensor as output number i, its contents undefined.
  Tensor allocate(int i, int type, const std::vector<int64_t>& shape);

  // The same in memory that was used before if it is large, as page faults cost more than writing.
  Tensor allocate_again(int i, int type, const std::vector<int64_t>& shape,
                        const std::shared_ptr<Scratch>& scratch);

  // The same for outputs 0 to shapes.size() - 1, of floats. If they are large together, small ones
  // share pieces of memory. Who keeps one of them keeps no more than 2 MiB, which is one piece.
  std::vector<Tensor> allocate_floats(const std::vector<std::vector<int64_t>>& shapes,
                                      const std::shared_ptr<Scratch>& scratch);

  // A tensor over existing memory as output number i; `owner` is freed with the last use of it.
  Tensor wrap(int i, int type, const std::vector<int64_t>& shape, void* data,
              std::shared_ptr<const void> owner);

  void set_output(int i, const Tensor& tensor);

  // Makes input number `from` output number i, if nobody else uses its memory; TensorFlow must have
  // allocated that. Otherwise allocates the output. Returns whether the input was used. No Tensor
  // of that input may exist.
  bool forward(int from, int i, const std::vector<int64_t>& shape);

 private:
  TF_OpKernelContext* context_;
};

// A function of TensorFlow that is in another library, which is loaded but need not be visible;
// null if there is none.
void* symbol(const char* name);

using ShapeFunction = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// An operation and its kernel. `inputs`, `outputs` and `attributes` have the form that
// tensorflow/c/ops.h describes. All operations are stateful.
struct Operation {
  const char* name;
  std::vector<const char*> inputs, outputs, attributes;
  ShapeFunction shapes;
  void* (*create)(TF_OpKernelConstruction*);
  void (*compute)(void*, TF_OpKernelContext*);
  void (*destroy)(void*);
};

namespace internal {

template <typename Kernel>
void* create(TF_OpKernelConstruction* construction) {
  try {
    return new Kernel(Attributes(construction));
  } catch (...) {
    Status status;
    status.set_from_exception();
    TF_OpKernelConstruction_Failure(construction, status.get());
    return nullptr;
  }
}

template <typename Kernel>
void compute(void* kernel, TF_OpKernelContext* context) {
  try {
    Context wrapped(context);
    static_cast<Kernel*>(kernel)->compute(wrapped);
  } catch (...) {
    Status status;
    status.set_from_exception();
    TF_OpKernelContext_Failure(context, status.get());
  }
}

template <typename Kernel>
void destroy(void* kernel) {
  delete static_cast<Kernel*>(kernel);
}

}  // namespace internal

template <typename Kernel>
Operation operation(const char* name, std::vector<const char*> inputs,
                    std::vector<const char*> outputs, std::vector<const char*> attributes,
                    ShapeFunction shapes) {
  return {name,
          std::move(inputs),
          std::move(outputs),
          std::move(attributes),
          shapes,
          internal::create<Kernel>,
          internal::compute<Kernel>,
          internal::destroy<Kernel>};
}

// The kernel of an operation that TensorFlow defines.
template <typename Kernel>
Operation kernel_of(const char* name) {
  return operation<Kernel>(name, {}, {}, {}, nullptr);
}

// Shape functions. The C API does not show attributes to them, so most know nothing.
void unknown_shapes(TF_ShapeInferenceContext* context, TF_Status* status);
void scalar_shape(TF_ShapeInferenceContext* context, TF_Status* status);
void no_shapes(TF_ShapeInferenceContext* context, TF_Status* status);  // There are no outputs.

// The operations, by the file that defines them.
std::vector<Operation> engine_operations();
std::vector<Operation> step_operations();
std::vector<Operation> parts_operations();
std::vector<Operation> exchange_operations();
std::vector<Operation> table_operations();

// Those of a TPU's embedding engine. TensorFlow defines them, so they have nothing but kernels.
std::vector<Operation> tpu_table_operations();
std::vector<Operation> tpu_step_operations();
std::vector<Operation> tpu_replica_operations();

// Forgets what waits in the queues of infeed and outfeed.
void clear_tuples();

}  // namespace ete

#endif  // ETE_OPS_COMMON_H_
