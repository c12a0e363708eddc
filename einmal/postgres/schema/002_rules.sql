-- The rules of the state machine (docs/semantics.md, einmal/core/decide.hpp) for one record at a time.
-- Internal: nobody may call what begins with an underscore but the functions of the next files.
--
-- Every step: lock of the scope, then the row, then the clock. Whoever writes a record holds the lock of its
-- scope from before it read the row until its transaction ends, so the lock stands for the row: what was
-- decided under an older row or an older clock is never written.
--
-- Few and large statements on the ordinary road: PL/pgSQL sets up each expression anew in every transaction, which
-- costs more than what most of them compute.

-- The clock. A function of its own, so that a test can put another in its place.
create function einmal.now() returns timestamptz language sql volatile
  return pg_catalog.clock_timestamp();

-- Length-prefixed, as append_length_prefixed of einmal/base/bytes.hpp; parts in the order of
-- Scope::canonical_bytes.
create function einmal._part(part bytea) returns bytea language sql immutable
  return pg_catalog.int8send(octet_length(part)::bigint) || part;

-- 4 bytes for the caller, so that one caller's records lie together, and 12 for the scope. Rows are found
-- by it and then compared part by part.
create function einmal._digest(ns bytea, who bytea, op bytea, k bytea) returns uuid language sql immutable
  return encode(
    substr(sha256(einmal._part(ns) || einmal._part(who)), 1, 4) ||
    substr(sha256(einmal._part(ns) || einmal._part(who) || einmal._part(op) || einmal._part(k)), 1, 12),
    'hex')::uuid;

create function einmal._utf8(part text) returns bytea language sql stable
  return convert_to(part, 'UTF8');

-- Bytes as text; where they are not UTF-8, in PostgreSQL's escape form.
create function einmal._text(part bytea) returns text language plpgsql stable as $$
begin
  return convert_from(part, 'UTF8');
exception when others then
  return encode(part, 'escape');
end $$;

create type einmal.result as (
  status integer, headers bytea, body bytea, body_kept smallint, effect smallint,
  representation_version integer, resource_id bytea);

-- What a step answers: the decision, and the record as it stands after it (null: absent).
create type einmal.step as (
  -- execute replay mismatch other_profile in_progress uncertain gone / ok became_uncertain lost / changed
  -- unchanged / busy: somebody holds the scope's lock, nothing was looked at or changed
  decision   text,
  takeover   boolean,       -- execute: a generation before this one may have had an effect
  repeated   boolean,       -- execute: the owner's own claim again; ok: was done already; uncertain: was so already
  lease_left interval,      -- in_progress: null without a lease
  condition  smallint,      -- lost: how a claim would see the record (Condition of record.hpp)
  contradicts boolean,      -- lost: a late result speaks against what stands under the key
  at         timestamptz,   -- the clock of the decision
  r          einmal.record);

-- When a final or freed record is over: as if it were not there, swept or not.
create function einmal._end(state smallint, after_expiry smallint, expires timestamptz, tombstone interval)
  returns timestamptz language sql stable
  return case when state = 5 or after_expiry = 1 then expires else expires + tombstone end;

-- Whether expiry is paused, because the server's clock jumped ahead and nobody vouched for it.
create function einmal._paused() returns boolean language plpgsql as $$
begin
  return exists (select from einmal.clock_look where paused);
end $$;

create function einmal._condition(r einmal.record, t timestamptz, paused boolean) returns smallint
language plpgsql as $$
declare
  past boolean := r.expires <= t and not coalesce(paused, einmal._paused());
begin
  return case
    when r.digest is null or r.state = 5 then 0
    when r.state in (1, 4) then r.state
    when past and t >= einmal._end(r.state, r.after_expiry, r.expires, r.tombstone) then 0
    when past or r.status is null then 5
    else r.state end;
end $$;

-- Takes the lock of a scope until the transaction ends. wait null: for as long as it takes; otherwise false
-- when somebody else holds it for longer. Restores lock_timeout.
create function einmal._lock(d uuid, wait interval) returns boolean language plpgsql as $$
declare
  lock bigint := uuid_hash_extended(d, 0);
  kept text;
begin
  if pg_try_advisory_xact_lock(lock) then
    return true;
  elsif wait is null then
    perform pg_advisory_xact_lock(lock);
    return true;
  elsif wait < interval '1 ms' then
    return false;
  end if;
  kept := current_setting('lock_timeout');
  perform set_config('lock_timeout', ceil(extract(epoch from wait) * 1000)::text, true);
  begin
    perform pg_advisory_xact_lock(lock);
    perform set_config('lock_timeout', kept, true);
    return true;
  exception when lock_not_available or deadlock_detected then
    perform set_config('lock_timeout', kept, true);
    return false;
  end;
end $$;

-- The commit of this transaction must be durable before it is confirmed, whatever the session prefers.
create function einmal._durable() returns void language plpgsql as $$
begin
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

create function einmal._collision(d uuid) returns void language plpgsql as $$
begin
  raise exception 'einmal: two scopes have the digest %; use another key', d using errcode = 'data_exception';
end $$;

-- Writes every column that a step may change.
create function einmal._put(r einmal.record) returns void language plpgsql as $$
begin
  update einmal.record set
    owner = r.owner, generation = r.generation, claimed = r.claimed, lease_end = r.lease_end,
    settled = r.settled, expires = r.expires, due = r.due, attempts = r.attempts,
    status = r.status, headers = r.headers, body = r.body, body_kept = r.body_kept, effect = r.effect,
    representation_version = r.representation_version, resource_id = r.resource_id,
    state = r.state, cause = r.cause, settled_by = r.settled_by
  where digest = r.digest;
end $$;

create function einmal._with_result(r einmal.record, res einmal.result) returns einmal.record
language plpgsql as $$
begin
  r.status := res.status; r.headers := res.headers; r.body := res.body; r.body_kept := res.body_kept;
  r.effect := res.effect; r.representation_version := res.representation_version;
  r.resource_id := res.resource_id;
  return r;
end $$;

-- Audit events: AuditEvent of einmal/core/decide.hpp.
create function einmal._note(
  event smallint, r einmal.record, generation bigint, before smallint, after smallint, t timestamptz,
  contradicts boolean default false, who bytea default '', evidence bytea default '',
  late_outcome smallint default null, res einmal.result default null) returns void
language plpgsql as $$
begin
  insert into einmal.audit (at, digest, operation_id, generation, event, before, after, late_outcome, contradicts,
      namespace, caller, operation, key, who, evidence, status, representation_version, body_kept, effect,
      resource_id, headers, body)
    values (t, r.digest, r.operation_id, generation, event, before, after, late_outcome, contradicts,
      r.namespace, r.caller, r.operation, r.key, who, evidence, res.status, res.representation_version,
      res.body_kept, res.effect, res.resource_id, res.headers, res.body);
end $$;

-- A profile is kept with the first record that is claimed under it. One at a time, so that batches with several
-- new ones cannot wait for each other in a circle.
create function einmal._remember(prof bytea, definition bytea) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(uuid_hash_extended('65696e6d-616c-2070-726f-66696c657300', 0));
  insert into einmal.profile values (prof, definition) on conflict do nothing;
end $$;

-- claim. definition: of the profile, null where it is known to be kept already. Most answers to a duplicate change nothing and need no lock: when it is not free, they are given from
-- the committed record. wait: how long to wait for the lock where something must be written.
create function einmal._claim(
  d uuid, ns bytea, who bytea, op bytea, k bytea, prof bytea, definition bytea, fp bytea,
  lease interval, on_lease_expiry smallint, retention interval, after_expiry smallint, tombstone interval,
  own uuid, opid uuid, same_transaction boolean, wait interval, paused boolean) returns einmal.step
language plpgsql as $$
#variable_conflict use_column
declare
  r einmal.record;
  t timestamptz;
  locked boolean := pg_try_advisory_xact_lock(uuid_hash_extended(d, 0));
  before smallint;
  drawn bigint;
begin
  loop
    select * into r from einmal.record where digest = d;
    t := einmal.now();
    if r.key <> k or r.operation <> op or r.caller <> who or r.namespace <> ns then
      perform einmal._collision(d);
    end if;

    if r.digest is null or r.state = 5 or (r.expires <= t
        and t >= einmal._end(r.state, r.after_expiry, r.expires, r.tombstone)
        and not coalesce(paused, einmal._paused())) then
      if locked then
        if r.digest is not null then
          delete from einmal.record where digest = d;
        end if;
        drawn := nextval('einmal.generation');  -- under the lock, before the insert
        insert into einmal.record (digest, operation_id, owner, generation, created, claimed, lease_end, lease,
            retention, tombstone, attempts, state, on_lease_expiry, after_expiry, cause, settled_by, same_transaction,
            profile, fingerprint, namespace, caller, operation, key)
          values (d, opid, own, drawn, t, t, t + lease, lease, retention, tombstone, 1, 1, on_lease_expiry,
            after_expiry, 0, 0, same_transaction, prof, fp, ns, who, op, k)
          returning * into r;
        if definition is not null then
          perform einmal._remember(prof, definition);
        end if;
        return ('execute', false, false, null, null, null, t, r)::einmal.step;
      end if;
    elsif r.profile <> prof then
      return ('other_profile', null, null, null, null, null, t, r)::einmal.step;
    elsif r.fingerprint <> fp then
      return ('mismatch', null, null, null, null, null, t, r)::einmal.step;
    elsif r.state in (2, 3) then
      return (case when r.status is null or (r.expires <= t and not coalesce(paused, einmal._paused())) then 'gone'
              else 'replay' end, null, null, null, null, null, t, r)::einmal.step;
    elsif r.owner = own and (r.state = 1 or r.cause = 1) then
      if locked then
        before := r.state;
        r := einmal._restarted(r, t);
        perform einmal._put(r);
        if before = 4 then
          perform einmal._note(8::smallint, r, r.generation, before, 1::smallint, t);
        end if;
        return ('execute', r.attempts > 1, true, null, null, null, t, r)::einmal.step;
      end if;
    elsif r.state = 4 then
      return ('uncertain', null, true, null, null, null, t, r)::einmal.step;
    elsif r.lease_end is null or r.lease is null or (r.lease_end > t and r.lease_end <= t + r.lease) then
      return ('in_progress', null, null, r.lease_end - t, null, null, t, r)::einmal.step;
    elsif locked then
      before := r.state;
      if r.lease_end > t then  -- further ahead than the lease is long: cut once
        r.lease_end := t + r.lease;
        perform einmal._put(r);
        return ('in_progress', null, null, r.lease, null, null, t, r)::einmal.step;
      elsif r.on_lease_expiry = 2 and on_lease_expiry = 2 then
        r := einmal._restarted(r, t);
        r.generation := nextval('einmal.generation');
        r.owner := own; r.attempts := r.attempts + 1; r.claimed := t;
        perform einmal._put(r);
        perform einmal._note(1::smallint, r, r.generation, before, 1::smallint, t);
        return ('execute', true, false, null, null, null, t, r)::einmal.step;
      end if;
      r.state := 4; r.cause := 1;
      perform einmal._put(r);
      perform einmal._note(2::smallint, r, r.generation, before, 4::smallint, t);
      return ('uncertain', null, false, null, null, null, t, r)::einmal.step;
    end if;

    if not einmal._lock(d, wait) then
      return ('busy', null, null, null, null, null, t, r)::einmal.step;
    end if;
    locked := true;
  end loop;
end $$;

-- Processing again under the same generation, with a whole lease and without evidence.
create function einmal._restarted(r einmal.record, t timestamptz) returns einmal.record
language plpgsql as $$
begin
  r := einmal._with_result(r, null);
  r.state := 1; r.cause := 0; r.lease_end := t + r.lease;
  return r;
end $$;

create function einmal._settled(r einmal.record, state smallint, res einmal.result, settled_by smallint, t timestamptz)
  returns einmal.record language plpgsql as $$
begin
  r := einmal._with_result(r, res);
  r.state := state; r.cause := 0; r.settled_by := settled_by; r.lease_end := null;
  r.settled := t; r.expires := t + r.retention; r.due := r.expires;
  return r;
end $$;

-- Whether a result that cannot be published speaks against what stands under the key now (null: nothing).
create function einmal._contradicts(r einmal.record, gen bigint, outcome smallint, resource_id bytea)
  returns boolean language plpgsql immutable as $$
begin
  return case
    when r.digest is null or (r.generation <> gen and r.attempts = 1) or r.state = 5 then outcome = 1
    when r.state in (1, 4) then false
    when (r.state = 2) <> (outcome = 1) then true
    else coalesce(r.resource_id <> resource_id, false) end;
end $$;

-- renew, settle (complete, fail), release, mark_uncertain, abandon: what an owner says of its attempt.
-- blocking: wait for the lock of the scope, otherwise answer busy.
create function einmal._owner_event(
  kind text, d uuid, ns bytea, who bytea, op bytea, k bytea, gen bigint, own uuid,
  outcome smallint, declared boolean, why smallint, res einmal.result, blocking boolean, paused boolean)
  returns einmal.step language plpgsql as $$
declare
  r einmal.record;
  s einmal.step;
  t timestamptz;
  existing boolean;
  mine boolean;
  before smallint;
  proves_nothing boolean;
  contradiction boolean;
begin
  if blocking then
    perform einmal._lock(d, null);
  elsif not pg_try_advisory_xact_lock(uuid_hash_extended(d, 0)) then
    s.decision := 'busy';
    return s;
  end if;
  select * into r from einmal.record where digest = d;
  t := einmal.now();
  if r.key <> k or r.operation <> op or r.caller <> who or r.namespace <> ns then
    perform einmal._collision(d);
  end if;

  -- The ordinary road in one statement.
  if kind = 'settle' and r.state = 1 and r.generation = gen and r.owner = own and (r.attempts = 1 or declared) then
    update einmal.record set state = 1 + outcome, cause = 0, settled_by = 1, lease_end = null,
        settled = t, expires = t + retention, due = t + retention,
        status = res.status, headers = res.headers, body = res.body, body_kept = res.body_kept, effect = res.effect,
        representation_version = res.representation_version, resource_id = res.resource_id
      where digest = d returning * into r;
    return ('ok', null, false, null, null, null, t, r)::einmal.step;
  end if;

  s.at := t;
  existing := r.digest is not null;
  if r.expires <= t and t >= einmal._end(r.state, r.after_expiry, r.expires, r.tombstone)
      and not coalesce(paused, einmal._paused()) then
    existing := false;
    r := null;
  end if;
  mine := existing and r.generation = gen and r.owner = own;
  before := r.state;

  if kind = 'settle' then
    proves_nothing := mine and r.attempts > 1 and not declared
      and not (res.status between 200 and 299 or res.status = 303);
    if mine and r.state in (2, 3) and r.settled_by = 1 then
      s.decision := 'ok'; s.repeated := true;
    elsif mine and r.state in (1, 4, 5) and not proves_nothing then
      if r.state <> 1 then
        perform einmal._note(3::smallint, r, gen, before, (1 + outcome)::smallint, t, r.state = 5 and outcome = 1);
      end if;
      r := einmal._settled(r, (1 + outcome)::smallint, res, 1::smallint, t);
      perform einmal._put(r);
      s.decision := 'ok'; s.repeated := false;
    elsif not mine or r.state not in (1, 4) then  -- too late: kept in the audit, never published
      contradiction := einmal._contradicts(r, gen, outcome, res.resource_id);
      s.decision := 'lost'; s.condition := einmal._condition(r, t, paused); s.contradicts := contradiction;
      if not existing then
        r.digest := d; r.namespace := ns; r.caller := who; r.operation := op; r.key := k;
      end if;
      perform einmal._note(4::smallint, r, gen, before, before, t, contradiction, '', '', outcome, res);
    end if;
  elsif not mine or r.state not in (1, 4) or (kind = 'renew' and r.state = 4 and r.cause <> 1) then
    s.decision := 'lost'; s.condition := einmal._condition(r, t, paused);
  elsif kind = 'renew' then
    r := einmal._restarted(r, t);
    perform einmal._put(r);
    if before = 4 then
      perform einmal._note(8::smallint, r, gen, before, 1::smallint, t);
    end if;
    s.decision := 'ok';
  elsif kind = 'release' and r.attempts = 1 then
    delete from einmal.record where digest = d;
    if before = 4 then
      perform einmal._note(9::smallint, r, gen, before, null, t);
    end if;
    s.decision := 'ok'; existing := false;
  elsif kind = 'mark_uncertain' then
    if r.state = 1 or r.cause = 1 then
      if res.status is not null then
        r := einmal._with_result(r, res);
      end if;
      r.state := 4; r.cause := why;
      perform einmal._put(r);
      if before = 1 then
        perform einmal._note(2::smallint, r, gen, before, 4::smallint, t);
      end if;
    end if;
    s.decision := 'ok';
  elsif kind = 'abandon' then
    if r.state = 1 and r.on_lease_expiry = 2 and r.lease_end is not null and r.lease is not null then
      r.lease_end := t;
      perform einmal._put(r);
    elsif r.state = 1 then
      r.state := 4; r.cause := 4;
      perform einmal._put(r);
      perform einmal._note(2::smallint, r, gen, before, 4::smallint, t);
    end if;
    s.decision := 'ok';
  end if;

  if s.decision is null then
    -- A release, or a status that proves nothing, when an attempt before may have had an effect.
    if kind not in ('settle', 'release') then
      raise exception 'einmal: unknown owner event %', kind;
    end if;
    if kind = 'settle' and r.status is null then
      r := einmal._with_result(r, res);
    end if;
    if before = 1 then
      r.state := 4; r.cause := 3;
      perform einmal._note(2::smallint, r, gen, before, 4::smallint, t);
    end if;
    perform einmal._put(r);
    s.decision := 'became_uncertain';
  end if;
  if existing then
    s.r := r;
  end if;
  return s;
end $$;

-- doubt, resolve, forget: what an operator or reconciler says, naming the generation it looked at.
-- target: state after resolve (2 completed, 3 failed, 5 freed).
create function einmal._operator_event(
  kind text, d uuid, ns bytea, who bytea, op bytea, k bytea, gen bigint,
  target smallint, res einmal.result, settled_by smallint, force boolean, actor bytea, evidence bytea)
  returns einmal.step language plpgsql as $$
declare
  r einmal.record;
  s einmal.step;
  t timestamptz;
  before smallint;
begin
  perform einmal._lock(d, null);
  select * into r from einmal.record where digest = d;
  t := einmal.now();
  s.at := t;
  s.decision := 'changed';
  if not found then
    return s;
  end if;
  if r.key <> k or r.operation <> op or r.caller <> who or r.namespace <> ns then
    perform einmal._collision(d);
  end if;
  before := r.state;
  s.r := r;
  if r.generation <> gen then
    return s;
  end if;

  if kind = 'doubt' and r.state = 1 and r.lease_end is null then
    r.state := 4; r.cause := 5;
    perform einmal._put(r);
    perform einmal._note(7::smallint, r, gen, before, 4::smallint, t, false, actor, evidence);
    s.decision := 'ok'; s.r := r;
  elsif kind = 'resolve' and (r.state = 4 or (r.state = 1 and force)) then
    r := einmal._settled(r, target, case when target <> 5 then res end, settled_by, t);
    perform einmal._put(r);
    perform einmal._note(5::smallint, r, gen, before, target, t, false, actor, evidence);
    s.decision := 'ok'; s.r := r;
  elsif kind = 'forget' and r.state in (2, 3, 5) then
    delete from einmal.record where digest = d;
    perform einmal._note(6::smallint, r, gen, before, null, t, false, actor, evidence);
    s.decision := 'ok'; s.r := null;
  end if;
  return s;
end $$;

-- overdue, sweep: what time does to one record. Never waits: busy when somebody holds its lock.
create function einmal._clock_event(kind text, d uuid, paused boolean) returns einmal.step
language plpgsql as $$
declare
  r einmal.record;
  s einmal.step;
  t timestamptz;
begin
  s.decision := 'busy';
  if not einmal._lock(d, interval '0') then
    return s;
  end if;
  select * into r from einmal.record where digest = d;
  s.decision := 'unchanged';
  t := einmal.now();
  s.at := t;
  if not found then
    return s;
  end if;

  if kind = 'overdue' then
    if r.state = 1 and r.lease_end > t + r.lease then
      r.lease_end := t + r.lease;
      perform einmal._put(r);
    elsif r.state = 1 and r.on_lease_expiry = 1 and r.lease_end <= t and r.lease is not null then
      r.state := 4; r.cause := 1;
      perform einmal._put(r);
      perform einmal._note(2::smallint, r, r.generation, 1::smallint, 4::smallint, t);
      s.decision := 'became_uncertain'; s.r := r;
    end if;
  elsif r.expires <= t and not coalesce(paused, einmal._paused()) then
    if t >= einmal._end(r.state, r.after_expiry, r.expires, r.tombstone) then
      delete from einmal.record where digest = d;
      s.decision := 'ok';
    elsif r.status is not null then
      r := einmal._with_result(r, null);
      r.due := r.expires + r.tombstone;
      perform einmal._put(r);
      s.decision := 'ok'; s.r := r;
    end if;
  end if;
  return s;
end $$;

-- lease null: a transaction that would commit a claimed key without its outcome fails as a whole.
create function einmal._must_be_settled() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from einmal.record where digest = new.digest and generation = new.generation
             and state = 1 and same_transaction) then
    raise exception 'einmal: a key was claimed with lease NULL and neither settled nor released in its transaction'
      using errcode = 'integrity_constraint_violation',
        hint = 'Call einmal.complete, einmal.fail or einmal.release before COMMIT, or claim with a lease.';
  end if;
  perform einmal._durable();
  return null;
end $$;
create constraint trigger same_transaction after insert or update of state on einmal.record
  deferrable initially deferred for each row when (new.state = 1 and new.same_transaction)
  execute function einmal._must_be_settled();
