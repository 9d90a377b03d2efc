-- Gives the lock to a value on a server that missed its acquisition, after a
-- quorum of others has just extended it. A fence at the very token means that
-- this server knew of the lock and that it was released: then it stays free. A
-- higher one is that of a contender who came here meanwhile, and in vain: a
-- quorum had just said whose the lock is. It stays as it is.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
-- KEYS[3]  the server's marker;       ARGV[3]  token, 20 digits
--          absent with the guard off  ARGV[4]  retention of the fence, ms
--                                     ARGV[5]  with the guard on: its config
--                                     ARGV[6]  with the guard on: its nodes
--
-- Reply: {status, holder, left ms, fence, now s, now µs}, all strings
--   granted     the key is ours for the whole time to live
--   held        holder has it, for as long as left says (-1: no expiry)
--   foreign     a key of type holder is in its place
--   stale       the token is the fence
--   quarantine  this server may have forgotten locks; left says for how long yet
--   config      this server is marked for another list of nodes
local lock, token = KEYS[1], ARGV[3]
local time = redis.call('TIME')
if KEYS[3] then
  local refused = guard(redis.call('GET', KEYS[3]), KEYS[3], ARGV[5], ARGV[6], time)
  if refused then return refused end
end
local got = redis.call('MGET', lock, KEYS[2])
local holder, fence = got[1], got[2] or ''
if holder == ARGV[1] then
  return {'granted', '', '0', fence, time[1], time[2]}
end
if holder then
  return {'held', holder, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if fence == token then
  return {'stale', '', '0', fence, time[1], time[2]}
end
if not redis.call('SET', lock, ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {'foreign', redis.call('TYPE', lock).ok, tostring(redis.call('PTTL', lock)), fence, time[1], time[2]}
end
if fence < token then
  redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
  fence = token
end
return {'granted', '', '0', fence, time[1], time[2]}
