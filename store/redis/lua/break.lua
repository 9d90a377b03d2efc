-- Takes the lock from any holder, and raises the fence to the token, so that the next
-- holder's is above it. Notes the token, so that a holder with a lower one is not
-- repaired. Waiters keep their places, and the first of them is notified.
--
-- KEYS[1]  the lock                   ARGV[1]  token, 20 digits; '' for none
-- KEYS[2]  its fence                  ARGV[2]  retention of the fence, ms
-- KEYS[3]  its turn                   ARGV[3]  window of the token, µs
-- KEYS[4]  its queue                  ARGV[4]  '1' to remove a key of another type too
-- KEYS[5]  its group                  ARGV[5]  with KEYS[7]: the id of the membership
-- KEYS[6]  its last break
-- KEYS[7]  the server's marker;
--          absent where it does not
--          matter
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings, with
-- the rank 0
--   granted   there is no key any more
--   foreign   a key of type holder is in its place, and stays
--   stale     the fence is above the token, or equal to it and there is a holder: the
--             lock was taken since
--   ahead     the token is too far ahead of this server's clock, and of the fence
--   config    this server is marked for another membership; holder is the marker
--#include entry
--#include markerFormat
if marker and string.sub(marker, membershipFrom, membershipTo) ~= ARGV[5] then
  return {'config', marker, '0', '', time[1], time[2]}
end
local token, retention, window = ARGV[1], ARGV[2], tonumber(ARGV[3])
local value, share, ttl, ticket, inbox = nil, '', nil, nil, ''
--#include engine
if token ~= '' and (token < e.fence or token == e.fence and e.text) then return reply('stale') end
if judge(false) == 'ahead' then return reply('ahead') end
if e.foreign and ARGV[4] ~= '1' then return reply('foreign') end
-- First, since a full server refuses what needs memory if it is the first write.
redis.call('DEL', lock, e.groupKey)
if token ~= '' then
  -- Also if the lock is free here: its holder on other servers would have it repaired
  -- here before the break reaches them.
  --#include broken
  writeBreak(KEYS[6], token, e.taken, retention)
end
e.taken, e.count, e.text = nil, 0, false
raise(true)
if turn then
  q.fenced = e.fence
  serve()
end
return reply('granted')
