// SPDX-License-Identifier: Apache-2.0
// A class with private members says how it is read and written.
#include <sojourn/sojourn.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

class box {
 public:
  explicit box(std::string s = {}) : text_(std::move(s)) {}
#ifndef SOJOURN_EXPECT_ERROR
  template <class Archive>
  void serialize(Archive& ar) {
    ar(text_);
  }
#endif
  std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](const box& b) { return b.size(); }, box("text")).get();
#else
    rpc(0, [](const box& b) { return b.size(); }, box("text")).get();
#endif
  });
}
