#include "wire.h"

#include <cstring>

#include "error.h"

namespace ete {
namespace {

enum : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kInvalidArgument, "The bytes are no message of protobuf: " + what + ".");
}

}  // namespace

void Field::require(int type, const char* what) const {
  if (type_ != type) refuse("field " + std::to_string(number) + " must be " + what);
}

bool Field::is_integer() const { return type_ == kVarint; }

int64_t Field::integer() const {
  require(kVarint, "an integer");
  return static_cast<int64_t>(value_);
}

float Field::real() const {
  require(kFixed32, "a float");
  const uint32_t bits = static_cast<uint32_t>(value_);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Bytes Field::bytes() const {
  require(kBytes, "a text or a message");
  return bytes_;
}

bool Message::next(Field* field) {
  if (at_end()) return false;
  const uint64_t tag = varint();
  field->number = tag >> 3;
  field->type_ = static_cast<int>(tag & 7);
  switch (field->type_) {
    case kVarint:
      field->value_ = varint();
      break;
    case kFixed64:
      field->value_ = fixed(8);
      break;
    case kFixed32:
      field->value_ = fixed(4);
      break;
    case kBytes: {
      const uint64_t size = varint();
      if (size > static_cast<uint64_t>(end_ - at_)) refuse("a field ends behind the end");
      field->bytes_ = {at_, static_cast<size_t>(size)};
      at_ += size;
      break;
    }
    default:
      refuse("wire type " + std::to_string(field->type_));
  }
  return true;
}

uint64_t Message::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_end()) refuse("a number ends behind the end");
    const uint8_t byte = static_cast<uint8_t>(*at_++);
    value |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
  refuse("a number has more than 64 bits");
}

uint64_t Message::fixed(size_t size) {
  if (static_cast<size_t>(end_ - at_) < size) refuse("a number ends behind the end");
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(at_[i])} << 8 * i;
  at_ += size;
  return value;
}

}  // namespace ete
