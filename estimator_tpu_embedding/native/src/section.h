// Writes the section of one table in a grouped batch (see grouped.h), piece by piece.
//
// A piece is some of the ids of one feature; pieces can be worked on side by side.
#ifndef ETE_SECTION_H_
#define ETE_SECTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grouped.h"
#include "id_packing.h"
#include "layout.h"
#include "sort.h"

namespace ete {

struct Piece {
  const FeatureLayout* feature;
  const FeatureIds* ids;
  size_t first, last;                // Of its ids.
  size_t first_sample, last_sample;  // It writes their shares; not the samples of its ids.
  size_t offset;                     // The number of the occurrence of id number 0.
  uint32_t* starts;                  // Of the feature.
  uint32_t* scales;                  // Of the feature.
  uint32_t code_base;                // Is added to a sample to make its code.
};

class Section {
 public:
  // Of table number `table`; begins at `words`. All must outlive it.
  Section(const Layout& layout, int table, const std::vector<FeatureIds>& features,
          uint32_t* words);

  const std::vector<Piece>& pieces() const { return pieces_; }
  size_t n() const { return n_; }
  bool weighted() const { return table_.weighted; }

  // A key holds a payload below its row: a code, or in a weighted table the number of an
  // occurrence, which leads to both code and share.
  int payload_bits() const { return payload_bits_; }
  int row_bits() const { return row_bits_; }

  // Checks the ids of a piece, writes their starts and rows.
  // Throws Error kInvalidArgument, which names the feature, the place and the value.
  void read(const Piece& piece) const;

  // Writes scales or shares of a piece. All pieces must have been read.
  void share_out(const Piece& piece) const;

  // By occurrence, once its piece was read.
  const uint32_t* rows() const { return words_ + at_.rows; }

  // Writes the code of each occurrence of a piece, for a weighted table.
  void write_codes(const Piece& piece, uint32_t* code_of) const;

  // The payload of id number i of a piece.
  uint32_t payload(const Piece& piece, size_t i) const {
    return table_.weighted ? static_cast<uint32_t>(piece.offset + i)
                           : piece.code_base | static_cast<uint32_t>(piece.ids->samples[i]);
  }

  // Ends the section, which has u distinct rows. Returns where to write the sorted arrays.
  RunArrays finish(size_t u, const uint32_t* code_of);

  // How many words it has, once it is finished.
  size_t words() const { return at_.end; }

 private:
  void add_pieces(int k, const FeatureIds& ids);
  void share_out_sample(const Piece& piece, size_t begin, size_t end) const;

  const Layout& layout_;
  const TableLayout& table_;
  const Locator locator_;
  uint32_t* const words_;
  size_t n_ = 0;
  int payload_bits_, row_bits_;
  SectionExtents at_;
  std::vector<Piece> pieces_;
};

}  // namespace ete

#endif  // ETE_SECTION_H_
