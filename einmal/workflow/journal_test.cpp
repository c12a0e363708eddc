#include "einmal/workflow/journal.hpp"

#include <gtest/gtest.h>

#include "einmal/base/random.hpp"
#include "einmal/workflow/run.hpp"

namespace einmal::workflow {
namespace {

TEST(Journal, SaysOfEachStepHowFarItIs) {
  const Bytes bytes = entry(Mark::intent, "a") + entry(Mark::cleared, "a", "429") +
                      entry(Mark::intent, "a") + entry(Mark::result, "a", Bytes("out\0put", 7)) +
                      entry(Mark::intent, "b") + entry(Mark::doubt, "b") + entry(Mark::doubt, "b");
  const auto journal = Journal::parse(bytes);
  ASSERT_TRUE(journal);
  EXPECT_EQ(journal->of("a").last, Mark::result);
  EXPECT_EQ(journal->of("a").attempts, 2);
  EXPECT_EQ(*journal->of("a").output, Bytes("out\0put", 7));
  EXPECT_EQ(journal->of("b").last, Mark::doubt);
  EXPECT_EQ(journal->of("b").doubts, 2);
  EXPECT_EQ(journal->of("c").last, Mark::cleared);
  EXPECT_TRUE(journal->has_effects());
  EXPECT_FALSE(Journal::parse(entry(Mark::intent, "a") + entry(Mark::cleared, "a"))->has_effects());
}

TEST(Journal, HasTheBytesThatItsPageWritesDown) {
  EXPECT_EQ(to_hex(entry(Mark::result, "pay", "ok")),
            "02"
            "0000000000000003706179"
            "00000000000000026f6b");
}

TEST(Journal, OfOtherBytesIsNone) {
  const Bytes whole = entry(Mark::result, "step", "output");
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_FALSE(Journal::parse(whole.substr(0, length))) << length;
  EXPECT_FALSE(Journal::parse("\x05" + whole.substr(1)));
  EXPECT_FALSE(Journal::parse(whole + "x"));
  EXPECT_FALSE(Journal::parse(Bytes(1, '\2') + Bytes(8, '\xff') + "x"));
  SeededRandom random(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes damaged = whole + whole;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    (void)Journal::parse(damaged);  // whatever it says, it says it without reading beyond
  }
}

TEST(Journal, KeepsWhatALocalStepStaged) {
  const said::Done done{"out", {{"mail/1", "receipt", "to a"}, {"hook/2", "told", ""}}};
  const auto back = decode_done(encode_done(done));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->output, "out");
  ASSERT_EQ(back->staged.size(), 2u);
  EXPECT_EQ(back->staged[1].definition, "hook/2");
  EXPECT_FALSE(decode_done("short"));
}

}  // namespace
}  // namespace einmal::workflow
