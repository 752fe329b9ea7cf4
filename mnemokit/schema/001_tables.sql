-- Everything a store holds. Instants are TIMESTAMPTZ, always UTC. Integrity is kept by code, not by foreign keys,
-- because a child and its parent are deleted in one transaction.

-- The store itself -----------------------------------------------------------------------------------------------

CREATE TABLE store_info (
    name  VARCHAR NOT NULL PRIMARY KEY,
    value VARCHAR NOT NULL
);

-- Numbers given out so far; a writer takes a block of them in its own transaction, which keeps two writers apart. No index
-- may be put on this table: on an indexed one DuckDB 2.0 notices no conflict of two updates, and one of them is lost.
CREATE TABLE counters (
    name      VARCHAR NOT NULL,
    next_free BIGINT NOT NULL
);

INSERT INTO counters VALUES ('seq', 1), ('edge_no', 1), ('mnest_no', 1), ('turn_no', 1), ('replay_no', 1);

-- A key is kept as its keyed hash only, so that it may outlive the rows it made.
CREATE TABLE idempotency_keys (
    key_hash VARCHAR NOT NULL PRIMARY KEY,
    call     VARCHAR NOT NULL,
    result   VARCHAR NOT NULL
);

-- Persons and scopes that were erased or forgotten, as keyed hashes. realm: subject, scope (2.1, 2.4) or user (2.3).
CREATE TABLE tombstones (
    name_hash     VARCHAR NOT NULL,
    realm         VARCHAR NOT NULL,
    ts_forgotten  TIMESTAMPTZ NOT NULL,
    ts_readmitted TIMESTAMPTZ,
    PRIMARY KEY (name_hash, realm)
);

-- Turns: the log everything is derived from ------------------------------------------------------------------------

CREATE TABLE turns (
    turn_no          BIGINT NOT NULL,
    source           VARCHAR NOT NULL,
    session_id       VARCHAR NOT NULL,
    turn_id          VARCHAR NOT NULL,
    step             BIGINT NOT NULL,
    parallel_group   BIGINT NOT NULL,
    executor         VARCHAR,
    executor_version VARCHAR,
    requestor        VARCHAR,
    ts               TIMESTAMPTZ,
    ok               BOOLEAN,
    user_id          VARCHAR,
    scope            VARCHAR,
    question         VARCHAR,
    session_outcome  VARCHAR,
    meta             VARCHAR
);

CREATE TABLE rejects (
    source   VARCHAR NOT NULL,
    file     VARCHAR,
    place    VARCHAR,
    reason   VARCHAR NOT NULL,
    excerpt  VARCHAR,
    user_id  VARCHAR,
    ts_read  TIMESTAMPTZ NOT NULL
);

-- One row per call of replay. first_turn_no: turns from here on may still lack their capture while it is unfinished.
-- base_first and base_last: the ager instants that bounded the store's history when the call began.
CREATE TABLE replays (
    replay_no     BIGINT NOT NULL,
    sources       VARCHAR[] NOT NULL,
    ager          VARCHAR,
    first_turn_no BIGINT NOT NULL,
    base_first    TIMESTAMPTZ,
    base_last     TIMESTAMPTZ,
    ts_replayed   TIMESTAMPTZ NOT NULL,
    turns         BIGINT NOT NULL,
    finished      BOOLEAN NOT NULL
);

-- Reasonlets: procedures with versions -----------------------------------------------------------------------------

-- root_id and depth (0 for a root) follow from parent_id; they are kept so that no reader has to climb, and are set anew
-- where an erasure cuts a lineage. seq, the order of arrival, is a second key: joins on it are three times as fast as on
-- the text, so parent_no is the parent's seq, reasonlet_no the reasonlet's of a run or verdict, run_no the run's of a verdict.

CREATE TABLE reasonlets (
    reasonlet_id VARCHAR NOT NULL PRIMARY KEY,
    parent_id    VARCHAR,
    root_id      VARCHAR NOT NULL,
    version      VARCHAR NOT NULL,
    version_no   INTEGER NOT NULL,
    depth        INTEGER NOT NULL,
    scope        VARCHAR NOT NULL,
    question     VARCHAR,
    subject      VARCHAR,
    graph        VARCHAR NOT NULL,
    graph_hash   VARCHAR NOT NULL,
    provenance   VARCHAR,
    ts_captured  TIMESTAMPTZ NOT NULL,
    untimed      BOOLEAN NOT NULL DEFAULT FALSE,
    source       VARCHAR,
    seq          BIGINT NOT NULL,
    parent_no    BIGINT
);

-- The highest version number that a lineage ever gave out, so that a label never names two procedures.
CREATE TABLE lineages (
    root_id    VARCHAR NOT NULL PRIMARY KEY,
    high_water INTEGER NOT NULL
);

CREATE TABLE runs (
    run_id       VARCHAR NOT NULL,
    reasonlet_id VARCHAR NOT NULL,
    outcome      VARCHAR,
    subject      VARCHAR,
    provenance   VARCHAR,
    recall_id    VARCHAR,
    ts_run       TIMESTAMPTZ NOT NULL,
    untimed      BOOLEAN NOT NULL DEFAULT FALSE,
    source       VARCHAR,
    session_id   VARCHAR,
    seq          BIGINT NOT NULL,
    reasonlet_no BIGINT NOT NULL
);

-- How the runs of each reasonlet stand, as the store stands: n counted ones, s successes. Every write keeps it equal to what
-- sql/rank_counted.sql counts, so that a recall need not read every run.
CREATE TABLE run_counts (
    reasonlet_no BIGINT NOT NULL,
    n            BIGINT NOT NULL,
    s            BIGINT NOT NULL
);

CREATE TABLE feedback (
    feedback_id  VARCHAR NOT NULL,
    run_id       VARCHAR NOT NULL,
    outcome      VARCHAR,
    subject      VARCHAR,
    note         VARCHAR,
    ts_given     TIMESTAMPTZ NOT NULL,
    seq          BIGINT NOT NULL,
    run_no       BIGINT NOT NULL,
    reasonlet_no BIGINT NOT NULL
);

CREATE TABLE recalls (
    recall_id   VARCHAR NOT NULL,
    scope       VARCHAR NOT NULL,
    question    VARCHAR,
    subject     VARCHAR,
    weight      DOUBLE NOT NULL,
    shown       INTEGER NOT NULL,
    ts_recalled TIMESTAMPTZ NOT NULL,
    seq         BIGINT NOT NULL
);

CREATE TABLE recall_rows (
    recall_id    VARCHAR NOT NULL,
    rank         INTEGER NOT NULL,
    reasonlet_id VARCHAR NOT NULL,
    similarity   DOUBLE NOT NULL,
    rate         DOUBLE NOT NULL,
    score        DOUBLE NOT NULL
);

-- What a question is found by: its terms, with how often each occurs in it. A question is known by its reasonlet's seq;
-- its length and instant stand in every posting too, so that a search reads this one table.
CREATE TABLE postings (
    scope       VARCHAR NOT NULL,
    term        VARCHAR NOT NULL,
    seq         BIGINT NOT NULL,
    occurrences INTEGER NOT NULL,
    terms       INTEGER NOT NULL,
    ts_captured TIMESTAMPTZ NOT NULL
);

CREATE TABLE question_lengths (
    scope       VARCHAR NOT NULL,
    seq         BIGINT NOT NULL,
    terms       INTEGER NOT NULL,
    ts_captured TIMESTAMPTZ NOT NULL
);

CREATE TABLE vectors (
    embedder VARCHAR NOT NULL,
    seq      BIGINT NOT NULL,
    vector   FLOAT[] NOT NULL
);

-- Mnests: weighted edges between executors -------------------------------------------------------------------------

-- ts_acted: the last time a caller changed a record of the edge by hand.
CREATE TABLE edges (
    edge_no      INTEGER NOT NULL PRIMARY KEY,
    src_executor VARCHAR NOT NULL,
    src_version  VARCHAR NOT NULL,
    dst_executor VARCHAR NOT NULL,
    dst_version  VARCHAR,
    ts_acted     TIMESTAMPTZ
);

-- A record per edge and state, as it stands now.
CREATE TABLE mnests (
    mnest_id     VARCHAR NOT NULL,
    src_executor VARCHAR NOT NULL,
    src_version  VARCHAR NOT NULL,
    dst_executor VARCHAR NOT NULL,
    dst_version  VARCHAR,
    weight       DOUBLE NOT NULL,
    uses         BIGINT NOT NULL,
    ts_first     TIMESTAMPTZ NOT NULL,
    ts_last      TIMESTAMPTZ NOT NULL,
    ts_used      TIMESTAMPTZ NOT NULL,
    decay_lambda DOUBLE NOT NULL,
    state        VARCHAR NOT NULL,
    tags         VARCHAR[] NOT NULL,
    desired_sig  VARCHAR,
    untimed      BOOLEAN NOT NULL DEFAULT FALSE,
    mnest_no     INTEGER NOT NULL,
    edge_no      INTEGER NOT NULL
);

-- Every record that ever was: merged ones point to the record that took them in, purged ones to none.
CREATE TABLE mnest_lives (
    mnest_no  INTEGER NOT NULL,
    mnest_id  VARCHAR NOT NULL,
    edge_no   INTEGER NOT NULL,
    record_no INTEGER
);

-- Facts (passing, transition, promotion) and what was derived from them (demotion, merge, purge). A fold reads the
-- facts alone; derived rows of an edge are written anew when a late fact touches it.
CREATE TABLE edge_events (
    seq          BIGINT NOT NULL,
    edge_no      INTEGER NOT NULL,
    mnest_no     INTEGER NOT NULL,
    ts           TIMESTAMPTZ NOT NULL,
    kind         VARCHAR NOT NULL,
    delta        DOUBLE,
    weight       DOUBLE,
    untimed      BOOLEAN NOT NULL DEFAULT FALSE,
    turn_no      BIGINT,
    turn_id      VARCHAR,
    decay_lambda DOUBLE,
    tags         VARCHAR[],
    desired_sig  VARCHAR,
    old_state    VARCHAR,
    new_state    VARCHAR,
    reason       VARCHAR,
    detail       VARCHAR
);

CREATE VIEW mnest_events AS
SELECT life.mnest_id, event.ts, event.kind, event.delta, event.weight, event.old_state, event.new_state, event.reason,
       coalesce(event.turn_id, turn.turn_id) AS turn_id, event.untimed, event.detail,
       edge.src_executor, edge.src_version, edge.dst_executor, edge.dst_version, event.seq
FROM edge_events AS event
JOIN mnest_lives AS life ON life.mnest_no = event.mnest_no
JOIN edges AS edge ON edge.edge_no = event.edge_no
LEFT JOIN turns AS turn ON turn.turn_no = event.turn_no;

CREATE VIEW v_mnestoma AS
SELECT * FROM mnests WHERE state IN ('active', 'proto');

-- Ager instants are facts; the counts are what the run reported when it was made. kind: explicit or daily.
CREATE TABLE ager_runs (
    ts_ager             TIMESTAMPTZ NOT NULL,
    kind                VARCHAR NOT NULL,
    decayed             BIGINT,
    decayed_protos      BIGINT,
    demoted_to_decaying BIGINT,
    merged              BIGINT,
    purged_protos       BIGINT,
    recurring_protos    BIGINT,
    proposed_archive    BIGINT,
    params              VARCHAR NOT NULL,
    seconds             DOUBLE NOT NULL
);

-- One row per recorded use (an import may bring one row for many uses); canonical_queries adds them up.
CREATE TABLE query_uses (
    query      VARCHAR NOT NULL,
    tool       VARCHAR NOT NULL,
    args_shape VARCHAR NOT NULL,
    uses       BIGINT NOT NULL,
    ok         BIGINT NOT NULL,
    fail       BIGINT NOT NULL,
    ts_first   TIMESTAMPTZ NOT NULL,
    ts_last    TIMESTAMPTZ NOT NULL
);

CREATE VIEW canonical_queries AS
SELECT query, tool, args_shape, sum(uses)::BIGINT AS uses, sum(ok)::BIGINT AS ok, sum(fail)::BIGINT AS fail,
       min(ts_first) AS ts_first, max(ts_last) AS ts_last
FROM query_uses
GROUP BY query, tool, args_shape;

-- Session changes: memory writes that can be taken back --------------------------------------------------------------

-- The traces that live now. content is null only where a log was imported without its words.
CREATE TABLE traces (
    trace_id     VARCHAR NOT NULL,
    brain_id     VARCHAR NOT NULL,
    type         VARCHAR NOT NULL,
    scope        VARCHAR,
    content      VARCHAR,
    content_hash VARCHAR NOT NULL,
    tags         VARCHAR[] NOT NULL,
    metadata     VARCHAR,
    parents      VARCHAR[] NOT NULL,
    ts_created   TIMESTAMPTZ NOT NULL,
    ts_updated   TIMESTAMPTZ NOT NULL,
    untimed      BOOLEAN NOT NULL DEFAULT FALSE,
    seq          BIGINT NOT NULL
);

-- One row per write. before, after (the plan) and kept are JSON; kept is null where it is the plan; result is what a caller's own change returned. state:
-- candidate, applied, kept, undone_forgotten, undone_unrecorded, reverted. Where a person was forgotten the JSON is
-- blanked, ids are keyed hashes and ts_forgotten is set. conflicts: the later writes that the last revert met.
CREATE TABLE session_changes (
    change_id       VARCHAR NOT NULL,
    kind            VARCHAR NOT NULL,
    operation       VARCHAR NOT NULL,
    actor           VARCHAR NOT NULL,
    target_id       VARCHAR,
    session_id      VARCHAR NOT NULL,
    brain_id        VARCHAR NOT NULL,
    conversation_id VARCHAR,
    user_id         VARCHAR,
    contributor_ids VARCHAR[] NOT NULL,
    before          VARCHAR,
    after           VARCHAR,
    kept            VARCHAR,
    result          VARCHAR,
    state           VARCHAR NOT NULL,
    reason          VARCHAR,
    trace_ids       VARCHAR[] NOT NULL,
    conflicts       VARCHAR[],
    ts_candidate    TIMESTAMPTZ NOT NULL,
    ts_verdict      TIMESTAMPTZ,
    ts_reverted     TIMESTAMPTZ,
    ts_conflict     TIMESTAMPTZ,
    ts_forgotten    TIMESTAMPTZ,
    seq             BIGINT NOT NULL
);

-- What happened to each trace, in order: the state after every write and every revert. move: write or revert. action:
-- created, changed, deleted, or resolved (the words were there already: no state). counts: false once undone. Where
-- forgotten, the state is blanked. change_seq: the write's seq. brain_id .. untimed and trace_seq are the trace's columns after it.
CREATE TABLE change_traces (
    change_seq   BIGINT NOT NULL,
    trace_id     VARCHAR NOT NULL,
    move         VARCHAR NOT NULL,
    action       VARCHAR NOT NULL,
    counts       BOOLEAN NOT NULL,
    forgotten    BOOLEAN NOT NULL,
    present      BOOLEAN NOT NULL,
    brain_id     VARCHAR,
    type         VARCHAR,
    scope        VARCHAR,
    content      VARCHAR,
    content_hash VARCHAR,
    tags         VARCHAR[],
    metadata     VARCHAR,
    parents      VARCHAR[],
    ts_created   TIMESTAMPTZ,
    ts_updated   TIMESTAMPTZ,
    untimed      BOOLEAN,
    trace_seq    BIGINT,
    ts           TIMESTAMPTZ NOT NULL,
    seq          BIGINT NOT NULL
);

-- A trace is looked up by its id, and by its words, in stores of millions.
CREATE INDEX traces_by_id ON traces (trace_id);
CREATE INDEX traces_by_words ON traces (content_hash);
CREATE INDEX change_traces_by_id ON change_traces (trace_id);

-- Persons whose tombstone is laid and whose rows are not all blanked yet; empty unless a process was killed meanwhile.
CREATE TABLE unfinished_forgets (
    name_hash VARCHAR NOT NULL PRIMARY KEY
);

CREATE TABLE session_rows (
    session_id      VARCHAR NOT NULL,
    user_id         VARCHAR NOT NULL,
    role            VARCHAR NOT NULL,
    brain_id        VARCHAR NOT NULL,
    conversation_id VARCHAR,
    ts_noted        TIMESTAMPTZ NOT NULL
);

