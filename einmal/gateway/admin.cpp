#include "einmal/gateway/admin.hpp"

#include "einmal/fingerprint/target.hpp"
#include "einmal/gateway/inbox.hpp"
#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

Page page(const Core& core, const std::function<std::string()>& metrics, std::string_view method,
          std::string_view path) {
  Page page;
  if (method != "GET" && method != "HEAD") {
    page.status = 405;
    page.body = "GET only\n";
  } else if (path == "/healthz") {
    page.body = "ok\n";
  } else if (path == "/readyz") {
    page.status = core.draining ? 503 : 200;
    page.body = core.draining ? "draining\n" : "ready\n";
  } else if (path == "/metrics") {
    page.type = "text/plain; version=0.0.4; charset=utf-8";
    if (metrics) page.body = metrics();
  } else {
    page.status = 404;
    page.body = "/metrics, /healthz, /readyz\n";
  }
  return page;
}

}  // namespace

Async<> serve_admin(Core& core, const std::function<std::string()>& metrics,
                    std::unique_ptr<Stream> stream) {
  Inbox<http::RequestParser> inbox(std::move(stream), core.settings->parser_limits);
  inbox.stream().expires_after(core.settings->config.limits.head_time);
  for (;;) {
    const auto fed = inbox.poll();
    if (fed.step == http::Step::error) break;
    if (fed.step == http::Step::need_more) {
      const IoResult got = co_await inbox.fill();
      if (!got.ok()) break;
      continue;
    }
    if (fed.step != http::Step::complete) continue;
    const auto& request = inbox.parser().head();
    const Page shown = page(core, metrics, request.method, canonical_path(request.target));
    http::ResponseHead head;
    head.status = shown.status;
    head.headers.add("Content-Type", shown.type);
    head.headers.add("Content-Length", std::to_string(shown.body.size()));
    head.headers.add("Cache-Control", "no-store");
    const bool keep = inbox.parser().keep_alive();
    if (!keep) head.headers.add("Connection", "close");
    std::string bytes;
    http::append_head(bytes, head);
    const bool bodiless = request.method == "HEAD";
    const IoResult wrote =
        co_await inbox.stream().write(bytes, bodiless ? std::string_view() : shown.body);
    if (!wrote.ok() || !keep) break;
    inbox.parser().reset();
    inbox.stream().expires_after(core.settings->config.limits.keep_alive_time);
  }
  inbox.stream().close();
}

}  // namespace einmal::gateway
