#include "einmal/sqlite/agenda.hpp"

#include "einmal/sqlite/sqlite_fixture.hpp"
#include "einmal/sqlite/store_file.hpp"

namespace einmal::sqlite {
namespace {

int count_step(void* steps) {
  ++*static_cast<int*>(steps);
  return 0;
}

TEST(Agenda, FindsOverdueRecordsAmongTheOpenOnesAndLooksAtNoOthers) {
  constexpr int settled = 500;
  testing::TemporaryDirectory directory;
  SystemClock clock;
  SystemRandom random;
  {
    auto store = open_sqlite_store(directory.file(), {}, clock, random);
    ASSERT_TRUE(store) << store.error().message;
    for (int i = 0; i < settled; ++i)
      ASSERT_TRUE(testing::execute_once(**store, std::to_string(i), random));
    ASSERT_TRUE(testing::claim(**store, "open", random));
  }
  auto file = open_store_file({directory.file(), {}, 1024}, random);
  ASSERT_TRUE(file) << file.error().message;
  Agenda& agenda = *(*file)->agenda;
  ASSERT_TRUE(agenda.read_patrolled());
  ASSERT_TRUE(agenda.patrol(2 * settled));
  Now later{clock.wall_now(), clock.boot_now() + std::chrono::hours(1), clock.boot_id()};
  int steps = 0;
  sqlite3_progress_handler((*file)->connection->handle(), 1, &count_step, &steps);
  const auto overdue = agenda.overdue(later, 100);
  sqlite3_progress_handler((*file)->connection->handle(), 0, nullptr, nullptr);
  ASSERT_TRUE(overdue) << overdue.error().message;
  EXPECT_EQ(overdue->size(), 1u);
  EXPECT_LT(steps, settled) << "steps of SQLite's machine";
}

}  // namespace
}  // namespace einmal::sqlite
