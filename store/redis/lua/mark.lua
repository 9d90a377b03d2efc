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
--                                       replace  write it over another membership's, or over one of a
--                                                lower generation, with a quarantine
--                                       bar      take the server out of another membership and into none
--                                       note     note the epochs of the other nodes, and nothing else
--                                     ARGV[4]  how long the quarantine after replace lasts at least, ms
--                                     ARGV[5]  when it is too late, µs on this clock
--                                     ARGV[6]  generation, 0 if the client knows none
--                                     ARGV[7]  the highest epoch of this server that it knows
--                                     ARGV[8]  epochs of the other nodes; see lib/markerFormat.lua
--
-- Reply: {status, marker, left ms, '', now s, now µs, replicas}, all strings;
-- replicas is how many are online, with the lag that the marker allows
--   granted     the marker is valid, and the server is trusted
--   quarantine  the marker is valid, and the quarantine lasts as long as left says
--   config      the marker is another membership's; or nobody's: the server is barred
--   absent      there is no marker, or none of this server's
--   stale       it is too late, and nothing was written
-- or an error: NOINFO, READONLY; UNREPLICATED if fewer replicas are online than
-- the config requires, and nothing was written
--
-- A barred server's marker is that of a membership with the id 0, which no
-- client has. So the server refuses all clients, through any restart and any
-- change of the clock, by the rules for other memberships. It keeps the former
-- cluster parameters.
--#include role
--#include markerFormat
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

-- merged(a, b) returns the higher epoch of each node; a if those are too many.
local function merged(a, b)
  local epochs, keys = {}, {}
  for key, epoch in string.gmatch(a .. ',' .. b, '(%x+):(%d+)') do
    if not epochs[key] then keys[#keys + 1] = key end
    epochs[key] = math.max(epochs[key] or 0, tonumber(epoch))
  end
  if #keys > 64 then return a end
  table.sort(keys)
  for i, key in ipairs(keys) do keys[i] = string.format('%s:%.0f', key, epochs[key]) end
  return #keys > 0 and table.concat(keys, ',') or '-'
end

local marker = redis.call('GET', KEYS[1])
if now > tonumber(ARGV[5]) then return reply('stale', marker or '', now) end
local left = math.max(quarantineOf(config), tonumber(ARGV[4]))
local standing = read(marker)
local changed = 'changed'
local membership = string.sub(config, 1, 1 + membershipTo - membershipFrom)
local generation, epoch, epochs = math.max(tonumber(ARGV[6]), 1), tonumber(ARGV[7]), merged(standing and standing.epochs or '-', ARGV[8])
-- own: the marker is of this membership. missed: and from before a change that
-- the client knows of. late: from before a marking that it knows of.
local own, missed, late, valid
if standing then
  own = standing.membership == membership
  missed, late = own and standing.generation < tonumber(ARGV[6]), standing.epoch < epoch
  valid = standing.id == id and standing.config == config and not missed and not late
  epoch = math.max(epoch, standing.epoch)
  if own then generation = math.max(generation, standing.generation) end
  -- What may have been forgotten was granted under the old parameters.
  left = math.max(left, standing.quarantine)
  -- After a membership change those may be longer than the marker's, and the
  -- quarantine holds for all clients.
  if standing.reason == 'membership' and standing.trusted > now then
    changed, left = 'membership', math.max(left, math.ceil((standing.trusted - now) / 1000))
  end
end
local quarantine = now + left * 1000

-- A server that misses replicas is not marked: a replica that is with another
-- master now, and comes over later, would find the quarantine over. It may be
-- barred.
local function write(trusted, reason)
  local short = unreplicated(info, config)
  if short then return short end
  marker = written({id = id, generation = generation, epoch = epoch + 1, config = config,
    trusted = trusted, reason = reason, epochs = epochs, nodes = nodes})
  redis.call('SET', KEYS[1], marker)
  return reply(trusted <= now and 'granted' or 'quarantine', marker, trusted)
end

local reads = what == 'read' or what == 'note'
if what == 'note' and own and epochs ~= standing.epochs then
  standing.epochs = epochs
  marker = written(standing)
  redis.call('SET', KEYS[1], marker)
end
if what == 'bar' and not valid then
  local bounds = standing or read(written({id = id, generation = 0, epoch = 0, config = config, trusted = now, reason = 'barred', epochs = '-', nodes = nodes}))
  marker = written({id = id, generation = generation, epoch = epoch,
    config = string.format('0000000000000000 %s %s %.0f %s %s', bounds.ttl, bounds.window, left, bounds.replicas, bounds.lag),
    trusted = 9000000000000000, reason = 'barred', epochs = epochs, nodes = nodes})
  redis.call('SET', KEYS[1], marker)
  return reply('config', marker, now)
end
if what == 'replace' and not valid then
  return write(quarantine, 'membership')
end
if not standing then
  if marker then return reply('config', marker, now) end
  if reads then return reply('absent', '', now) end
  return write(what == 'fresh' and now or quarantine, what == 'fresh' and 'fresh' or 'new')
end
if missed then
  if reads then return reply('absent', marker, now) end
  return write(quarantine, 'membership')
end
if standing.config ~= config then
  return reply('config', marker, standing.trusted)
end
if standing.id ~= id or late then
  if reads then return reply('absent', marker, now) end
  return write(quarantine, changed)
end
if what == 'mark' and setBack(standing, standing.trusted - now) then
  return write(quarantine, standing.reason)
end
if what == 'fresh' and standing.trusted > now and standing.reason == 'new' then
  return write(now, 'fresh')
end
return reply(standing.trusted <= now and 'granted' or 'quarantine', marker, standing.trusted)
