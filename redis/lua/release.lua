-- Tells who has a lock that was not ours to release, and serves those who wait.
-- free.lua is put before this file, and has freed the lock if it was ours.
local reply
if holder == ARGV[1] then
  reply = {'granted', '', '0', fence, time[1], time[2]}
else
  reply = other(holder, fence, time)
end
if turn then
  line(turn, time, string.sub(fence, 1, 20), '')
  -- Under either form: the inbox may have been denied, or allowed, meanwhile.
  redis.call('ZREM', KEYS[4], ARGV[1] .. '\0' .. ARGV[6], ARGV[1] .. '\0')
  serve(reply[1] == 'granted' or reply[1] == 'absent')
end
return reply
