-- Gives the lock, or a share of it, to a value on a server that missed its
-- acquisition, after a quorum of others has just extended it. The fence does not
-- matter: the lock may have expired here, and contenders raise the fence, too. A
-- value that was released here while this request may have been in flight is
-- refused: nobody would free the key. So is a repair that comes late, and one with a
-- token below that of a break, which is to end that holder.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits
-- KEYS[3]  its turn                   ARGV[3]  retention of the fence, ms
-- KEYS[4]  its queue                  ARGV[4]  when it is too late, µs on this clock
-- KEYS[5]  its group                  ARGV[5]  time to live, ms
-- KEYS[6]  its ended values           ARGV[6]  inbox under which the value may wait
-- KEYS[7]  its last break             ARGV[7]  share; see acquire.lua
-- KEYS[8]  the server's marker;       ARGV[8]  with KEYS[8]: how the marker must begin, up
--          absent where it does not            to the space after the config
--          matter                     ARGV[9]  with KEYS[8]: the line of INFO replication with
--                                              the id that the marker must have; see
--                                              acquire.lua
--          ARGV[6] to [9] may be absent from some point on
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings, with
-- the rank 0
--   granted     it is ours for the whole time to live
--   held        there is no room, or not in that slot; holder has it, for as long as left says (-1: no
--               expiry), or is a group; see lib/group.lua
--   foreign     a key of type holder is in its place
--   stale       the value was released, the lock was broken, or it is too late
--   quarantine  this server may have forgotten locks, and grants none for as long
--               as left says; holder is the reason
--   config      this server is marked for another membership, or, with the guard
--               off, for shorter times to live; holder is the marker
-- or an error: NOINFO, READONLY, UNREPLICATED
local brokenKey = table.remove(KEYS, 7) -- the marker is KEYS[7] elsewhere
--#include entry
local value, token, retention, ttl, inbox, share = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6] or '', ARGV[7] or ''
local expected, server = ARGV[8], ARGV[9] or ''
--#include trusted
if not fit or from > now then
  --#include guard
  local denied = guard(expected, server, ttl)
  if denied then return denied end
end
local window, ticket = 0, nil
--#include engine
--#include ended
local at = place()
if e.own and e.own.kind == e.kind and e.own.slot == e.slot then return reply('granted') end
if at ~= e.slot then return state() end
--#include broken
-- An equal token may be that of the next holder.
if not e.own and (token < readBreak(brokenKey) or now > tonumber(ARGV[4]) or hasEnded()) then return reply('stale') end
grant(e.slot)
if turn then
  q.fenced = e.fence
  withdraw()
  serve()
end
return reply('granted')
