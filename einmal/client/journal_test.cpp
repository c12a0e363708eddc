#include "einmal/client/journal.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "einmal/testing/fault_vfs.hpp"
#include "einmal/testing/process.hpp"

namespace einmal::client {
namespace {

namespace fs = std::filesystem;
using testing::FaultVfs;

const WallTime now = WallTime(std::chrono::seconds(1'700'000'000));

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class JournalTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.file("keys"); }

  Result<std::unique_ptr<Journal>> open(JournalOptions options = {}) {
    return Journal::open(path(), random_, now, options);
  }
  std::unique_ptr<Journal> opened() {
    auto journal = open();
    if (!journal) throw std::runtime_error(journal.error().message);
    return std::move(*journal);
  }

  static Intent intent(const std::string& name, std::string body = "{\"amount\":1}") {
    Intent made;
    made.name = name;
    made.key = "key-of-" + name;
    made.key_header = "Idempotency-Key";
    made.method = "POST";
    made.url = "https://api.example/orders";
    made.headers = {{"Content-Type", "application/json"}};
    made.body = std::move(body);
    made.created = now;
    return made;
  }

  static Entry begin(Journal& journal, const std::string& name) {
    auto begun = journal.begin(intent(name));
    if (!begun) throw std::runtime_error(begun.error().message);
    return std::get<Entry>(*begun);
  }

  static void mark_sent(Journal& journal, Entry& entry) {
    entry.progress.attempts = 1;
    entry.progress.doubt = {true, Why::no_answer};
    entry.progress.first_sent = now;
    ASSERT_TRUE(journal.save(entry));
  }

  test::TempDir directory_;
  SystemRandom random_;
};

TEST_F(JournalTest, KeepsAnIntentToTheByteAcrossProcesses) {
  Intent wanted = intent("binary", std::string("\0\xff\r\n", 4));
  wanted.key_style = KeyStyle::quoted;
  {
    auto journal = opened();
    Entry entry = std::get<Entry>(*journal->begin(wanted));
    entry.progress.attempts = 3;
    entry.progress.doubt = {true, Why::uncertain};
    entry.progress.first_sent = now;
    entry.progress.verdict =
        verdict::Unknown{Why::uncertain, Answer{504, {{"Retry-After", "1"}}, "late", false}};
    ASSERT_TRUE(journal->save(entry));
  }
  auto journal = opened();
  const auto found = journal->find("binary");
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->intent.is_same_request(wanted));
  EXPECT_EQ((*found)->intent.key, wanted.key);
  EXPECT_EQ((*found)->intent.created, now);
  const Progress& progress = (*found)->progress;
  EXPECT_EQ(progress.attempts, 3);
  EXPECT_TRUE(progress.doubt.in_doubt);
  EXPECT_EQ(progress.doubt.why, Why::uncertain);
  EXPECT_EQ(progress.first_sent, now);
  EXPECT_EQ(answer_of(*progress.verdict)->body, "late");
  EXPECT_FALSE(progress.is_settled());
}

TEST_F(JournalTest, IsForItsOwnerOnly) {
  auto journal = opened();
  begin(*journal, "one");
  for (const auto& file : fs::directory_iterator(directory_.path())) {
    struct stat status = {};
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << file.path();
  }
}

TEST_F(JournalTest, ANameIsOneRequestForGoodOnceItMayHaveBeenExecuted) {
  auto journal = opened();
  Entry entry = begin(*journal, "refund");
  mark_sent(*journal, entry);
  Intent other = intent("refund", "{\"amount\":2}");
  auto begun = journal->begin(other);
  ASSERT_TRUE(begun);
  EXPECT_TRUE(std::holds_alternative<Journal::OtherRequest>(*begun));
  entry.progress.doubt.in_doubt = false;
  entry.progress.verdict = verdict::Succeeded{Answer{201, {}, "{}", false}};
  ASSERT_TRUE(journal->save(entry));
  EXPECT_TRUE(std::holds_alternative<Journal::OtherRequest>(*journal->begin(other)));
}

TEST_F(JournalTest, ACorrectedRequestGetsAKeyOfItsOwnWhereCertainlyNothingWasExecuted) {
  auto journal = opened();
  Entry entry = begin(*journal, "refund");
  entry.progress.verdict = verdict::Refused{Why::rejected, Answer{400, {}, "{}", false}};
  ASSERT_TRUE(journal->save(entry));
  Intent corrected = intent("refund", "{\"amount\":2}");
  corrected.key = "another";
  auto begun = journal->begin(corrected);
  ASSERT_TRUE(begun && std::holds_alternative<Entry>(*begun));
  EXPECT_EQ(std::get<Entry>(*begun).intent.key, "another");
  EXPECT_EQ(journal->list(Journal::Which::all)->size(), 1U);
}

TEST_F(JournalTest, TheSameRequestKeepsItsKeyWhateverKeyIsOffered) {
  auto journal = opened();
  begin(*journal, "refund");
  Intent again = intent("refund");
  again.key = "another";
  EXPECT_EQ(std::get<Entry>(*journal->begin(again)).intent.key, "key-of-refund");
}

TEST_F(JournalTest, ForgetsWhatIsSettledInTimeAndNothingElse) {
  {
    auto journal = opened();
    Entry settled = begin(*journal, "settled");
    settled.progress.verdict = verdict::Succeeded{Answer{201, {}, "{}", false}};
    settled.progress.changed = now - std::chrono::hours(24 * 31);
    ASSERT_TRUE(journal->save(settled));
    Entry open_one = begin(*journal, "open");
    open_one.progress.changed = now - std::chrono::hours(24 * 365);
    mark_sent(*journal, open_one);
  }
  auto journal = opened();
  EXPECT_FALSE(*journal->find("settled"));
  EXPECT_TRUE(*journal->find("open"));
  EXPECT_TRUE(journal->forget((*journal->find("open"))->id).value());
  EXPECT_FALSE(*journal->find("open"));
}

TEST_F(JournalTest, AForeignFileIsLeftAsItIs) {
  const std::string text = "this is somebody's diary, and not a database at all; it goes on";
  write_file(path(), text + std::string(4096, '.'));
  const std::string before = read_file(path());
  const auto journal = open();
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, ErrorCode::incompatible) << journal.error().message;
  EXPECT_EQ(read_file(path()), before);
}

TEST_F(JournalTest, AnEmptyFileIsNoNewJournal) {
  write_file(path(), "");
  const auto journal = open();
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, ErrorCode::corrupt);
}

TEST_F(JournalTest, ALogWithoutItsFileIsNoNewJournal) {
  write_file(path() + "-wal", "something");
  const auto journal = open();
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, ErrorCode::corrupt);
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(JournalTest, ATemporaryFileOfAKilledCreationIsPassedOver) {
  write_file(path() + ".new-0011223344556677", "half");
  auto journal = opened();
  begin(*journal, "one");
  EXPECT_TRUE(*journal->find("one"));
}

/// Two intents that were sent and one that was settled, as the files stood while they were in use
/// (a copy of what a killed process leaves: the log is not yet in the main file).
class JournalDamage : public JournalTest {
 protected:
  JournalDamage() {
    {
      auto journal = opened();
      for (const char* name : {"first", "second", "third"}) {
        Entry entry = begin(*journal, name);
        mark_sent(*journal, entry);
      }
      main_ = read_file(path());
      log_ = read_file(path() + "-wal");
    }
    main_alone_ = read_file(path());
  }

  void lay_out(const std::string& main, const std::string* log) {
    for (const char* tail : {"", "-wal", "-shm", "-locks"}) fs::remove(path() + tail);
    write_file(path(), main);
    if (log != nullptr) write_file(path() + "-wal", *log);
  }

  /// Whatever was done to the files: refused whole, or every name is either intact, with its own
  /// key and marked as sent, or gets no other key.
  void expect_no_new_key(bool may_lose_the_end) {
    auto journal = open();
    if (!journal) {
      EXPECT_TRUE(journal.error().code == ErrorCode::corrupt ||
                  journal.error().code == ErrorCode::incompatible)
          << journal.error().message;
      return;
    }
    bool lost = false;
    for (const char* name : {"first", "second", "third"}) {
      const auto found = (*journal)->find(name);
      if (!found) continue;  // set aside
      if (!*found) {
        lost = true;
        Intent again = intent(name);
        again.key = "a new key";
        if (!may_lose_the_end) {
          EXPECT_FALSE((*journal)->begin(again)) << name;
        }
        continue;
      }
      EXPECT_FALSE(lost) << "an older record is gone, a newer one is not";
      EXPECT_EQ((*found)->intent.key, std::string("key-of-") + name);
      EXPECT_EQ((*found)->intent.body, "{\"amount\":1}");
    }
  }

  std::string main_, log_, main_alone_;
};

TEST_F(JournalDamage, ACutLogCostsAtMostItsEnd) {
  ASSERT_GT(log_.size(), 4096U);
  for (std::size_t size = 0; size < log_.size(); size += size < 200 ? 1 : 97) {
    SCOPED_TRACE(size);
    const std::string cut = log_.substr(0, size);
    lay_out(main_, &cut);
    expect_no_new_key(true);
  }
}

TEST_F(JournalDamage, ALogWhoseEndIsZerosCostsAtMostItsEnd) {
  for (std::size_t size = 0; size < log_.size(); size += 211) {
    SCOPED_TRACE(size);
    const std::string cut = log_.substr(0, size) + std::string(log_.size() - size, '\0');
    lay_out(main_, &cut);
    expect_no_new_key(true);
  }
}

TEST_F(JournalDamage, ACutFileIsRefusedOrHasLostNothing) {
  for (std::size_t size = 0; size < main_alone_.size(); size += size < 200 ? 1 : 89) {
    SCOPED_TRACE(size);
    lay_out(main_alone_.substr(0, size), nullptr);
    expect_no_new_key(false);
  }
}

TEST_F(JournalDamage, AFlippedByteNeverMakesANewKey) {
  std::size_t set_aside = 0;
  for (std::size_t at = 0; at < main_alone_.size(); at += 13) {
    SCOPED_TRACE(at);
    std::string flipped = main_alone_;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
    lay_out(flipped, nullptr);
    expect_no_new_key(false);
    auto journal = open();
    if (journal && !(*journal)->damaged()->empty()) ++set_aside;
  }
  EXPECT_GT(set_aside, 10U) << "the digests were not what found it";
}

TEST_F(JournalDamage, ADamagedRecordIsReportedAndTheOthersGoOn) {
  std::string flipped = main_alone_;
  const auto at = flipped.find("key-of-second");
  ASSERT_NE(at, std::string::npos);
  flipped[at] = 'K';
  lay_out(flipped, nullptr);
  auto journal = opened();
  const auto damaged = journal->damaged();
  ASSERT_TRUE(damaged);
  ASSERT_EQ(damaged->size(), 1U);
  EXPECT_EQ((*damaged)[0].name, "second");
  EXPECT_EQ(journal->begin(intent("second")).error().code, ErrorCode::corrupt);
  EXPECT_EQ(journal->begin(intent("unheard of")).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(journal->begin(intent("third")));
  ASSERT_TRUE(journal->forget((*damaged)[0].id).value());
  EXPECT_TRUE(journal->begin(intent("unheard of")));
}

TEST_F(JournalTest, AFullDiskSaysSoBeforeAnythingCouldBeSent) {
  FaultVfs vfs;
  JournalOptions options;
  options.vfs = vfs.name();
  {
    auto journal = open(options);
    ASSERT_TRUE(journal) << journal.error().message;
    int failed = 0;
    for (std::uint64_t nth = 1; nth < 100; ++nth) {
      vfs.arm({FaultVfs::Operation::write, FaultVfs::Kind::full, nth, false, FaultVfs::File::wal});
      auto begun = (*journal)->begin(intent("number " + std::to_string(nth)));
      const bool fired = vfs.fired();
      vfs.disarm();
      if (!fired) break;
      ++failed;
      EXPECT_FALSE(begun) << nth;
      const auto found = (*journal)->find("number " + std::to_string(nth));
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_FALSE(*found) << nth;
    }
    EXPECT_GT(failed, 0);
    EXPECT_TRUE((*journal)->begin(intent("after all")));
  }
}

TEST_F(JournalTest, WhatWasConfirmedSurvivesAPowerCut) {
  FaultVfs vfs;
  JournalOptions options;
  options.vfs = vfs.name();
  {
    auto journal = open(options);
    ASSERT_TRUE(journal) << journal.error().message;
    Entry entry = begin(**journal, "refund");
    mark_sent(**journal, entry);
    vfs.cut_power();
  }
  vfs.restore_power();
  auto journal = open(options);
  ASSERT_TRUE(journal) << journal.error().message;
  const auto found = (*journal)->find("refund");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->intent.key, "key-of-refund");
  EXPECT_TRUE((*found)->progress.doubt.in_doubt);
}

TEST_F(JournalTest, ManyMayOpenItForTheFirstTimeAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      auto journal = Journal::open(path(), random_, now);
      if (!journal) return;
      auto begun = (*journal)->begin(intent("of " + std::to_string(i)));
      if (begun) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(opened()->list(Journal::Which::all)->size(), 8U);
}

TEST_F(JournalTest, ALockKeepsOthersFromTheSameIntentOnly) {
  auto first = IntentLock::try_take(path(), "one");
  ASSERT_TRUE(first && *first);
  const auto second = IntentLock::try_take(path(), "one");
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
  const auto other = IntentLock::try_take(path(), "two");
  EXPECT_TRUE(other && *other);
  first->reset();
  const auto third = IntentLock::try_take(path(), "one");
  EXPECT_TRUE(third && *third);
}

}  // namespace
}  // namespace einmal::client
