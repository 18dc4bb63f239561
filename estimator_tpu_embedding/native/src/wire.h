// Reads the wire format of protobuf, which may be hostile: nothing is copied or recursed into.
#ifndef ETE_WIRE_H_
#define ETE_WIRE_H_

#include <cstdint>
#include <string>

namespace ete {

// Some bytes of somebody else.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;

  std::string text() const { return std::string(data, size); }
};

// One field of a message. The wire type decides which of the functions may be called; another one
// throws Error kInvalidArgument.
class Field {
 public:
  uint64_t number = 0;

  bool is_integer() const;

  // A varint: an integer, enum or bool. Enums and integers are sent as 64 bits with their sign.
  int64_t integer() const;

  // A float of 32 bits.
  float real() const;

  // The bytes of a text, of a message or of packed numbers.
  Bytes bytes() const;

 private:
  friend class Message;
  void require(int type, const char* what) const;

  int type_ = 0;
  uint64_t value_ = 0;
  Bytes bytes_;
};

// The fields of a message, one after another.
class Message {
 public:
  explicit Message(Bytes bytes) : at_(bytes.data), end_(bytes.data + bytes.size) {}

  // Reads the next field; false at the end. Throws Error kInvalidArgument for what is no message.
  bool next(Field* field);

  bool at_end() const { return at_ == end_; }

  // Reads a number of a packed field, whose bytes this is.
  uint64_t varint();

 private:
  uint64_t fixed(size_t size);

  const char *at_, *end_;
};

}  // namespace ete

#endif  // ETE_WIRE_H_
