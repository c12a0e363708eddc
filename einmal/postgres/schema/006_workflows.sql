-- The rows of workflows (einmal/workflow), and derived keys in the shape of a UUID. docs/formats/postgres.md explains
-- every column. Programs of schema version 5 run on beside this: they do not see the table, and the records of
-- workflows are to them records without a lease.

create table einmal.workflow (
  id          uuid primary key,      -- of the record it belongs to, or its own if it was staged
  definition  bytea not null,        -- name and version, e.g. refund/2
  name        bytea not null,        -- empty unless staged
  namespace   bytea not null,
  caller      bytea not null,
  operation   bytea not null,
  key         bytea not null,
  input       bytea not null,
  journal     bytea not null,        -- only grows; what it means is the definition's
  fence       bigint not null,       -- counts the picks
  worker      uuid,                  -- who picked it last; null while it waits
  stopped     boolean not null,      -- nobody picks it until it is resumed
  generation  bigint,                -- of the claim of its record; null: staged, without a record
  owner       uuid,
  due         timestamptz not null   -- from when on anybody may pick it
);
create index workflow_due on einmal.workflow (due, id) where not stopped;
alter table einmal.workflow set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A claim without a lease and, if it executes, the intent. The claimant's repeated claim adds nothing.
create function einmal.workflow_start(
  machine uuid, boot_now bigint, namespace bytea, caller bytea, operation bytea, key bytea, profile bytea,
  profile_definition bytea, fingerprint bytea, on_lease_expiry smallint, retention interval, after_expiry smallint,
  tombstone interval, owner uuid, operation_id uuid, definition bytea, input bytea)
  returns einmal.step language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
#variable_conflict use_variable
declare
  s einmal.step;
  paused boolean := einmal._look(machine, boot_now);
begin
  perform einmal._durable();
  s := einmal._claim(einmal._digest(namespace, caller, operation, key), namespace, caller, operation, key, profile,
                     profile_definition, fingerprint, null, on_lease_expiry, retention, after_expiry, tombstone, owner,
                     operation_id, false, interval '0', paused);
  if s.decision = 'execute' then
    insert into einmal.workflow values ((s.r).operation_id, definition, '', namespace, caller, operation, key, input,
      '', 0, null, false, (s.r).generation, (s.r).owner, einmal.now()) on conflict do nothing;
  end if;
  return s;
end $$;

-- Those that are due, longest due first, leased to one who asks; rows that somebody else is about to take are left.
create function einmal.workflow_pick(picker uuid, lease interval, definitions bytea[], batch integer)
  returns setof einmal.workflow language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  t timestamptz := einmal.now();
begin
  perform einmal._durable();
  return query
    with picked as (
      select w.id from einmal.workflow w
        where not w.stopped and w.due <= t and w.definition = any (definitions)
        order by w.due, w.id limit batch for update skip locked),
    leased as (
      update einmal.workflow w set worker = picker, fence = w.fence + 1, due = t + lease
        from picked where w.id = picked.id returning w.*)
    select * from leased order by leased.id;
end $$;

-- Whether the work of a row may still settle its record: nobody else did.
create function einmal._workflow_is_open(w einmal.workflow) returns boolean language plpgsql as $$
begin
  return exists (select from einmal.record r
    where r.digest = einmal._digest(w.namespace, w.caller, w.operation, w.key)
      and r.generation = w.generation and r.owner = w.owner and r.state in (1, 4));
end $$;

-- One step of the one who holds a row. next: 1 hold for `wait`, 2 delay by `wait`, 3 stop, 4 finish, 5 release.
-- Answers done lost superseded (AdvanceWorkflow of einmal/store/store.hpp), or busy: somebody holds the lock of the
-- scope, nothing was changed.
create function einmal.workflow_advance(
  of_id uuid, of_worker uuid, of_fence bigint, appended bytea, staged_ids uuid[], staged_definitions bytea[],
  staged_names bytea[], staged_inputs bytea[], next smallint, wait interval, outcome smallint, status integer,
  headers bytea, body bytea, body_kept smallint, effect smallint, representation_version integer, resource_id bytea)
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  w einmal.workflow;
  s einmal.step;
  said text := 'done';
begin
  perform einmal._durable();
  select * into w from einmal.workflow where id = of_id for update;
  if not found or w.stopped or w.fence <> of_fence or w.worker is distinct from of_worker then
    return 'lost';
  end if;
  if next >= 3 and w.owner is not null then
    s := einmal._owner_event(
      (array['mark_uncertain', 'settle', 'release'])[next - 2],
      einmal._digest(w.namespace, w.caller, w.operation, w.key), w.namespace, w.caller, w.operation, w.key,
      w.generation, w.owner, outcome, true, 2::smallint,
      case when next = 4 then
        row(status, headers, body, body_kept, effect, representation_version, resource_id)::einmal.result end,
      false, null);
    if s.decision = 'busy' then
      return 'busy';
    end if;
    if s.decision = 'lost' then
      said := 'superseded';
    end if;
  end if;
  insert into einmal.workflow
    select u.id, u.definition, u.name, w.namespace, w.caller, w.operation, w.key, u.input, '', 0, null, false, null,
           null, einmal.now()
    from unnest(staged_ids, staged_definitions, staged_names, staged_inputs) as u (id, definition, name, input)
    on conflict do nothing;
  if next >= 4 or said = 'superseded' then
    delete from einmal.workflow where id = of_id;
  else
    update einmal.workflow set journal = journal || appended, stopped = (next = 3),
        worker = case when next = 2 then null else w.worker end,
        due = case when next = 3 then w.due else einmal.now() + wait end
      where id = of_id;
  end if;
  return said;
end $$;

create function einmal.workflow_read(of_id uuid) returns setof einmal.workflow
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query select * from einmal.workflow where id = of_id;
end $$;

create function einmal.workflow_resume(of_id uuid, of_fence bigint, appended bytea) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set jit = off as $$
declare
  w einmal.workflow;
begin
  perform einmal._durable();
  select * into w from einmal.workflow where id = of_id for update;
  if not found or not w.stopped or w.fence <> of_fence then
    return 'lost';
  end if;
  if w.owner is not null and not einmal._workflow_is_open(w) then
    delete from einmal.workflow where id = of_id;
    return 'superseded';
  end if;
  update einmal.workflow set stopped = false, journal = journal || appended, worker = null, due = einmal.now()
    where id = of_id;
  return 'done';
end $$;

create function einmal.workflow_count() returns table (definition bytea, row_count bigint, due bigint, stopped bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  t timestamptz := einmal.now();
begin
  return query
    select w.definition, count(*), count(*) filter (where not w.stopped and w.due <= t), count(*) filter (where w.stopped)
    from einmal.workflow w group by w.definition order by w.definition;
end $$;

-- einmal.derive_key in the shape of a UUID of version 8: the first 16 bytes of the digest.
create function einmal.derive_uuid(
  caller text, operation text, key text, step text default null, namespace text default 'app')
  returns uuid language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  b bytea := decode(substr(einmal.derive_key(caller, operation, key, step, namespace), 1, 32), 'hex');
begin
  b := set_byte(b, 6, (get_byte(b, 6) & 15) | 128);
  b := set_byte(b, 8, (get_byte(b, 8) & 63) | 128);
  return encode(b, 'hex')::uuid;
end $$;

-- einmal_workflow: what a worker and the one who starts workflows need, beside einmal_gateway (the store) and
-- einmal_app (local steps).
revoke all on einmal.workflow from public;
do $$
declare
  role text;
  f record;
begin
  for f in select p.oid::regprocedure as signature from pg_proc p
           where p.pronamespace = 'einmal'::regnamespace and (p.proname like '%workflow\_%' or p.proname = 'derive_uuid') loop
    execute format('revoke all on function %s from public', f.signature);
  end loop;
  if not exists (select from pg_roles where rolname = 'einmal_workflow') then
    if not exists (select from pg_roles where rolname = current_user and (rolcreaterole or rolsuper)) then
      return;
    end if;
    create role einmal_workflow nologin;
  end if;
  grant usage on schema einmal to einmal_workflow;
  foreach role in array array['einmal_app', 'einmal_workflow', 'einmal_operator'] loop
    if exists (select from pg_roles where rolname = role) then
      for f in select p.oid::regprocedure as signature, p.proname as name from pg_proc p
               where p.pronamespace = 'einmal'::regnamespace loop
        if f.name = 'derive_uuid' or (role <> 'einmal_app' and f.name like 'workflow\_%') then
          execute format('grant execute on function %s to %I', f.signature, role);
        end if;
      end loop;
    end if;
  end loop;
end $$;
