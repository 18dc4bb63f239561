// The operations between TensorFlow's variables and the memory of the engine: EteDetached, EteView,
// EteTake, EteRead and EteReadRows; EteMemory and EteWriteRows, which fill parts row by row.
//
// The value of a variable comes as a tensor. It is either the memory of the engine, or a buffer of
// TensorFlow's that an assignment gave the variable. Then the variable is *detached*, and its
// buffer holds the valid rows.
#include <string>
#include <vector>

#include "ops_inputs.h"

namespace ete {
namespace {

// The value of the variable of a part, of the shape of that part.
Tensor value_input(const Context& context, int i, const Engine& engine, int64_t number) {
  Tensor value = context.input(i, kTfFloat, "value");
  const Part& part = engine.part(number);
  const std::vector<int64_t> expected{static_cast<int64_t>(part.rows), part.width};
  if (value.shape() != expected) {
    const std::string& table = engine.layout().tables[static_cast<size_t>(part.table)].name;
    throw Error(Code::kInvalidArgument, "Table \"" + table + "\": part " + std::to_string(number) +
                                            " has the shape " + shape_text(expected) + ", not " +
                                            shape_text(value.shape()) + ".");
  }
  return value;
}

// Gives the number of the first part that is detached, or -1.
class DetachedKernel {
 public:
  explicit DetachedKernel(const Attributes&) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const int parts = context.inputs() - 1;
    if (static_cast<size_t>(parts) != engine->parts()) {
      throw Error(Code::kInvalidArgument, "Input values: the engine has " +
                                              std::to_string(engine->parts()) + " parts, not " +
                                              std::to_string(parts) + ".");
    }
    int64_t detached = -1;
    for (int i = 0; i < parts; ++i) {
      const Tensor value = value_input(context, 1 + i, *engine, i);
      if (detached < 0 && !engine->owns(i, value.data<float>())) detached = i;
    }
    *context.allocate(0, kTfInt64, {}).data<int64_t>() = detached;
  }
};

// Offers `value` to the part, and returns the memory of the part, which becomes the value of the
// variable. From the offer until `value` is copied, the engine knows the valid rows.
class ViewKernel {
 public:
  explicit ViewKernel(const Attributes& attributes) : part_(attributes.number("part")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const auto value = std::make_shared<const Tensor>(value_input(context, 1, *engine, part_));
    const float* data = value->data<float>();
    if (!engine->owns(part_, data)) engine->offer(part_, {data, value});
    context.wrap(0, kTfFloat, value->shape(), engine->part(part_).data, engine->hold(part_));
  }

 private:
  const int64_t part_;
};

// Runs when the variable is a view. Then its former buffer, `value`, usually has no other user. Its
// pages go back to the system while they are copied, because TensorFlow would keep freed memory. To
// find out whether it has another user, the kernel tries to make it the output. The output has no
// other purpose.
class TakeKernel {
 public:
  explicit TakeKernel(const Attributes& attributes) : part_(attributes.number("part")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    std::vector<int64_t> shape;
    const float* data = nullptr;
    {
      const Tensor value = value_input(context, 1, *engine, part_);
      shape = value.shape();
      data = value.data<float>();
    }
    bool has_output = false;
    engine->take(part_, data, [&]() noexcept {
      try {
        const bool forwarded = context.forward(1, 0, shape);
        has_output = true;
        return forwarded;
      } catch (...) {
        return false;  // TensorFlow had no memory for an output of that size.
      }
    });
    if (!has_output) context.allocate(0, kTfFloat, {0});
  }

 private:
  const int64_t part_;
};

class ReadKernel {
 public:
  explicit ReadKernel(const Attributes& attributes)
      : part_(attributes.number("part")), copy_(attributes.flag("copy")) {}

  // Input 0 is the handle of the variable, which TensorFlow's Saver expects to find there.
  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(1);
    const Tensor value = value_input(context, 2, *engine, part_);
    if (!engine->owns(part_, value.data<float>())) {
      context.set_output(0, value);
    } else if (const Values offer = engine->offered(part_); offer.data != nullptr) {
      context.wrap(0, kTfFloat, value.shape(), const_cast<float*>(offer.data), offer.owner);
    } else if (copy_) {
      engine->read(part_, context.allocate(0, kTfFloat, value.shape()).data<float>());
    } else {
      std::shared_ptr<const void> view = engine->hold_view(part_);
      context.wrap(0, kTfFloat, value.shape(), value.data<float>(), std::move(view));
    }
  }

 private:
  const int64_t part_;
  const bool copy_;
};

class ReadRowsKernel {
 public:
  explicit ReadRowsKernel(const Attributes& attributes) : part_(attributes.number("part")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Tensor value = value_input(context, 1, *engine, part_);
    const Tensor rows = context.input(2, kTfInt64, "rows");
    std::vector<int64_t> shape = rows.shape();
    shape.push_back(engine->part(part_).width);
    const Tensor found = context.allocate(0, kTfFloat, shape);
    engine->read_rows(part_, value.data<float>(), rows.data<int64_t>(), rows.elements(),
                      found.data<float>());
  }

 private:
  const int64_t part_;
};

// Gives the memory of a part, so that a variable begins as a view of it.
class MemoryKernel {
 public:
  explicit MemoryKernel(const Attributes& attributes) : part_(attributes.number("part")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Part& part = engine->part(part_);
    context.wrap(0, kTfFloat, {static_cast<int64_t>(part.rows), part.width}, part.data,
                 engine->hold(part_));
  }

 private:
  const int64_t part_;
};

class WriteRowsKernel {
 public:
  explicit WriteRowsKernel(const Attributes& attributes) : part_(attributes.number("part")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Tensor rows = context.input(1, kTfInt64, "rows");
    const Tensor values = context.input(2, kTfFloat, "values");
    require_count("Input values, floats",
                  rows.elements() * static_cast<size_t>(engine->part(part_).width),
                  values.elements());
    engine->write_rows(part_, rows.data<int64_t>(), rows.elements(), values.data<float>());
  }

 private:
  const int64_t part_;
};

// The output has the shape of input number `Input`.
template <int Input>
void same_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, Input, shape, status);
  if (TF_GetCode(status) == kTfOk) TF_ShapeInferenceContextSetOutput(context, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

}  // namespace

std::vector<Operation> table_operations() {
  return {
      operation<DetachedKernel>("EteDetached", {"engine: int64", "values: P * float"},
                                {"part: int64"}, {"P: int >= 1"}, scalar_shape),
      operation<ViewKernel>("EteView", {"engine: int64", "value: float"}, {"view: float"},
                            {"part: int >= 0"}, same_shape<1>),
      operation<TakeKernel>("EteTake", {"engine: int64", "value: float"}, {"spent: float"},
                            {"part: int >= 0"}, unknown_shapes),
      operation<ReadKernel>("EteRead", {"handle: resource", "engine: int64", "value: float"},
                            {"read: float"}, {"part: int >= 0", "copy: bool"}, same_shape<2>),
      operation<ReadRowsKernel>("EteReadRows", {"engine: int64", "value: float", "rows: int64"},
                                {"found: float"}, {"part: int >= 0"}, unknown_shapes),
      operation<MemoryKernel>("EteMemory", {"engine: int64"}, {"memory: float"},
                              {"part: int >= 0"}, unknown_shapes),
      operation<WriteRowsKernel>("EteWriteRows",
                                 {"engine: int64", "rows: int64", "values: float"}, {},
                                 {"part: int >= 0"}, no_shapes)};
}

}  // namespace ete
