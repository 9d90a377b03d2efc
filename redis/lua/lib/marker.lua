-- Functions that read and write the marker; markerFormat.lua has its format.

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

-- setBack(standing, left) reports whether the clock was set back since the marker
-- was written, if the quarantine lasts another left µs: then a whole quarantine
-- from now is enough. But after a membership change it goes by the parameters of
-- the former membership, which may be longer.
local function setBack(standing, left)
  return left > standing.quarantine * 1000 and standing.reason ~= 'list'
end

-- online(info, lag) returns how many replicas are online and were heard from
-- within lag ms. INFO shows whole seconds, so up to a second more may have passed.
local function online(info, lag)
  local n = 0
  for seconds in string.gmatch(info, 'slave%d+:[^\r\n]*,state=online,[^\r\n]*lag=(%d+)') do
    if seconds * 1000 <= tonumber(lag) then n = n + 1 end
  end
  return n
end

-- unreplicated(info, standing) returns the error to answer with if fewer
-- replicas are online than the marker asks for; nil otherwise. A master that is
-- cut off from a replica must stop before that replica, once promoted, grants.
local function unreplicated(info, standing)
  local need, n = tonumber(standing.replicas), 0
  if need > 0 then n = online(info, standing.lag) end
  if n < need then
    return redis.error_reply(string.format('UNREPLICATED %d of %d required replicas are online with a lag of %.0f s or less',
      n, need, standing.lag / 1000))
  end
end

