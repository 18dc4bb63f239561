#include "section.h"

#include <algorithm>
#include <cstring>

#include "denormals.h"
#include "limits.h"
#include "shares.h"

namespace ete {

namespace {

constexpr size_t kPieceIds = 16384;  // So that what a piece reads and writes fits the second cache.

int bits_for(uint64_t largest) {
  int bits = 1;  // At least, so that no key is without a row.
  while (largest >> bits) ++bits;
  return bits;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Writes where each sample begins, from the one after that of the id before the piece.
void write_starts(const Piece& piece) {
  const int32_t* samples = piece.ids->samples;
  int32_t sample = piece.first ? samples[piece.first - 1] : -1;
  for (size_t i = piece.first; i < piece.last; ++i) {
    while (sample != samples[i]) piece.starts[++sample] = static_cast<uint32_t>(piece.offset + i);
  }
  if (piece.last < piece.ids->count) return;
  uint32_t* const end = piece.starts + piece.feature->samples + 1;
  std::fill(piece.starts + sample + 1, end, static_cast<uint32_t>(piece.offset + piece.last));
}

}  // namespace

Section::Section(const Layout& layout, int table, const std::vector<FeatureIds>& features,
                 uint32_t* words)
    : layout_(layout),
      table_(layout.tables[static_cast<size_t>(table)]),
      locator_(layout, table_),
      words_(words) {
  for (const int feature : table_.features) n_ += features[static_cast<size_t>(feature)].count;
  payload_bits_ = table_.weighted ? bits_for(n_) : table_.code_bits;
  row_bits_ = bits_for(table_.physical_rows - 1);
  at_ = section_extents(layout, table_, n_, 0);
  n_ = 0;
  for (const int feature : table_.features) {
    const FeatureIds& ids = features[static_cast<size_t>(feature)];
    add_pieces(layout.features[static_cast<size_t>(feature)].place_in_table, ids);
    n_ += ids.count;
  }
}

void Section::add_pieces(int k, const FeatureIds& ids) {
  const int feature = table_.features[static_cast<size_t>(k)];
  Piece piece;
  piece.feature = &layout_.features[static_cast<size_t>(feature)];
  piece.ids = &ids;
  piece.offset = n_;
  piece.starts = words_ + at_.starts + starts_before(layout_, table_, k);
  piece.scales = words_ + at_.scales + scales_before(layout_, table_, k);
  piece.code_base =
      table_.sample_bits < 32 ? static_cast<uint32_t>(k) << table_.sample_bits : 0;
  // Also a feature without ids has a piece, which writes its starts.
  const size_t count = std::max<size_t>(1, (ids.count + kPieceIds - 1) / kPieceIds);
  const size_t samples = static_cast<size_t>(piece.feature->samples);
  for (size_t number = 0; number < count; ++number) {
    piece.first = number * kPieceIds;
    piece.last = std::min(piece.first + kPieceIds, ids.count);
    piece.first_sample = samples * number / count;
    piece.last_sample = samples * (number + 1) / count;
    pieces_.push_back(piece);
  }
}

void Section::read(const Piece& piece) const {
  const Limits limits{piece.feature->name, table_.name, piece.feature->samples,
                      table_.vocabulary};
  check_samples(limits, *piece.ids, piece.first, piece.last);
  write_starts(piece);
  const int64_t* ids = piece.ids->ids;
  uint32_t* rows = words_ + at_.rows + piece.offset;
  OutsideFinder outside(table_.vocabulary);
  const auto each = [&](const auto& locate) {
    for (size_t i = piece.first; i < piece.last; ++i) {
      const uint64_t id = static_cast<uint64_t>(ids[i]);
      outside.add(id);
      rows[i] = locate(static_cast<uint32_t>(id));
    }
  };
  if (locator_.is_identity()) {
    each([](uint32_t id) { return id; });
  } else {
    each(Locator(locator_));  // A copy that cannot change while rows are written.
  }
  if (outside.found()) refuse_ids(limits, *piece.ids, piece.first, piece.last);
}

void Section::write_codes(const Piece& piece, uint32_t* code_of) const {
  for (size_t i = piece.first; i < piece.last; ++i) {
    code_of[piece.offset + i] =
        piece.code_base | static_cast<uint32_t>(piece.ids->samples[i]);
  }
}

void Section::share_out(const Piece& piece) const {
  if (!table_.weighted && table_.combiner == kSum) return;
  const FlushDenormals flush;
  for (size_t sample = piece.first_sample; sample < piece.last_sample; ++sample) {
    const size_t begin = piece.starts[sample], end = piece.starts[sample + 1];
    if (table_.weighted) {
      share_out_sample(piece, begin, end);
    } else {
      const float count = static_cast<float>(end - begin);
      piece.scales[sample] = bits_of(share_of(1.0f, norm_of(table_.combiner, count)));
    }
  }
}

void Section::share_out_sample(const Piece& piece, size_t begin, size_t end) const {
  const float* weights = piece.ids->weights;
  const auto weight = [&](size_t i) { return weights ? weights[i - piece.offset] : 1.0f; };
  float sum = 0.0f;
  for (size_t i = begin; i < end; ++i) {
    sum += norm_part(table_.combiner, weight(i));
  }
  const float divisor = table_.combiner == kSum ? 1.0f : norm_of(table_.combiner, sum);
  for (size_t i = begin; i < end; ++i) {
    words_[at_.shares + i] = bits_of(share_of(weight(i), divisor));
  }
}

RunArrays Section::finish(size_t u, const uint32_t* code_of) {
  at_ = section_extents(layout_, table_, n_, u);
  words_[0] = static_cast<uint32_t>(n_);
  words_[1] = static_cast<uint32_t>(u);
  words_[at_.run_starts + u] = static_cast<uint32_t>(n_);
  RunArrays arrays{};
  arrays.distinct = words_ + at_.distinct;
  arrays.run_starts = words_ + at_.run_starts;
  arrays.codes = words_ + at_.codes;
  if (table_.weighted) {
    arrays.sorted_shares = words_ + at_.sorted_shares;
    arrays.code_of = code_of;
    arrays.shares = words_ + at_.shares;
  }
  return arrays;
}

}  // namespace ete
