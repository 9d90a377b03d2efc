-- Gives the lock its whole time to live again, if it is the value's. It never
-- creates.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  time to live, ms
-- KEYS[3]  the server's marker;       ARGV[3]  token, 20 digits; '' for none
--          absent where it is not to  ARGV[4]  retention of the fence, ms
--          be looked at               ARGV[5]  with KEYS[3]: how the marker must begin, up
--                                              to the space after the config
--                                     ARGV[6]  with KEYS[3]: the line of INFO replication with
--                                              the id that the marker must have; '' if that is
--                                              not known, if replicas are required, or if the
--                                              time to live is above the config's; o if the
--                                              guard is off
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence. Otherwise {status, holder, left ms, fence, now s, now µs}, all strings
--   granted   the key is ours for the whole time to live; with the guard on,
--             holder is remark if this server has no marker or not its own
--   held      holder has it, for as long as left says (-1: no expiry)
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   config    this server is marked for another membership, or for locks that
--             live less long, and a lock from before must run out
-- or an error: NOINFO, READONLY; UNREPLICATED if the marker asks for more
-- replicas than are online
--#include markerFormat
local lock, token, expected = KEYS[1], ARGV[3], ARGV[5]
local time = redis.call('TIME')
local got = redis.call('MGET', lock, KEYS[2], KEYS[3] or KEYS[2])
local holder, fence, marker = got[1], token ~= '' and got[2] or '', KEYS[3] and got[3]

-- The common case: the lock is ours, and the marker is as expected or need not be
-- there. It comes before the helpers, since even to define a function takes time.
local server = ARGV[6]
local same = marker and server ~= '' and server ~= 'o' and string.find(marker, expected, 1, true) == 1
if holder == ARGV[1] and (same or not KEYS[3] or server == 'o' and not marker) then
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' and string.find(info, 'role:master', 1, true)
    and (not same or string.find(info, server, 1, true)) then
    if token ~= '' then
      redis.call('PEXPIRE', KEYS[2], ARGV[4])
    end
    redis.call('PEXPIRE', lock, ARGV[2])
    return time[1] * 1000000 + time[2]
  end
end

-- All other cases.
--#include other
--#include role
--#include marker
if holder ~= ARGV[1] then
  return other(holder, fence, time)
end
if marker and (string.sub(marker, listFrom, listTo) ~= string.sub(expected, listFrom, listTo)
  or tonumber(ARGV[2]) > tonumber(string.match(marker, '^%d+', maxTTLFrom)) + 1) then
  return {'config', marker, '0', '', time[1], time[2]}
end
local guarded = KEYS[3] and server ~= 'o'
local info, refused = replication(not guarded)
local standing = read(marker)
if standing and not refused then refused = unreplicated(info, standing) end
if refused then return refused end
if token ~= '' then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
redis.call('PEXPIRE', lock, ARGV[2])
-- What is extended is safe. But this server may have forgotten other locks.
local remark = guarded and not (marker and string.find(info, 'master_replid:' .. string.sub(marker, idFrom, idTo), 1, true))
return {'granted', remark and 'remark' or '', '0', token, time[1], time[2]}
