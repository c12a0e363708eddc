/* The protocol of one key, for Spin (http://spinroot.com; Holzmann, The SPIN Model Checker).
 *
 * A client sends ATTEMPTS requests for one key, at any time, to any gateway. Each is a process that may crash
 * between any two steps or stop for as long as it likes (interleaving is the pause). The store is one record
 * changed in atomic steps; the lease may run out at any moment; the upstream does an effect per request that
 * reaches it and may lose the answer; a reconciler settles what is uncertain.
 *
 *   spin -a [-D...] protocol.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * -DTAKEOVER            the record and every claimant promise `takeover`
 * Mutants that must be caught (tests/model/check):
 * -DNO_FENCE_RENEW -DNO_FENCE_COMPLETE -DNO_FENCE_RELEASE -DEXPIRE_PROCESSING -DNEVER_OVERDUE
 */
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#define NOBODY 255

mtype = { absent, processing, completed, uncertain, freed };

/* The record. A generation is also the owner: each claim draws a new one. */
mtype state = absent;
byte generation = 0;     /* of the record */
byte counter = 0;        /* the store's durable counter */
byte attempts = 0;
byte result = NOBODY;    /* whose answer is stored */
bool lease_over = false;

/* The world outside. */
byte effects = 0;
byte can_still_send = 0; /* attempts that own or owned the key, live, first byte not sent */
byte in_flight = 0;      /* requests on their way to or inside the upstream */

/* What clients were told. */
byte told = NOBODY;      /* whose result the first final answer carried */
byte top_generation = 0; /* highest the record ever had */

inline tell(whose) {
  /* Every final answer for the key is the same, and there is an effect behind it. */
  assert(told == NOBODY || told == whose);
  assert(effects > 0);
  told = whose;
}

inline effect() {
  effects++;
#ifndef TAKEOVER
  /* At most one effect, whatever crashes, pauses and resolutions came between. */
  assert(effects == 1);
#endif
}

inline watch_generation() {
  assert(generation >= top_generation);
  top_generation = generation;
}

proctype Attempt(byte me) {
  byte mine = 0;
  bool sent = false;
  bool answered = false;

  /* claim */
  atomic {
    if
    :: state == absent || state == freed ->
         counter++; generation = counter; mine = counter; attempts = 1;
         state = processing; lease_over = false; can_still_send++;
    :: state == completed -> tell(result); goto done;
    :: state == uncertain -> goto done;
#ifdef EXPIRE_PROCESSING
    :: state == processing && lease_over ->
         counter++; generation = counter; mine = counter; attempts = 1;
         lease_over = false; can_still_send++;
#else
#ifdef TAKEOVER
    :: state == processing && lease_over ->
         counter++; generation = counter; mine = counter; attempts++;
         lease_over = false; can_still_send++;
#else
    :: state == processing && lease_over -> state = uncertain; goto done;
#endif
#endif
    :: state == processing && !lease_over -> goto done;
    fi;
    watch_generation();
  }

  /* Owned. Renew, give up before the first byte, or send. A crash is possible at every step. */
owned:
  if
  :: atomic { can_still_send--; goto done; }                       /* crash */
  :: atomic {                                                      /* heartbeat */
#ifdef NO_FENCE_RENEW
       if
       :: state == processing -> generation = mine; lease_over = false; watch_generation(); goto send;
       :: else -> can_still_send--; goto done;
       fi
#else
       if
       :: state == processing && generation == mine -> lease_over = false; goto send;
       :: state == uncertain && generation == mine -> state = processing; lease_over = false; goto send;
       :: else -> can_still_send--; goto done;                     /* lost */
       fi
#endif
     }
  :: goto send
  :: can_still_send--; goto release                                /* upstream unreachable: nothing sent */
  fi;

send:
  if
  :: atomic { can_still_send--; in_flight++; sent = true; }
  :: atomic { can_still_send--; goto done; }                       /* crash before the first byte */
  fi;
  if                                                               /* the upstream */
  :: atomic { effect(); in_flight--; answered = true; }
  :: atomic { effect(); in_flight--; }                           /* effect, answer lost */
  :: atomic { in_flight--; }                                       /* no effect, no answer */
  fi;
  if
  :: goto done                                                     /* crash */
  :: answered -> goto complete
  :: !answered -> goto unknown
  fi;

complete:
  atomic {
#ifdef NO_FENCE_COMPLETE
    if
    :: state != absent -> state = completed; result = mine;
    :: else -> goto done;
    fi;
#else
    if
    :: (state == processing || state == uncertain || state == freed) && generation == mine ->
         state = completed; result = mine;
    :: state == completed && generation == mine && result == mine -> skip;
    :: else ->                                                     /* lost: a late result, never published */
         if
         :: state == completed -> tell(result);
         :: else -> skip;
         fi;
         goto done;
    fi;
#endif
  }
  if
  :: goto done                                                     /* answer lost after the commit */
  :: atomic { tell(mine); goto done; }
  fi;

unknown:
  atomic {
    if
    :: state == processing && generation == mine -> state = uncertain;
    :: else -> skip;
    fi;
    goto done;
  }

release:
  atomic {
#ifdef NO_FENCE_RELEASE
    if
    :: state != absent && state != completed -> state = absent;
    :: else -> skip;
    fi;
#else
    if
    :: (state == processing || state == uncertain) && generation == mine && attempts == 1 -> state = absent;
    :: state == processing && generation == mine && attempts > 1 -> state = uncertain;
    :: else -> skip;                                               /* lost */
    fi;
#endif
  }
done:
  skip
}

/* A lease runs out whenever it likes; any process that looks then marks the record. */
proctype Time() {
end:
  do
  :: state == processing && !lease_over -> lease_over = true
#if !defined(TAKEOVER) && !defined(NEVER_OVERDUE)
  :: state == processing && lease_over -> state = uncertain
#endif
  od
}

/* Settles what is uncertain, comparing the generation it looked at. It says "free" only when no attempt can
 * still send a byte and nothing is on its way (quiescence), and no effect is there. */
proctype Reconciler() {
  byte looked;
  byte left = 2;
end:
  do
  :: atomic { left > 0 && state == uncertain -> looked = generation; left--; }
       if
       :: atomic { state == uncertain && generation == looked && effects > 0 -> state = completed; result = looked; }
       :: atomic { state == uncertain && generation == looked && effects == 0 && can_still_send == 0 && in_flight == 0 ->
                   state = freed; }
       :: skip                                                      /* cannot say, or changed: look again */
       fi
  :: left == 0 -> break
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < ATTEMPTS -> run Attempt(i); i++
    :: i >= ATTEMPTS -> break
    od;
    run Time();
    run Reconciler();
  }
}

#ifndef TAKEOVER
/* No key stays in processing for ever: its owner finishes, or its silence is noticed. */
ltl settles { <>[] (state != processing) }
#endif
