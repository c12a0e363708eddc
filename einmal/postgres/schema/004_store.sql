-- What the store driver (einmal/postgres/postgres_store.hpp) calls. Batches call the row functions of
-- 002_rules.sql for each element, in the order of the locks; nothing here restates a rule.
-- machine, boot_now: the boot id and the microseconds since boot of the machine that calls.

-- Looks at the server's clock beside the monotonic clock of the machine that calls. When the former has gained
-- more than 60 s since the last look, nothing expires until both agree again or an operator accepts the time
-- (einmal/core/clock_guard.hpp). Returns whether expiry is paused.
create function einmal._look(machine uuid, boot_now bigint) returns boolean language plpgsql as $$
declare
  l einmal.clock_look;
  t timestamptz := einmal.now();
  jumped boolean;
begin
  select * into l from einmal.clock_look where boot_id = machine;
  if not found then
    insert into einmal.clock_look values (machine, t, boot_now, false) on conflict do nothing;
    return einmal._paused();
  end if;
  jumped := (t - l.wall) - make_interval(secs => (boot_now - l.boot) / 1e6) > interval '60 s';
  if jumped <> l.paused or (not jumped and abs(extract(epoch from t - l.wall)) >= 1) then
    perform from einmal.clock_look where boot_id = machine for update skip locked;
    if found and jumped then
      update einmal.clock_look set paused = true where boot_id = machine;
    elsif found then
      update einmal.clock_look set wall = t, boot = boot_now, paused = false where boot_id = machine;
    end if;
  end if;
  return jumped or einmal._paused();
end $$;

create type einmal.answer as (ord integer, s einmal.step);

create function einmal.claims(
  machine uuid, boot_now bigint, namespaces bytea[], callers bytea[], operations bytea[], keys bytea[],
  profiles bytea[], definitions bytea[], fingerprints bytea[], leases interval[], on_lease_expiry smallint[],
  retentions interval[], after_expiry smallint[], tombstones interval[], owners uuid[], operation_ids uuid[])
  returns setof einmal.answer language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  paused boolean := einmal._look(machine, boot_now);
begin
  perform einmal._durable();
  return query
    select u.ord::integer, einmal._claim(u.d, u.ns, u.who, u.op, u.k, u.prof, u.def, u.fp, u.lease, u.oe, u.ret, u.ae,
                                         u.tomb, u.own, u.opid, false, interval '0', paused)
    from (select e.*, einmal._digest(ns, who, op, k) as d
          from unnest(namespaces, callers, operations, keys, profiles, definitions, fingerprints, leases,
                      on_lease_expiry, retentions, after_expiry, tombstones, owners, operation_ids)
            with ordinality as e (ns, who, op, k, prof, def, fp, lease, oe, ret, ae, tomb, own, opid, ord)
          order by uuid_hash_extended(einmal._digest(ns, who, op, k), 0), ord
          offset 0) u;
end $$;

create function einmal.owner_events(
  machine uuid, boot_now bigint, kinds text[], namespaces bytea[], callers bytea[], operations bytea[], keys bytea[],
  generations bigint[], owners uuid[], outcomes smallint[], declared boolean[], causes smallint[],
  statuses integer[], headers bytea[], bodies bytea[], bodies_kept smallint[], effects smallint[],
  representation_versions integer[], resource_ids bytea[])
  returns setof einmal.answer language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  paused boolean := einmal._look(machine, boot_now);
begin
  perform einmal._durable();
  return query
    select u.ord::integer, einmal._owner_event(u.kind, u.d, u.ns, u.who, u.op, u.k, u.gen, u.own, u.outcome, u.decl,
                                               u.cause, u.res, false, paused)
    from (select e.*, einmal._digest(ns, who, op, k) as d,
                 row(st, h, b, bk, ef, rv, rid)::einmal.result as res
          from unnest(kinds, namespaces, callers, operations, keys, generations, owners, outcomes, declared, causes,
                      statuses, headers, bodies, bodies_kept, effects, representation_versions, resource_ids)
            with ordinality as e (kind, ns, who, op, k, gen, own, outcome, decl, cause, st, h, b, bk, ef, rv, rid, ord)
          order by uuid_hash_extended(einmal._digest(ns, who, op, k), 0), ord
          offset 0) u;
end $$;

-- doubt, resolve, forget by name of an actor.
create function einmal.operator_event(
  kind text, namespace bytea, caller bytea, operation bytea, key bytea, generation bigint, target smallint,
  status integer, headers bytea, body bytea, body_kept smallint, effect smallint, representation_version integer,
  resource_id bytea, settled_by smallint, force boolean, actor bytea, evidence bytea)
  returns einmal.step language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  perform einmal._durable();
  return einmal._operator_event(kind, einmal._digest(namespace, caller, operation, key), namespace, caller,
    operation, key, generation, target,
    (status, headers, body, body_kept, effect, representation_version, resource_id), settled_by, force, actor, evidence);
end $$;

-- overdue, sweep of one record.
create function einmal.clock_event(
  machine uuid, boot_now bigint, kind text, namespace bytea, caller bytea, operation bytea, key bytea)
  returns einmal.step language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
begin
  perform einmal._durable();
  return einmal._clock_event(kind, einmal._digest(namespace, caller, operation, key), einmal._look(machine, boot_now));
end $$;

create function einmal.look(machine uuid, boot_now bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return einmal._look(machine, boot_now);
end $$;

create function einmal.read_profile(profile_id bytea) returns bytea
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select definition from einmal.profile where id = profile_id);
end $$;

-- A record as the clock lets it be seen.
create type einmal.stored as (condition smallint, lease_left interval, at timestamptz, r einmal.record);

create function einmal._stored(r einmal.record, with_body boolean, paused boolean) returns einmal.stored
language plpgsql as $$
declare
  s einmal.stored;
begin
  s.at := einmal.now();
  s.condition := einmal._condition(r, s.at, paused);
  if r.state = 1 then
    s.lease_left := case when r.lease is not null then greatest(interval '0', least(r.lease_end - s.at, r.lease)) end;
  end if;
  if not with_body and r.status is not null then
    r.headers := '';
    r.body := '';
  end if;
  s.r := r;
  return s;
end $$;

create function einmal.read_scope(
  machine uuid, boot_now bigint, namespace bytea, caller bytea, operation bytea, key bytea, with_body boolean)
  returns setof einmal.stored language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  r einmal.record;
  paused boolean := einmal._look(machine, boot_now);
  d uuid := einmal._digest(namespace, caller, operation, key);
begin
  select * into r from einmal.record where digest = d;
  if r.key = key and r.operation = operation and r.caller = caller and r.namespace = namespace then
    return next einmal._stored(r, with_body, paused);
  end if;
end $$;

create function einmal.read_operation(machine uuid, boot_now bigint, id uuid, with_body boolean)
  returns setof einmal.stored language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  r einmal.record;
  paused boolean := einmal._look(machine, boot_now);
begin
  select * into r from einmal.record where operation_id = id;
  if found then
    return next einmal._stored(r, with_body, paused);
  end if;
end $$;

-- The first and the last digest that a record of a caller can have; null without a caller.
create function einmal._first_digest(ns bytea, who bytea) returns uuid language sql immutable
  return (encode(substr(sha256(einmal._part(ns) || einmal._part(who)), 1, 4), 'hex') || repeat('0', 24))::uuid;
create function einmal._last_digest(ns bytea, who bytea) returns uuid language sql immutable
  return (encode(substr(sha256(einmal._part(ns) || einmal._part(who)), 1, 4), 'hex') || repeat('f', 24))::uuid;

-- A page of records in the order of their digests, behind `after_digest`; null: no restriction. Without body.
create function einmal.list(
  machine uuid, boot_now bigint, only_namespace bytea, only_caller bytea, only_operation bytea,
  conditions smallint[], min_age interval, batch integer, after_digest uuid)
  returns setof einmal.stored language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  r einmal.record;
  s einmal.stored;
  taken integer := 0;
  paused boolean := einmal._look(machine, boot_now);
  low uuid := coalesce(einmal._first_digest(only_namespace, only_caller), '00000000-0000-0000-0000-000000000000');
  high uuid := coalesce(einmal._last_digest(only_namespace, only_caller), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
begin
  for r in
    select * from einmal.record
      where digest >= low and digest <= high and (after_digest is null or digest > after_digest)
        and (only_namespace is null or namespace = only_namespace) and (only_caller is null or caller = only_caller)
        and (only_operation is null or operation = only_operation)
      order by digest
  loop
    s := einmal._stored(r, false, paused);
    if (conditions is null or s.condition = any (conditions)) and (min_age is null or s.at - r.claimed >= min_age) then
      return next s;
      taken := taken + 1;
      exit when taken >= batch;
    end if;
  end loop;
end $$;

-- The newest rows that match both, oldest of them first; null: no restriction.
create function einmal.read_audit(
  of_namespace bytea, of_caller bytea, of_operation bytea, of_key bytea, of_operation_id uuid, batch integer)
  returns setof einmal.audit language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  d uuid := einmal._digest(of_namespace, of_caller, of_operation, of_key);
begin
  return query select * from (
    select * from einmal.audit a
      where (d is null or (a.digest = d and a.namespace = of_namespace and a.caller = of_caller
                           and a.operation = of_operation and a.key = of_key))
        and (of_operation_id is null or a.operation_id = of_operation_id)
      order by a.id desc limit batch) newest
    order by newest.id;
end $$;

create type einmal.condition_stats as (
  condition text, records bigint, bytes bigint, oldest interval, due bigint, lag interval);

-- Per condition (with freed and expired apart): how many records, how many bytes of results, age of the oldest, how
-- many of them sweep has to do with and since when. Reads the whole table.
create function einmal.stats(machine uuid, boot_now bigint) returns setof einmal.condition_stats
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  expiring boolean := not einmal._look(machine, boot_now);
  t timestamptz := einmal.now();
begin
  return query
    select seen.condition, count(*), sum(seen.bytes)::bigint, greatest(t - min(seen.claimed), interval '0'),
           count(*) filter (where seen.is_due), t - min(seen.due) filter (where seen.is_due)
    from (select case
            when state = 1 then 'processing' when state = 4 then 'uncertain'
            when expiring and t >= einmal._end(state, after_expiry, expires, tombstone) then 'expired'
            when state = 5 then 'freed'
            when status is null or (expiring and expires <= t) then 'tombstone'
            when state = 2 then 'completed' else 'failed' end as condition,
            (coalesce(octet_length(headers) + octet_length(body), 0) + coalesce(octet_length(resource_id), 0))::bigint as bytes,
            claimed, due, expiring and due <= t as is_due
          from einmal.record) seen
    group by seen.condition;
end $$;

create function einmal._last_generation() returns bigint language plpgsql as $$
begin
  return (select case when is_called then last_value else 0 end from einmal.generation);
end $$;

create function einmal.store_state(machine uuid, boot_now bigint)
  returns table (last_generation bigint, expiry_paused boolean, digest_secret bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  paused boolean := einmal._look(machine, boot_now);
begin
  return query select einmal._last_generation(), paused, s.digest_secret from einmal.store s;
end $$;

create function einmal.live_operations(machine uuid, boot_now bigint, of_namespace bytea) returns setof bytea
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  expiring boolean := not einmal._look(machine, boot_now);
  t timestamptz := einmal.now();
begin
  return query select distinct operation from einmal.record
    where namespace = of_namespace and state <> 5
      and (state in (1, 4) or not expiring or t < einmal._end(state, after_expiry, expires, tombstone))
    order by operation;
end $$;

create function einmal.count_caller(machine uuid, boot_now bigint, of_namespace bytea, of_caller bytea)
  returns table (live bigint, uncertain bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  expiring boolean := not einmal._look(machine, boot_now);
  t timestamptz := einmal.now();
  low uuid := einmal._first_digest(of_namespace, of_caller);
  high uuid := einmal._last_digest(of_namespace, of_caller);
begin
  return query select
      count(*) filter (where state in (1, 4)
        or (state <> 5 and (not expiring or t < einmal._end(state, after_expiry, expires, tombstone)))),
      count(*) filter (where state = 4)
    from einmal.record
    where digest between low and high and namespace = of_namespace and caller = of_caller;
end $$;

-- After a restore or failover that lost commits: generations that were handed out and forgotten are never handed out
-- again.
create function einmal.advance_generations(actor text default session_user, evidence text default '') returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  reached bigint := setval('einmal.generation', nextval('einmal.generation') + 4294967295);
begin
  perform einmal._durable();
  insert into einmal.audit (at, generation, event, who, evidence)
    values (einmal.now(), reached, 10, einmal._utf8(actor), einmal._utf8(evidence));
  return reached;
end $$;

-- An operator vouches for the server's clock as it stands: expiry and sweep go on. Every machine starts to look anew.
create function einmal.accept_time(actor text default session_user, evidence text default '') returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform einmal._durable();
  delete from einmal.clock_look;
  insert into einmal.audit (at, generation, event, who, evidence)
    values (einmal.now(), einmal._last_generation(), 11, einmal._utf8(actor), einmal._utf8(evidence));
end $$;

-- The schema's own version, and the oldest version that a program must know to write here.
create function einmal.version() returns table (version integer, min_writer integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query select (select max(m.version) from einmal.migration m), s.min_writer from einmal.store s;
end $$;
