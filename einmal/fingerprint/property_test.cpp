#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/fingerprint/choices_in_tests.hpp"
#include "einmal/fingerprint/json_document.hpp"
#include "einmal/fingerprint/json_grammar.hpp"
#include "einmal/fingerprint/requests_in_tests.hpp"
#include "einmal/fingerprint/target.hpp"

// rapidcheck prints the seed of a failure and how to replay it (RC_PARAMS).

namespace einmal {
namespace {

/// More cases than the 100 that rapidcheck tries by itself, unless RC_PARAMS says otherwise.
[[maybe_unused]] const int more_cases = setenv("RC_PARAMS", "max_success=1000", 0);

using Script = std::vector<std::uint8_t>;

const FingerprintProfile& plain() {
  static const FingerprintProfile profile = profile_of({});
  return profile;
}

std::string print_of_json(const std::string& text) {
  const std::string print = print_of(json(text), plain());
  RC_ASSERT(print.rfind("unusable", 0) != 0);
  return print;
}

RC_GTEST_PROP(JsonProperty, EverySpellingOfAValueHasTheSameDigest,
              (const Script& value, const Script& one, const Script& other)) {
  Choices choices(value), first(one), second(other);
  const ModelJson model = choose_json(choices);
  const std::string a = Speller(first).json(model), b = Speller(second).json(model);
  RC_LOG() << a << "\n" << b;
  RC_ASSERT(print_of_json(a) == print_of_json(b));
}

RC_GTEST_PROP(JsonProperty, DigestsAreEqualExactlyWhenTheValuesAre,
              (const Script& one, const Script& other, const Script& spelling)) {
  Choices first(one), second(other), spell(spelling);
  const ModelJson a = choose_json(first, 1), b = choose_json(second, 1);
  const std::string text_a = Speller(spell).json(a), text_b = Speller(spell).json(b);
  RC_LOG() << text_a << "\n" << text_b;
  RC_CLASSIFY(a == b, "equal");
  RC_ASSERT((print_of_json(text_a) == print_of_json(text_b)) == (a == b));
}

/// Changes one thing somewhere in a value.
void mutate(ModelJson& value, Choices& choices) {
  if (value.kind == ModelJson::array && !value.elements.empty() && choices.yes()) {
    return mutate(value.elements[choices.below(value.elements.size())], choices);
  }
  if (value.kind == ModelJson::object && !value.members.empty() && choices.yes()) {
    return mutate(value.members[choices.below(value.members.size())].second, choices);
  }
  switch (value.kind) {
    case ModelJson::null:
      value.kind = ModelJson::truth;
      return;
    case ModelJson::truth:
      value.yes = !value.yes;
      return;
    case ModelJson::number:
      value.mantissa += 1;
      return;
    case ModelJson::text:
      value.characters.push_back(U'x');
      return;
    case ModelJson::array:
      value.elements.emplace_back();
      return;
    case ModelJson::object:
      value.members.emplace_back(U"not in the alphabet", ModelJson());
  }
}

RC_GTEST_PROP(JsonProperty, AnyOneChangeChangesTheDigest,
              (const Script& value, const Script& change, const Script& spelling)) {
  Choices choices(value), where(change), spell(spelling);
  const ModelJson before = choose_json(choices);
  ModelJson after = before;
  mutate(after, where);
  const std::string a = Speller(spell).json(before), b = Speller(spell).json(after);
  RC_LOG() << a << "\n" << b;
  RC_ASSERT(print_of_json(a) != print_of_json(b));
}

RC_GTEST_PROP(JsonProperty, CanonicalTextIsStableAndMeansTheSame,
              (const Script& value, const Script& spelling)) {
  Choices choices(value), spell(spelling);
  const std::string text = Speller(spell).json(choose_json(choices));
  const auto canonical = canonical_json(text, JsonNumbers::exact);
  RC_ASSERT(canonical.has_value());
  RC_ASSERT(*canonical_json(*canonical, JsonNumbers::exact) == *canonical);
  RC_ASSERT(print_of_json(*canonical) == print_of_json(text));
}

RC_GTEST_PROP(JsonProperty, AnIgnoredMemberCountsNeitherThereNorAway,
              (const Script& value, const Script& extra, const Script& spelling)) {
  Choices choices(value), more(extra), spell(spelling);
  ModelJson without = choose_json(choices);
  ModelJson with = without;
  if (with.kind == ModelJson::object) with.members.emplace_back(U"noise/~", choose_json(more));
  FingerprintOptions options;
  options.ignore = {"/noise~1~0"};
  const std::string a = Speller(spell).json(without), b = Speller(spell).json(with);
  RC_LOG() << a << "\n" << b;
  RC_ASSERT(same(json(a), json(b), options));
}

RC_GTEST_PROP(JsonProperty, ARepeatedNameIsAlwaysFound,
              (const Script& value, const Script& spelling)) {
  Choices choices(value), spell(spelling);
  ModelJson model = choose_json(choices);
  if (model.kind != ModelJson::object || model.members.empty()) {
    model = ModelJson();
    model.kind = ModelJson::object;
    model.members.emplace_back(choose_text(choices), ModelJson());
  }
  const auto name = model.members[choices.below(model.members.size())].first;
  model.members.emplace_back(name, choose_json(choices));
  const std::string text = Speller(spell).json(model);
  RC_LOG() << text;
  RC_ASSERT(is_unusable(json(text)));
}

RC_GTEST_PROP(JsonProperty, TheParserAndTheGrammarAgreeOnDamagedText,
              (const Script& value, const Script& spelling, const Script& damage)) {
  Choices choices(value), spell(spelling), harm(damage);
  std::string text = Speller(spell).json(choose_json(choices));
  for (std::size_t left = harm.below(3); left != 0 && !text.empty(); --left) {
    const std::size_t at = harm.below(text.size());
    static constexpr std::string_view bytes("\"\\{}[]:,0-.eE \xff\xed\x01u", 19);
    if (harm.yes()) {
      text[at] = bytes[harm.below(bytes.size())];
    } else {
      text.erase(at, 1 + harm.below(3));
    }
  }
  RC_LOG() << text;
  JsonDocument document;
  const auto fault = document.parse(text, false);
  const JsonScan scan = scan_json(text);
  RC_ASSERT(scan.follows_grammar == !(fault && fault->breaks_grammar));
  if (!fault) RC_ASSERT(scan.fault.empty());
  if (!scan.fault.empty()) RC_ASSERT(fault.has_value());
  if (fault) RC_ASSERT(fault->reason.find("parser") == std::string::npos);
}

/// Pairs as a form has them; none: a name without `=`.
using Pairs = std::vector<std::pair<std::string, std::optional<std::string>>>;

Pairs choose_pairs(Choices& choices) {
  static constexpr std::string_view alphabet("ab+ %&=\xc3\xa4\n/", 12);
  const auto word = [&] {
    std::string out;
    for (std::size_t left = choices.below(3); left != 0; --left) {
      out.push_back(alphabet[choices.below(alphabet.size())]);
    }
    return out;
  };
  Pairs pairs;
  for (std::size_t left = choices.below(4); left != 0; --left) {
    std::string name = word();
    std::optional<std::string> value;
    if (choices.below(4) != 0) value = word();
    if (name.empty() && !value) continue;  // has no spelling
    pairs.emplace_back(std::move(name), std::move(value));
  }
  return pairs;
}

std::string spell_pairs(const Pairs& pairs, Choices& choices) {
  std::string out;
  const auto spell = [&](const std::string& text) {
    for (const char c : text) {
      const bool plain_char = c == 'a' || c == 'b' || c == '/' || static_cast<signed char>(c) < 0;
      if (c == ' ' && choices.yes()) {
        out += '+';
      } else if (plain_char && choices.yes()) {
        out += c;
      } else {
        out += '%';
        for (const char digit : to_hex({&c, 1})) {
          out += choices.yes() ? digit : static_cast<char>(std::toupper(digit));
        }
      }
    }
  };
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += '&';
    out.append(choices.below(2), '&');
    spell(name);
    if (!value) continue;
    out += '=';
    spell(*value);
  }
  return out;
}

bool equal_pairs(Pairs a, Pairs b) {
  const auto by_name = [](const auto& x, const auto& y) { return x.first < y.first; };
  std::stable_sort(a.begin(), a.end(), by_name);
  std::stable_sort(b.begin(), b.end(), by_name);
  return a == b;
}

RC_GTEST_PROP(QueryProperty, TextsAreEqualExactlyWhenTheirPairsAre,
              (const Script& one, const Script& other, const Script& spelling)) {
  Choices first(one), second(other), spell(spelling);
  const Pairs a = choose_pairs(first);
  Pairs b = choose_pairs(second);
  if (spell.yes()) {
    b = a;
    if (!b.empty()) std::swap(b[spell.below(b.size())], b[spell.below(b.size())]);
  }
  const std::string text_a = spell_pairs(a, spell), text_b = spell_pairs(b, spell);
  RC_LOG() << text_a << "\n" << text_b;
  RC_CLASSIFY(equal_pairs(a, b), "equal");
  RC_ASSERT((canonical_query(text_a) == canonical_query(text_b)) == equal_pairs(a, b));
}

RC_GTEST_PROP(QueryProperty, CanonicalTextsAreTheirOwnCanonicalForm, (const std::string& any)) {
  const std::string query = canonical_query(any);
  RC_ASSERT(canonical_query(query) == query);
  const std::string path = canonical_path("/" + any);
  RC_ASSERT(canonical_path(path) == path);
}

}  // namespace
}  // namespace einmal
