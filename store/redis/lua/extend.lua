-- Gives the lock, or our share of it, its whole time to live again, if it is the
-- value's. It never creates. A value that has the whole lock may extend it as a
-- reader: then it is one from now on.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]  retention of the fence, ms
-- KEYS[4]  its queue                  ARGV[4]  time to live, ms
-- KEYS[5]  its group                  ARGV[5]  with KEYS[7]: how the marker must begin, up
-- KEYS[6]  its ended values                    to the space after the config
-- KEYS[7]  the server's marker;       ARGV[6]  with KEYS[7]: the line of INFO replication with
--          absent where it does not            the id that the marker must have; '' if that is
--          matter                              not known, if replicas are required, or if the
--                                              time to live is above the config's; o if the
--                                              guard is off
--                                     ARGV[7]  share; see acquire.lua
--          ARGV[5] to [7] may be absent from some point on
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence. Otherwise {status, holder, left ms, fence, now s, now
-- µs, rank}, all strings, with the rank 0
--   granted   it is ours for the whole time to live; with the guard on, holder is
--             remark if this server has to be marked; see lib/guard.lua
--   held      there is no room; holder has it, for as long as left says (-1: no
--             expiry), or is a group; see lib/group.lua
--   foreign   a key of type holder is in its place
--   absent    the value does not have it, and a repair would find room; or it has
--             another share
--   config    this server is marked for another membership, or for shorter times to
--             live, and a lock from before must expire
-- or an error: NOINFO, READONLY; UNREPLICATED if the marker asks for more
-- replicas than are online
--#include entry
local value, share, expected, server, by = ARGV[1], ARGV[7] or '', ARGV[5], ARGV[6] or '', nil
--#include trusted

-- The common case: the lock is ours. A server that is quarantined may extend it too.
-- It comes before the engine, since even to define a function takes time.
if fit and text == value and share == '' then
  call('PEXPIRE', fenceKey, ARGV[3])
  call('PEXPIRE', lock, ARGV[4])
  return now
end

local token, retention, ttl, window, ticket, inbox = ARGV[2], ARGV[3], ARGV[4], 0, nil, ''
--#include engine
if not e.own then return place() == e.slot and reply('absent') or state() end
local remark = false
if not fit then
  --#include guard
  local guarded = KEYS[7] and server ~= 'o'
  if marker and (string.sub(marker, membershipFrom, membershipTo) ~= string.sub(expected, membershipFrom, membershipTo)
    or tonumber(ttl) > tonumber(string.match(marker, '^%d+', maxTTLFrom)) + 1) then
    return misconfigured()
  end
  local info, denied = replication(not guarded)
  local standing = read(marker)
  if standing and not denied then denied = unreplicated(info, standing.config) end
  if denied then return denied end
  -- What is extended is safe. But this server may have forgotten other locks.
  remark = guarded and (not standing or not string.find(info, 'master_replid:' .. standing.id, 1, true)
    or replaced(standing, expected))
end
local downgraded = e.own.kind == '' and e.kind == 'r'
if not downgraded and (e.own.kind ~= e.kind or e.own.slot ~= e.slot) then return reply('absent') end
redis.call('PEXPIRE', fenceKey, retention) -- the first write, also on a full server
hold(e.slot, e.own.token)
if downgraded and turn then serve() end
local r = reply('granted')
if remark then r[2] = 'remark' end
return r
