-- Reads what the server has of a name, as of one moment:
--   now     the server's clock, µs; time has it in two parts
--   text    the lock's key; false if there is none, or one that is no string
--   stored  its fence; '' for none
--   turn    its turn; false if the queue is empty
--   marker  the server's marker; false if there is none, nil if it does not matter
--#include names
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local got = call('MGET', lock, fenceKey, turnKey, markerKey or fenceKey)
local text, stored, turn, marker = got[1], got[2] or '', got[3], markerKey and got[4]
