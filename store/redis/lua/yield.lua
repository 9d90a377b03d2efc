-- Yields the lock, or our share of it, to a waiter with a lower ticket, if there is
-- one: frees it, and puts the value into the queue, in one step. So callers that
-- have a few servers each end with all of them in the hands of the first in the
-- queue.
--
-- KEYS[1]  the lock                   ARGV[1]  value
-- KEYS[2]  its fence                  ARGV[2]  token, 20 digits, above all that the value
-- KEYS[3]  its turn                            asked with before; '' for none
-- KEYS[4]  its queue                  ARGV[3]  retention of the fence, ms
-- KEYS[5]  its group                  ARGV[4]  window of the token, µs
--                                     ARGV[5]  ticket, µs
--                                     ARGV[6]  inbox; '' for a waiter that polls
--                                     ARGV[7]  share; see acquire.lua
--          ARGV[6] and [7] may be absent from some point on
--
-- Reply: {status, holder, left ms, fence, now s, now µs, rank}, all strings
--   granted   it is still ours: there is room for all that are before us in the queue
--   reserved  it was ours, and is reserved for a waiter that is before us; rank is
--             our place in the queue
--   held      holder has it, for as long as left says (-1: no expiry), or is a
--             group; see lib/group.lua
--   foreign   a key of type holder is in its place
--   absent    there is no key
--   stale     it is ours, and the fence is not below the token: this was applied
--             before
--   ahead     it is ours, and the token could not be the fence
--#include entry
local value, token, retention, window = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local ttl, ticket, inbox, share = nil, ARGV[5], ARGV[6] or '', ARGV[7] or ''
--#include engine
--#include join
if not e.own then return state() end
local verdict = judge(false)
if verdict == 'stale' or verdict == 'ahead' then return reply(verdict) end
if isNext() then
  -- The caller relies on what it keeps. If this is applied a second time, it must
  -- not free the lock.
  raise(e.kind ~= 'r')
  return reply('granted')
end
drop()
return reply('reserved', join(ticket))
