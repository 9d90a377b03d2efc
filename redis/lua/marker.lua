-- The marker, by which a server knows that it has forgotten nothing. Its format
-- is here alone; this file is put before the scripts that read or write it, and
-- role.lua before it.
--
--   2 REPLICATION-ID LIST MAXTTL WINDOW QUARANTINE REPLICAS LAG TRUSTED-FROM REASON NODES
--
-- with times in ms, µs, ms, ms and µs; REPLICAS is how many must be online, 0
-- for none. LIST to LAG is the config, on which all clients of a membership
-- agree. A master's replication id changes whenever it starts and whenever it
-- is promoted, so a marker with another id was written before this server may
-- have lost something.
--
-- Some lengths are fixed, so that the common case need not take it apart:
--   1 to 2     the version and a space
--   3 to 42    REPLICATION-ID
--   44 to 59   LIST, the first 16 of the config, which begins at 44
--   61 on      MAXTTL
-- and behind a config of n letters:
--   45 + n to 60 + n   TRUSTED-FROM
--   61 + n on          a space and REASON

-- read(marker) takes it apart; nil if there is none, or in another version.
local function read(marker)
  local id, config, list, ttl, window, quarantine, replicas, lag, trusted, reason, nodes =
    string.match(marker or '', '^2 (%x+) ((%x+) (%d+) (%d+) (%d+) (%d+) (%d+)) (%d+) (%a+) (.*)$')
  if not id then return nil end
  return {
    id = id, config = config, list = list, ttl = ttl, window = window, quarantine = tonumber(quarantine),
    replicas = replicas, lag = lag, trusted = tonumber(trusted), reason = reason, nodes = nodes,
  }
end

-- written(id, config, trusted, reason, nodes) puts it together.
local function written(id, config, trusted, reason, nodes)
  return string.format('2 %s %s %016.0f %s %s', id, config, trusted, reason, nodes)
end

-- quarantineOf(config) returns the QUARANTINE of a config.
local function quarantineOf(config)
  return tonumber(string.match(config, '^%x+ %d+ %d+ (%d+)'))
end

-- setBack(marker, left) reports whether the clock was set back since the marker
-- was written, if the server sits out for another left µs: then a whole
-- quarantine from now is enough. But after a change of list it goes by the bounds
-- of the former one, which may be longer.
local function setBack(standing, left)
  return left > standing.quarantine * 1000 and standing.reason ~= 'list'
end
