-- One script for every contender: POSTs of a small JSON order with an Idempotency-Key.
-- MODE (environment): new     every request carries a key never used before
--                     replay  every request carries one of the keys that were completed before (REPLAY_KEYS)
--                     mixed   REPLAY_PERCENT of the requests repeat one of REPLAY_KEYS keys
--                     prepare every key that the other runs repeat, in turn
--                     plain   no key
-- RUN makes keys of one run differ from those of another.
local mode = os.getenv("MODE") or "new"
local run = os.getenv("RUN") or "0"
local path = os.getenv("BENCH_PATH") or "/orders"
local replay_keys = tonumber(os.getenv("REPLAY_KEYS") or "512")
local replay_percent = tonumber(os.getenv("REPLAY_PERCENT") or "90")
local next_thread = 0

function setup(thread)
  thread:set("thread_id", next_thread)
  next_thread = next_thread + 1
end

function init(args)
  counter = 0
  math.randomseed(thread_id + 1)
end

local body = '{"item":"A-1","amount":1250,"currency":"eur","note":"bench"}'

local function replay_key(number)
  return "bench-" .. run .. "-replay-" .. number
end

function request()
  counter = counter + 1
  local headers = { ["Content-Type"] = "application/json", ["X-Caller"] = "bench" }
  if mode == "new" or (mode == "mixed" and math.random(1, 100) > replay_percent) then
    headers["Idempotency-Key"] = "bench-" .. run .. "-" .. thread_id .. "-" .. counter
  elseif mode == "replay" or mode == "mixed" then
    headers["Idempotency-Key"] = replay_key(math.random(1, replay_keys))
  elseif mode == "prepare" then
    headers["Idempotency-Key"] = replay_key(counter % replay_keys + 1)
  end
  return wrk.format("POST", path, headers, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("RESULT rps=%.0f p50_ms=%.3f p99_ms=%.3f p999_ms=%.3f requests=%d bad=%d\n",
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    latency:percentile(99.9) / 1000, summary.requests,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
