-- replication(lenient) returns INFO replication of a master, or nil and the
-- error to answer with: a replica confirms nothing, even where it can be written
-- to. lenient, which is for clients with the guard off, accepts that INFO is
-- forbidden, and returns '' then.
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

