#include "einmal/gateway/key_member.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace einmal::gateway {

namespace json = boost::json;

http::KeyFound find_member_key(BytesView body, const std::string& pointer) {
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(body.data(), body.size()), error);
  if (error) return http::key::Absent{};
  const json::value* found = document.find_pointer(pointer, error);
  if (error || found == nullptr || found->is_null()) return http::key::Absent{};
  const json::string* text = found->if_string();
  if (text == nullptr) return http::key::Invalid{"the body member that carries it is no string"};
  return http::parse_member_key({text->data(), text->size()});
}

}  // namespace einmal::gateway
