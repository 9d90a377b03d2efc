-- Frees the lock, or our share of it, if it is the value's, and raises the fence to
-- the token: an acquire of the same value and token that is still in flight is then
-- stale, and leaves no lock behind. Removes the value from the queue, and notifies
-- the next waiter.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]  inbox under which the value may wait
-- KEYS[4]  its queue                  ARGV[4]  retention of the fence, ms; 3600000 if absent
-- KEYS[5]  its group                  ARGV[5]  window of the token, µs; 10000000 if absent
-- KEYS[6]  with ARGV[8]: its ended    ARGV[6]  1 if it must not be applied twice: with a
--          values                              token that is above all before it
-- or, on a server that is no part of  ARGV[7]  to keep the lock taken: for how long at most,
-- a Cluster, KEYS[1] alone                     ms; '' if it is not
--                                     ARGV[8]  for how long the value is neither repaired nor
--                                              queued, ms; '' for not at all
--                                     ARGV[9]  share; see acquire.lua
--          ARGV[2] to [9] may be absent from some point on
--
-- Reply: in the common case a number, the server's clock in µs, or 0 if it did not
-- matter. It means granted, with the token as the fence. Otherwise {status, holder,
-- left ms, fence, now s, now µs, rank}, all strings, with the rank 0
--   granted   it was ours and is gone, or, with ARGV[7], expires by then
--   held      holder has it, for as long as left says (-1: no expiry), or is a
--             group; see lib/group.lua
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     with ARGV[6] = 1: it is ours, and the fence is not below the token
--   ahead     with ARGV[6] = 1: it is ours, and the token could not be the fence
--#include names
local value, token, once = ARGV[1], ARGV[2] or '', ARGV[6] == '1'
local text, stored, turn = unpack(call('MGET', lock, fenceKey, turnKey))
-- The most common release: the lock is ours, nobody waits, and the fence is the token
-- already. It needs no clock.
if text == value and stored == token and not turn and not once and not ARGV[7] then
  call('DEL', lock)
  return 0
end
local retention, window = ARGV[4] or '3600000', tonumber(ARGV[5] or '10000000')
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
stored = stored or ''
if not ARGV[7] then
  --#include free
end

local inbox, ttl, ticket, share = ARGV[3] or '', nil, nil, ARGV[9] or ''
--#include engine
local verdict = judge(false)
if e.own and once and (verdict == 'stale' or verdict == 'ahead') then return reply(verdict) end
-- A full server refuses what needs memory only if it is a script's first write.
if e.own and (ARGV[7] or '') == '' then
  drop()
else
  redis.call('PEXPIRE', fenceKey, fenceLife())
  if e.own then keep(tonumber(ARGV[7])) end
end
-- Also if the lock was ours: an acquire with a higher token may still be in flight.
-- One with a token that is ahead would be refused, and its release must not raise
-- the fence. An exclusive acquire below the fence is stale, whatever the floor.
if verdict ~= 'ahead' then raise(e.kind ~= '' or token > e.fence) end
if (ARGV[8] or '') ~= '' then
  --#include ended
  endValue(ARGV[8])
end
local r = e.own and reply('granted') or state()
if turn then
  q.fenced = e.fence
  withdraw()
  serve()
end
return r
