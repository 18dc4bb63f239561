// The functions of TensorFlow's stable C API that the ops use, declared here.
//
// No header of TensorFlow is needed to compile, and none of its C++ types is used, so one library
// serves every version that exports these names. What they promise is written in TensorFlow's
// tensorflow/c/{ops,kernels,tf_tensor,tf_status}.h.
#ifndef ETE_TF_API_H_
#define ETE_TF_API_H_

#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

// Values of TF_DataType and TF_Code, which are part of the API.
enum : int { kTfFloat = 1, kTfDouble = 2, kTfInt32 = 3, kTfString = 7, kTfInt64 = 9 };
enum : int { kTfOk = 0 };

TF_Status* TF_NewStatus(void);
void TF_DeleteStatus(TF_Status*);
void TF_SetStatus(TF_Status*, int code, const char* message);
int TF_GetCode(const TF_Status*);
const char* TF_Message(const TF_Status*);

TF_Tensor* TF_NewTensor(int type, const int64_t* dims, int num_dims, void* data, size_t bytes,
                        void (*deallocator)(void* data, size_t bytes, void* arg), void* arg);
void TF_DeleteTensor(TF_Tensor*);
int TF_TensorType(const TF_Tensor*);
int TF_NumDims(const TF_Tensor*);
int64_t TF_Dim(const TF_Tensor*, int index);
int64_t TF_TensorElementCount(const TF_Tensor*);
void* TF_TensorData(const TF_Tensor*);

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* name);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder*, bool);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder*, void (*)(TF_ShapeInferenceContext*, TF_Status*));
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*);

TF_ShapeHandle* TF_NewShapeHandle(void);
void TF_DeleteShapeHandle(TF_ShapeHandle*);
TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext*);
void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext*, int i, TF_ShapeHandle*,
                                      TF_Status*);
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext*, int i, TF_ShapeHandle*,
                                       TF_Status*);
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext*, TF_Status*);

TF_KernelBuilder* TF_NewKernelBuilder(const char* op, const char* device,
                                      void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void*, TF_OpKernelContext*),
                                      void (*destroy)(void*));
void TF_RegisterKernelBuilder(const char* name, TF_KernelBuilder*, TF_Status*);

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction*, const char* name,
                                         int32_t* list_size, int32_t* total_size, TF_Status*);
void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction*, const char* name, int64_t*,
                                          TF_Status*);
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction*, const char* name,
                                         unsigned char*, TF_Status*);
void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction*, const char* name, char* value,
                                           size_t max_length, TF_Status*);
bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction*, const char* name, TF_Status*);
void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction*, const char* name, int64_t*,
                                              int max_values, TF_Status*);
void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction*, const char* name, float*,
                                              int max_values, TF_Status*);
void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction*, const char* name,
                                               char** values, size_t* lengths, int max_values,
                                               void* storage, size_t storage_bytes, TF_Status*);
void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction*, TF_Status*);

int TF_NumInputs(TF_OpKernelContext*);
int TF_NumOutputs(TF_OpKernelContext*);
void TF_GetInput(TF_OpKernelContext*, int i, TF_Tensor**, TF_Status*);
void TF_SetOutput(TF_OpKernelContext*, int i, const TF_Tensor*, TF_Status*);
TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext*, const int* candidates,
                                           int num_candidates, int output, const int64_t* dims,
                                           int num_dims, int* forwarded, TF_Status*);
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext*, int i, int type, const int64_t* dims,
                             int num_dims, size_t bytes, TF_Status*);
void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status*);

}  // extern "C"

#endif  // ETE_TF_API_H_
