export { createClient, IntentConflict, type Client, type Options, type SendInit, type Time } from "./client.js";
export { guardForm, type FormGuard, type GuardOptions } from "./form.js";
export { webStorage, type Store } from "./store.js";
export { toResponse, type Answer, type Outcome, type Verdict, type Why, type RefusedWhy, type NotAttemptedWhy, type UnknownWhy } from "./verdict.js";
