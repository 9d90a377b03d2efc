-- The bare checks, to be put at the head of a script that writes, or reads.
--
-- redlatch_fence(key, token, retention)
--   key        where the resource's highest token is kept, a string; in a
--              cluster it must be among KEYS, in the slot of what is written
--   token      20 digits
--   retention  ms for which the token is remembered after its last use; nil
--              or 0 for ever
--
-- Returns false if the token was accepted, and is now the highest; the highest
-- as 20 digits if the token is stale: the script must then write nothing.
-- Anything that is no token is an error, and nothing is written.
--
-- redlatch_fence_read(key, readers, token, retention)
--   readers    another key, like the first one
--
-- The same for the token of a reader, in a script that writes nothing else. It
-- returns false if no writer had a higher token, and the highest writer's
-- otherwise.
local function redlatch_fence_token(token)
  if type(token) ~= 'string' or #token ~= 20 or string.find(token, '%D')
    or token < '00000000000000000001' or token > '00009007199254740991' then
    error('redlatch: a token is 20 digits, from 1 to 9007199254740991')
  end
end

-- Tokens are compared as strings of one length: as numbers they would lose
-- digits on their way back to text.
local function redlatch_fence_get(key, digits)
  local text = redis.call('GET', key)
  if text and (#text ~= digits or string.find(text, '%D')) then
    error('redlatch: the key of the highest token holds something else')
  end
  return text
end

local function redlatch_fence_set(key, text, retention)
  if retention and tonumber(retention) > 0 then
    redis.call('SET', key, text, 'PX', retention)
  else
    redis.call('SET', key, text)
  end
end

local function redlatch_fence(key, token, retention)
  redlatch_fence_token(token)
  local highest = redlatch_fence_get(key, 20)
  if highest and token < highest then return highest end
  redlatch_fence_set(key, token, retention)
  return false
end

-- The second key has 40 digits: the highest token as the last reader left it,
-- and the highest of a writer by then. Writers know the first key alone. If one
-- has set it since, it differs from what the reader left, and the highest token
-- is a writer's.
local function redlatch_fence_read(key, readers, token, retention)
  redlatch_fence_token(token)
  local highest, left = redlatch_fence_get(key, 20), redlatch_fence_get(readers, 40)
  local writer = highest or '00000000000000000000'
  if left and string.sub(left, 1, 20) == highest then writer = string.sub(left, 21) end
  if token < writer then return writer end
  if not highest or token > highest then highest = token end
  redlatch_fence_set(key, highest, retention)
  redlatch_fence_set(readers, highest .. writer, retention)
  return false
end
