-- Gives the lock, or our share of it, its whole time to live again, if it is the
-- value's. It never creates. A value that has the whole lock may extend it as a
-- reader: then it is one from now on.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]  with a marker: how it must begin, up to the
-- KEYS[4]  its queue                           space after the config
-- KEYS[5]  its group                  ARGV[4]  with a marker: the line of INFO replication
-- KEYS[6]  its ended values                    with the id that the marker must have; '' if
-- KEYS[7]  the server's marker;                that is not known, if replicas are required,
--          absent where it does not            or if the time to live is above the
--          matter                              config's; o if the guard is off
-- or, on a server that is no part of  ARGV[5]  time to live, ms; 10000 if absent
-- a Cluster, KEYS[1] and the marker   ARGV[6]  retention of the fence, ms; 3600000 if absent
-- alone                               ARGV[7]  share; see acquire.lua
--                                     ARGV[8]  to reserve tokens from ARGV[2] on: the last of
--                                              them, 20 digits; else ''
--                                     ARGV[9]  with ARGV[8]: window of the token, µs
--          ARGV[2] to [9] may be absent from some point on
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence. Otherwise {status, holder, left ms, fence, now s, now
-- µs, rank}, all strings, with the rank 0; and if the tokens of ARGV[8] are reserved
-- {..., next}: the lowest ticket in the queue, or ''
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
local value, token, expected, server = ARGV[1], ARGV[2] or '', ARGV[3], ARGV[4] or ''
local ttl, retention, share = ARGV[5] or '10000', ARGV[6] or '3600000', ARGV[7] or ''
local last = (ARGV[8] or '') ~= '' and ARGV[8]
--#include trusted
if share == '' and last then
  --#include reserve
elseif share == '' then
  --#include renew
end

local window, ticket, inbox = tonumber(ARGV[9] or 0), nil, ''
if fit and from > now then last = false end -- to reserve tokens is to grant them
--#include engine
if not e.own then return place() == e.slot and reply('absent') or state() end
local remark = false
if not fit then
  --#include guard
  if last and guard(expected, server, ttl) then last = false end
  local guarded = markerKey and server ~= 'o'
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
redis.call('PEXPIRE', fenceKey, fenceLife()) -- the first write, also on a full server
hold(e.slot, e.own.token)
if downgraded and turn then serve() end
-- reserve() reserves the tokens from ours to the last. They must be above the fence:
-- another may have been granted a token up to there. A copy of the request finds
-- them reserved.
local function reserve()
  if e.kind ~= '' or token == '' then return false end
  if e.own.token == token and e.fence == last then return true end
  if judge(false) ~= 'granted' then return false end
  e.token = last
  if judge(false) == 'ahead' then return false end
  e.whole, e.fence, e.floor = token, last, last
  writeFence('PX', fenceLife())
  return true
end
local reserved = last and reserve()
local r = reply('granted')
if reserved then r[8] = turn and redis.call('ZRANGE', q.key, 0, 0, 'WITHSCORES')[2] or '' end
if remark then r[2] = 'remark' end
return r
