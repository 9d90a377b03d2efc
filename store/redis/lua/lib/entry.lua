-- Reads what the server has of a name, as of one moment:
--   now     the server's clock, µs; time has it in two parts
--   text    the lock's key; false if there is none, or one that is no string
--   stored  its fence; '' for none
--   turn    its turn; false if the queue is empty
--   marker  the server's marker; false if there is none, nil if KEYS[7] is absent
local lock, fenceKey = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local got = redis.call('MGET', lock, fenceKey, KEYS[3], KEYS[7] or KEYS[3])
local text, stored, turn, marker = got[1], got[2] or '', got[3], KEYS[7] and got[4]
