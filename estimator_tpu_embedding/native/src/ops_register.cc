// Registers all operations with TensorFlow when the library is loaded, and the kernels of a TPU's
// operations when somebody asks for them.
#include <cstdio>
#include <string>
#include <vector>

#include "ops_common.h"

namespace ete {
namespace {

void report(const char* name, const TF_Status* status) {
  std::fprintf(stderr, "estimator_tpu_embedding: TensorFlow refused the operation %s: %s\n", name,
               TF_Message(status));
}

// Whether TensorFlow has a kernel of an operation: to register a second one ends the process.
// `otherwise` is returned if TensorFlow does not say.
bool has_kernel(const char* name, bool otherwise) {
  const auto find = reinterpret_cast<TF_Buffer* (*)(const char*, TF_Status*)>(
      symbol("TF_GetRegisteredKernelsForOp"));
  const auto destroy = reinterpret_cast<void (*)(TF_Buffer*)>(symbol("TF_DeleteBuffer"));
  if (find == nullptr) return otherwise;
  Status status;
  TF_Buffer* kernels = find(name, status.get());
  const bool found = kernels != nullptr && kernels->length > 0;
  if (kernels != nullptr && destroy != nullptr) destroy(kernels);
  return found;
}

bool define(const Operation& operation) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(operation.name);
  for (const char* spec : operation.attributes) TF_OpDefinitionBuilderAddAttr(builder, spec);
  for (const char* spec : operation.inputs) TF_OpDefinitionBuilderAddInput(builder, spec);
  for (const char* spec : operation.outputs) TF_OpDefinitionBuilderAddOutput(builder, spec);
  TF_OpDefinitionBuilderSetIsStateful(builder, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, operation.shapes);
  Status status;
  TF_RegisterOpDefinition(builder, status.get());
  if (TF_GetCode(status.get()) != kTfOk) report(operation.name, status.get());
  return TF_GetCode(status.get()) == kTfOk;
}

void implement(const Operation& operation) {
  TF_KernelBuilder* builder = TF_NewKernelBuilder(operation.name, "CPU", operation.create,
                                                  operation.compute, operation.destroy);
  Status status;
  TF_RegisterKernelBuilder(operation.name, builder, status.get());
  if (TF_GetCode(status.get()) != kTfOk) report(operation.name, status.get());
}

__attribute__((constructor)) void register_all() {
  if (has_kernel("EteEngine", false)) return;  // Another copy of this library was loaded.
  for (const auto& operations : {engine_operations(), step_operations(), parts_operations(),
                                 exchange_operations(), table_operations()}) {
    for (const Operation& operation : operations) {
      if (define(operation)) implement(operation);
    }
  }
}

}  // namespace
}  // namespace ete

// Registers the kernels of a TPU's operations, once. Returns the name of an operation that has a
// kernel already, or may have one, as where there is a TPU; then nothing is registered. Otherwise
// returns an empty text.
extern "C" __attribute__((visibility("default"))) const char* ete_register_tpu_kernels() {
  static const std::string refused = [] {
    std::vector<ete::Operation> operations;
    for (const auto& some : {ete::tpu_table_operations(), ete::tpu_step_operations(),
                             ete::tpu_replica_operations()}) {
      operations.insert(operations.end(), some.begin(), some.end());
    }
    for (const ete::Operation& operation : operations) {
      if (ete::has_kernel(operation.name, true)) return std::string(operation.name);
    }
    for (const ete::Operation& operation : operations) ete::implement(operation);
    return std::string();
  }();
  return refused.c_str();
}
