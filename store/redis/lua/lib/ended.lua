-- The values that were released while a repair or an acquire of them may be in
-- flight: a sorted set, redlatch:1:ended, of values, each with the time until which it is
-- neither repaired nor queued, µs. Its format is here alone.

local endedKey = KEYS[6] or 'redlatch:1:ended:{' .. lock .. '}'

-- endValue(ms) has our value be neither repaired nor queued for so long.
local function endValue(ms)
  for _, old in ipairs(redis.call('ZRANGE', endedKey, '-inf', micros(e.now), 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('ZREM', endedKey, old)
  end
  local ends = e.now + ms * 1000
  if ends > tonumber(redis.call('ZSCORE', endedKey, e.value) or 0) then
    redis.call('ZADD', endedKey, micros(ends), e.value)
  end
  if redis.call('PTTL', endedKey) < tonumber(ms) then redis.call('PEXPIRE', endedKey, ms) end
end

-- hasEnded() reports whether our value is neither repaired nor queued.
local function hasEnded()
  return tonumber(redis.call('ZSCORE', endedKey, e.value) or 0) > e.now
end
