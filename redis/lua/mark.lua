-- Reads the server's marker, or writes it.
--
-- KEYS[1]  the marker                 ARGV[1]  config; see lib/markerFormat.lua
--                                     ARGV[2]  nodes
--                                     ARGV[3]  what to do:
--                                       read     write nothing
--                                       mark     write it where there is none, or none of this server's,
--                                                or one by a clock that was set back since
--                                       fresh    the same, and trust the server at once if it
--                                                was never in service
--                                       replace  write it over another membership's, with a quarantine
--                                       bar      take the server out of another membership and into none
--                                     ARGV[4]  how long the quarantine after replace lasts at least, ms
--                                     ARGV[5]  when it is too late, µs on this clock
--
-- Reply: {status, marker, left ms, '', now s, now µs, replicas}, all strings;
-- replicas is how many are online, with the lag that the marker allows
--   granted     the marker is valid, and the server is trusted
--   quarantine  the marker is valid, and the quarantine lasts as long as left says
--   config      the marker is another membership's; or nobody's: the server is barred
--   absent      there is no marker, or none of this server's
--   stale       it is too late, and nothing was written
-- or an error: NOINFO, READONLY
--
-- A barred server's marker is that of a membership with the id 0, which no
-- client has. So the server refuses all clients, through any restart and any
-- change of the clock, by the rules for other memberships. It keeps the former
-- cluster parameters.
--#include role
--#include marker
local config, nodes, what = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local info, refused = replication()
if not info then return refused end
local id = string.match(info, 'master_replid:(%x+)')

local function reply(status, marker, trusted)
  local left = math.max(0, math.ceil((trusted - now) / 1000))
  local standing = read(marker)
  local replicas = standing and online(info, standing.lag) or 0
  return {status, marker, string.format('%.0f', left), '', time[1], time[2], tostring(replicas)}
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
  -- What may have been forgotten was granted under the old parameters.
  left = math.max(left, standing.quarantine)
  -- After a membership change those may be longer than the marker's.
  if standing.reason == 'list' and standing.trusted > now + left * 1000 then
    changed, left = 'list', math.ceil((standing.trusted - now) / 1000)
  end
end
local quarantine = now + left * 1000
if what == 'bar' and not (standing and standing.id == id and standing.config == config) then
  local bounds = standing or read(written(id, config, now, 'barred', nodes))
  marker = written(id, string.format('0000000000000000 %s %s %.0f %s %s', bounds.ttl, bounds.window, left, bounds.replicas, bounds.lag),
    9000000000000000, 'barred', nodes)
  redis.call('SET', KEYS[1], marker)
  return reply('config', marker, now)
end
if not standing then
  if marker and what ~= 'replace' then return reply('config', marker, now) end
  if what == 'read' then return reply('absent', '', now) end
  return write(what == 'fresh' and now or quarantine, what == 'replace' and 'list' or what == 'fresh' and 'fresh' or 'new')
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
  return write(now, 'fresh')
end
return reply(standing.trusted <= now and 'granted' or 'quarantine', marker, standing.trusted)
