#include "einmal/sqlite/reader.hpp"

#include <algorithm>

#include "einmal/core/check_limits.hpp"

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
    intake_.wait_for_reads(work, how_.options.max_batch, false);
    if (work.stopping) break;
    round(work);
  }
  drop_file();
}

void Reader::drop_file() {
  const std::lock_guard lock(file_mutex_);
  by_operation_ = {};
  file_.reset();
}

Result<void> Reader::ensure_open() {
  if (file_) return {};
  auto opened = open_store_file(how_, random_);
  if (!opened) return pass_on(opened);
  auto by_operation = (*opened)->connection->prepare(
      std::string("SELECT ") + RecordTable::columns() +
      " FROM record WHERE by_operation_id = 1 AND operation_id = ?1");
  if (!by_operation) return pass_on(by_operation);
  file_ = std::move(*opened);
  by_operation_ = std::move(*by_operation);
  return {};
}

void Reader::round(Intake::Work& work) {
  const std::lock_guard lock(file_mutex_);
  if (auto open = ensure_open(); !open) {
    intake_.forward(work.claims);
    for (Command* read : work.others) read->completed(pass_on(open));
    return;
  }
  if (!work.claims.empty()) look_up(work.claims);
  for (Command* read : work.others) {
    now_ = clock_.now();
    read->completed(answer(read->request()));
  }
}

void Reader::look_up(const std::vector<Command*>& claims) {
  forwarded_.clear();
  Transaction transaction(file_->transactions);
  if (auto begun = transaction.begin_read(); !begun) return intake_.forward(claims);
  const Now now = clock_.now();
  for (Command* command : claims) {
    auto& transition = std::get<request::Transition>(command->request());
    if (auto fits = check_limits(transition.event); !fits) {
      command->completed(pass_on(fits));
      continue;
    }
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
  return failure(ErrorCode::unsupported, "sqlite store: this request is not supported yet");
}

StoredRecord Reader::as_seen(Scope scope, Record record) const {
  const auto left = lease_left(record, now_);
  const auto age = std::max(Duration::zero(), now_.wall - record.claimed);
  const auto seen = condition(record, now_);
  return StoredRecord{std::move(scope), std::move(record), seen, left, age};
}

Result<Answer> Reader::on(const request::ReadScope& read) {
  auto row = file_->records->find(digests_.of(read.scope), read.scope,
                                  read.with_body ? Load::whole : Load::without_body);
  if (!row) return pass_on(row);
  answer::Found found;
  if (row->record) found.record = as_seen(read.scope, std::move(*row->record));
  return Answer(std::move(found));
}

Result<Answer> Reader::on(const request::ReadOperation& read) {
  answer::Found found;
  ResetAtEnd reset(by_operation_);
  by_operation_.bind_blob(1, read.id.bytes());
  auto stepped = by_operation_.step();
  if (!stepped) return pass_on(stepped);
  if (!*stepped) return Answer(std::move(found));
  auto row = file_->records->decode(by_operation_);
  if (!row) return pass_on(row);
  auto scope = file_->records->decode_scope(by_operation_);
  if (!scope) return pass_on(scope);
  if (row->result_id != 0) {
    auto result =
        file_->records->result(row->result_id, read.with_body ? Load::whole : Load::without_body);
    if (!result) return pass_on(result);
    row->record->result = std::move(*result);
  }
  found.record = as_seen(std::move(*scope), std::move(*row->record));
  return Answer(std::move(found));
}

Result<Answer> Reader::on(const request::ReadProfile& read) {
  auto definition = file_->profiles->definition(read.id);
  if (!definition) return pass_on(definition);
  return Answer(answer::FoundProfile{std::move(*definition)});
}

Result<Answer> Reader::on(const request::ReadAudit& read) {
  const auto digest = read.scope ? std::optional(digests_.of(*read.scope)) : std::nullopt;
  auto rows = file_->audits->read(digest, read.scope, read.id, std::min(read.limit, max_batch));
  if (!rows) return pass_on(rows);
  return Answer(answer::AuditRows{std::move(*rows)});
}

}  // namespace einmal::sqlite
