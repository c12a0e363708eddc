#pragma once

#include <memory>
#include <string>

#include "einmal/store/session.hpp"
#include "einmal/workflow/definition.hpp"
#include "einmal/workflow/observer.hpp"

/// A refund as a workflow: the order is marked, the payment provider is asked, the order is booked,
/// and a mail goes out. docs/workflow.md walks through it.
namespace einmal::refund {

/// The service's own orders, and the session on their connection: what its local steps use.
class Orders {
 public:
  virtual ~Orders() = default;
  virtual Session& session() = 0;
  /// paid -> refunding. False: it is not paid (any more).
  virtual bool begin_refund(const std::string& order) = 0;
  /// Counts one refund of the order, which tests look at, and marks it refunded.
  virtual void book_refund(const std::string& order, const std::string& payment) = 0;
};

struct Provider {
  std::string url;            ///< Of the demo shop.
  bool honours_keys = false;  ///< It runs with --idempotent: resend. Otherwise its books are asked.
  std::string fault;          ///< X-Demo-Fault of every first attempt.
};

/// refund/1 and mail/1. The input of a refund is the order's name.
std::vector<workflow::Definition> definitions(Orders& orders, const Provider& provider);

struct Arguments {
  std::string database;  ///< sqlite:FOLDER or a libpq connection string: store and orders.
  Provider provider;
  std::string order;
};

/// Starts the refund of `order` under the key "refund-ORDER" (or finds it started), works until no
/// workflow is left, prints the status of the result. An exit code.
int run(const Arguments& arguments, workflow::Observer& observer);

/// From the command line: DATABASE SHOP_URL ORDER [--honours-keys] [--fault F].
int main_with(int count, char** values, workflow::Observer& observer);

}  // namespace einmal::refund
