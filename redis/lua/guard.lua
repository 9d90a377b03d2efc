-- Says whether this server may grant, by the marker that it carries; see
-- marker.lua. This file is put before the scripts that grant.
--
-- guard(marker, key, config, nodes, time) returns nil if it may. nodes is empty
-- where the caller does not know for certain that these are the membership's
-- parameters: then a server without a marker is not marked. Otherwise it returns
-- the reply:
--   {'quarantine', reason, left ms, '', now s, now µs}
--   {'config', marker, '0', '', now s, now µs}   it belongs to another membership
-- or an error: NOINFO, READONLY, UNREPLICATED
local function guard(marker, key, config, nodes, time)
  local info, refused = replication()
  if not info then return refused end
  local now = time[1] * 1000000 + time[2]
  local standing = read(marker)
  if marker and not standing then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  if standing and string.find(info, 'master_replid:' .. standing.id, 1, true) then
    if standing.config ~= config then
      return {'config', marker, '0', '', time[1], time[2]}
    end
    local trusted, most = standing.trusted, standing.quarantine * 1000
    if trusted <= now then
      return unreplicated(info, standing)
    end
    if trusted - now > most and standing.reason ~= 'list' then
      -- The clock was set back. A whole quarantine from now is enough; but
      -- after a change of list it goes by the bounds of the former one.
      trusted = now + most
      redis.call('SET', key, written(standing.id, config, trusted, standing.reason, standing.nodes))
    end
    return {'quarantine', standing.reason, string.format('%.0f', math.ceil((trusted - now) / 1000)), '', time[1], time[2]}
  end
  -- Marked anew: for its old list, if it remembers one.
  local reason, asked = 'new', config
  if standing then
    reason, config, nodes = 'changed', standing.config, standing.nodes
  end
  local left = quarantineOf(config)
  if nodes == '' then
    return {'quarantine', 'unmarked', tostring(left), '', time[1], time[2]}
  end
  if standing and standing.reason == 'list' and standing.trusted > now + left * 1000 then
    reason, left = 'list', math.ceil((standing.trusted - now) / 1000)
  end
  marker = written(string.match(info, 'master_replid:(%x+)'), config, now + left * 1000, reason, nodes)
  redis.call('SET', key, marker)
  if config ~= asked then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  return {'quarantine', reason, string.format('%.0f', left), '', time[1], time[2]}
end
