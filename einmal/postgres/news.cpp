#include "einmal/postgres/news.hpp"

#include <algorithm>

#include "einmal/base/ids.hpp"

namespace einmal::postgres {

namespace {

using namespace std::chrono_literals;

constexpr const char* waiting_channel = "einmal_waiting";
constexpr const char* changed_channel = "einmal_changed";

constexpr auto say_waiting_every = 1s;
constexpr auto believe_waiting_for = 3s;
constexpr auto say_changed_every = 5ms;
constexpr auto tell_every = 3ms;

struct SelfTag {};

/// A message on its way. What becomes of it does not matter: polling is the truth.
class Message final : public Errand {
 public:
  using Errand::Errand;
  void rows(std::size_t, const pg_result*) override {}
  void done() override {}
  void failed(Error, const std::string&, bool) override {}
};

}  // namespace

News::News(const LaneOptions& options, bool announces, Random& random)
    : self_(Id128<SelfTag>::draw(random).text()),
      poll_interval_(announces ? Pace::duration(500ms) : Pace::duration(50ms)) {
  if (!announces) return;
  LaneOptions mine = options;
  mine.session = session();
  lane_ = std::make_unique<Lane>(std::move(mine), random);
  lane_->on_notify = [this](const std::string& channel, const std::string& payload) {
    heard(channel, payload);
  };
}

std::vector<std::string> News::session() {
  // Nobody waits for a message to be on disk.
  return {"set synchronous_commit = off", std::string("listen ") + waiting_channel,
          std::string("listen ") + changed_channel};
}

void News::on_change(std::function<void()> listener) {
  const std::lock_guard lock(listener_mutex_);
  listener_ = std::move(listener);
}

void News::wanted(bool wanted) { wanted_ = wanted; }

void News::heard(const std::string& channel, const std::string& payload) {
  if (payload == self_) return;
  if (channel == waiting_channel) others_wait_until_ = Pace::now() + believe_waiting_for;
  if (channel == changed_channel) changed_elsewhere_ = true;
}

std::optional<Pace::time_point> News::deadline() const {
  std::optional<Pace::time_point> next;
  const auto at = [&](Pace::time_point time) { next = next ? std::min(*next, time) : time; };
  const bool can_say = lane_ && lane_->state() == Lane::State::idle;
  if (unsaid_ && can_say && Pace::now() < others_wait_until_) at(last_said_ + say_changed_every);
  if (wanted_) {
    at(last_told_ + (changed_elsewhere_ ? Pace::duration(tell_every) : poll_interval_));
    if (can_say) at(last_waiting_said_ + say_waiting_every);
  }
  return next;
}

void News::step() {
  const auto now = Pace::now();
  const bool wanted = wanted_;
  const auto since_told = now - last_told_;
  if (wanted && (since_told >= poll_interval_ || (changed_elsewhere_ && since_told >= tell_every)))
    tell_listener(now);
  if (!lane_ || lane_->state() != Lane::State::idle) return;
  if (wanted && now - last_waiting_said_ >= say_waiting_every) {
    last_waiting_said_ = now;
    say(waiting_channel);
  } else if (unsaid_ && now >= others_wait_until_) {
    unsaid_ = false;  // nobody waits
  } else if (unsaid_ && now - last_said_ >= say_changed_every) {
    last_said_ = now;
    unsaid_ = false;
    say(changed_channel);
  }
}

void News::tell_listener(Pace::time_point now) {
  last_told_ = now;
  changed_elsewhere_ = false;
  const std::lock_guard lock(listener_mutex_);
  if (listener_) listener_();
}

void News::say(const char* channel) {
  Statement statement{"einmal_notify", "select pg_notify($1, $2)", {}};
  statement.parameters.text(channel).text(self_);
  std::vector<std::unique_ptr<Errand>> train;
  train.push_back(std::make_unique<Message>(std::vector{std::move(statement)}, false));
  lane_->run(std::move(train));
}

}  // namespace einmal::postgres
