-- Says whether this server is a master; a replica confirms nothing, even where
-- it can be written to. This file is put before the scripts that need it.
--
-- replication(lenient) returns what INFO says, or nil and the error to answer
-- with. lenient, which is for clients with the guard off, makes do without INFO
-- where that is forbidden, and returns ''.
local function replication(lenient)
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'table' then
    if lenient then return '' end
    return nil, redis.error_reply('NOINFO this user may not ask INFO')
  end
  if not string.find(info, 'role:master', 1, true) then
    return nil, redis.error_reply('READONLY this server is a replica')
  end
  return info
end
