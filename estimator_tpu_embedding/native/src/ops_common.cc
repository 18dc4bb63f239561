#include "ops_common.h"

#include <dlfcn.h>

#include <algorithm>
#include <new>
#include <utility>

namespace ete {
namespace {

constexpr size_t kLargeBytes = 1 << 20;
constexpr size_t kSharedBytes = 2 << 20;  // At least twice as much.

constexpr size_t kMostExtents = 254;  // Of any tensor of TensorFlow.

// Throws Error kInvalidArgument for shapes that end the process when TensorFlow is given them:
// also extents beside a 0 must not be too large together.
size_t bytes_of(int type, const std::vector<int64_t>& shape) {
  const int64_t of_one = type == kTfInt64 ? 8 : 4;
  int64_t bytes = of_one;
  bool too_many = shape.size() > kMostExtents, empty = false;
  for (const int64_t extent : shape) {
    if (extent == 0) {
      empty = true;
    } else {
      too_many |= __builtin_mul_overflow(bytes, extent, &bytes);
    }
  }
  if (too_many) {
    throw Error(Code::kInvalidArgument,
                "A result would be larger than a tensor can be, of " +
                    std::to_string(shape.size()) + " dimensions: " + shape_text(shape) + ".");
  }
  return empty ? 0 : static_cast<size_t>(bytes);
}

const char* type_name(int type) {
  return type == kTfFloat ? "float32" : type == kTfInt32 ? "int32" : "int64";
}

// Where the next tensor may begin behind one of so many bytes: TensorFlow wants 64.
size_t with_gap(size_t bytes) { return (bytes + 63) / 64 * 64; }

void free_owner(void*, size_t, void* owner) {
  delete static_cast<std::shared_ptr<const void>*>(owner);
}

}  // namespace

void Status::check() const {
  if (TF_GetCode(status_) != kTfOk) {
    throw Error(static_cast<Code>(TF_GetCode(status_)), TF_Message(status_));
  }
}

void Status::set_from_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    TF_SetStatus(status_, static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status_, static_cast<int>(Code::kResourceExhausted),
                 "The system has no memory left for the embedding engine.");
  } catch (const std::exception& error) {
    TF_SetStatus(status_, static_cast<int>(Code::kInternal), error.what());
  } catch (...) {
    TF_SetStatus(status_, static_cast<int>(Code::kInternal), "What a kernel threw is unknown.");
  }
}

std::vector<int64_t> Tensor::shape() const {
  std::vector<int64_t> shape(static_cast<size_t>(TF_NumDims(get())));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = TF_Dim(get(), static_cast<int>(i));
  return shape;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void Attributes::sizes(const char* name, int32_t* count, int32_t* bytes) const {
  Status status;
  TF_OpKernelConstruction_GetAttrSize(construction_, name, count, bytes, status.get());
  status.check();
}

bool Attributes::has(const char* name) const {
  Status status;
  const bool found = TF_OpKernelConstruction_HasAttr(construction_, name, status.get());
  status.check();
  return found;
}

int64_t Attributes::number(const char* name) const {
  Status status;
  int64_t value = 0;
  TF_OpKernelConstruction_GetAttrInt64(construction_, name, &value, status.get());
  status.check();
  return value;
}

bool Attributes::flag(const char* name) const {
  Status status;
  unsigned char value = 0;
  TF_OpKernelConstruction_GetAttrBool(construction_, name, &value, status.get());
  status.check();
  return value != 0;
}

std::string Attributes::text(const char* name) const {
  int32_t count = 0, bytes = 0;
  sizes(name, &count, &bytes);
  std::string value(static_cast<size_t>(bytes), '\0');
  Status status;
  TF_OpKernelConstruction_GetAttrString(construction_, name, &value[0], value.size(),
                                        status.get());
  status.check();
  return value;
}

std::vector<int64_t> Attributes::numbers(const char* name) const {
  int32_t count = 0, bytes = 0;
  sizes(name, &count, &bytes);
  std::vector<int64_t> values(static_cast<size_t>(count));
  Status status;
  TF_OpKernelConstruction_GetAttrInt64List(construction_, name, values.data(), count,
                                           status.get());
  status.check();
  return values;
}

std::vector<float> Attributes::floats(const char* name) const {
  int32_t count = 0, bytes = 0;
  sizes(name, &count, &bytes);
  std::vector<float> values(static_cast<size_t>(count));
  Status status;
  TF_OpKernelConstruction_GetAttrFloatList(construction_, name, values.data(), count,
                                           status.get());
  status.check();
  return values;
}

std::vector<std::string> Attributes::strings(const char* name) const {
  int32_t count = 0, bytes = 0;
  sizes(name, &count, &bytes);
  std::vector<char*> values(static_cast<size_t>(count));
  std::vector<size_t> lengths(values.size());
  std::vector<char> storage(static_cast<size_t>(bytes));
  Status status;
  TF_OpKernelConstruction_GetAttrStringList(construction_, name, values.data(), lengths.data(),
                                            count, storage.data(), storage.size(), status.get());
  status.check();
  std::vector<std::string> found;
  for (size_t i = 0; i < values.size(); ++i) found.emplace_back(values[i], lengths[i]);
  return found;
}

Tensor Context::input(int i) const {
  Status status;
  TF_Tensor* found = nullptr;
  TF_GetInput(context_, i, &found, status.get());
  status.check();
  return Tensor(found);
}

Tensor Context::input(int i, int type, const char* name) const {
  Tensor tensor = input(i);
  if (tensor.type() != type) {
    throw Error(Code::kInvalidArgument, std::string("Input ") + name + " must be " +
                                            type_name(type) + ", not type number " +
                                            std::to_string(tensor.type()) + ".");
  }
  return tensor;
}

int64_t Context::handle(int i) const {
  const Tensor handle = input(i, kTfInt64, "engine");
  if (handle.elements() != 1) {
    throw Error(Code::kInvalidArgument,
                "Input engine must be a scalar, the handle of an engine, not a tensor of shape " +
                    shape_text(handle.shape()) + ".");
  }
  return *handle.data<int64_t>();
}

Tensor Context::allocate(int i, int type, const std::vector<int64_t>& shape) {
  Status status;
  Tensor tensor(TF_AllocateOutput(context_, i, type, shape.data(), static_cast<int>(shape.size()),
                                  bytes_of(type, shape), status.get()));
  status.check();
  return tensor;
}

Tensor Context::allocate_again(int i, int type, const std::vector<int64_t>& shape,
                               const std::shared_ptr<Scratch>& scratch) {
  const size_t bytes = bytes_of(type, shape);
  if (bytes < kLargeBytes) return allocate(i, type, shape);
  auto lease = std::make_shared<Scratch::Lease>(scratch->borrow(bytes, "a result of a step"));
  void* data = lease->as<char>();
  return wrap(i, type, shape, data, std::move(lease));
}

std::vector<Tensor> Context::allocate_floats(const std::vector<std::vector<int64_t>>& shapes,
                                             const std::shared_ptr<Scratch>& scratch) {
  size_t left = 0;  // Bytes of small ones that have no memory yet.
  for (const auto& shape : shapes) {
    const size_t bytes = bytes_of(kTfFloat, shape);
    if (bytes < kLargeBytes) left += with_gap(bytes);
  }
  const bool share = left >= kLargeBytes;
  std::vector<Tensor> tensors;
  std::shared_ptr<Scratch::Lease> piece;
  size_t at = 0, end = 0;
  for (const auto& shape : shapes) {
    const int i = static_cast<int>(tensors.size());
    const size_t bytes = bytes_of(kTfFloat, shape);
    if (!share || bytes == 0 || bytes >= kLargeBytes) {
      tensors.push_back(allocate_again(i, kTfFloat, shape, scratch));
      continue;
    }
    if (at + with_gap(bytes) > end) {
      end = std::min(left, kSharedBytes);
      piece = std::make_shared<Scratch::Lease>(scratch->borrow(end, "results of a step"));
      at = 0;
    }
    tensors.push_back(wrap(i, kTfFloat, shape, piece->as<char>() + at, piece));
    at += with_gap(bytes);
    left -= with_gap(bytes);
  }
  return tensors;
}

Tensor Context::wrap(int i, int type, const std::vector<int64_t>& shape, void* data,
                     std::shared_ptr<const void> owner) {
  auto* kept = new std::shared_ptr<const void>(std::move(owner));
  Tensor tensor(TF_NewTensor(type, shape.data(), static_cast<int>(shape.size()), data,
                             bytes_of(type, shape), free_owner, kept));
  set_output(i, tensor);
  return tensor;
}

void* symbol(const char* name) {
  void* library = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = dlsym(library, name);
  dlclose(library);
  return found;
}

void Context::set_output(int i, const Tensor& tensor) {
  Status status;
  TF_SetOutput(context_, i, tensor.get(), status.get());
  status.check();
}

bool Context::forward(int from, int i, const std::vector<int64_t>& shape) {
  Status status;
  int forwarded = -1;
  const Tensor tensor(TF_ForwardInputOrAllocateOutput(context_, &from, 1, i, shape.data(),
                                                      static_cast<int>(shape.size()), &forwarded,
                                                      status.get()));
  status.check();
  return forwarded == from;
}

void unknown_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

void scalar_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(context);
  TF_ShapeInferenceContextSetOutput(context, 0, scalar, status);
  TF_DeleteShapeHandle(scalar);
}

void no_shapes(TF_ShapeInferenceContext*, TF_Status*) {}

}  // namespace ete
