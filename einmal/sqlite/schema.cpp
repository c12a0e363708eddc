#include "einmal/sqlite/schema.hpp"

#include <iterator>

namespace einmal::sqlite {

namespace {

// Times are microseconds since 1970 UTC, lengths microseconds, lease_end microseconds of
// CLOCK_BOOTTIME. Numbers of states, policies, causes and events are those of the enums in
// einmal/core.
constexpr const char* version_1 = R"sql(
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counter (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  generation INTEGER NOT NULL CHECK (generation >= 0),
  patrolled INTEGER NOT NULL CHECK (patrolled >= 0)
) STRICT;

CREATE TABLE clock (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  wall INTEGER NOT NULL,
  boot INTEGER NOT NULL,
  boot_id BLOB NOT NULL CHECK (length(boot_id) = 16),
  paused INTEGER NOT NULL CHECK (paused IN (0, 1))
) STRICT;

CREATE TABLE writer (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  opened INTEGER NOT NULL
) STRICT;

CREATE TABLE profile (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
  definition BLOB CHECK (length(definition) <= 65536)
) STRICT;

CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  scope_digest INTEGER NOT NULL,
  scope_nth INTEGER NOT NULL,
  namespace TEXT NOT NULL CHECK (length(CAST(namespace AS BLOB)) BETWEEN 1 AND 1024),
  caller TEXT NOT NULL CHECK (length(CAST(caller AS BLOB)) BETWEEN 1 AND 1024),
  operation TEXT NOT NULL CHECK (length(CAST(operation AS BLOB)) BETWEEN 1 AND 1024),
  key TEXT NOT NULL CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
  generation INTEGER NOT NULL CHECK (generation > 0),
  owner BLOB NOT NULL CHECK (length(owner) = 16),
  operation_id BLOB NOT NULL CHECK (length(operation_id) = 16),
  findable_by_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL CHECK (attempts > 0),
  profile INTEGER NOT NULL,
  fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  lease INTEGER,
  on_lease_expiry INTEGER NOT NULL,
  retention INTEGER NOT NULL,
  after_expiry INTEGER NOT NULL,
  tombstone INTEGER NOT NULL,
  lease_end INTEGER,
  lease_boot BLOB,
  cause INTEGER NOT NULL,
  settled_by INTEGER NOT NULL,
  created INTEGER NOT NULL,
  claimed INTEGER NOT NULL,
  settled INTEGER,
  expires INTEGER,
  sweep_at INTEGER,
  result INTEGER,
  result_bytes INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_scope ON record (scope_digest, scope_nth);

CREATE TABLE operation (
  id INTEGER PRIMARY KEY,
  record INTEGER NOT NULL
) STRICT;

CREATE TABLE agenda_uncertain (
  record INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE agenda_open (
  record INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE agenda_sweep (
  at INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (at, record)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
  id INTEGER PRIMARY KEY,
  status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 999),
  headers BLOB NOT NULL CHECK (length(headers) <= 65536),
  body BLOB NOT NULL CHECK (length(body) <= 67108864),
  body_kept INTEGER NOT NULL CHECK (body_kept BETWEEN 1 AND 6),
  effect INTEGER NOT NULL CHECK (effect IN (1, 2)),
  representation_version INTEGER NOT NULL,
  resource_id TEXT CHECK (length(CAST(resource_id AS BLOB)) <= 1024)
) STRICT;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  scope_digest INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  caller TEXT NOT NULL,
  operation TEXT NOT NULL,
  key TEXT NOT NULL,
  operation_id BLOB NOT NULL CHECK (length(operation_id) = 16),
  event INTEGER NOT NULL CHECK (event > 0),
  generation INTEGER NOT NULL,
  before INTEGER,
  after INTEGER,
  late_outcome INTEGER CHECK (late_outcome IN (1, 2)),
  late_result INTEGER,
  contradicts INTEGER NOT NULL CHECK (contradicts IN (0, 1)),
  who TEXT NOT NULL CHECK (length(CAST(who AS BLOB)) <= 256),
  evidence TEXT NOT NULL CHECK (length(CAST(evidence AS BLOB)) <= 4096)
) STRICT;
CREATE INDEX audit_scope ON audit (scope_digest);
CREATE INDEX audit_operation ON audit (operation_id);
CREATE INDEX audit_at ON audit (at);

INSERT INTO counter VALUES (1, 0, 0);
INSERT INTO meta VALUES ('oldest_writer', 1);
)sql";

// Programs of version 1 do not see this table and do nothing that would contradict it.
constexpr const char* version_2 = R"sql(
CREATE TABLE workflow (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  namespace TEXT NOT NULL,
  caller TEXT NOT NULL,
  operation TEXT NOT NULL,
  key TEXT NOT NULL,
  definition TEXT NOT NULL CHECK (length(CAST(definition AS BLOB)) BETWEEN 1 AND 255),
  name TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) <= 255),
  input BLOB NOT NULL CHECK (length(input) <= 1048576),
  journal BLOB NOT NULL,
  fence INTEGER NOT NULL CHECK (fence >= 0),
  worker BLOB NOT NULL CHECK (length(worker) = 16),
  stopped INTEGER NOT NULL CHECK (stopped IN (0, 1)),
  generation INTEGER NOT NULL,
  owner BLOB NOT NULL CHECK (length(owner) = 16),
  due INTEGER NOT NULL,
  due_boot BLOB NOT NULL CHECK (length(due_boot) = 16)
) STRICT;
CREATE INDEX workflow_due ON workflow (definition, due_boot, due) WHERE stopped = 0;
)sql";

constexpr const char* steps[] = {version_1, version_2};
static_assert(std::size(steps) == schema_version);

}  // namespace

const sqlite_file::FileKind& store_file_kind() {
  static constexpr sqlite_file::FileKind kind{0x65696d6c, "einmal store", steps};
  return kind;
}

}  // namespace einmal::sqlite
