#include <string>
#include <vector>

#include "einmal/testing/store_contract.hpp"

/// Every row of the events table, and every else of it, through the port.
namespace einmal::testing {
namespace {

/// `script` is played on a key of its own (the word K); the last answer begins with `answer`, and
/// then the store sees the key as `condition`.
struct Row {
  std::string title;
  std::string script;
  std::string answer;
  std::string condition;
};

std::string on_key(std::string script, const std::string& key) {
  for (std::size_t at = script.find(" K"); at != std::string::npos; at = script.find(" K", at))
    script.replace(at, 2, " " + key);
  return script;
}

void play_rows(const std::string& prefix, const std::vector<Row>& rows,
               const std::function<std::string(const std::string&)>& play,
               const std::function<std::string(const std::string&)>& condition_of) {
  int number = 0;
  for (const Row& row : rows) {
    const std::string key = prefix + std::to_string(++number);
    SCOPED_TRACE(row.title + ": " + on_key(row.script, key));
    play("wait 30s; overdue");  // what earlier rows left behind
    const std::string answer = play(on_key(row.script, key));
    EXPECT_TRUE(answer.starts_with(row.answer)) << "answered: " << answer;
    EXPECT_EQ(condition_of(key), row.condition);
  }
}

const std::vector<Row> claims{
    {"claim, absent", "claim K a", "execute |", "processing"},
    {"claim, freed", "claim K a; mark K a; resolve K freed; claim K b body=2", "execute |",
     "processing"},
    {"claim, freed, by the owner that was freed", "claim K a; mark K a; resolve K freed; claim K a",
     "execute |", "processing"},
    {"claim, just before expiry",
     "claim K a; complete K a 201; wait 1h; jump -1us; claim K b body=1", "replay | completed",
     "completed"},
    {"claim, expired with new", "claim K a; complete K a 201; wait 1h; claim K b body=2",
     "execute |", "processing"},
    {"claim, expired with new and another profile",
     "claim K a; complete K a 201; wait 1h; claim K b profile=2", "execute |", "processing"},
    {"claim, failed and expired", "claim K a; fail K a 402; wait 1h; claim K b", "execute |",
     "processing"},
    {"claim, other profile, processing", "claim K a; claim K b profile=2", "other-profile",
     "processing"},
    {"claim, other profile, uncertain", "claim K a; mark K a; claim K b profile=2", "other-profile",
     "uncertain"},
    {"claim, other profile, completed", "claim K a; complete K a 201; claim K b profile=2",
     "other-profile", "completed"},
    {"claim, other profile, tombstone",
     "claim K a refuse=2h; complete K a 201; wait 1h; claim K b profile=2", "other-profile",
     "tombstone"},
    {"claim, other fingerprint, processing", "claim K a; claim K b body=2", "mismatch",
     "processing"},
    {"claim, other fingerprint, the owner itself", "claim K a; claim K a body=2", "mismatch",
     "processing"},
    {"claim, other fingerprint, lease over and takeover promised",
     "claim K a takeover; wait 30s; claim K b takeover body=2", "mismatch", "processing"},
    {"claim, other fingerprint, lease over", "claim K a; wait 30s; claim K b body=2", "mismatch",
     "processing"},
    {"claim, other fingerprint, uncertain", "claim K a; mark K a; claim K b body=2", "mismatch",
     "uncertain"},
    {"claim, other fingerprint, completed", "claim K a; complete K a 201; claim K b body=2",
     "mismatch", "completed"},
    {"claim, other fingerprint, failed", "claim K a; fail K a 402; claim K b body=2", "mismatch",
     "failed"},
    {"claim, other fingerprint, tombstone",
     "claim K a refuse=2h; complete K a 201; wait 1h; claim K b body=2", "mismatch", "tombstone"},
    {"claim, completed", "claim K a; complete K a 201; claim K b", "replay | completed",
     "completed"},
    {"claim, failed", "claim K a; fail K a 402; claim K b", "replay | failed", "failed"},
    {"claim, completed, by its owner", "claim K a; complete K a 201; claim K a",
     "replay | completed", "completed"},
    {"claim, tombstone", "claim K a refuse=2h; complete K a 201; wait 1h; claim K b", "gone",
     "tombstone"},
    {"claim, tombstone, swept", "claim K a refuse=2h; complete K a 201; wait 1h; sweep; claim K b",
     "gone", "tombstone"},
    {"claim, tombstone, at its last moment",
     "claim K a refuse=2h; fail K a 402; wait 3h; jump -1us; claim K b", "gone", "tombstone"},
    {"claim, tombstone over", "claim K a refuse=2h; complete K a 201; wait 3h; claim K b body=2",
     "execute |", "processing"},
    {"claim, same owner, processing", "claim K a; wait 10s; claim K a", "execute repeated |",
     "processing"},
    {"claim, same owner, lease over, not seen by anybody", "claim K a; wait 40s; claim K a",
     "execute repeated |", "processing"},
    {"claim, same owner, uncertain by lease end", "claim K a; wait 30s; claim K b; claim K a",
     "execute repeated |", "processing"},
    {"claim, same owner, uncertain because it said so", "claim K a; mark K a; claim K a",
     "uncertain", "uncertain"},
    {"claim, same owner, the lease is whole again",
     "claim K a; wait 20s; claim K a; wait 20s; claim K b", "in-progress left=10000000us",
     "processing"},
    {"claim, lease running", "claim K a; wait 29s; claim K b takeover",
     "in-progress left=1000000us age=29000000us", "processing"},
    {"claim, no lease", "claim K a lease=none takeover; wait 9000h; claim K b takeover",
     "in-progress left=none", "processing"},
    {"claim, lease over, takeover on both sides",
     "claim K a takeover; wait 30s; claim K b takeover", "execute takeover |", "processing"},
    {"claim, lease over, takeover promised by the record only",
     "claim K a takeover; wait 30s; claim K b", "uncertain now", "uncertain"},
    {"claim, lease over, takeover promised by the claimant only",
     "claim K a; wait 30s; claim K b takeover", "uncertain now", "uncertain"},
    {"claim, uncertain", "claim K a takeover; mark K a; wait 9000h; claim K b takeover",
     "uncertain |", "uncertain"},
};

const std::vector<Row> owners{
    {"renew, processing", "claim K a; wait 20s; renew K a; wait 20s; claim K b", "in-progress",
     "processing"},
    {"renew, lease over but nobody looked", "claim K a takeover; wait 9h; renew K a", "ok",
     "processing"},
    {"renew, uncertain by lease end", "claim K a; wait 30s; claim K b; renew K a",
     "ok | processing", "processing"},
    {"renew, uncertain otherwise", "claim K a; mark K a; renew K a", "lost seen as uncertain",
     "uncertain"},
    {"renew, taken over", "claim K a takeover; wait 30s; claim K b takeover; renew K a",
     "lost seen as processing", "processing"},
    {"renew, settled", "claim K a; complete K a 201; renew K a", "lost seen as completed",
     "completed"},
    {"renew, freed", "claim K a; mark K a; resolve K freed; renew K a", "lost seen as absent",
     "absent"},
    {"renew, absent", "claim K a; release K a; renew K a", "lost seen as absent | no record",
     "absent"},
    {"renew, wrong owner", "claim K a; renew K b", "lost", "processing"},

    {"complete, processing", "claim K a; complete K a 201", "ok | completed", "completed"},
    {"fail, processing", "claim K a; fail K a 402", "ok | failed", "failed"},
    {"complete, lease over but nobody looked", "claim K a; wait 9h; complete K a 201",
     "ok | completed", "completed"},
    {"complete, uncertain by lease end", "claim K a; wait 30s; claim K b; complete K a 201",
     "ok | completed", "completed"},
    {"complete, uncertain because it said so", "claim K a; mark K a seen=502; complete K a 201",
     "ok | completed", "completed"},
    {"fail, freed", "claim K a; mark K a; resolve K freed; fail K a 402", "ok | failed", "failed"},
    {"complete, freed and its retention over",
     "claim K a; mark K a; resolve K freed; wait 1h; complete K a 201",
     "lost contradicts seen as absent | no record", "absent"},
    {"complete, again", "claim K a; complete K a 201; complete K a 500", "ok | completed",
     "completed"},
    {"complete, again as a tombstone",
     "claim K a refuse=2h; complete K a 201; wait 1h; complete K a 201", "ok | completed",
     "tombstone"},
    {"complete, settled by an operator",
     "claim K a; mark K a; resolve K completed; complete K a 201", "lost seen as completed",
     "completed"},
    {"complete, settled otherwise by a reconciler",
     "claim K a; mark K a; resolve K failed reconciler; complete K a 201",
     "lost contradicts seen as failed", "failed"},
    {"complete, taken over", "claim K a takeover; wait 30s; claim K b takeover; complete K a 201",
     "lost seen as processing", "processing"},
    {"complete, absent", "claim K a; release K a; complete K a 201", "lost contradicts", "absent"},
    {"complete, claimed anew",
     "claim K a; mark K a; resolve K freed; claim K b body=2; complete K a 201",
     "lost contradicts seen as processing", "processing"},
    {"complete, after a takeover",
     "claim K a takeover; wait 30s; claim K b takeover; complete K b 303", "ok | completed",
     "completed"},
    {"fail, after a takeover", "claim K a takeover; wait 30s; claim K b takeover; fail K b 402",
     "became-uncertain", "uncertain"},
    {"fail, after a takeover, declared",
     "claim K a takeover; wait 30s; claim K b takeover; fail K b 402 declared", "ok | failed",
     "failed"},
    {"fail, after a takeover and uncertain already",
     "claim K a takeover; wait 30s; claim K b takeover; mark K b; fail K b 402", "became-uncertain",
     "uncertain"},
    {"fail, after a takeover and freed",
     "claim K a takeover; wait 30s; claim K b takeover; mark K b; resolve K freed; fail K b 402",
     "lost seen as absent | freed", "absent"},

    {"release, processing", "claim K a; release K a", "ok | no record", "absent"},
    {"release, then claim with another body", "claim K a; release K a; claim K b body=2",
     "execute |", "processing"},
    {"release, uncertain", "claim K a; mark K a; release K a", "ok | no record", "absent"},
    {"release, after a takeover", "claim K a takeover; wait 30s; claim K b takeover; release K b",
     "became-uncertain", "uncertain"},
    {"release, after a takeover, again",
     "claim K a takeover; wait 30s; claim K b takeover; release K b; release K b",
     "became-uncertain", "uncertain"},
    {"release, taken over", "claim K a takeover; wait 30s; claim K b takeover; release K a",
     "lost seen as processing", "processing"},
    {"release, settled", "claim K a; complete K a 201; release K a", "lost", "completed"},
    {"release, freed", "claim K a; mark K a; resolve K freed; release K a", "lost", "absent"},
    {"release, again", "claim K a; release K a; release K a", "lost seen as absent | no record",
     "absent"},

    {"mark uncertain, processing", "claim K a; mark K a seen=502", "ok | uncertain", "uncertain"},
    {"mark uncertain, uncertain by lease end: no renewal any more",
     "claim K a; wait 30s; claim K b; mark K a; renew K a", "lost", "uncertain"},
    {"mark uncertain, again", "claim K a; mark K a; mark K a seen=502", "ok | uncertain",
     "uncertain"},
    {"mark uncertain, settled", "claim K a; complete K a 201; mark K a", "lost", "completed"},
    {"mark uncertain, taken over", "claim K a takeover; wait 30s; claim K b takeover; mark K a",
     "lost", "processing"},

    {"abandon, takeover promised", "claim K a takeover; abandon K a; claim K b takeover",
     "execute takeover", "processing"},
    {"abandon, takeover not promised", "claim K a; abandon K a", "ok | uncertain", "uncertain"},
    {"abandon, no lease to end", "claim K a lease=none takeover; abandon K a", "ok | uncertain",
     "uncertain"},
    {"abandon, uncertain already", "claim K a; mark K a; abandon K a", "ok | uncertain",
     "uncertain"},
    {"abandon, taken over", "claim K a takeover; wait 30s; claim K b takeover; abandon K a", "lost",
     "processing"},
};

const std::vector<Row> others{
    {"overdue", "claim K a; wait 30s; overdue", "moved changed=1 stripped=0 more=no", "uncertain"},
    {"overdue, lease running", "claim K a; wait 29s; overdue", "moved changed=0", "processing"},
    {"overdue, takeover promised", "claim K a takeover; wait 9h; overdue", "moved changed=0",
     "processing"},
    {"overdue, no lease", "claim K a lease=none; wait 9000h; overdue", "moved changed=0",
     "processing"},

    {"doubt, no lease", "claim K a lease=none; doubt K", "ok | uncertain", "uncertain"},
    {"doubt, a lease", "claim K a; wait 9h; doubt K", "changed | processing", "processing"},
    {"doubt, other generation", "claim K a lease=none; doubt K stale", "changed", "processing"},
    {"doubt, settled", "claim K a lease=none; complete K a 201; doubt K", "changed", "completed"},
    {"doubt, absent", "doubt K", "changed | no record", "absent"},

    {"resolve to completed", "claim K a; mark K a; resolve K completed", "ok | completed",
     "completed"},
    {"resolve to failed", "claim K a; mark K a; resolve K failed reconciler", "ok | failed",
     "failed"},
    {"resolve to freed", "claim K a; mark K a; resolve K freed", "ok | freed", "absent"},
    {"resolve, and a claim is answered by it",
     "claim K a; mark K a; resolve K completed; claim K b", "replay | completed", "completed"},
    {"resolve, processing", "claim K a; wait 9h; resolve K completed", "changed", "processing"},
    {"resolve, processing, by force", "claim K a; resolve K freed force", "ok | freed", "absent"},
    {"resolve, other generation", "claim K a; mark K a; resolve K completed stale", "changed",
     "uncertain"},
    {"resolve, settled", "claim K a; complete K a 201; resolve K failed force", "changed",
     "completed"},
    {"resolve, freed", "claim K a; mark K a; resolve K freed; resolve K completed force", "changed",
     "absent"},

    {"forget, completed", "claim K a; complete K a 201; forget K", "ok | no record", "absent"},
    {"forget, failed", "claim K a; fail K a 402; forget K", "ok | no record", "absent"},
    {"forget, freed", "claim K a; mark K a; resolve K freed; forget K", "ok | no record", "absent"},
    {"forget, expired", "claim K a; complete K a 201; wait 2h; forget K", "ok | no record",
     "absent"},
    {"forget, tombstone", "claim K a refuse=2h; complete K a 201; wait 1h; forget K",
     "ok | no record", "absent"},
    {"forget, then claim with another body",
     "claim K a; complete K a 201; forget K; claim K b body=2", "execute |", "processing"},
    {"forget, processing", "claim K a; forget K", "changed", "processing"},
    {"forget, uncertain", "claim K a; mark K a; forget K", "changed", "uncertain"},
    {"forget, other generation", "claim K a; complete K a 201; forget K stale", "changed",
     "completed"},
    {"forget, absent", "forget K", "changed | no record", "absent"},
};

TEST_P(StoreContract, HoldsEveryRowOfAClaim) {
  play_rows(
      "claim-", claims, [&](const std::string& s) { return play(s); },
      [&](const std::string& k) { return condition_of(k); });
}

TEST_P(StoreContract, HoldsEveryRowOfAnOwner) {
  play_rows(
      "owner-", owners, [&](const std::string& s) { return play(s); },
      [&](const std::string& k) { return condition_of(k); });
}

TEST_P(StoreContract, HoldsEveryRowOfOperatorsAndPassersBy) {
  play_rows(
      "other-", others, [&](const std::string& s) { return play(s); },
      [&](const std::string& k) { return condition_of(k); });
}

}  // namespace
}  // namespace einmal::testing
