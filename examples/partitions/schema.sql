PRAGMA journal_mode = WAL;
CREATE TABLE partitions (id INTEGER PRIMARY KEY, offset INTEGER NOT NULL DEFAULT 0, token INTEGER);
CREATE TABLE messages (part INTEGER, id INTEGER, text TEXT NOT NULL, PRIMARY KEY (part, id));
-- No key: a message that is handled twice is there twice.
CREATE TABLE results (part INTEGER, id INTEGER, text TEXT NOT NULL, consumer INTEGER NOT NULL);
INSERT INTO partitions (id) VALUES (0), (1), (2), (3);
INSERT INTO messages
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
SELECT partitions.id, n.i, 'message ' || n.i FROM partitions, n;
