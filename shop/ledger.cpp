#include "shop/ledger.hpp"

#include <utility>

namespace einmal::shop {

namespace {

using namespace std::chrono_literals;
using Pace = std::chrono::steady_clock;

constexpr auto longest_wait_for_a_connection = 10s;
constexpr auto between_sweeps = 30s;
constexpr std::size_t sweep_limit = 500;

tl::unexpected<Error> broken(const std::string& why) {
  return failure(ErrorCode::unavailable, "ledger: " + why);
}

}  // namespace

/// A connection until it goes out of scope.
class Ledger::Lent {
 public:
  Lent(Ledger& ledger, Free connection) : ledger_(ledger), connection_(std::move(connection)) {}
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() { ledger_.give_back(std::move(connection_)); }
  Connection& operator*() const { return *connection_; }
  Connection* operator->() const { return connection_.get(); }

 private:
  Ledger& ledger_;
  Free connection_;
};

Result<Ledger::Free> Ledger::take() {
  Free connection;
  {
    std::unique_lock lock(mutex_);
    const bool any = given_back_.wait_for(lock, longest_wait_for_a_connection, [this] {
      return !free_.empty() || made_ < place_.connections;
    });
    if (!any) return broken("every connection was busy for too long; nothing was done");
    if (free_.empty()) {
      ++made_;
    } else {
      connection = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (connection && connection->ready()) return connection;
  connection.reset();
  auto made = place_.connect();
  if (!made) give_back(nullptr);
  return made;
}

/// Null: one that was lost, whose place is free again.
void Ledger::give_back(Free connection) {
  const std::lock_guard lock(mutex_);
  if (connection)
    free_.push_back(std::move(connection));
  else
    --made_;
  given_back_.notify_one();
}

Result<void> Ledger::look(const Work& work) {
  auto taken = take();
  if (!taken) return pass_on(taken);
  const Lent lent(*this, std::move(*taken));
  try {
    Books books(*lent);
    work(books);
    return {};
  } catch (const BooksFailed& failed) {
    return broken(failed.what());
  }
}

Result<void> Ledger::change(const Work& work) {
  auto taken = take();
  if (!taken) return pass_on(taken);
  const Lent lent(*this, std::move(*taken));
  try {
    lent->begin();
    Books books(*lent);
    work(books);
    lent->commit();
    return {};
  } catch (const BooksFailed& failed) {
    lent->roll_back();
    return broken(failed.what());
  } catch (...) {
    lent->roll_back();
    throw;
  }
}

Result<Ran> Ledger::change_once(const TransactionRequest& request, const KeyedWork& work) {
  auto taken = take();
  if (!taken) return pass_on(taken);
  const Lent lent(*this, std::move(*taken));
  const auto session = lent->session();
  if (!session) return pass_on(session);
  try {
    auto ran = run_in_transaction(*session, request, [&](const Attempt&) {
      Books books(*lent);
      return work(books);
    });
    sweep_now_and_then(*lent);
    return ran;
  } catch (const BooksFailed& failed) {
    return broken(failed.what());
  }
}

/// Sweeping late is safe: expiry is exact whether swept or not.
void Ledger::sweep_now_and_then(Connection& connection) {
  {
    const std::lock_guard lock(mutex_);
    if (Pace::now() - swept_ < between_sweeps) return;
    swept_ = Pace::now();
  }
  (void)connection.sweep(sweep_limit);
}

}  // namespace einmal::shop
