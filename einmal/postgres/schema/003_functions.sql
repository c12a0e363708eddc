-- The contract for every language (docs/postgres.md): called in the caller's own transaction, committed
-- and undone with it. They run with the rights of their owner, so that a caller needs none on the tables.
-- enable_seqscan off: a plan made while the table is small must not stay when it has grown, and at SERIALIZABLE
-- whoever reads a whole table conflicts with everybody. jit off: what little is scanned is not worth a compiler.

create type einmal.claimed as (
  -- execute replay mismatch other_profile in_progress uncertain gone
  decision      text,
  generation    bigint,        -- execute: the fencing token
  owner         uuid,          -- execute: names this attempt in complete, fail, release, renew, mark_uncertain
  operation_id  uuid,          -- of the record; null when it is not visible yet
  status        integer,       -- replay: the stored result
  headers       bytea,
  body          bytea,         -- null: not kept; rebuild it from resource_id
  resource_id   text,
  retry_after   interval,      -- in_progress: when to come again; 0: start a new transaction at once
  representation_version integer,
  attempts      integer,       -- execute: more than 1 after a takeover
  repeated      boolean,       -- execute: this owner's own claim again
  resolved      boolean,       -- replay: the result was given by an operator or reconciler
  effect_known  boolean,       -- replay: false for a result that leaves the effect open
  profile       bytea,         -- other_profile: compute the fingerprint under this one and claim again
  outcome       text,          -- replay: completed or failed
  body_kept     smallint);     -- replay: BodyKept of einmal/core/record.hpp

-- Claims the key for one execution. lease null: same transaction - it must be completed, failed or released
-- before COMMIT. With a lease: commit, work, then complete in a transaction of its own before the lease ends.
create function einmal.claim(
  caller text, operation text, key text, fingerprint bytea,
  lease interval default null, retention interval default '24 h',
  on_lease_expiry text default 'uncertain', in_flight text default 'reject', wait interval default '5 s',
  namespace text default 'app', owner uuid default gen_random_uuid(), profile bytea default '\x',
  after_expiry text default 'new', tombstone interval default null)
  returns einmal.claimed language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  s einmal.step;
  ns bytea := convert_to(namespace, 'UTF8');
  who bytea := convert_to(caller, 'UTF8');
  op bytea := convert_to(operation, 'UTF8');
  k bytea := convert_to(key, 'UTF8');
  patience interval := case in_flight when 'reject' then interval '0' when 'wait' then greatest(wait, interval '0') end;
begin
  if einmal._is_scope(ns, who, op, k) is not true or octet_length(fingerprint) = 32 is not true
      or octet_length(profile) in (0, 32) is not true or owner is null or patience is null
      or on_lease_expiry in ('uncertain', 'takeover') is not true or after_expiry in ('new', 'refuse') is not true
      or (lease is not null and lease not between interval '10 ms' and interval '24 h')
      or retention between interval '1 ms' and interval '87672 h' is not true
      or (tombstone is not null and tombstone not between interval '1 ms' and interval '87672 h') then
    perform einmal._refuse_claim(ns, who, op, k, fingerprint, profile, owner, lease, retention, tombstone);
  end if;
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform einmal._durable();
  end if;

  if current_setting('transaction_isolation') = 'read committed' then
    s := einmal._claim(einmal._digest(ns, who, op, k), ns, who, op, k, profile, null, fingerprint,
      einmal._exact(lease), case on_lease_expiry when 'takeover' then 2 else 1 end::smallint, einmal._exact(retention),
      case after_expiry when 'refuse' then 2 else 1 end::smallint, coalesce(einmal._exact(tombstone), '720 h'), owner,
      gen_random_uuid(), lease is null, patience, null);
  else
    begin
      s := einmal._claim(einmal._digest(ns, who, op, k), ns, who, op, k, profile, null, fingerprint,
        einmal._exact(lease), case on_lease_expiry when 'takeover' then 2 else 1 end::smallint, einmal._exact(retention),
        case after_expiry when 'refuse' then 2 else 1 end::smallint, coalesce(einmal._exact(tombstone), '720 h'), owner,
        gen_random_uuid(), lease is null, patience, null);
    exception when serialization_failure or unique_violation then
      s := null;
      s.decision := 'outdated';  -- it came, or changed, after this transaction's snapshot
    end;
  end if;

  if s.decision = 'execute' then
    return ('execute', (s.r).generation, (s.r).owner, (s.r).operation_id, null, null, null, null, null, null,
            (s.r).attempts, s.repeated, null, null, null, null, null)::einmal.claimed;
  elsif s.decision = 'replay' then
    return ('replay', null, null, (s.r).operation_id, (s.r).status, (s.r).headers,
            case when (s.r).body_kept = 1 then (s.r).body end, einmal._text((s.r).resource_id), null,
            (s.r).representation_version, null, null, (s.r).settled_by in (2, 3), (s.r).effect = 1, null,
            case (s.r).state when 2 then 'completed' else 'failed' end, (s.r).body_kept)::einmal.claimed;
  end if;
  return (case when s.decision in ('busy', 'outdated') then 'in_progress' else s.decision end, null, null,
          (s.r).operation_id, null, null, null, null,
          case s.decision when 'outdated' then interval '0' when 'busy' then interval '1 s'
            when 'in_progress' then greatest(interval '1 s', least(interval '10 s', s.at - (s.r).claimed, s.lease_left)) end,
          null, null, null, null, null, case s.decision when 'other_profile' then (s.r).profile end, null, null)::einmal.claimed;
end $$;

create function einmal._is_scope(ns bytea, who bytea, op bytea, k bytea) returns boolean language sql immutable
  return octet_length(ns) between 1 and 1024 and octet_length(who) between 1 and 1024
    and octet_length(op) between 1 and 1024 and octet_length(k) between 1 and 255
    and encode(k, 'escape') !~ '[^\x21-\x7e]|\\[0-9]';

-- The same length without days and months, whose length would depend on the time zone; null stays null.
create function einmal._exact(length interval) returns interval language sql immutable
  return make_interval(secs => extract(epoch from length)::double precision);

create function einmal._refuse_scope(ns bytea, who bytea, op bytea, k bytea) returns void language plpgsql as $$
begin
  if octet_length(ns) between 1 and 1024 and octet_length(who) between 1 and 1024 and octet_length(op) between 1 and 1024 then
    raise exception 'einmal: the idempotency key must have 1 to 255 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  raise exception 'einmal: namespace, caller and operation must have 1 to 1024 bytes'
    using errcode = 'invalid_parameter_value';
end $$;

-- Says what is wrong with a claim.
create function einmal._refuse_claim(
  ns bytea, who bytea, op bytea, k bytea, fingerprint bytea, profile bytea, owner uuid,
  lease interval, retention interval, tombstone interval) returns void language plpgsql as $$
declare
  wrong text := case
    when octet_length(fingerprint) = 32 is not true then 'fingerprint must be 32 bytes (sha256)'
    when octet_length(profile) in (0, 32) is not true then 'profile must be 0 or 32 bytes'
    when owner is null then 'owner must not be null; leave it out to have one drawn'
    when lease is not null and lease not between interval '10 ms' and interval '24 h'
      then 'lease must be within 10 ms and 24 h'
    when retention between interval '1 ms' and interval '87672 h' is not true
      then 'retention must be within 1 ms and 87672 h'
    when tombstone is not null and tombstone not between interval '1 ms' and interval '87672 h'
      then 'tombstone must be within 1 ms and 87672 h'
    else 'on_lease_expiry is uncertain or takeover, after_expiry new or refuse, in_flight reject or wait' end;
begin
  if einmal._is_scope(ns, who, op, k) is not true then
    perform einmal._refuse_scope(ns, who, op, k);
  end if;
  raise exception 'einmal.claim: %', wrong using errcode = 'invalid_parameter_value';
end $$;

create function einmal._finish(
  kind text, namespace text, caller text, operation text, key text, generation bigint, owner uuid,
  outcome smallint, status integer, body bytea, headers bytea, resource_id text, representation_version integer)
  returns text language plpgsql as $$
declare
  ns bytea := convert_to(namespace, 'UTF8');
  who bytea := convert_to(caller, 'UTF8');
  op bytea := convert_to(operation, 'UTF8');
  k bytea := convert_to(key, 'UTF8');
  s einmal.step;
begin
  if einmal._is_scope(ns, who, op, k) is not true then
    perform einmal._refuse_scope(ns, who, op, k);
  elsif generation is null or owner is null then
    raise exception 'einmal.%: generation and owner are those that claim returned', kind
      using errcode = 'invalid_parameter_value';
  elsif (kind = 'settle' and status is null) or status not between 100 and 999 then
    raise exception 'einmal: status must be within 100 and 999' using errcode = 'invalid_parameter_value';
  end if;
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform einmal._durable();
  end if;
  s := einmal._owner_event(kind, einmal._digest(ns, who, op, k), ns, who, op, k, generation, owner, outcome, true,
    2::smallint,
    case when status is not null then
      (status, coalesce(headers, ''), coalesce(body, ''), case when body is null then 6 else 1 end, 1,
       coalesce(representation_version, 1), convert_to(resource_id, 'UTF8'))::einmal.result end,
    true, null);
  return case s.decision when 'became_uncertain' then 'uncertain' else s.decision end;
end $$;

-- ok: settled, now or by this owner before; lost: another generation owns the key, or somebody settled it.
-- body null: not kept; a replay gives status, headers, resource_id and representation_version.
create function einmal.complete(
  caller text, operation text, key text, generation bigint, owner uuid, status integer, body bytea default null,
  headers bytea default '\x', resource_id text default null, namespace text default 'app',
  representation_version integer default 1)
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('settle', namespace, caller, operation, key, generation, owner, 1::smallint, status, body,
                        headers, resource_id, representation_version);
end $$;

-- A refusal that was decided for good and is replayed like a success.
create function einmal.fail(
  caller text, operation text, key text, generation bigint, owner uuid, status integer, body bytea default null,
  headers bytea default '\x', resource_id text default null, namespace text default 'app',
  representation_version integer default 1)
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('settle', namespace, caller, operation, key, generation, owner, 2::smallint, status, body,
                        headers, resource_id, representation_version);
end $$;

-- The answer of one of the functions around it, or an exception unless it is ok: what follows in the transaction,
-- COMMIT first of all, is then not done. For pipelines: select einmal.must(einmal.complete(...)); commit
create function einmal.must(answer text) returns text language plpgsql as $$
begin
  if answer is distinct from 'ok' then
    raise exception 'einmal: the key is no longer this transaction''s (%)', answer using errcode = 'EI001';
  end if;
  return answer;
end $$;

-- This attempt had no effect: the key is free again. uncertain: an attempt before may have had one.
create function einmal.release(
  caller text, operation text, key text, generation bigint, owner uuid, namespace text default 'app')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('release', namespace, caller, operation, key, generation, owner, null, null, null, null, null, null);
end $$;

-- The lease starts again with its own length.
create function einmal.renew(
  caller text, operation text, key text, generation bigint, owner uuid, namespace text default 'app')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('renew', namespace, caller, operation, key, generation, owner, null, null, null, null, null, null);
end $$;

-- The outcome is unknown. status and what follows: what the other side sent, kept as evidence.
create function einmal.mark_uncertain(
  caller text, operation text, key text, generation bigint, owner uuid, namespace text default 'app',
  status integer default null, body bytea default null, headers bytea default '\x')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('mark_uncertain', namespace, caller, operation, key, generation, owner, null, status, body,
                        headers, null, null);
end $$;

-- Its owner stops before it knows: under takeover the lease is over at once, otherwise uncertain.
create function einmal.abandon(
  caller text, operation text, key text, generation bigint, owner uuid, namespace text default 'app')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._finish('abandon', namespace, caller, operation, key, generation, owner, null, null, null, null, null, null);
end $$;

-- The idempotency key to hand to another system, for one step of the operation or (step null) for all of it. It
-- names the scope and the step, and is the same across takeover, release, free and expiry: 64 hexadecimal digits.
create function einmal.derive_key(
  caller text, operation text, key text, step text default null, namespace text default 'app')
  returns text language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if einmal._is_scope(einmal._utf8(namespace), einmal._utf8(caller), einmal._utf8(operation), einmal._utf8(key)) is not true then
    perform einmal._refuse_scope(einmal._utf8(namespace), einmal._utf8(caller), einmal._utf8(operation), einmal._utf8(key));
  end if;
  return encode(sha256(einmal._part('einmal derived key 1') || einmal._part(
      einmal._part(einmal._utf8(namespace)) || einmal._part(einmal._utf8(caller))
      || einmal._part(einmal._utf8(operation)) || einmal._part(einmal._utf8(key)))
    || coalesce(einmal._part(einmal._utf8(step)), '')), 'hex');
end $$;

create function einmal._operate(
  kind text, namespace text, caller text, operation text, key text, generation bigint, target smallint,
  res einmal.result, settled_by smallint, force boolean, evidence text) returns text language plpgsql as $$
declare
  s einmal.step;
  ns bytea := einmal._utf8(namespace);
  who bytea := einmal._utf8(caller);
  op bytea := einmal._utf8(operation);
  k bytea := einmal._utf8(key);
begin
  if einmal._is_scope(ns, who, op, k) is not true then
    perform einmal._refuse_scope(ns, who, op, k);
  end if;
  perform einmal._durable();
  s := einmal._operator_event(kind, einmal._digest(ns, who, op, k), ns, who, op, k, generation, target, res,
    settled_by, force, einmal._utf8(session_user), coalesce(einmal._utf8(evidence), ''));
  return s.decision;
end $$;

-- Settles a record whose outcome is uncertain. ok, or changed: not the generation that was looked at, or no
-- longer uncertain; look again. outcome freed means: this request can no longer have an effect.
-- force: also a record that is still processing.
create function einmal.resolve(
  caller text, operation text, key text, generation bigint, outcome text, evidence text,
  status integer default null, body bytea default null, headers bytea default '\x', resource_id text default null,
  force boolean default false, namespace text default 'app', representation_version integer default 1)
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  target smallint := case outcome when 'completed' then 2 when 'failed' then 3 when 'freed' then 5 end;
  res einmal.result;
begin
  if target is null then
    raise exception 'einmal.resolve: outcome is completed, failed or freed' using errcode = 'invalid_parameter_value';
  elsif target <> 5 and (status is null or status not between 100 and 999) then
    raise exception 'einmal.resolve: completed and failed need a status within 100 and 999'
      using errcode = 'invalid_parameter_value';
  end if;
  if target <> 5 then
    res := (status, coalesce(headers, ''), coalesce(body, ''), case when body is null then 5 else 1 end, 1,
            coalesce(representation_version, 1), einmal._utf8(resource_id));
  end if;
  return einmal._operate('resolve', namespace, caller, operation, key, generation, target, res, 2::smallint,
                         coalesce(force, false), evidence);
end $$;

-- A record without a lease whose owner is gone for good becomes uncertain.
create function einmal.doubt(
  caller text, operation text, key text, generation bigint, evidence text, namespace text default 'app')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._operate('doubt', namespace, caller, operation, key, generation, null, null, null, false, evidence);
end $$;

-- Removes a settled record before its time: the next request with the key executes.
create function einmal.forget(
  caller text, operation text, key text, generation bigint, evidence text, namespace text default 'app')
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  return einmal._operate('forget', namespace, caller, operation, key, generation, null, null, null, false, evidence);
end $$;

create type einmal.moved as (changed integer, stripped integer, more boolean);

-- Turns records whose lease is over, and which promised it, into uncertain ones. At most `batch` of them.
create function einmal.overdue(batch integer default 200) returns einmal.moved
language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  moved einmal.moved := (0, 0, false);
  t timestamptz := einmal.now();
  d uuid;
  s einmal.step;
begin
  perform einmal._durable();
  for d in
    select digest from einmal.record
      where state = 1 and ((on_lease_expiry = 1 and lease_end <= t) or lease_end > t + lease)
      order by lease_end
  loop
    s := einmal._clock_event('overdue', d, null);
    if s.decision = 'became_uncertain' then
      moved.changed := moved.changed + 1;
    end if;
    if moved.changed >= batch then
      moved.more := true;
      exit;
    end if;
  end loop;
  return moved;
end $$;

-- Removes records past their retention and tombstone, takes the result from tombstones, drops audit rows older
-- than audit_retention. At most `batch` of each; safe to run from many sessions at once.
create function einmal.sweep(batch integer default 200, audit_retention interval default '9600 h') returns einmal.moved
language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  moved einmal.moved := (0, 0, false);
  dropped integer;
  t timestamptz := einmal.now();
  d uuid;
  s einmal.step;
begin
  if einmal._paused() then
    return moved;
  end if;
  for d in
    select digest from einmal.record where due <= t order by due
  loop
    s := einmal._clock_event('sweep', d, false);  -- busy: another session sweeps it, or uses it
        if s.decision = 'ok' and (s.r).digest is null then
      moved.changed := moved.changed + 1;
    elsif s.decision = 'ok' then
      moved.stripped := moved.stripped + 1;
    end if;
    exit when moved.changed + moved.stripped >= batch;
  end loop;
  delete from einmal.audit where id in (
    select id from einmal.audit where at <= t - audit_retention order by at limit batch for update skip locked);
  get diagnostics dropped = row_count;
  moved.more := moved.changed + moved.stripped >= batch or dropped = batch;
  return moved;
end $$;
