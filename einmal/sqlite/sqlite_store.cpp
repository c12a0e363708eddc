#include "einmal/sqlite/sqlite_store.hpp"

#include <thread>

#include "einmal/sqlite/checkpointer.hpp"
#include "einmal/sqlite/intake.hpp"
#include "einmal/sqlite/reader.hpp"
#include "einmal/sqlite/writer.hpp"
#include "einmal/store/check_request.hpp"

namespace einmal {

namespace {

using namespace sqlite;

class SqliteStore final : public Store {
 public:
  SqliteStore(const OpenFile& how, std::unique_ptr<StoreFile> file, Bytes digest_secret,
              const ScopeDigests& digests, const ClockGuard::State& clock_seen, const Clock& clock,
              Random& random)
      : digest_secret_(std::move(digest_secret)),
        digests_(digests),
        clock_(clock, clock_seen),
        reader_(half_cache(how), digests_, clock_, random, intake_),
        checkpointer_(how, random),
        writer_(how, std::move(file), digests_, clock_, random, intake_, reader_, checkpointer_),
        writer_thread_([this] { writer_.run(); }),
        reader_thread_([this] { reader_.run(); }),
        checkpoint_thread_([this] { checkpointer_.run(); }) {
    capabilities_.name = "sqlite";
    capabilities_.shared_between_processes = true;
    capabilities_.same_transaction = true;
    capabilities_.workflows = true;
  }

  ~SqliteStore() override {
    intake_.stop();
    reader_thread_.join();
    writer_thread_.join();
    checkpointer_.stop();
    checkpoint_thread_.join();
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  void submit(Command& command) override {
    if (auto fits = check_request(command.request()); !fits) {
      return command.completed(pass_on(fits));
    }
    intake_.submit(command);
  }
  const Bytes& digest_secret() const override { return digest_secret_; }
  void on_foreign_change(std::function<void()> listener) override {
    writer_.on_foreign_change(std::move(listener));
  }
  void await_foreign_changes(bool wanted) override { writer_.await_foreign_changes(wanted); }
  void observe(StoreObserver* observer) override { writer_.observe(observer); }

 private:
  static OpenFile half_cache(OpenFile how) {
    how.cache_kib /= 2;
    return how;
  }

  Capabilities capabilities_;
  const Bytes digest_secret_;
  const ScopeDigests digests_;
  StoreClock clock_;
  Intake intake_;
  Reader reader_;
  Checkpointer checkpointer_;
  Writer writer_;
  std::thread writer_thread_, reader_thread_, checkpoint_thread_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 const SqliteOptions& options, const Clock& clock,
                                                 Random& random) {
  const OpenFile how{path, options, options.cache_kib};
  auto file = open_store_file(how, random);
  if (!file) return pass_on(file);
  auto digest_secret = (*file)->meta.secret("digest_secret", 32, random);
  if (!digest_secret) return pass_on(digest_secret);
  auto index_secret = (*file)->meta.secret("index_secret", 16, random);
  if (!index_secret) return pass_on(index_secret);
  auto clock_seen = (*file)->meta.clock();
  if (!clock_seen) return pass_on(clock_seen);
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(how, std::move(*file), std::move(*digest_secret),
                                    ScopeDigests(*index_secret), *clock_seen, clock, random));
}

}  // namespace einmal
