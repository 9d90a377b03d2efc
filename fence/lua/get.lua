-- Reads a value and the highest token, as of one moment.
--
-- KEYS[1]  the highest token
-- KEYS[2]  the value
--
-- Reply: {status, highest, value}, all strings
--   found   value is set; highest is '' if there is no token
--   absent  there is no value
local highest, value = redis.call('GET', KEYS[1]) or '', redis.call('GET', KEYS[2])
if value then return {'found', highest, value} end
return {'absent', highest, ''}
