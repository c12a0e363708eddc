#include "einmal/sqlite/reader.hpp"

#include <algorithm>

#include "einmal/store/check_request.hpp"

namespace einmal::sqlite {

using sqlite_file::ResetAtEnd;
using sqlite_file::Transaction;

Reader::Reader(OpenFile how, const ScopeDigests& digests, StoreClock& clock, Random& random,
               Intake& intake)
    : how_(std::move(how)), digests_(digests), clock_(clock), random_(random), intake_(intake) {}

void Reader::run() {
  Intake::Work work;
  while (true) {
    work.claims.clear();
    work.others.clear();
    intake_.wait_for_reads(work, how_.options.max_batch, !scans_.empty());
    if (work.stopping && scans_.empty()) break;
    round(work);
  }
  drop_file();
}

void Reader::drop_file() {
  const std::lock_guard lock(file_mutex_);
  file_.reset();
}

Result<void> Reader::ensure_open() {
  if (file_) return {};
  auto opened = open_store_file_again(how_, random_);
  if (!opened) return pass_on(opened);
  file_ = std::move(*opened);
  return {};
}

void Reader::round(Intake::Work& work) {
  const std::lock_guard lock(file_mutex_);
  if (auto open = ensure_open(); !open) {
    intake_.forward(work.claims);
    for (Command* read : work.others) read->completed(pass_on(open));
    for (Running& running : scans_) running.command->completed(pass_on(open));
    scans_.clear();
    return;
  }
  if (!work.claims.empty()) look_up(work.claims);
  now_ = clock_.now();
  for (Command* read : work.others) begin_scan_or_answer(*read);
  if (!scans_.empty()) slice_scan();
  if (now_.expiry_paused != paused_) {
    paused_ = now_.expiry_paused;
    intake_.wake_writer();  // that has to keep it
  }
}

void Reader::begin_scan_or_answer(Command& command) {
  if (auto scan = scan_for(command.request())) {
    scans_.push_back({&command, std::move(scan)});
  } else {
    command.completed(answer(command.request()));
  }
}

void Reader::slice_scan() {
  Running running = std::move(scans_.front());
  scans_.pop_front();
  auto sliced = running.scan->slice(*file_, digests_, now_);
  if (!sliced) return running.command->completed(pass_on(sliced));
  if (*sliced) return running.command->completed(std::move(**sliced));
  scans_.push_back(std::move(running));
}

void Reader::look_up(const std::vector<Command*>& claims) {
  forwarded_.clear();
  Transaction transaction(file_->transactions);
  if (auto begun = transaction.begin_read(); !begun) return intake_.forward(claims);
  const Now now = clock_.now();
  for (Command* command : claims) {
    auto& transition = std::get<request::Transition>(command->request());
    auto row = file_->records->find(digests_.of(transition.scope), transition.scope, Load::whole);
    if (!row) {
      command->completed(pass_on(row));
      continue;
    }
    Step step = decide(row->record, transition.event, now);
    if (step.change == Step::Change::none && !step.audit) {
      command->completed(Answer(std::move(step.decision)));
    } else {
      forwarded_.push_back(command);
    }
  }
  if (!forwarded_.empty()) intake_.forward(forwarded_);
}

Result<Answer> Reader::answer(Request& request) {
  if (auto* read = std::get_if<request::ReadScope>(&request)) return on(*read);
  if (auto* read = std::get_if<request::ReadOperation>(&request)) return on(*read);
  if (auto* read = std::get_if<request::ReadProfile>(&request)) return on(*read);
  if (auto* read = std::get_if<request::ReadAudit>(&request)) return on(*read);
  return failure(ErrorCode::internal, "sqlite store: a write came to the reader");
}

Result<Answer> Reader::on(const request::ReadScope& read) {
  auto row = file_->records->find(digests_.of(read.scope), read.scope,
                                  read.with_body ? Load::whole : Load::without_body);
  if (!row) return pass_on(row);
  answer::Found found;
  if (row->record) found.record = as_seen(read.scope, std::move(*row->record), now_);
  return Answer(std::move(found));
}

Result<Answer> Reader::on(const request::ReadOperation& read) {
  auto located = file_->records->by_operation(read.id, read.with_body);
  if (!located) return pass_on(located);
  answer::Found found;
  if (*located) {
    auto& [row, scope] = **located;
    found.record = as_seen(std::move(scope), std::move(*row.record), now_);
  }
  return Answer(std::move(found));
}

Result<Answer> Reader::on(const request::ReadProfile& read) {
  auto definition = file_->profiles->definition(read.id);
  if (!definition) return pass_on(definition);
  return Answer(answer::FoundProfile{std::move(*definition)});
}

Result<Answer> Reader::on(const request::ReadAudit& read) {
  const auto digest = read.scope ? std::optional(digests_.of(*read.scope)) : std::nullopt;
  auto rows = file_->audits->read(digest, read.scope, read.id, bounded(read.limit));
  if (!rows) return pass_on(rows);
  return Answer(answer::AuditRows{std::move(*rows)});
}

}  // namespace einmal::sqlite
