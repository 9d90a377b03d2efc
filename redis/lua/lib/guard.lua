-- guard(marker, config, off, ttl, time) says whether this server may grant, by
-- the marker that it has. It writes nothing: a server that is to be marked, or
-- marked again, says so, and is marked by a request of its own (mark.lua).
-- role.lua, markerFormat.lua and marker.lua are included before it.
--
-- It returns nil if the server may grant. off is 'o' for a client with the guard
-- off: then a server without a marker may, and of a marker only LIST and MAXTTL
-- count. Otherwise it returns the reply:
--   {'quarantine', reason, left ms, '', now s, now µs}
--     reason unmarked: there is no marker; remark: it is from before a restart
--     or promotion, or the clock was set back since. Then left is how long the
--     quarantine lasts once the server is marked.
--   {'config', marker, '0', '', now s, now µs}   it belongs to another membership
-- or an error: NOINFO, READONLY, UNREPLICATED
local function guard(marker, config, off, ttl, time)
  off = off == 'o'
  if off and not marker then return nil end
  local info, refused = replication(off)
  if not info then return refused end
  local standing = read(marker)
  if marker and not standing then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  if off then
    if standing.list ~= string.sub(config, 1, 1 + listTo - listFrom) or tonumber(ttl) > tonumber(standing.ttl) + 1 then
      return {'config', marker, '0', '', time[1], time[2]}
    end
    return unreplicated(info, standing)
  end
  if not standing then
    return {'quarantine', 'unmarked', tostring(quarantineOf(config)), '', time[1], time[2]}
  end
  if standing.config ~= config then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  local left = standing.trusted - (time[1] * 1000000 + time[2])
  if not string.find(info, 'master_replid:' .. standing.id, 1, true) or setBack(standing, left) then
    return {'quarantine', 'remark', tostring(standing.quarantine), '', time[1], time[2]}
  end
  if left <= 0 then return unreplicated(info, standing) end
  return {'quarantine', standing.reason, string.format('%.0f', math.ceil(left / 1000)), '', time[1], time[2]}
end

