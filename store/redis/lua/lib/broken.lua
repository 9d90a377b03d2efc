-- The last break of a name. Its format is here alone.
--
--   BREAK           20 digits
--   BREAK BROKEN    20 digits, a space, 20 digits
--
-- BREAK is the token of the last break: a holder with a lower one is not repaired.
-- BROKEN is that of the last break that took the lock from a holder.

-- readBreak(key) returns both; '' for none.
local function readBreak(key)
  local stored = redis.call('GET', key) or ''
  return string.sub(stored, 1, 20), string.sub(stored, 22, 41)
end

-- writeBreak(key, token, taken, retention) notes a break, which has taken the lock
-- from a holder if taken is set.
local function writeBreak(key, token, taken, retention)
  local _, broken = readBreak(key)
  if taken then broken = token end
  if broken ~= '' then token = token .. ' ' .. broken end
  redis.call('SET', key, token, 'PX', string.format('%.0f', math.max(retention, redis.call('PTTL', key))))
end
