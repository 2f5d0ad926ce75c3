// SPDX-License-Identifier: MIT
#include "node/node_messages.hpp"

namespace fpt {

void Request::write(SegmentWriter& writer) const {
  writer.integer(static_cast<int64_t>(wish));
  writer.text(text);
  writer.integer(first);
  writer.integer(second);
  writer.integer(is_list);
  writer.integer(places);
  writer.integer(gradients);
}

Request Request::read(SegmentReader& reader) {
  Request found{};
  found.wish = static_cast<Wish>(reader.integer());
  found.text = reader.text();
  found.first = reader.integer();
  found.second = reader.integer();
  found.is_list = reader.integer() != 0;
  found.places = reader.integer();
  found.gradients = reader.integer() != 0;
  return found;
}

void Outcome::write(SegmentWriter& writer) const {
  writer.integer(status);
  writer.text(text);
  writer.integer(static_cast<int64_t>(warnings.size()));
  for (const std::string& each : warnings) writer.text(each);
  writer.integer(number);
  writer.real(loss);
  writer.integer(has_results);
  writer.integer(static_cast<int64_t>(begins.size()));
  for (const int64_t each : begins) writer.integer(each);
}

Outcome Outcome::read(SegmentReader& reader) {
  Outcome found;
  found.status = static_cast<fpt_status>(reader.integer());
  found.text = reader.text();
  found.warnings.resize(static_cast<std::size_t>(reader.integer()));
  for (std::string& each : found.warnings) each = reader.text();
  found.number = reader.integer();
  found.loss = reader.real();
  found.has_results = reader.integer() != 0;
  found.begins.resize(static_cast<std::size_t>(reader.integer()));
  for (int64_t& each : found.begins) each = reader.integer();
  return found;
}

}  // namespace fpt
