-- Least privilege (docs/postgres.md): nobody has a right on a table; every right is a function.
--   einmal_app       claim, complete, fail, release, renew, mark_uncertain, abandon, derive_key, must
--   einmal_gateway   what the store driver calls for a gateway, reconciliation included; no table, no business schema
--   einmal_operator  all of it, and doubt, resolve, forget, accept_time, advance_generations, view einmal.records
-- Where the migrating role may not create roles, they are left out and functions can be granted one by one.

-- The records in words.
create view einmal.records as
  select einmal._text(namespace) as namespace, einmal._text(caller) as caller, einmal._text(operation) as operation,
    einmal._text(key) as key,
    (array['processing', 'completed', 'failed', 'uncertain', 'freed'])[state] as state,
    generation, attempts, operation_id, created, claimed, lease, lease_end, settled, expires,
    (array['lease end', 'outcome unknown', 'after takeover', 'owner stopped', 'operator doubt'])[cause] as reason,
    (array['owner', 'operator', 'reconciler'])[settled_by] as settled_by,
    status, einmal._text(resource_id) as resource_id, octet_length(body) as body_bytes, body_kept = 1 as body_kept,
    retention, case after_expiry when 1 then 'new' else 'refuse' end as after_expiry, tombstone,
    case on_lease_expiry when 1 then 'uncertain' else 'takeover' end as on_lease_expiry
  from einmal.record;

revoke all on all tables in schema einmal from public;
revoke all on all functions in schema einmal from public;

do $$
declare
  role text;
  f record;
  app text[] := array['claim', 'complete', 'fail', 'release', 'renew', 'mark_uncertain', 'abandon', 'derive_key', 'must',
    'version'];
  gateway text[] := array['claims', 'owner_events', 'clock_event', 'operator_event', 'look', 'overdue', 'sweep',
    'read_profile', 'read_scope', 'read_operation', 'read_audit', 'list', 'stats', 'store_state',
    'live_operations', 'count_caller', 'version'];
  operator text[] := array['_text', 'resolve', 'doubt', 'forget', 'accept_time', 'advance_generations'];
begin
  foreach role in array array['einmal_app', 'einmal_gateway', 'einmal_operator'] loop
    if not exists (select from pg_roles where rolname = role) then
      if not exists (select from pg_roles where rolname = current_user and (rolcreaterole or rolsuper)) then
        return;
      end if;
      execute format('create role %I nologin', role);
    end if;
    execute format('grant usage on schema einmal to %I', role);
    for f in select p.oid::regprocedure as signature, p.proname as name from pg_proc p
             where p.pronamespace = 'einmal'::regnamespace loop
      if (role <> 'einmal_gateway' and f.name = any (app)) or (role <> 'einmal_app' and f.name = any (gateway))
          or (role = 'einmal_operator' and f.name = any (operator)) then
        execute format('grant execute on function %s to %I', f.signature, role);
      end if;
    end loop;
  end loop;
  grant select on einmal.records to einmal_operator;
end $$;
