// SPDX-License-Identifier: Apache-2.0
#include "hosts/proof.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace sojourn::detail;

std::string hex(const proof& p) { return to_hex(p); }  // a proof is as long as a secret

/// HMAC fills a short key up with zeros, so that a shorter one than ours is ours with zeros.
job_secret key(std::string_view bytes) {
  job_secret secret{};
  std::memcpy(secret.data(), bytes.data(), bytes.size());
  return secret;
}

std::string prove_text(const job_secret& secret, std::string_view text) {
  return hex(prove(secret, std::as_bytes(std::span(text))));
}

struct proofs : testing::Test {
  void SetUp() override {
    if (const std::string why = why_no_proofs(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(proofs, are_those_of_rfc_4231) {
  EXPECT_EQ(prove_text(key(std::string(20, '\x0b')), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(prove_text(key("Jefe"), "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(prove_text(key(std::string(20, '\xaa')), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  EXPECT_EQ(prove_text(key(counted), std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(prove_text(key(std::string(20, '\x0c')), "Test With Truncation").substr(0, 32),
            "a3b6167473100ee06e0c796c2955552b");
  // In the last two the key is 131 times 0xaa, in place of which HMAC takes its SHA-256.
  const auto hashed =
      secret_from_hex("45ad4b37c6e2fc0a2cfcc1b5da524132ec707615c2cae1dbbc43c97aa521db81");
  ASSERT_TRUE(hashed);
  EXPECT_EQ(prove_text(*hashed, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(prove_text(*hashed,
                       "This is a test using a larger than block-size key and a larger than "
                       "block-size data. The key needs to be hashed before being used by the HMAC "
                       "algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST_F(proofs, of_no_text_at_all_are_proofs_too) {
  EXPECT_EQ(prove_text({}, ""), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_F(proofs, of_other_texts_and_by_other_secrets_are_others) {
  const job_secret secret = new_secret();
  job_secret other = secret;
  other[31] ^= 1;
  EXPECT_EQ(prove_text(secret, "text"), prove_text(secret, "text"));
  EXPECT_NE(prove_text(secret, "text"), prove_text(secret, "texu"));
  EXPECT_NE(prove_text(secret, "text"), prove_text(other, "text"));
}

TEST(proof, is_the_same_only_if_every_bit_is) {
  const proof a = new_secret();
  EXPECT_TRUE(same(a, a));
  for (std::size_t bit = 0; bit < 8 * a.size(); ++bit) {
    proof b = a;
    b[bit / 8] = static_cast<unsigned char>(b[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(same(a, b)) << bit;
  }
}

TEST(job_secret, is_a_new_one_each_time) {
  EXPECT_NE(new_secret(), new_secret());
  EXPECT_NE(new_secret(), job_secret{});
  EXPECT_NE(new_nonce(), new_nonce());
}

TEST(job_secret, arrives_as_text) {
  const job_secret secret = new_secret();
  EXPECT_EQ(secret_from_hex(to_hex(secret)), secret);
  const std::string text = "00ff0aA0" + std::string(56, '7');
  const auto read = secret_from_hex(text);
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0], 0x00);
  EXPECT_EQ((*read)[1], 0xff);
  EXPECT_EQ((*read)[2], 0x0a);
  EXPECT_EQ((*read)[3], 0xa0);
  EXPECT_EQ(to_hex(*read), "00ff0aa0" + std::string(56, '7'));
}

TEST(job_secret, is_not_read_from_what_is_not_64_hexadecimal_digits) {
  const std::string right(64, 'a');
  ASSERT_TRUE(secret_from_hex(right));
  for (const std::string& wrong :
       {std::string(), right.substr(1), right + "a", right + "\n", "0x" + right.substr(2),
        right.substr(1) + "g", " " + right.substr(1), right.substr(1) + std::string(1, '\0'),
        "-" + right.substr(1)}) {
    EXPECT_FALSE(secret_from_hex(wrong)) << wrong;
  }
}

}  // namespace
