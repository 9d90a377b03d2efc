-- Reads the server's marker, or writes it.
--
-- KEYS[1]  the marker                 ARGV[1]  config; see marker.lua
--                                     ARGV[2]  nodes
--                                     ARGV[3]  what to do:
--                                       read     write nothing
--                                       mark     write it where there is none, or none of this server's,
--                                                or one by a clock that was set back since
--                                       fresh    the same, and trust the server at once if it
--                                                was never in service
--                                       replace  write it over another list's, with a quarantine
--                                       bar      take the server out of another list and into none
--                                     ARGV[4]  how long it sits out at least after replace, ms
--                                     ARGV[5]  when it is too late, µs on this clock
--
-- Reply: {status, marker, left ms, '', now s, now µs}, all strings
--   granted     the marker stands, and the server is trusted
--   quarantine  the marker stands, and the server sits out for as long as left says
--   config      the marker is another list's; or nobody's, for it is barred
--   absent      there is no marker, or none of this server's
--   stale       it is too late, and nothing was written
--
-- A barred server's marker is that of a list with the id 0, which no client
-- has: so it refuses everyone, agrees with nobody, and stays so through any
-- restart and any change of the clock, by the rules for other lists. It keeps
-- the former bounds.
local config, nodes, what = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local info, refused = replication()
if not info then return refused end
local id = string.match(info, 'master_replid:(%x+)')

local function reply(status, marker, trusted)
  local left = math.max(0, math.ceil((trusted - now) / 1000))
  return {status, marker, string.format('%.0f', left), '', time[1], time[2]}
end
local function write(trusted, reason)
  local marker = written(id, config, trusted, reason, nodes)
  redis.call('SET', KEYS[1], marker)
  return reply(trusted <= now and 'granted' or 'quarantine', marker, trusted)
end

local marker = redis.call('GET', KEYS[1])
if now > tonumber(ARGV[5]) then return reply('stale', marker or '', now) end
local left = math.max(quarantineOf(config), tonumber(ARGV[4]))
local standing = read(marker)
local changed = 'changed'
if standing then
  -- What may have been forgotten was granted under the old bounds.
  left = math.max(left, standing.quarantine)
  -- After a change of list that may be under longer ones than it is marked with.
  if standing.reason == 'list' and standing.trusted > now + left * 1000 then
    changed, left = 'list', math.ceil((standing.trusted - now) / 1000)
  end
end
local quarantine = now + left * 1000
if what == 'bar' and not (standing and standing.id == id and standing.config == config) then
  -- It keeps the former bounds.
  local bounds = standing or read(written(id, config, now, 'barred', nodes))
  marker = written(id, string.format('0000000000000000 %s %s %.0f %s %s', bounds.ttl, bounds.window, left, bounds.replicas, bounds.lag),
    9000000000000000, 'barred', nodes)
  redis.call('SET', KEYS[1], marker)
  return reply('config', marker, now)
end
if not standing then
  if marker and what ~= 'replace' then return reply('config', marker, now) end
  if what == 'read' then return reply('absent', '', now) end
  return write(what == 'fresh' and now or quarantine, what == 'replace' and 'list' or 'new')
end
if what == 'replace' then
  return write(quarantine, 'list')
end
if standing.config ~= config then
  return reply('config', marker, standing.trusted)
end
if standing.id ~= id then
  if what == 'read' then return reply('absent', marker, now) end
  return write(quarantine, changed)
end
if what == 'mark' and setBack(standing, standing.trusted - now) then
  return write(quarantine, standing.reason)
end
if what == 'fresh' and standing.trusted > now and standing.reason == 'new' then
  return write(now, 'new')
end
return reply(standing.trusted <= now and 'granted' or 'quarantine', marker, standing.trusted)
