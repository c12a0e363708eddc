#include "einmal/sqlite/store_file.hpp"

#include "einmal/sqlite/schema.hpp"
#include "einmal/sqlite_file/schema.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ConnectionOptions;
using sqlite_file::TransactionControl;

Result<std::unique_ptr<StoreFile>> open_store_file(const OpenFile& how, Random& random) {
  ConnectionOptions options;
  options.path = how.path;
  options.kind = store_file_kind();
  options.create = how.options.create;
  options.busy_limit = how.options.busy_limit;
  options.cache_kib = how.cache_kib;
  options.vfs = how.options.vfs;
  auto connection = Connection::open(std::move(options), random);
  if (!connection) return pass_on(connection);
  if (auto version = sqlite_file::ensure_schema(**connection); !version) return pass_on(version);

  auto transactions = TransactionControl::prepare(**connection);
  if (!transactions) return pass_on(transactions);
  auto meta = MetaTable::prepare(**connection);
  if (!meta) return pass_on(meta);
  auto profiles = ProfileTable::prepare(**connection);
  if (!profiles) return pass_on(profiles);
  auto kept_profiles = std::make_unique<ProfileTable>(std::move(*profiles));
  auto agenda = Agenda::prepare(**connection);
  if (!agenda) return pass_on(agenda);
  auto kept_agenda = std::make_unique<Agenda>(std::move(*agenda));
  auto records = RecordTable::prepare(**connection, *kept_profiles, *kept_agenda);
  if (!records) return pass_on(records);
  auto kept_records = std::make_unique<RecordTable>(std::move(*records));
  auto audits = AuditTable::prepare(**connection, *kept_records);
  if (!audits) return pass_on(audits);
  auto workflows = WorkflowTable::prepare(**connection);
  if (!workflows) return pass_on(workflows);
  auto file = std::unique_ptr<StoreFile>(
      new StoreFile{std::move(*connection), std::move(*transactions), std::move(*meta),
                    std::move(kept_profiles), std::move(kept_agenda), std::move(kept_records),
                    std::make_unique<AuditTable>(std::move(*audits)),
                    std::make_unique<WorkflowTable>(std::move(*workflows))});
  if (auto may = check_may_write(*file); !may) return pass_on(may);
  return file;
}

Result<std::unique_ptr<StoreFile>> open_store_file_again(const OpenFile& how, Random& random) {
  auto opened = open_store_file(how, random);
  if (opened || opened.error().code != ErrorCode::invalid) return opened;
  return failure(ErrorCode::unavailable, opened.error().message);
}

Result<void> check_may_write(StoreFile& file) {
  auto oldest = file.meta.oldest_writer();
  if (!oldest) return pass_on(oldest);
  if (*oldest <= schema_version) return {};
  const Error refusal = sqlite_file::newer_version(*file.connection, static_cast<int>(*oldest));
  return failure(refusal.code, refusal.message);
}

}  // namespace einmal::sqlite
