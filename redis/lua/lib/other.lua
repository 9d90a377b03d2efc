-- other(holder, fence, time) returns the reply about a lock that is not ours.
-- holder is what MGET found, which does not see what is no string.
--   {'held', holder, left ms, fence, now s, now µs}   left is -1 without expiry
--   {'foreign', type, left ms, fence, now s, now µs}
--   {'absent', '', '0', fence, now s, now µs}
local function other(holder, fence, time)
  local status = 'held'
  if not holder then
    holder = redis.call('TYPE', KEYS[1]).ok
    if holder == 'none' then
      return {'absent', '', '0', fence, time[1], time[2]}
    end
    status = 'foreign'
  end
  return {status, holder, tostring(redis.call('PTTL', KEYS[1])), fence, time[1], time[2]}
end

