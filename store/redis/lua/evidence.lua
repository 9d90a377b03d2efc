-- Takes one step through the server's keys, and looks for one that shows that
-- locks were kept here. A step is bounded, however many keys there are.
--
-- KEYS[1]  any key; in a cluster it   ARGV[1]  cursor, '0' to begin
--          chooses the shard          ARGV[2]  how many keys to look at
--
-- Reply: {next cursor}, or {next cursor, key} if there is one: what stands
-- beside a lock, or a lock, whose value is 32 hexadecimal digits, a colon and
-- the owner, or a group; see lib/group.lua. The walk is over when the cursor is '0'
local step = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
for _, key in ipairs(step[2]) do
  if string.find(key, '^redlatch:1:[fq]') then
    return {step[1], key}
  end
  -- An error is no string either: a key of another type, or of another user.
  local value = redis.pcall('GETRANGE', key, 0, 32)
  if type(value) == 'string' and #value == 33 and (string.find(value, '^%x+:$') or string.find(value, '^redlatch%-group%-')) then
    return {step[1], key}
  end
end
return {step[1]}
