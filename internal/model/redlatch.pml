/*
 * The round with tokens, restarts and quarantine, for Spin: three nodes, two
 * clients with one attempt and one extension each, one lock. It is the same
 * algorithm as in the Go files beside it, written once more and independently,
 * so that a slip in one of the two shows. docs/testing/model.md tells what is left out.
 *
 *   make model                 the design, and every sibling
 *   spin -run redlatch.pml     the design alone
 *
 * Times are in ticks and relative to now: tick() moves everything that is
 * written down by one. So states that differ only in when they happen are one,
 * and time needs no bound. Tokens are times.
 *
 * A rule of the design is left out by -D:
 *   HALF_QUORUM, VALIDITY_FROM_REPLY, NO_DRIFT, NO_FENCE, BELIEVED_AT_ONCE,
 *   QUARANTINE_TTL, RETENTION_TTL, EXTEND_BY_ONE
 * And sized by -D: TTL, RESTARTS, EXTENSIONS, and RIGHT_CLOCKS for clients that
 * propose the true time alone.
 */
#define NODES   3
#define CLIENTS 2
#ifndef TTL
#define TTL 2
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef EXTENSIONS
#define EXTENSIONS 0
#endif
#define DRIFT 1 /* a key, or a quarantine, may end so much too early */
#define W     1 /* how far a token may be from a node's clock */
#define NONE  (-100)
#define ALWAYS 99 /* longer than makes a difference */

#ifdef HALF_QUORUM
#define QUORUM (NODES / 2)
#else
#define QUORUM (NODES / 2 + 1)
#endif

#ifdef NO_DRIFT
#define VALIDITY TTL
#else
#define VALIDITY (TTL - DRIFT)
#endif

/* Above 2 W, with the drift; see "Why Q is enough" in docs/algorithm.md. */
#ifdef QUARANTINE_TTL
#define Q (TTL + DRIFT)
#else
#define Q ((TTL > 2 * W + 1 -> TTL : 2 * W + 1) + DRIFT)
#endif

#ifdef RETENTION_TTL
#define R TTL
#else
#define R (TTL + W > 2 * W + 1 -> TTL + W : 2 * W + 1)
#endif

/* A node. */
byte  key[NODES];   /* who has the lock here: client + 1, or 0 */
short left[NODES];  /* for how long yet */
short fence[NODES]; /* the highest token, or NONE */
short kept[NODES];  /* for how long yet that is remembered */
short sits[NODES];  /* for how long yet the node sits out */

/* A client. */
mtype = { idle, asking, holding, over };
mtype phase[CLIENTS] = idle;
short token[CLIENTS];
short age[CLIENTS];   /* since the first send of the round */
short lease[CLIENTS]; /* how long the lease is valid yet */
byte  exts[CLIENTS] = EXTENSIONS;
bool  extending[CLIENTS];

/* Messages under way, and answers that count: for each client the set of nodes,
   as bits. */
#define ALL          ((1 << NODES) - 1)
#define HAS(set, n)  (((set) >> (n)) & 1)
#define WITHOUT(set, n) ((set) & (ALL - (1 << (n))))
#define SIZE(set)    (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
byte acquire[CLIENTS];
byte extend[CLIENTS];
byte release[CLIENTS];
byte granted[CLIENTS];

/* What nobody in the system knows: the highest token of any lease, and what it
   was when each client began. */
short top = NONE;
short began[CLIENTS] = NONE;

byte restarts = RESTARTS;

/* The attempt is over: every node is sent a release. */
inline end(c) {
    phase[c] = over;
    extending[c] = false;
    age[c] = 0; lease[c] = 0; began[c] = NONE;
    granted[c] = 0;
    release[c] = ALL
}

inline set_fence(n, t) {
#ifndef NO_FENCE
    fence[n] = t; kept[n] = R
#else
    skip
#endif
}

/* A grant of node n is taken in. Validity is counted from the first send. */
inline take_grant(c, n) {
    granted[c] = granted[c] | (1 << n);
    if
#ifdef VALIDITY_FROM_REPLY
    :: SIZE(granted[c]) >= QUORUM ->
        lease[c] = VALIDITY;
#else
    :: SIZE(granted[c]) >= QUORUM && age[c] < VALIDITY ->
        lease[c] = VALIDITY - age[c];
#endif
        phase[c] = holding;
        assert(phase[1 - c] != holding);             /* exclusion */
        assert(began[c] == NONE || token[c] > began[c]); /* the order of tokens */
        if :: token[c] > top -> top = token[c] :: else fi;
        age[c] = 0; began[c] = NONE;
        granted[c] = 0
    :: else
    fi
}

/* Node n says that it has extended. */
inline take_extension(c, n) {
    granted[c] = granted[c] | (1 << n);
    if
#ifdef EXTEND_BY_ONE
    :: SIZE(granted[c]) >= 1 ->
#else
    :: SIZE(granted[c]) >= QUORUM ->
#endif
        if :: VALIDITY - age[c] > lease[c] -> lease[c] = VALIDITY - age[c] :: else fi;
        extending[c] = false; age[c] = 0;
        granted[c] = 0
    :: else
    fi
}

/* What a node does with an acquire: redis/lua/acquire.lua. The answer is taken
   in, or lost. */
#define TRUSTED(n)   (sits[n] <= DRIFT)
#define ABOVE(c, n)  (fence[n] == NONE || token[c] > fence[n])
#define WITHIN(c)    (token[c] >= -W && token[c] <= W)
#define MAY_GRANT(c, n) (TRUSTED(n) && key[n] == 0 && ABOVE(c, n) && WITHIN(c))

inline on_acquire(c, n) {
    acquire[c] = WITHOUT(acquire[c], n);
    if
    :: MAY_GRANT(c, n) ->
        key[n] = c + 1; left[n] = TTL;
        set_fence(n, token[c]);
        if :: phase[c] == asking && !lost -> take_grant(c, n) :: else fi
    :: else /* held, stale, behind, ahead, in quarantine */
    fi
}

inline on_extend(c, n) {
    extend[c] = WITHOUT(extend[c], n);
    if
    :: key[n] == c + 1 ->
        key[n] = c + 1; left[n] = TTL;
        if :: fence[n] != NONE -> kept[n] = R :: else fi;
        if :: phase[c] == holding && extending[c] && !lost -> take_extension(c, n) :: else fi
    :: else
    fi
}

/* A release also raises the fence, so that an acquire which comes after it is
   stale. */
inline on_release(c, n) {
    release[c] = WITHOUT(release[c], n);
    if :: ABOVE(c, n) && token[c] <= W -> set_fence(n, token[c]) :: else fi;
    if :: key[n] == c + 1 -> key[n] = 0; left[n] = 0 :: else fi
}

inline forget(n) {
    key[n] = 0; left[n] = 0; fence[n] = NONE; kept[n] = 0;
#ifndef BELIEVED_AT_ONCE
    sits[n] = Q
#endif
}

/* Tokens of long ago are as good as one another. */
inline older(t) {
    if :: t > -20 -> t-- :: else fi
}

inline tick() {
    n = 0;
    do
    :: n < NODES ->
        if
        :: left[n] > 1 -> left[n]--
        :: else -> left[n] = 0; key[n] = 0
        fi;
        older(fence[n]);
        if
        :: kept[n] == ALWAYS
        :: kept[n] > 1 && kept[n] != ALWAYS -> kept[n]--
        :: else -> kept[n] = 0; fence[n] = NONE
        fi;
        if :: sits[n] > 0 -> sits[n]-- :: else fi;
        n++
    :: else -> break
    od;
    older(top);
    c = 0;
    do
    :: c < CLIENTS ->
        older(token[c]);
        older(began[c]);
        if :: (phase[c] == asking || extending[c]) && age[c] < TTL -> age[c]++ :: else fi;
#ifndef VALIDITY_FROM_REPLY
        if :: phase[c] == asking && age[c] >= VALIDITY -> end(c) /* too late to win */ :: else fi;
#endif
        if
        :: phase[c] == holding ->
            lease[c]--;
            if :: lease[c] == 0 -> end(c) :: else fi
        :: else
        fi;
        c++
    :: else -> break
    od
}

/* What can make no difference any more is forgotten, so that states which go on
   alike are one. A fence below the window is made up for by the window, and so
   is one that will be before it is forgotten. A message is dropped if it would
   be refused now and later, even by a node that loses its data meanwhile. */
#ifdef BELIEVED_AT_ONCE
#define LOSS 0
#else
#define LOSS (Q - DRIFT)
#endif
inline tidy() {
    n = 0;
    do
    :: n < NODES ->
        if
        :: fence[n] < -W -> fence[n] = NONE; kept[n] = 0
        :: fence[n] >= -W && fence[n] - kept[n] < -W -> kept[n] = ALWAYS
        :: else
        fi;
        c = 0;
        do
        :: c < CLIENTS ->
            if
            :: HAS(acquire[c], n) && key[n] != c + 1 &&
               (token[c] < -W || token[c] <= fence[n] && kept[n] == ALWAYS && token[c] < LOSS - W) ->
                acquire[c] = WITHOUT(acquire[c], n)
            :: else
            fi;
            if
            :: HAS(release[c], n) && key[n] != c + 1 && !HAS(acquire[c], n) &&
               (token[c] < -W || token[c] <= fence[n]) ->
                release[c] = WITHOUT(release[c], n)
            :: else
            fi;
            if
            :: HAS(extend[c], n) && key[n] != c + 1 && phase[c] == over && !HAS(acquire[c], n) ->
                extend[c] = WITHOUT(extend[c], n)
            :: else
            fi;
            c++
        :: else -> break
        od;
        n++
    :: else -> break
    od;
    c = 0;
    do
    :: c < CLIENTS ->
        if :: phase[c] == over && acquire[c] + extend[c] + release[c] == 0 -> token[c] = 0 :: else fi;
        if :: began[c] < -(W + TTL + 1) -> began[c] = NONE :: else fi;
        c++
    :: else -> break
    od;
    if :: top < -(W + TTL + 1) -> top = NONE :: else fi;
    c = 0; n = 0; lost = false
}

/* Everything that can happen, one thing at a time. */
proctype world() {
    byte c, n;
    bool lost;
    do
    :: atomic { /* a client begins, with a clock that is right or off */
        select(c : 0 .. CLIENTS - 1);
        if
        :: phase[c] == idle ->
            if
            :: token[c] = 0
#ifndef RIGHT_CLOCKS
            :: token[c] = -W
            :: token[c] = W
#endif
            fi;
            phase[c] = asking; age[c] = 0; began[c] = top;
            acquire[c] = ALL
        :: phase[c] == holding && exts[c] > 0 && !extending[c] ->
            exts[c]--; extending[c] = true; age[c] = 0;
            extend[c] = ALL
        :: phase[c] == asking || phase[c] == holding ->
            end(c) /* gives up, or releases */
        :: else
        fi;
        d_step { tidy() }
       }
    :: atomic { /* a node carries out a message; any may be late or never come */
        select(c : 0 .. CLIENTS - 1);
        select(n : 0 .. NODES - 1);
        if
        :: lost = false
        :: lost = true
        fi;
        if
        :: HAS(acquire[c], n) -> d_step { on_acquire(c, n) }
        :: HAS(extend[c], n) -> d_step { on_extend(c, n) }
        :: HAS(release[c], n) && !lost -> d_step { on_release(c, n) }
        :: else
        fi;
        d_step { tidy() }
       }
    :: atomic { /* a key runs out early, by the drift of the node's clock */
        select(n : 0 .. NODES - 1);
        if :: key[n] != 0 && left[n] <= DRIFT -> key[n] = 0; left[n] = 0 :: else fi;
        d_step { tidy() }
       }
    :: atomic { restarts > 0 -> /* a node loses its data */
        restarts--;
        select(n : 0 .. NODES - 1);
        forget(n);
        d_step { tidy() }
       }
    :: d_step { tick(); tidy() }
    od
}

init {
    byte k;
    atomic {
        for (k : 0 .. NODES - 1) {
            fence[k] = NONE
        }
        run world()
    }
}
