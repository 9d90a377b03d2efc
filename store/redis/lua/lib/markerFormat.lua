-- The marker, by which a server knows that it has forgotten nothing. This
-- is its format; marker.lua and store/redis/marker.go read and write it.
--
--   3 REPLICATION-ID EPOCH MEMBERSHIP MAXTTL WINDOW QUARANTINE REPLICAS LAG TRUSTED-FROM REASON GENERATION EPOCHS NODES
--
-- with times in ms, µs, ms, ms and µs; REPLICAS is how many must be online, 0
-- for none. Each marking raises EPOCH, and each membership change GENERATION.
-- EPOCHS is what is known of the epochs of the other nodes: KEY:EPOCH with
-- commas between them, or -. MEMBERSHIP to LAG is the config, on which all clients
-- of a membership agree. MAXTTL is rounded down, and the TTL of a request up: it
-- may be 1 ms above MAXTTL. A master's replication id changes whenever it starts and whenever it is
-- promoted, so a marker with another id was written before this server may have
-- lost something.
--
-- Some fields have a fixed place or length, so that a script need not take the
-- marker apart to compare one of them:
--   REPLICATION-ID  idFrom to idTo
--   EPOCH           8 digits, epochFrom to epochTo
--   config          from configFrom on
--   MEMBERSHIP      membershipFrom to membershipTo, the first 16 letters of the config
--   MAXTTL          from maxTTLFrom to the next space
--   TRUSTED-FROM    16 digits, behind the config and a space
-- What a client expects of a marker is its beginning, up to the space after the
-- config. EPOCH is then the highest that the client knows.
local idFrom, idTo, epochFrom, epochTo, configFrom = 3, 42, 44, 51, 53
local membershipFrom, membershipTo, maxTTLFrom = 53, 68, 70

