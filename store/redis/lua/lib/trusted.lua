-- Sets fit: this server is a master with the marker that the client expects, and its
-- quarantine has ended at the time by, µs, nil for any; or no marker is needed.
-- expected, server and by are set before. It is the quick half of guard.lua, which has
-- the rule: where fit is false, guard decides. It is no function: to define one takes
-- time.
local fit, unguarded = false, not markerKey or server == 'o' and not marker
if unguarded or marker and server ~= '' and server ~= 'o' and string.find(marker, expected, 1, true) == 1 then
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then -- INFO is forbidden
    fit = unguarded
  else
    fit = string.find(info, 'role:master', 1, true) and (unguarded or string.find(info, server, 1, true)
      and (not by or tonumber(string.sub(marker, #expected + 1, #expected + 16)) <= by))
  end
end
