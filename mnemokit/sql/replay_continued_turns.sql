-- Turns that earlier chunks or replays stored of the sessions that go on in this chunk.
SELECT stored.*
FROM turns AS stored
SEMI JOIN arriving ON arriving.session_id = stored.session_id AND arriving.source = stored.source
ORDER BY stored.turn_no;
