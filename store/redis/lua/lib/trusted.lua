-- Sets fit: this server is a master with the marker that the client expects, or no
-- marker is needed; and from, when its quarantine ended or ends, µs. expected and
-- server are set before. It is the quick half of guard.lua, which has the rule:
-- where fit is false, or from is to come, guard decides. It is no function: to
-- define one takes time.
local fit, from, unguarded = false, 0, not markerKey or server == 'o' and not marker
if unguarded or marker and server ~= '' and server ~= 'o' and string.find(marker, expected, 1, true) == 1 then
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then -- INFO is forbidden
    fit = unguarded
  else
    fit = string.find(info, 'role:master', 1, true) and (unguarded or string.find(info, server, 1, true))
    if not unguarded then from = tonumber(string.sub(marker, #expected + 1, #expected + 16)) end
  end
end
