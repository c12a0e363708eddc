# Servers of a benchmark, for scripts that source this: all in the folder $work, on loopback or Unix sockets,
# on ports that the system picks, and gone with the script.
#
#   work                 the folder (a new one below TMPDIR), removed at the end
#   last_pid, last_port  of what was started last

work=$(mktemp -d "${TMPDIR:-/tmp}/einmal-bench.XXXXXX")
pids=()
end_servers() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap end_servers EXIT
trap 'exit 130' INT TERM

# stop PID: ends one server and waits until it is gone.
stop() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

free_port() {
  perl -MIO::Socket::INET -e \
    'print IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1)->sockport'
}
wait_port() {
  for _ in $(seq 200); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
    sleep 0.05
  done
  echo "$0: nothing listens on port $1" >&2
  exit 1
}

# start_nginx NAME BLOCK: the http block gets BLOCK, in which PORT stands for the port.
start_nginx() {
  local dir=$work/$1
  last_port=$(free_port)
  mkdir -p "$dir"
  cat > "$dir/nginx.conf" <<CONF
daemon off; master_process off; pid $dir/pid; error_log $dir/error.log warn;
events { worker_connections 8192; }
http {
  access_log off; server_tokens off; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path $dir/b; proxy_temp_path $dir/p; fastcgi_temp_path $dir/f;
  uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
  ${2//PORT/$last_port}
}
CONF
  nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/start.log" &
  last_pid=$!
  pids+=("$last_pid")
  wait_port "$last_port"
}

# start_gateway NAME UPSTREAM_PORT STORE [LINES of its configuration]
start_gateway() {
  cat > "$work/$1.toml" <<CONF
[gateway]
listen = "127.0.0.1:0"
upstream = "http://127.0.0.1:$2"
[store]
url = "$3"
[caller]
source = "header:X-Caller"
[limits]
live_per_caller = 100000000
${4:-}
[[operation]]
name = "create-order"
match = "POST /orders"
CONF
  "$einmal" gateway --config "$work/$1.toml" >"$work/$1.log" 2>"$work/$1.err" &
  last_pid=$!
  pids+=("$last_pid")
  wait_listening "$work/$1.log" || { cat "$work/$1.err" >&2; exit 1; }
}

# wait_listening LOG: until the server that writes it says where it listens.
wait_listening() {
  for _ in $(seq 200); do
    last_port=$(sed -n 's#.*listening on .*://127.0.0.1:\([0-9]*\).*#\1#p' "$1")
    [ -z "$last_port" ] || return 0
    sleep 0.05
  done
  return 1
}

# start_redis NAME APPENDFSYNC: with a log of all writes; its Unix socket is $work/NAME/socket.
start_redis() {
  mkdir -p "$work/$1"
  redis-server --port 0 --unixsocket "$work/$1/socket" --dir "$work/$1" --save '' --appendonly yes \
    --appendfsync "$2" >"$work/$1/log" 2>&1 &
  last_pid=$!
  pids+=("$last_pid")
  for _ in $(seq 200); do
    [ ! -S "$work/$1/socket" ] || return 0
    sleep 0.05
  done
  tail -3 "$work/$1/log" >&2
  exit 1
}

# start_postgres [NAME=VALUE...]: settings as initdb makes them, and those named. Migrated. Sets postgres_url.
# PostgreSQL refuses to run as root: it is the user postgres there.
start_postgres() {
  local bin as=() data=$work/postgres/data
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
  [ -n "$bin" ] || { echo "$0: PostgreSQL is missing; tools/install-packages test installs it" >&2; exit 1; }
  mkdir -p "$work/postgres"
  if [ "$(id -u)" -eq 0 ]; then
    as=(setpriv --reuid postgres --regid postgres --clear-groups)
    chmod 755 "$work"
    chown postgres: "$work/postgres"
  fi
  (cd / && "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale C >"$work/initdb.log" 2>&1) ||
    { tail -3 "$work/initdb.log" >&2; exit 1; }
  printf "%s\n" "listen_addresses = ''" "unix_socket_directories = '$work/postgres'" "max_connections = 300" "$@" \
    >> "$data/postgresql.conf"
  (cd / && exec "${as[@]}" "$bin/postgres" -D "$data") >"$work/postgres.log" 2>&1 &
  last_pid=$!
  pids+=("$last_pid")
  postgres_url="postgresql://postgres@/postgres?host=${work//\//%2F}%2Fpostgres"
  for _ in $(seq 200); do
    "$bin/pg_isready" -q -d "$postgres_url" && break
    sleep 0.05
  done
  "$einmal" migrate --store "$postgres_url" >"$work/migrate.log" 2>&1 || { tail -3 "$work/migrate.log" >&2; exit 1; }
}
# postgres_says SQL
postgres_says() { psql -X -q -t -A -d "$postgres_url" -c "$1"; }

# with_children PID...: they and the processes that they have started.
with_children() {
  local pid
  for pid in "$@"; do
    echo "$pid"
    pgrep -P "$pid" || true
  done
}
# cpu_of PID...: seconds of processor that they and their children, ended ones too, have used.
cpu_of() {
  local pid
  for pid in $(with_children "$@"); do cat "/proc/$pid/stat" 2>/dev/null || true; done |
    sed 's/([^)]*)/name/' | awk -v t="$(getconf CLK_TCK)" '{ sum += $14 + $15 + $16 + $17 } END { print sum / t }'
}
# memory_of PID...: MiB; what processes share is counted once (PSS).
memory_of() {
  local pid
  for pid in $(with_children "$@"); do cat "/proc/$pid/smaps_rollup" 2>/dev/null || true; done |
    awk '/^Pss:/ { sum += $2 } END { printf "%.0f", sum / 1024 }'
}
