-- Reads the server's marker, or writes it.
--
-- KEYS[1]  the marker                 ARGV[1]  config; see lib/markerFormat.lua
--                                     ARGV[2]  nodes
--                                     ARGV[3]  what to do:
--                                       read     write nothing
--                                       mark     write it where there is none, or none of this server's,
--                                                or one by a clock that was set back since, from
--                                                before a marking that the client knows of, or
--                                                of a lower generation, also another membership's
--                                       fresh    trust the server at once if there is none, or if it is
--                                                quarantined because there was none; see node.MarkFresh
--                                       replace  write it over another membership's, or over one of a
--                                                lower generation, with a quarantine
--                                       tell     the same for a server that is no member of it
--                                       bar      take the server out of another membership and into none
--                                       note     note the epochs of all nodes, and nothing else
--                                     ARGV[4]  how long the quarantine after replace lasts at least, ms
--                                     ARGV[5]  when it is too late, µs on this clock
--                                     ARGV[6]  generation, 0 if the client knows none
--                                     ARGV[7]  the highest epoch of this server that it knows
--                                     ARGV[8]  epochs of all nodes, or -; see lib/markerFormat.lua
--                                     ARGV[9]  lineage; '' for that of the marker
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
-- cluster parameters, and the text of the former membership.
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

-- merged(a, b) returns the higher epoch of each lineage, without those that the epoch
-- of all others has overtaken.
local function merged(a, b)
  local function map(text)
    local of = {['0'] = 0}
    for lineage, epoch in string.gmatch(text, '(%x+):(%d+)') do of[lineage] = tonumber(epoch) end
    return of
  end
  local mine, theirs, all, list = map(a), map(b), {}, {}
  local rest = math.max(mine['0'], theirs['0'])
  local function add(these, those)
    for lineage, epoch in pairs(these) do
      local least = those[lineage] or those['0']
      if epoch >= least or those[lineage] or least < rest then all[lineage] = math.max(epoch, least) end
    end
  end
  add(mine, theirs)
  add(theirs, mine)
  for lineage, epoch in pairs(all) do
    if epoch > 0 then list[#list + 1] = string.format('%s:%.0f', lineage, epoch) end
  end
  table.sort(list)
  return #list > 0 and table.concat(list, ',') or '-'
end

local marker = redis.call('GET', KEYS[1])
if now > tonumber(ARGV[5]) then return reply('stale', marker or '', now) end
local left = math.max(quarantineOf(config), tonumber(ARGV[4]))
local standing = read(marker)
local changed = 'changed'
local membership = string.sub(config, 1, 1 + membershipTo - membershipFrom)
local generation, epoch, epochs = math.max(tonumber(ARGV[6]), 1), tonumber(ARGV[7]), ARGV[8]
local lineage = ARGV[9] ~= '' and ARGV[9] or standing and standing.lineage or '00000000'
-- own: the marker is of this membership. missed: and from before a change that
-- the client knows of. late: from before a marking that it knows of.
local own, missed, late, valid
if standing then
  own = standing.membership == membership
  missed, late = own and standing.generation < tonumber(ARGV[6]), standing.epoch < epoch
  valid = standing.id == id and standing.config == config and not missed and not late
  epoch = math.max(epoch, standing.epoch)
  if own then generation = math.max(generation, standing.generation) end
  -- The notes of another one are those of a former membership.
  if own and not missed then epochs = merged(standing.epochs, epochs) end
  -- What may have been forgotten was granted under the old parameters.
  left = math.max(left, standing.quarantine)
  -- After a membership change those may be longer than the marker's, and the
  -- quarantine holds for all clients.
  if standing.reason == 'membership' and standing.trusted > now then
    changed, left = 'membership', math.max(left, math.min(standing.lasts, math.ceil((standing.trusted - now) / 1000)))
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
    trusted = trusted, reason = reason, lineage = lineage, epochs = epochs, role = what == 'tell' and 'told' or 'member',
    from = standing and standing.from or '-', lasts = (trusted - now) / 1000, nodes = nodes})
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
  local bounds = standing or read(written({id = id, generation = 0, epoch = 0, config = config, trusted = now, reason = 'barred', lineage = lineage, epochs = '-', role = 'member', from = '-', lasts = 0, nodes = nodes}))
  local from = bounds.from
  if standing and standing.membership ~= '0000000000000000' then
    from = standing.role == 'told' and '-' or string.gsub(standing.nodes, ' ', '\t')
  end
  marker = written({id = id, generation = generation, epoch = epoch,
    config = string.format('0000000000000000 %s %s %.0f %s %s', bounds.ttl, bounds.window, left, bounds.replicas, bounds.lag),
    trusted = 9000000000000000, reason = 'barred', lineage = lineage, epochs = epochs, role = 'member', from = from, lasts = 0, nodes = nodes})
  redis.call('SET', KEYS[1], marker)
  return reply('config', marker, now)
end
if (what == 'replace' or what == 'tell') and not valid then
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
-- Compared here, so that a request that comes late undoes no later change.
if what == 'mark' and not own and standing.generation < tonumber(ARGV[6]) then
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
-- A marker from a clock that was set back has to be written again: no time is left.
return reply(standing.trusted <= now and 'granted' or 'quarantine', marker, setBack(standing, standing.trusted - now) and now or standing.trusted)
