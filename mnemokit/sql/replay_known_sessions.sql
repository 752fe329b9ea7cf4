-- Which arriving sessions does the store have turns of?
SELECT arriving.source, arriving.session_id
FROM arriving
SEMI JOIN turns AS stored ON stored.session_id = arriving.session_id AND stored.source = arriving.source;
