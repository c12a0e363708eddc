#include "einmal/identity/caller.hpp"

#include <gtest/gtest.h>

namespace einmal::identity {
namespace {

Peer peer(std::string_view address) { return {IpAddress::parse(address).value(), {}}; }

http::RequestHead request(std::initializer_list<http::HeaderLine> lines) {
  http::RequestHead head;
  head.method = "POST";
  head.target = "/orders";
  for (const auto& line : lines) head.headers.add(std::string(line.name), std::string(line.value));
  return head;
}

std::unique_ptr<CallerSource> x_caller() {
  return header_source("X-Caller", {"127.0.0.0/8", "::1", "10.1.0.0/16"}).value();
}

TEST(Network, ContainsExactlyTheAddressesOfItsPrefix) {
  const auto in = [](std::string_view network, std::string_view address) {
    return Network::parse(network).value().contains(IpAddress::parse(address).value());
  };
  EXPECT_TRUE(in("127.0.0.0/8", "127.255.0.1"));
  EXPECT_FALSE(in("127.0.0.0/8", "128.0.0.1"));
  EXPECT_TRUE(in("10.1.2.0/23", "10.1.3.255"));
  EXPECT_FALSE(in("10.1.2.0/23", "10.1.4.0"));
  EXPECT_TRUE(in("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(in("10.0.0.7", "10.0.0.6"));
  EXPECT_TRUE(in("127.0.0.0/8", "::ffff:127.0.0.1"));
  EXPECT_TRUE(in("fe80::/10", "febf::1%eth0"));
  EXPECT_FALSE(in("fe80::/10", "fec0::1"));
  EXPECT_TRUE(in("0.0.0.0/0", "192.0.2.1"));
  EXPECT_FALSE(in("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(in("::/0", "192.0.2.1"));
}

TEST(Network, RefusesWhatIsNoNetwork) {
  for (const auto* text : {"", "localhost", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10.0.0.0/",
                           "10.0.0.0/a", "10.0.0.0/8/8", "fe80::%eth0/10"})
    EXPECT_FALSE(Network::parse(text)) << text;
}

TEST(HeaderSource, TakesTheAccountFromATrustedPeerOnly) {
  auto source = x_caller();
  const auto head = request({{"x-caller", "acme"}});
  EXPECT_EQ(std::get<Caller>(source->identify(head, peer("10.1.9.9"))).account, "acme");
  EXPECT_EQ(std::get<NoCaller>(source->identify(head, peer("10.2.0.1"))).status, 403);
}

TEST(HeaderSource, RefusesAMissingEmptyOrDoubledName) {
  auto source = x_caller();
  for (const auto& head :
       {request({}), request({{"X-Caller", ""}}), request({{"X_Caller", "acme"}}),
        request({{"X-Caller", "acme"}, {"X-Caller", "acme"}})})
    EXPECT_TRUE(std::holds_alternative<NoCaller>(source->identify(head, peer("::1"))));
}

TEST(HeaderSource, StripsForgedNamesInBothSpellings) {
  const auto source = x_caller();
  auto untrusted = request({{"X-Caller", "acme"}, {"x_caller", "acme"}, {"X-Other", "1"}}).headers;
  source->strip(untrusted, peer("192.0.2.1"));
  EXPECT_EQ(untrusted.size(), 1U);
  auto trusted = request({{"X-Caller", "acme"}, {"X_Caller", "evil"}}).headers;
  source->strip(trusted, peer("127.0.0.1"));
  EXPECT_EQ(trusted.size(), 1U);
  EXPECT_EQ(trusted.first("X-Caller"), "acme");
}

TEST(HeaderSource, IsNotMadeFromCredentialsOrNonsense) {
  for (const auto* name : {"Authorization", "cookie", "X-Api-Key", "X_API_KEY", "", "a b"})
    EXPECT_FALSE(header_source(name, {})) << name;
  EXPECT_FALSE(header_source("X-Caller", {"not a network"}));
}

TEST(FixedSource, IsTheSameAccountForEverybody) {
  auto source = fixed_source("shop").value();
  EXPECT_EQ(std::get<Caller>(source->identify(request({}), peer("192.0.2.1"))).account, "shop");
  EXPECT_FALSE(fixed_source(""));
}

}  // namespace
}  // namespace einmal::identity
