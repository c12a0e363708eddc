#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "commands.hpp"
#include "einmal/base/random.hpp"
#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/gateway.hpp"
#include "evidence.hpp"
#include "store_url.hpp"

namespace einmal::programs {

namespace {

constexpr int leave_signal = SIGUSR2;  ///< Our own, to end the signal thread.

void complain(const Error& error) { fmt::print(stderr, "einmal gateway: {}\n", error.message); }

template <class T, class Parse>
bool read_flag(const char* flag, const std::optional<std::string>& text, T& into, Parse parse) {
  if (!text) return true;
  auto value = parse(*text);
  if (!value) {
    fmt::print(stderr, "einmal gateway: {}: {}\n", flag, value.error().message);
    return false;
  }
  into = std::move(*value);
  return true;
}

/// The configuration of the file, or of the flags. Nothing: it was complained about.
std::optional<ReadConfig> configuration(const GatewayOptions& options) {
  ReadConfig all;
  auto& config = all.config;
  if (!options.config.empty()) {
    auto read = read_config_with_origins(options.config);
    if (read) return std::move(*read);
    complain(read.error());
    return std::nullopt;
  }
  UpstreamAddress upstream;
  if (!options.upstream || !options.caller) {
    fmt::print(stderr,
               "einmal gateway: --config FILE, or --upstream URL and --caller SPEC are needed; the "
               "caller is never guessed: header:X-Caller if a trusted hop names it, fixed:NAME if "
               "everybody who can connect is one caller\n");
    return std::nullopt;
  }
  const auto caller = parse_caller(*options.caller, config.caller);
  if (!caller) {
    fmt::print(stderr, "einmal gateway: --caller: {}\n", caller.error().message);
    return std::nullopt;
  }
  if (!read_flag("--listen", options.listen, config.listen, parse_host_port) ||
      !read_flag("--upstream", options.upstream, upstream, parse_upstream))
    return std::nullopt;
  config.upstream.addresses = {upstream};
  if (options.store) config.store_url = *options.store;
  if (const auto checked = check_config(config); !checked) {
    complain(checked.error());
    return std::nullopt;
  }
  return all;
}

/// Operations that have live records but stand neither in the configuration nor under `retired`:
/// requests under them would be executed again under another name.
Result<std::vector<std::string>> forgotten_operations(Store& store, const GatewayConfig& config) {
  auto answered = ask(store, request::LiveOperations{config.name_space});
  if (!answered) return pass_on(answered);
  auto names = std::get<answer::Names>(*answered).names;
  std::erase_if(names, [&](const std::string& name) {
    if (std::find(config.retired.begin(), config.retired.end(), name) != config.retired.end())
      return true;
    // Without configured operations a name is made of the method and the path.
    if (config.operations.empty()) return name.starts_with("POST /") || name.starts_with("PATCH /");
    return std::any_of(config.operations.begin(), config.operations.end(),
                       [&](const OperationConfig& operation) { return operation.name == name; });
  });
  return names;
}

bool check_operations(Store& store, const GatewayConfig& config) {
  const auto forgotten = forgotten_operations(store, config);
  if (!forgotten) {
    complain(forgotten.error());
    return false;
  }
  for (const auto& name : *forgotten) {
    fmt::print(stderr,
               "einmal gateway: operation \"{}\" has live records but is not configured; an "
               "operation's name is part of its keys' identity: give it back its name, or list it "
               "in [gateway] retired\n",
               name);
  }
  return forgotten->empty();
}

/// Passes on that an operator accepts the wall clock after a jump. It speaks of the hour around it:
/// an acceptance that stays in the file accepts no later jump. False: it was complained about.
bool accept_time(Store& store, const GatewayConfig& config, const Clock& clock) {
  if (!config.accept_time) return true;
  const auto age = clock.wall_now() - *config.accept_time;
  if (age > std::chrono::hours(1) || age < -std::chrono::hours(1)) {
    fmt::print(stderr,
               "einmal gateway: [store] accept_time is more than an hour from now and accepts "
               "nothing; take it out\n");
    return true;
  }
  const auto accepted = ask(store, request::AcceptTime{{"configuration", "[store] accept_time"}});
  if (!accepted) complain(accepted.error());
  return accepted.has_value();
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// The signals a gateway answers to, taken by one thread; blocked everywhere else.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, leave_signal}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);  // A file-size limit is the store's error to report.
  }
  ~Signals() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), leave_signal);
    thread_.join();
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void serve(Gateway& gateway, const std::string& config_file) {
    thread_ = std::thread([this, &gateway, config_file] {
      bool draining = false;
      while (true) {
        int received = 0;
        sigwait(&set_, &received);
        if (received == leave_signal) return;
        if (received == SIGHUP) {
          reload(gateway, config_file);
        } else if (std::exchange(draining, true)) {
          ::_exit(1);  // What is open stays as a crash would leave it.
        } else {
          gateway.begin_drain();
        }
      }
    });
  }

 private:
  static void reload(Gateway& gateway, const std::string& config_file) {
    if (config_file.empty()) {
      fmt::print(stderr,
                 "einmal gateway: SIGHUP: started without --config, nothing to read again\n");
      return;
    }
    auto config = read_config(config_file);
    const auto done = config ? gateway.reload(std::move(*config)) : Result<void>(pass_on(config));
    if (!done) {
      fmt::print(stderr, "einmal gateway: SIGHUP: nothing has changed: {}\n", done.error().message);
    }
  }

  sigset_t set_{};
  std::thread thread_;
};

/// Whether a gateway would start: without taking its ports (it may be running) and without making
/// the store.
int check(GatewayConfig config, const Clock& clock, Random& random, Observer& observer) {
  config.listen.port = 0;
  if (config.metrics) config.metrics->port = 0;
  StoreSettings settings;
  settings.create = false;
  if (!store_exists(config.store_url)) {
    const auto url = shown_url(config.store_url);
    fmt::print("the configuration is good; the store {} will be made at the first start\n", url);
    return 0;
  }
  auto store = open_store(config.store_url, settings, clock, random);
  if (!store) {
    complain(store.error());
    return store.error().code == ErrorCode::invalid ? 2 : 1;
  }
  if (!check_operations(**store, config)) return 2;
  Gateway gateway(std::move(config), **store, clock, random, observer);
  if (auto opened = gateway.open(); !opened) {
    complain(opened.error());
    return 2;
  }
  fmt::print("the configuration is good\n");
  return 0;
}

/// A host as it stands in a URL: IPv6 addresses in brackets.
std::string in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

int gateway(const GatewayOptions& options, Observer& observer) {
  Signals signals;
  auto read = configuration(options);
  if (!read) return 2;
  if (options.explain) {
    fmt::print("{}", explain_config(read->config, read->origins));
    return 0;
  }
  auto* config = &read->config;
  raise_descriptor_limit();
  const SystemClock clock;
  SystemRandom random;
  if (options.check) return check(std::move(*config), clock, random, observer);
  StoreSettings settings;
  settings.audit_retention = config->audit_retention;
  auto store = open_store(config->store_url, settings, clock, random);
  if (!store) {
    complain(store.error());
    return store.error().code == ErrorCode::invalid ? 2 : 1;
  }
  if (!check_operations(**store, *config)) return 2;
  if (!accept_time(**store, *config, clock)) return 1;
  auto evidence = Evidence::open(config->log, **store, clock, observer);
  if (!evidence) {
    complain(evidence.error());
    return 2;
  }

  const auto host = in_url(config->listen.host);
  const auto metrics_host =
      config->metrics ? std::optional(in_url(config->metrics->host)) : std::nullopt;
  const auto* scheme = config->tls ? "https" : "http";
  Gateway gateway(std::move(*config), **store, clock, random, (*evidence)->observer(),
                  (*evidence)->hooks());
  if (auto opened = gateway.open(); !opened) {
    complain(opened.error());
    return opened.error().code == ErrorCode::unavailable ? 1 : 2;
  }
  if (metrics_host) fmt::print("metrics on http://{}:{}\n", *metrics_host, gateway.metrics_port());
  fmt::print("listening on {}://{}:{}\n", scheme, host, gateway.port());
  std::fflush(stdout);
  signals.serve(gateway, options.config);
  gateway.run();
  return 0;
}

}  // namespace einmal::programs
