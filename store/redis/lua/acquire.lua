-- Takes the lock for a value, or a share of it: that of a reader, or a slot. If
-- there is no room, and the value may wait, puts it into the queue.
--
-- KEYS[1]  the lock                   ARGV[1]   value
-- KEYS[2]  its fence                  ARGV[2]   token, 20 digits; '' for none
-- KEYS[3]  its turn                   ARGV[3]   with a marker: how it must begin, up to the
-- KEYS[4]  its queue                            space after the config
-- KEYS[5]  its group                  ARGV[4]   with a marker: the line of INFO replication
-- KEYS[6]  its ended values                     with the id that the marker must have; '' if
-- KEYS[7]  the server's marker;                 that is not known, or if replicas are
--          absent where it does not             required; o if the guard is off
--          matter                     ARGV[5]   to wait: ticket, µs; else ''
-- or, on a server that is no part of  ARGV[6]   to wait: inbox; '' for a waiter that polls
-- a Cluster, KEYS[1] and the marker   ARGV[7]   time to live, ms; 10000 if absent
-- alone                               ARGV[8]   retention of the fence, ms; 3600000 if absent
--                                     ARGV[9]   window of the token, µs; 10000000 if absent
--                                     ARGV[10]  share: r for a reader; s, and two digits each
--                                               for the number of slots and the slot; '' for
--                                               the whole lock
--          ARGV[2] to [10] may be absent from some point on
--
-- Reply: in the common case a number, the server's clock in µs. It means granted,
-- with the token as the fence, by the server that ARGV[4] names, if any. Otherwise
-- {status, holder, left ms, fence, now s, now µs, rank}, and for a share slot, free;
-- all strings
--   granted     it is ours for the whole time to live; with the guard on, holder
--               is the server's replication id, the marker's epoch, lineage and epochs,
--               with spaces between them
--   held        there is no room; holder has it, for as long as left says (-1: no
--               expiry), or is a group; see lib/group.lua
--   foreign     a key of type holder is in its place
--   reserved    there is room, and it is reserved for a waiter before us; left,
--               unless it is 0, says when to check whether that one took it
--   stale       the token is not above the fence, or a reader's not above the floor
--   behind      the token is too far behind this server's clock
--   ahead       the token is too far ahead of this server's clock, and of the fence
--   quarantine  this server may have forgotten locks, and grants none for as long
--               as left says; holder is the reason
--   config      this server is marked for another membership, or, with the guard
--               off, for shorter times to live; holder is the marker
-- or an error: NOINFO, READONLY, UNREPLICATED
-- rank is our place in the queue, 1 for the head, and 0 for none. slot is the one
-- that was granted, and free has a 1 for each slot that is free, and a 0 for each
-- other
--#include entry
local value, token, expected, server = ARGV[1], ARGV[2] or '', ARGV[3], ARGV[4] or ''
local ttl, retention, window, share = ARGV[7] or '10000', ARGV[8] or '3600000', (ARGV[9] or '10000000') + 0, ARGV[10] or ''
--#include trusted
if share == '' then
  --#include take
end

local ticket, inbox = (ARGV[5] or '') ~= '' and ARGV[5], ARGV[6] or ''
if not fit or from > now then
  --#include guard
  local denied = guard(expected, server, ttl)
  if denied then return denied end
end
--#include engine
--#include join

-- answer(r, slot) adds to a reply what only a share has.
local function answer(r, slot)
  if e.kind ~= '' then r[8], r[9] = slot or '', freeSlots() end
  return r
end

-- refused(status) queues us if we may wait. A late request does not join: its value
-- was released here, or its token is so old that this may be forgotten.
local function refused(status)
  local rank
  if e.ticket then
    --#include ended
    local late = e.token ~= '' and tonumber(e.token) < e.now - e.window or hasEnded()
    rank = (not late or redis.call('ZSCORE', q.key, q.me)) and join(e.ticket)
  end
  local r = reply(status, rank)
  if status == 'reserved' and q.watch then r[3] = string.format('%.0f', (q.lapses - e.now) / 1000) end
  return answer(r)
end

-- overtaken() reports whether the proposal of a holder is older than what it was
-- granted, or than what others were granted since.
local function overtaken()
  if e.kind == '' then return e.token < e.fence end
  if e.kind == 'r' and e.token < e.own.token then return true end
  return e.token ~= e.own.token and e.token <= (e.kind == 'r' and e.floor or e.fence)
end

local at = place()
if not at then return refused(e.foreign and 'foreign' or 'held') end
if e.own then
  -- A repeated request after a lost reply must not be refused. A proposal that a
  -- later one of ours has overtaken must be.
  if token ~= '' and overtaken() then return reply('stale') end
  if judge(e.kind == 'r') == 'ahead' then return reply('ahead') end
  -- A copy of the request that was granted must not move the holder: its claim may
  -- have won with the slot that the first one got.
  if e.own.kind == e.kind and e.own.token == (token ~= '' and token or noToken) then at = e.own.slot end
else
  if turn then
    local first = redis.call('ZRANGE', q.key, 0, 0)[1]
    if first ~= q.me then first = serve() end
    if first and first ~= q.me and not isNext() then
      return refused(fits(kindOf(first), e.taken, e.count) and 'reserved' or 'held')
    end
  end
  local verdict = judge(e.kind == 'r')
  if verdict ~= 'granted' then return reply(verdict) end
end
grant(at)
if turn then
  if ticket then redis.call('ZREM', q.key, q.me) end
  serve()
end
local r = reply('granted')
if markerKey and server ~= 'o' then
  local id, epoch, lineage, epochs = string.match(marker, '^3 (%x+) (%d+) %x+ %d+ %d+ %d+ %d+ %d+ %d+ %a+ %d+ (%x+) ([%x:,-]+) ')
  r[2] = id .. ' ' .. epoch .. ' ' .. lineage .. ' ' .. epochs
end
return answer(r, at)
