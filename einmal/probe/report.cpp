#include "einmal/probe/report.hpp"

#include <algorithm>

#include "einmal/http/json_text.hpp"
#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, text.size()), ' ');
  return out;
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "FAILED";
    case Verdict::not_judged:
      break;
  }
  return "not judged";
}

void add_member(std::string& json, std::string_view name, std::string_view text) {
  http::append_json_string(json, name);
  json += ":";
  http::append_json_string(json, text);
}

void add_number(std::string& json, std::string_view name, long long number) {
  http::append_json_string(json, name);
  json += ":" + std::to_string(number);
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string seconds(Milliseconds time) {
  const auto fraction = std::to_string(time.count() % 1000);
  return std::to_string(time.count() / 1000) + "." + std::string(3 - fraction.size(), '0') +
         fraction;
}

}  // namespace

std::string table_line(const Finding& finding) {
  return padded(finding.name, 24) + padded(word(finding.judgement.verdict), 12) +
         finding.judgement.evidence + "\n";
}

std::string summary(const Report& report) {
  return std::to_string(report.count(Verdict::passed)) + " passed, " +
         std::to_string(report.count(Verdict::failed)) + " failed, " +
         std::to_string(report.count(Verdict::not_judged)) + " not judged; " +
         std::to_string(report.requests) + " requests\n";
}

std::string as_json(const Report& report) {
  std::string json = "{";
  add_member(json, "target", report.target);
  json += ",";
  add_member(json, "control", report.control);
  const auto count = [&](std::string_view name, std::size_t number) {
    json += ",";
    add_number(json, name, static_cast<long long>(number));
  };
  count("requests", report.requests);
  count("passed", report.count(Verdict::passed));
  count("failed", report.count(Verdict::failed));
  count("not_judged", report.count(Verdict::not_judged));
  json += ",\"scenarios\":[";
  for (const auto& finding : report.findings) {
    json += &finding == report.findings.data() ? "{" : ",{";
    add_member(json, "name", finding.name);
    json += ",";
    add_member(json, "verdict",
               finding.judgement.verdict == Verdict::not_judged
                   ? "not_judged"
                   : name_of(finding.judgement.verdict));
    json += ",";
    add_member(json, "evidence", finding.judgement.evidence);
    json += ",";
    add_member(json, "demanded_by", finding.demanded_by);
    json += ",";
    add_number(json, "milliseconds", finding.took.count());
    json += "}";
  }
  return json + "]}\n";
}

std::string as_junit(const Report& report) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"einmal probe " +
                    xml(report.target) + "\" tests=\"" + std::to_string(report.findings.size()) +
                    "\" failures=\"" + std::to_string(report.count(Verdict::failed)) +
                    "\" errors=\"0\" skipped=\"" +
                    std::to_string(report.count(Verdict::not_judged)) + "\">\n";
  for (const auto& finding : report.findings) {
    const auto evidence = xml(finding.judgement.evidence);
    out += "  <testcase classname=\"einmal.probe\" name=\"" + xml(finding.name) + "\" time=\"" +
           seconds(finding.took) + "\">";
    switch (finding.judgement.verdict) {
      case Verdict::passed:
        out += "<system-out>" + evidence + "</system-out>";
        break;
      case Verdict::failed:
        out += "<failure message=\"" + evidence + "\"/>";
        break;
      case Verdict::not_judged:
        out += "<skipped message=\"" + evidence + "\"/>";
        break;
    }
    out += "</testcase>\n";
  }
  return out + "</testsuite>\n";
}

std::string list_of_scenarios() {
  std::string out;
  for (const auto& scenario : all_scenarios())
    out += padded(scenario.name, 24) + std::string(scenario.what) + "\n" + padded("", 24) +
           "Demanded by " + std::string(scenario.demanded_by) + ".\n";
  return out;
}

}  // namespace einmal::probe
