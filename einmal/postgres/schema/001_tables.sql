-- Tables of schema `einmal`, version 1. docs/formats/postgres.md explains every column.
-- Numbers stand for the enumerations of einmal/core/record.hpp; view einmal.records spells them out.

create schema einmal;

-- The steps that were applied: one row for each file of this folder.
create table einmal.migration (
  version   integer primary key,
  name      text not null,
  checksum  bytea not null,    -- sha256 of the file
  applied   timestamptz not null default clock_timestamp()
);

-- The fencing token. CACHE 1: a number drawn later is a higher number, whichever session draws it.
-- Drawn only under the lock of a scope, so that it also grows for each key.
create sequence einmal.generation as bigint minvalue 1 start 1 cache 1 no cycle;

-- One row: what belongs to the store as a whole.
create table einmal.store (
  only_row       boolean primary key default true check (only_row),
  -- The oldest schema version a program must know to write here.
  min_writer     integer not null,
  -- The key under which logs show scopes as digests.
  digest_secret  bytea not null check (octet_length(digest_secret) = 32)
);
insert into einmal.store (min_writer, digest_secret) values
  (1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- No CHECK constraints: PostgreSQL parses each of them again in every statement that writes (ten of them cost
-- more than the rest of a claim). Only the functions of this schema write here, and they check.
create table einmal.record (
  digest           uuid not null,           -- einmal._digest of the four parts: an index, never an identity
  operation_id     uuid not null,
  owner            uuid not null,
  generation       bigint not null,
  created          timestamptz not null,    -- first claim of this operation id
  claimed          timestamptz not null,    -- claim of the current generation
  lease_end        timestamptz,             -- while processing with a lease; kept while uncertain
  settled          timestamptz,             -- when it became completed, failed or freed
  expires          timestamptz,             -- fixed at settlement: settled + retention
  due              timestamptz,             -- when sweep has something to do: expires, later the tombstone's end
  -- What the record promised when it was claimed.
  lease            interval,                -- null: its owner is never presumed gone
  retention        interval not null,
  tombstone        interval not null,
  attempts         integer not null,
  status           integer,                 -- with body_kept, effect, representation_version, headers, body: the
  representation_version integer,           -- result, whole or not at all
  state            smallint not null,       -- 1 processing 2 completed 3 failed 4 uncertain 5 freed
  on_lease_expiry  smallint not null,       -- 1 uncertain 2 takeover
  after_expiry     smallint not null,       -- 1 new 2 refuse
  cause            smallint not null,       -- of uncertain
  settled_by       smallint not null,
  body_kept        smallint,
  effect           smallint,
  same_transaction boolean not null,        -- must be settled in the transaction that claims it
  profile          bytea not null,          -- 0 or 32 bytes
  fingerprint      bytea not null,          -- 32 bytes
  namespace        bytea not null,          -- bytes, as the key: SQL functions take text and store it as UTF-8
  caller           bytea not null,
  operation        bytea not null,
  key              bytea not null,
  resource_id      bytea,
  headers          bytea,
  body             bytea,
  constraint record_scope primary key (digest),
  constraint record_operation unique (operation_id)
);
-- What sweep looks for, and what is open (few rows, always the same pages).
create index record_due on einmal.record (due) where due is not null;
create index record_open on einmal.record (state, lease_end) where state in (1, 4);

-- Fingerprint profiles: without them a changed configuration would turn live keys into mismatches.
create table einmal.profile (
  id          bytea primary key check (octet_length(id) = 32),
  definition  bytea not null check (octet_length(definition) <= 65536)
);

-- What happened off the ordinary road. Outlives the record.
create table einmal.audit (
  id           bigint generated always as identity primary key,
  at           timestamptz not null,
  digest       uuid,               -- null, with the four parts: an event of the whole store
  operation_id uuid,
  generation   bigint not null,
  event        smallint not null check (event between 1 and 11),
  before       smallint,
  after        smallint,
  late_outcome smallint check (late_outcome in (1, 2)),
  contradicts  boolean not null default false,
  namespace    bytea,
  caller       bytea,
  operation    bytea,
  key          bytea,
  who          bytea not null default '' check (octet_length(who) <= 256),
  evidence     bytea not null default '' check (octet_length(evidence) <= 4096),
  status       integer,
  representation_version integer,
  body_kept    smallint,
  effect       smallint,
  resource_id  bytea,
  headers      bytea,
  body         bytea
);
create index audit_scope on einmal.audit (digest, id);
create index audit_operation on einmal.audit (operation_id, id);
create index audit_at on einmal.audit (at);

-- The last look at the server's clock from each machine (boot) that has a monotonic clock of its own.
create table einmal.clock_look (
  boot_id uuid primary key,
  wall    timestamptz not null,   -- the server's clock
  boot    bigint not null,        -- the machine's microseconds since boot
  paused  boolean not null        -- then wall and boot are the last look before the jump
);

-- Rows live and die at the rate of requests: vacuum early and without long pauses.
alter table einmal.record set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0);
alter table einmal.clock_look set (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
