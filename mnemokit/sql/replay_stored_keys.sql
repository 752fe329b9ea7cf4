-- Which arriving turns does the store hold already?
SELECT arriving.turn_no
FROM arriving
SEMI JOIN turns AS stored
    ON stored.session_id = arriving.session_id
    AND stored.step = arriving.step
    AND stored.turn_id = arriving.turn_id
    AND stored.source = arriving.source;
