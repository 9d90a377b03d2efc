-- Gives the lock its whole time to live again, if it is the value's. It never
-- creates.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
-- KEYS[3]  the server's marker;       ARGV[3]  token, 20 digits; '' for none
--          absent with the guard off  ARGV[4]  retention of the fence, ms
--                                     ARGV[5]  with the guard on: the id of its list
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   the key is ours for the whole time to live
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   an error, UNREPLICATED, if the marker asks for more replicas than are online
--   config    this server is marked for another list of nodes, or for locks
--             that live less long, and a lock from before must run out
local lock, token = KEYS[1], ARGV[3]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, unpack(KEYS, 2))
local holder, fence, marker = got[1], token ~= '' and got[2] or '', got[3]
if holder ~= ARGV[1] then
  return other(holder, fence, time)
end
-- The offsets are those of marker.lua. A part of a millisecond is rounded up in ours and down in theirs.
if marker and (string.sub(marker, 44, 59) ~= ARGV[5]
  or tonumber(ARGV[2]) > tonumber(string.match(marker, '^%d+', 61)) + 1) then
  return {'config', marker, '0', '', time[1], time[2]}
end
local standing = read(marker)
if standing and standing.replicas ~= '0' then
  local info, refused = replication()
  refused = refused or unreplicated(info, standing)
  if refused then return refused end
end
if token ~= '' then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
redis.call('PEXPIRE', lock, ARGV[2])
return {'granted', '', '0', token, time[1], time[2]}
