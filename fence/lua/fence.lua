-- The bare check, to stand at the head of a script that writes.
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
local function redlatch_fence(key, token, retention)
  if type(token) ~= 'string' or #token ~= 20 or string.find(token, '%D')
    or token < '00000000000000000001' or token > '00009007199254740991' then
    error('redlatch: a token is 20 digits, from 1 to 9007199254740991')
  end
  -- Compared as strings of one length: as numbers they would lose digits on
  -- their way back to text.
  local highest = redis.call('GET', key)
  if highest then
    if #highest ~= 20 or string.find(highest, '%D') then
      error('redlatch: the key of the highest token holds something else')
    end
    if token < highest then return highest end
  end
  if retention and tonumber(retention) > 0 then
    redis.call('SET', key, token, 'PX', retention)
  else
    redis.call('SET', key, token)
  end
  return false
end
