#include "einmal/postgres/connection_notes.hpp"

#include <libpq-events.h>
#include <libpq-fe.h>

#include <string_view>

namespace einmal::postgres {

namespace {

int on_event(PGEventId id, void* info, void*) {
  switch (id) {
    case PGEVT_REGISTER: {
      auto* event = static_cast<PGEventRegister*>(info);
      return PQsetInstanceData(event->conn, on_event, new ConnectionNotes);
    }
    case PGEVT_CONNRESET: {
      auto* event = static_cast<PGEventConnReset*>(info);
      if (auto* notes = static_cast<ConnectionNotes*>(PQinstanceData(event->conn, on_event)))
        notes->prepared.clear();
      return 1;
    }
    case PGEVT_CONNDESTROY: {
      auto* event = static_cast<PGEventConnDestroy*>(info);
      delete static_cast<ConnectionNotes*>(PQinstanceData(event->conn, on_event));
      return 1;
    }
    case PGEVT_RESULTCREATE: {
      auto* event = static_cast<PGEventResultCreate*>(info);
      const char* state = PQresultErrorField(event->result, PG_DIAG_SQLSTATE);
      auto* notes = static_cast<ConnectionNotes*>(PQinstanceData(event->conn, on_event));
      if (state && notes && std::string_view(state).starts_with("40")) notes->conflict = true;
      return 1;
    }
    default:
      return 1;
  }
}

}  // namespace

ConnectionNotes* notes_of(pg_conn* connection) {
  if (!PQinstanceData(connection, on_event))
    PQregisterEventProc(connection, on_event, "einmal", nullptr);
  return static_cast<ConnectionNotes*>(PQinstanceData(connection, on_event));
}

}  // namespace einmal::postgres
