// SPDX-License-Identifier: Apache-2.0
#include "rpc/exceptions.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>

#include "fiber/thrown.hpp"
#include "memory/region_test.hpp"
#include "sojourn/detail/archive.hpp"
#include "sojourn/errors.hpp"

namespace exceptions_test {

struct registered {
  int number;
  double weight;
};
class registered_text : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct unknown : std::exception {
  const char* what() const noexcept override { return "of this program alone"; }
};

}  // namespace exceptions_test

SOJOURN_EXCEPTION(exceptions_test::registered);
SOJOURN_EXCEPTION(exceptions_test::registered_text);

namespace {

using namespace sojourn;
using namespace sojourn::detail;
using namespace exceptions_test;

std::exception_ptr after_the_wire(const std::exception_ptr& thrown) {
  const std::vector<std::byte> bytes = encoded(thrown);
  return decoded(bytes.data(), bytes.size());
}

/// Calls `look` with what arrives of `thrown`, and fails when that is no E itself.
template <class E, class Thrown, class Look>
void arrives_as(const Thrown& thrown, Look look) {
  try {
    std::rethrow_exception(after_the_wire(std::make_exception_ptr(thrown)));
  } catch (const E& e) {
    look(e);
    return;
  } catch (...) {
  }
  ADD_FAILURE() << "another type arrives";
}
template <class E>
void arrives_with_its_text(const std::string& text) {
  SCOPED_TRACE(text);
  const std::exception_ptr come = after_the_wire(std::make_exception_ptr(E(text)));
  EXPECT_EQ(*come.__cxa_exception_type(), typeid(E));
  arrives_as<E>(E(text), [&](const E& e) { EXPECT_EQ(e.what(), text); });
}

TEST(exceptions, standard_types_arrive_as_themselves_with_their_texts) {
  arrives_with_its_text<std::out_of_range>("no such page");
  arrives_with_its_text<std::logic_error>("");
  arrives_with_its_text<sojourn::error>("a text");
  arrives_with_its_text<not_exported>(std::string(1000, 'x'));
  arrives_as<std::bad_alloc>(std::bad_alloc(), [](const auto&) {});
  arrives_as<int>(7, [](int e) { EXPECT_EQ(e, 7); });
  arrives_as<double>(0.5, [](double e) { EXPECT_EQ(e, 0.5); });
  arrives_as<rank_lost>(rank_lost(3, "it ended"), [](const rank_lost& e) {
    EXPECT_EQ(e.rank(), 3);
    EXPECT_STREQ(e.what(), "it ended");
  });
}

TEST(exceptions, a_system_error_says_what_its_code_means_once) {
  for (const std::error_category* category : {&std::generic_category(), &std::system_category()}) {
    const std::system_error thrown(ENOENT, *category, "opening it");
    arrives_as<std::system_error>(thrown, [&](const std::system_error& e) {
      EXPECT_EQ(e.code(), thrown.code());
      EXPECT_STREQ(e.what(), thrown.what());
    });
  }
}

TEST(exceptions, registered_types_arrive_as_themselves) {
  arrives_as<registered>(registered{7, 0.25}, [](const registered& e) {
    EXPECT_EQ(e.number, 7);
    EXPECT_EQ(e.weight, 0.25);
  });
  arrives_with_its_text<registered_text>("a text");
}

TEST(exceptions, other_types_arrive_as_a_remote_exception_that_names_them) {
  job.me = 1;
  arrives_as<remote_exception>(unknown(), [](const remote_exception& e) {
    EXPECT_EQ(e.type_name(), "exceptions_test::unknown");
    EXPECT_STREQ(e.what(), "of this program alone");
    EXPECT_EQ(e.rank(), 1);
  });
  // An exception that comes home by way of a third rank keeps its name and rank.
  job.me = 0;
  arrives_as<remote_exception>(remote_exception("their::type", "a text", 1),
                               [](const remote_exception& e) {
                                 EXPECT_EQ(e.type_name(), "their::type");
                                 EXPECT_STREQ(e.what(), "a text");
                                 EXPECT_EQ(e.rank(), 1);
                               });
}

TEST(exceptions, a_text_that_is_too_long_is_cut_off) {
  const std::string text(5000, 'x');
  arrives_as<std::runtime_error>(std::runtime_error(text), [&](const std::runtime_error& e) {
    const std::string come = e.what();
    EXPECT_EQ(come.size(), encoded_exception::text_max);
    EXPECT_TRUE(come.ends_with("x..."));
  });
}

TEST(exceptions, where_an_exception_was_thrown_arrives_with_it) {
  job.count = 2;
  const std::exception_ptr thrown = std::make_exception_ptr(7);
  thrown_frames from;
  from.rank = 1;
  from.add(0x1000);
  from.add(0x2000);
  note_thrown_from(thrown, from);
  const std::exception_ptr come = after_the_wire(thrown);
  const thrown_frames* const told = thrown_from(come);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->rank, 1);
  EXPECT_EQ(told->in_all, 2U);
  EXPECT_EQ(told->code[1], 0x2000U);
}

bool is_refused(const std::exception_ptr& come) {
  try {
    std::rethrow_exception(come);
  } catch (const malformed_message&) {
    return true;
  } catch (...) {
    return false;
  }
}

TEST(exceptions, bytes_that_end_too_early_or_go_on_are_refused) {
  for (const std::exception_ptr& thrown :
       {std::make_exception_ptr(std::runtime_error("a text")), std::make_exception_ptr(unknown()),
        std::make_exception_ptr(registered{1, 2})}) {
    std::vector<std::byte> bytes = encoded(thrown);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(is_refused(decoded(bytes.data(), size))) << size;
    }
    bytes.push_back({});
    EXPECT_TRUE(is_refused(decoded(bytes.data(), bytes.size())));
  }
}

/// A standard type of a fixed size is not made of other bytes.
TEST(exceptions, a_number_of_another_length_is_refused) {
  std::vector<std::byte> bytes = encoded(std::make_exception_ptr(7));
  encoded_exception e;
  std::memcpy(static_cast<void*>(&e), bytes.data(), bytes.size());
  ASSERT_EQ(e.size, sizeof(int));
  e.size = sizeof(int) - 1;
  EXPECT_TRUE(is_refused(decoded(&e, e.bytes())));
}

TEST(exceptions, whatever_bytes_come_some_exception_is_made_of_them) {
  job.count = 2;
  std::mt19937 random(1);
  const std::vector<std::byte> good = encoded(std::make_exception_ptr(registered{1, 2}));
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    EXPECT_NE(decoded(bytes.data(), bytes.size()), nullptr);
  }
}

}  // namespace
