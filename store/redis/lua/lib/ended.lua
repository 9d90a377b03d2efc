-- The values that were released while a repair or an acquire of them may be in
-- flight: a sorted set, KEYS[6], of values, each with the time until which it is
-- neither repaired nor queued, µs. Its format is here alone.

-- endValue(ms) has our value be neither repaired nor queued for so long.
local function endValue(ms)
  for _, old in ipairs(redis.call('ZRANGE', KEYS[6], '-inf', micros(e.now), 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('ZREM', KEYS[6], old)
  end
  local ends = e.now + ms * 1000
  if ends > tonumber(redis.call('ZSCORE', KEYS[6], e.value) or 0) then
    redis.call('ZADD', KEYS[6], micros(ends), e.value)
  end
  if redis.call('PTTL', KEYS[6]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[6], ms) end
end

-- hasEnded() reports whether our value is neither repaired nor queued.
local function hasEnded()
  return tonumber(redis.call('ZSCORE', KEYS[6], e.value) or 0) > e.now
end
