-- The table of the order services in examples/. The services need rights on it and the role einmal_app.
create table if not exists orders (
  id       bigint generated always as identity primary key,
  caller   text not null,
  item     text not null,
  amount   integer not null check (amount > 0),
  created  timestamptz not null default now()
);
