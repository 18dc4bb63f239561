// Registers all operations with TensorFlow when the library is loaded.
#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include "ops_common.h"

namespace ete {
namespace {

void report(const char* name, const TF_Status* status) {
  std::fprintf(stderr, "estimator_tpu_embedding: TensorFlow refused the operation %s: %s\n", name,
               TF_Message(status));
}

// Whether another copy of this library was loaded: to register a kernel twice ends the process.
bool is_registered(const char* name) {
  // TensorFlow has the function in another library, which is loaded but need not be visible.
  void* library = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto find = reinterpret_cast<TF_Buffer* (*)(const char*, TF_Status*)>(
      dlsym(library, "TF_GetRegisteredKernelsForOp"));
  const auto destroy = reinterpret_cast<void (*)(TF_Buffer*)>(dlsym(library, "TF_DeleteBuffer"));
  bool found = false;
  if (find != nullptr) {
    Status status;
    TF_Buffer* kernels = find(name, status.get());
    found = kernels != nullptr && kernels->length > 0;
    if (kernels != nullptr && destroy != nullptr) destroy(kernels);
  }
  dlclose(library);
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
  if (is_registered("EteEngine")) return;
  for (const auto& operations : {engine_operations(), step_operations(), parts_operations(),
                                 exchange_operations(), table_operations()}) {
    for (const Operation& operation : operations) {
      if (define(operation)) implement(operation);
    }
  }
}

}  // namespace
}  // namespace ete
