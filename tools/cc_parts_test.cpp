// SPDX-License-Identifier: Apache-2.0
#include "cc_parts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sojourn/errors.hpp"

namespace sojourn::tools {
namespace {

using words = std::vector<std::string>;

TEST(cc, a_semicolon_follows_what_g_malloc_becomes_only_where_the_program_has_none) {
  EXPECT_EQ(with_semicolons("p = f(1);sojourn_maybe\n  q = 0;"), "p = f(1);\n  q = 0;");
  EXPECT_EQ(with_semicolons("p = f(1);sojourn_maybe;"), "p = f(1);");
  EXPECT_EQ(with_semicolons("p = f(1);sojourn_maybe /* why */\n;"), "p = f(1) /* why */\n;");
  EXPECT_EQ(with_semicolons("if ((p = f(1);sojourn_maybe) == 0)"), "if ((p = f(1)) == 0)");
  EXPECT_EQ(with_semicolons("p = f(1);sojourn_maybe, q"), "p = f(1), q");
  EXPECT_EQ(with_semicolons("{p = f(1);sojourn_maybe }"), "{p = f(1); }");
  EXPECT_EQ(with_semicolons("f(1);sojourn_maybe->x;"), "f(1)->x;");
  EXPECT_EQ(with_semicolons("f(1);sojourn_maybe\n#line 3 \"a\"\n;"), "f(1)\n#line 3 \"a\"\n;");
  EXPECT_EQ(with_semicolons("f(1);sojourn_maybe\n*p = 2;"), "f(1);\n*p = 2;");
  EXPECT_EQ(with_semicolons("f(1);sojourn_maybe"), "f(1);");
}

TEST(cc, the_words_of_a_compiler_mean_what_they_mean_to_it) {
  const cc_request r =
      parse_cc({"-O2", "-I", "a", "-Ib", "-iquotec", "-DX=1", "-D", "Y", "x.C", "y.o", "-Lfolder",
                "-lz", "-o", "program", "-Wl,-s", "-include", "p.h"});
  EXPECT_EQ(r.sources, words{"x.C"});
  EXPECT_EQ(r.inputs, (words{"x.C", "y.o", "-Lfolder", "-lz"}));
  EXPECT_EQ(r.compile_options,
            (words{"-O2", "-Ia", "-Ib", "-iquotec", "-DX=1", "-D", "Y", "-include", "p.h"}));
  EXPECT_EQ(r.link_options, (words{"-O2", "-Wl,-s"}));
  EXPECT_EQ(r.output, "program");
  EXPECT_EQ(r.stop, "");
  EXPECT_EQ(parse_cc({"-c", "x.c", "-ox.o"}).stop, "-c");
  EXPECT_EQ(parse_cc({"-c", "x.c", "-ox.o"}).output, "x.o");
  EXPECT_THROW(parse_cc({"x.c", "-o"}), error);
  EXPECT_THROW(parse_cc({"-include"}), error);
}

TEST(cc, files_are_for_m4_by_their_names) {
  for (const char* name : {"a.C", "a.H", "a.U", "a.c.in", "a.h.in", "a.m4", "d/a.c.m4"})
    EXPECT_TRUE(is_for_m4(name)) << name;
  for (const char* name : {"a.c", "a.h", "a.o", "C", "a.cc"}) EXPECT_FALSE(is_for_m4(name)) << name;
  for (const char* name : {"a.c", "a.C", "a.s", "a.S", "a.i"}) EXPECT_TRUE(is_source(name)) << name;
  for (const char* name : {"a.o", "a.a", "a.so", "a.so.1"}) EXPECT_FALSE(is_source(name)) << name;
}

}  // namespace
}  // namespace sojourn::tools
