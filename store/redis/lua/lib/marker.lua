-- Functions that read and write the marker; markerFormat.lua has its format.

-- read(marker) takes it apart; nil if there is none, or in another version.
local function read(marker)
  local id, epoch, config, membership, ttl, window, quarantine, replicas, lag, trusted, reason, generation, lineage, epochs, role, from, lasts, nodes =
    string.match(marker or '', '^3 (%x+) (%d+) ((%x+) (%d+) (%d+) (%d+) (%d+) (%d+)) (%d+) (%a+) (%d+) (%x+) ([%x:,-]+) (%a+) ([^ ]+) (%d+) (.*)$')
  if not id then return nil end
  return {
    id = id, epoch = tonumber(epoch), config = config, membership = membership, ttl = ttl, window = window,
    quarantine = tonumber(quarantine), replicas = replicas, lag = lag, trusted = tonumber(trusted),
    reason = reason, generation = tonumber(generation), lineage = lineage, epochs = epochs, role = role, from = from, lasts = tonumber(lasts), nodes = nodes,
  }
end

-- written(m) puts it together.
local function written(m)
  return string.format('3 %s %08.0f %s %016.0f %s %.0f %s %s %s %s %.0f %s',
    m.id, m.epoch, m.config, m.trusted, m.reason, m.generation, m.lineage, m.epochs, m.role, m.from, m.lasts, m.nodes)
end

-- replaced(standing, expected) reports whether the client knows of a later
-- marking: another server had taken this one's place.
local function replaced(standing, expected)
  return standing.epoch < tonumber(string.sub(expected, epochFrom, epochTo))
end

-- quarantineOf(config) returns the QUARANTINE of a config.
local function quarantineOf(config)
  return tonumber(string.match(config, '^%x+ %d+ %d+ (%d+)'))
end

-- setBack(standing, left) reports whether the clock was set back since the marker
-- was written, if the quarantine lasts another left µs: then a whole quarantine
-- from now is enough. After a membership change that may be longer than the
-- marker's parameters require.
local function setBack(standing, left)
  return left > math.max(standing.lasts, standing.quarantine) * 1000
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

-- unreplicated(info, config) returns the error to answer with if fewer
-- replicas are online than the config asks for; nil otherwise. A master that is
-- cut off from a replica must stop before that replica, once promoted, grants.
local function unreplicated(info, config)
  local replicas, lag = string.match(config, ' (%d+) (%d+)$')
  local need, n = tonumber(replicas), 0
  if need > 0 then n = online(info, lag) end
  if n < need then
    return redis.error_reply(string.format('UNREPLICATED %d of %d required replicas are online with a lag of %.0f s or less',
      n, need, lag / 1000))
  end
end

