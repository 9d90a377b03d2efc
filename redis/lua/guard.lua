-- Says whether this server may grant, by the marker that it carries. This file
-- is put before the scripts that grant.
--
-- The marker is: 1 REPLICATION-ID LIST MAXTTL WINDOW QUARANTINE TRUSTED-FROM REASON NODES
-- with times in ms, µs, ms and µs. A master's replication id changes whenever
-- it starts and whenever it is promoted, so a marker with another id was
-- written before this server may have lost something.
--
-- guard(marker, key, config, nodes, time) returns nil if it may. config is
-- LIST MAXTTL WINDOW QUARANTINE. nodes is empty where the caller does not know
-- for certain that these are the list's bounds: then a server without a marker
-- is not marked. Otherwise it returns the reply:
--   {'quarantine', reason, left ms, '', now s, now µs}
--   {'config', marker, '0', '', now s, now µs}   it belongs to another list
local function guard(marker, key, config, nodes, time)
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'table' then
    return redis.error_reply('NOINFO this user may not ask INFO')
  end
  if not string.find(info, 'role:master', 1, true) then
    return redis.error_reply('READONLY this server is a replica')
  end
  local now = time[1] * 1000000 + time[2]
  local known = marker and string.sub(marker, 1, 2) == '1 '
  if known and string.find(info, 'master_replid:' .. string.sub(marker, 3, 42), 1, true) then
    local n = #config
    if string.sub(marker, 43, 44 + n) ~= ' ' .. config .. ' ' then
      return {'config', marker, '0', '', time[1], time[2]}
    end
    local trusted = tonumber(string.sub(marker, 45 + n, 60 + n))
    if trusted <= now then
      return nil
    end
    local reason, most = string.match(marker, '^ (%a+)', 61 + n), string.match(config, '(%d+)$') * 1000
    if trusted - now > most and reason ~= 'list' then
      -- The clock was set back. A whole quarantine from now is enough; but
      -- after a change of list it goes by the bounds of the former one.
      trusted = now + most
      redis.call('SET', key, string.format('%s%016.0f%s', string.sub(marker, 1, 44 + n), trusted, string.sub(marker, 61 + n)))
    end
    return {'quarantine', reason, string.format('%.0f', math.ceil((trusted - now) / 1000)), '', time[1], time[2]}
  end
  if marker and not known then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  -- Marked anew: for its old list, if it remembers one.
  local reason, asked, trusted, why = 'new', config
  if marker then
    local c, t, w, n = string.match(marker, '^1 %x+ (%x+ %d+ %d+ %d+) (%d+) (%a+) (.*)$')
    if c then
      reason, config, trusted, why, nodes = 'changed', c, tonumber(t), w, n
    end
  end
  local left = tonumber(string.match(config, '(%d+)$'))
  if nodes == '' then
    return {'quarantine', 'unmarked', tostring(left), '', time[1], time[2]}
  end
  if why == 'list' and trusted > now + left * 1000 then
    reason, left = why, math.ceil((trusted - now) / 1000)
  end
  local id = string.match(info, 'master_replid:(%x+)')
  marker = string.format('1 %s %s %016.0f %s %s', id, config, now + left * 1000, reason, nodes)
  redis.call('SET', key, marker)
  if config ~= asked then
    return {'config', marker, '0', '', time[1], time[2]}
  end
  return {'quarantine', reason, string.format('%.0f', left), '', time[1], time[2]}
end
